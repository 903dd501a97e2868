/*
 * spike: the paper's section 5.2, "a spike of 256 processes": eight consecutive
 * forks, each made by every process that exists by then. Each process opens a
 * pipe and sleeps; then all exit, and everything must be freed.
 *
 *     spike [-n FORKS] [-t MS]
 *
 * Each process reports by one byte in a shared pipe; the first one counts them
 * when the last has closed its end.
 */
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/unistd.h"

enum outcome {
    OUTCOME_GOOD,
    OUTCOME_NO_FORK,
    OUTCOME_NO_PIPE,
    OUTCOMES
};

/* Runs in every process after its forks. */
static enum outcome hold_pipe(uint32_t ms)
{
    int ends[2];

    if (pipe(ends) < 0)
        return OUTCOME_NO_PIPE;
    sleep_ms(ms);
    close(ends[0]);
    close(ends[1]);
    return OUTCOME_GOOD;
}

/* Forks `forks` times, in the children too, and reports to `out`. Returns only
 * in the first process. */
static void fork_all(uint32_t forks, uint32_t ms, int out)
{
    enum outcome outcome = OUTCOME_GOOD;
    bool first = true;
    char report;

    for (uint32_t i = 0; i < forks; i++) {
        pid_t pid = fork();

        if (pid < 0)
            outcome = OUTCOME_NO_FORK;
        else if (pid == 0)
            first = false;
    }
    if (outcome == OUTCOME_GOOD)
        outcome = hold_pipe(ms);
    else
        hold_pipe(ms);
    report = (char)outcome;
    write(out, &report, 1);
    close(out);
    if (first)
        return;
    while (wait(NULL) > 0)
        continue;
    _exit(0);
}

int main(int argc, char **argv)
{
    uint32_t forks = 8;
    uint32_t ms = 100;
    unsigned count[OUTCOMES] = {0};
    unsigned processes = 0;
    uint32_t start = uptime_ms();
    int ends[2];
    int option;
    char report;

    while ((option = getopt(argc, argv, "n:t:")) != -1) {
        if (option == 'n')
            forks = number_between(optarg, 0, 11);
        else if (option == 't')
            ms = number_between(optarg, 0, 1000000);
        else
            usage("[-n FORKS] [-t MS]");
    }
    if (pipe(ends) < 0)
        err(1, "pipe");
    fork_all(forks, ms, ends[1]);
    while (read(ends[0], &report, 1) == 1) {
        count[(unsigned)report % OUTCOMES]++;
        processes++;
    }
    while (wait(NULL) > 0)
        continue;
    printf("spike: %u processes in %u ms, %u without all forks, "
           "%u without a pipe\n",
           processes, (unsigned)uptime_diff(uptime_ms(), start),
           count[OUTCOME_NO_FORK], count[OUTCOME_NO_PIPE]);
    return processes == 1u << forks && count[OUTCOME_GOOD] == processes ? 0 : 1;
}
