/*
 * forktest: forks until it fails, lets all children end, and forks again.
 *
 *     forktest [-n MOST]
 *
 * The children wait for the other end of a pipe to be closed.
 */
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

#define ENDED_WELL 7

static int gate[2]; /* closed: the children exit */

static void wait_for_gate(void) __attribute__((noreturn));
static void wait_for_gate(void)
{
    char c;

    close(gate[1]);
    read(gate[0], &c, 1);
    _exit(0);
}

/* Forks `most` children, or as many as it can; *error gets the error, or 0. */
static uint32_t fork_many(uint32_t most, int *error)
{
    *error = 0;
    for (uint32_t n = 0; n < most; n++) {
        pid_t pid = fork();

        if (pid == 0)
            wait_for_gate();
        if (pid < 0) {
            *error = errno;
            return n;
        }
    }
    return most;
}

/* Whether a fork works and its child's status arrives. */
static bool fork_works(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(ENDED_WELL);
    return pid > 0 && waitpid(pid, &status, 0) == pid &&
           WEXITSTATUS(status) == ENDED_WELL;
}

int main(int argc, char **argv)
{
    uint32_t most = 100000;
    unsigned forks;
    int error, option;
    bool works;

    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option != 'n')
            usage("[-n MOST]");
        most = number_between(optarg, 1, 1000000);
    }
    if (pipe(gate) < 0)
        err(1, "pipe");
    forks = fork_many(most, &error);
    close(gate[1]);
    while (wait(NULL) > 0)
        continue;
    works = fork_works();
    printf("forktest: %u processes%s%s; fork %s again\n", forks,
           error != 0 ? ", then: " : "", error != 0 ? strerror(error) : "",
           works ? "works" : "does not work");
    return works ? 0 : 1;
}
