/*
 * forktest: forks until it fails, lets all children end, and forks again.
 *
 *     forktest [-n MOST]
 *
 * A child makes the forks, since it may be killed when memory runs out for one
 * of its own pages; the first process survives to report. The children wait for
 * the other end of a pipe to be closed; the child reports each fork by one byte
 * in another pipe.
 */
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

#define ENDED_WELL 7

static int gate[2];   /* closed: the children may exit */
static int report[2]; /* a byte per fork, then the error's number */

static void wait_for_gate(void) __attribute__((noreturn));
static void wait_for_gate(void)
{
    char c;

    close(gate[1]);
    close(report[1]);
    read(gate[0], &c, 1);
    _exit(0);
}

/* Forks `most` children, or as many as it can. */
static void fork_many(uint32_t most) __attribute__((noreturn));
static void fork_many(uint32_t most)
{
    char c = 0;

    close(report[0]);
    for (uint32_t i = 0; i < most && c == 0; i++) {
        pid_t pid = fork();

        if (pid == 0)
            wait_for_gate();
        c = pid < 0 ? (char)errno : 0;
        write(report[1], &c, 1);
    }
    close(report[1]);
    close(gate[1]);
    while (wait(NULL) > 0)
        continue;
    _exit(ENDED_WELL);
}

/* Counts the reported forks; *error gets the error of the last, or 0. */
static unsigned count_forks(int *error)
{
    unsigned n = 0;
    char c;

    *error = 0;
    while (read(report[0], &c, 1) == 1) {
        if (c == 0)
            n++;
        else
            *error = c;
    }
    return n;
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
    int status, error, option;
    bool works;
    pid_t pid;

    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option != 'n')
            usage("[-n MOST]");
        most = number_between(optarg, 1, 1000000);
    }
    if (pipe(gate) < 0 || pipe(report) < 0)
        err(1, "pipe");
    pid = fork();
    if (pid < 0)
        err(1, "fork");
    if (pid == 0)
        fork_many(most);
    close(report[1]);
    forks = count_forks(&error);
    close(gate[1]);
    waitpid(pid, &status, 0);
    while (wait(NULL) > 0) /* remaining children, if their parent was killed */
        continue;
    works = fork_works();
    printf("forktest: %u processes%s%s%s; fork %s again\n", forks,
           error != 0 ? ", then: " : "", error != 0 ? strerror(error) : "",
           WIFEXITED(status) ? "" : ", then the forking one was killed",
           works ? "works" : "does not work");
    return works ? 0 : 1;
}
