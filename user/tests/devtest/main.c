/*
 * What both tests need.
 */
#include "user/tests/devtest/devtest.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

static int failures;
static int checks;

void check(bool good, const char *what)
{
    printf("%s: %s\n", good ? "good" : "BAD", what);
    fflush(stdout);
    failures += !good;
    checks++;
}

pid_t begin(int (*fn)(void))
{
    pid_t pid;
    int result;

    fflush(stdout);
    pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        result = fn();
        _exit(result < 0 ? errno : result);
    }
    sleep_ms(50);
    return pid;
}

int ended(pid_t pid)
{
    int status = 0;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* The pid of the task of that name, or 0. */
static pid_t find_task(const char *name)
{
    FILE *f = fopen("/proc/tasks", "r");
    pid_t found = 0;
    char row[128];

    if (f == NULL)
        err(1, "/proc/tasks");
    while (fgets(row, sizeof(row), f) != NULL) {
        char *last = strrchr(row, ' ');

        row[strlen(row) - 1] = 0;
        if (last != NULL && strcmp(last + 1, name) == 0)
            found = (pid_t)strtol(row, NULL, 10);
    }
    fclose(f);
    return found;
}

void end_task(const char *name)
{
    pid_t pid = find_task(name);

    if (pid == 0 || kill(pid, SIGKILL) < 0)
        err(1, "%s", name);
    sleep_ms(20);
}

int request(int port, uint32_t tag, uint32_t word, struct ipc_buffer *b)
{
    struct message m = {.msg_tag = tag, .msg_word = {word}, .msg_buffer = b};

    return ipc_call(port, &m) < 0 ? -errno : (int)m.msg_word[0];
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "rtc") == 0)
        test_rtc();
    else if (argc == 2 && strcmp(argv[1], "uart") == 0)
        test_uart();
    else
        usage("rtc | uart");
    printf("devtest: %d checks, %d failures\n", checks, failures);
    return failures != 0;
}
