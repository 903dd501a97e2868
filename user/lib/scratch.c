/*
 * The parent must survive, so it touches all the pages it needs before the
 * directory is created: a page shared after fork would need memory at its next
 * write. The child waits for that.
 */
#include "user/lib/scratch.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/tree.h"

#define STACK_NEEDED 3072 /* of stack, for later calls of the parent */

static void run_child(const char *path, int gate, int (*fn)(void))
    __attribute__((noreturn));
static void run_child(const char *path, int gate, int (*fn)(void))
{
    char c;

    if (read(gate, &c, 1) != 1)
        _exit(1);
    close(gate);
    if (mkdir(path) < 0 || chdir(path) < 0)
        err(1, "%s", path);
    exit(fn());
}

/* Writes to the pages of data and stack. */
static void __attribute__((noinline)) own_pages(void)
{
    volatile char stack[STACK_NEEDED];

    stack[0] = stack[STACK_NEEDED - 1] = 0;
    errno = 0;
}

static int finish(pid_t child, char *path)
{
    int status;

    if (waitpid(child, &status, 0) != child)
        return 1;
    if (!remove_tree(path)) {
        warnx("%s could not be removed", path);
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int scratch_run(int (*fn)(void))
{
    char path[PATH_MAX];
    int gate[2];
    pid_t child;

    snprintf(path, sizeof(path), "/tmp/%s.%d", program_name, (int)getpid());
    if (pipe(gate) < 0)
        err(1, "pipe");
    child = fork();
    if (child < 0)
        err(1, "fork");
    if (child == 0) {
        close(gate[1]);
        run_child(path, gate[0], fn);
    }
    own_pages();
    write(gate[1], "", 1);
    close(gate[0]);
    close(gate[1]);
    return finish(child, path);
}
