/*
 * Checks, children and requests, for devtest and for tests of other drivers.
 */
#include "user/lib/err.h"
#include "user/lib/findtask.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/tests/devtest/devtest.h"

static int failures;
static int checks;

/* Reports a failure as an event, like a failed expectation of the kernel's
 * tests. */
static void report(const char *what, const char *file, int line)
{
    FILE *debug = fopen("/dev/debug", "w");

    if (debug == NULL)
        return;
    fprintf(debug,
            "{\"event\":\"expectation\",\"file\":\"%s\",\"line\":%d,"
            "\"text\":\"failed: %s\"}\n",
            file, line, what);
    fclose(debug);
}

void check_at(bool good, const char *what, const char *file, int line)
{
    if (!good)
        report(what, file, line);
    printf("%s: %s\n", good ? "good" : "BAD", what);
    fflush(stdout);
    failures += !good;
    checks++;
}

pid_t child(int (*fn)(void))
{
    pid_t pid;
    int result;

    fflush(stdout);
    pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid > 0)
        return pid;
    result = fn();
    _exit(result < 0 ? errno : result);
}

pid_t begin(int (*fn)(void))
{
    pid_t pid = child(fn);

    sleep_ms(50);
    return pid;
}

int ended(pid_t pid)
{
    int status = 0;

    if (waitpid(pid, &status, 0) < 0)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
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

int check_report(const char *program)
{
    printf("%s: %d checks, %d failures\n", program, checks, failures);
    return failures != 0;
}
