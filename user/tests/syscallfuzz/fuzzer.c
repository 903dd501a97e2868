/*
 * Options, random numbers and the end of a child.
 */
#include "user/tests/syscallfuzz/fuzzer.h"
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"

#define STEP_MS 10u

static void wrong(const char *counted) __attribute__((noreturn));
static void wrong(const char *counted)
{
    char arguments[64];

    snprintf(arguments, sizeof(arguments), "[-s SEED] [-n %s] [-v]", counted);
    usage(arguments);
}

/* The seed is printed before anything else runs, so that a run that ends the
 * machine can be repeated. */
void fuzz_begin(int argc, char **argv, const char *counted,
                struct fuzz_options *o)
{
    int option;

    o->fuzz_seed = uptime_ms() + 1;
    while ((option = getopt(argc, argv, "s:n:v")) != -1) {
        if (option == 's')
            o->fuzz_seed = number_between(optarg, 0, UINT32_MAX);
        else if (option == 'n')
            o->fuzz_count = number_between(optarg, 1, UINT32_MAX);
        else if (option == 'v')
            o->fuzz_verbose = true;
        else
            wrong(counted);
    }
    printf("%s: seed %u\n", program_name, (unsigned)o->fuzz_seed);
    fflush(stdout);
}

uint32_t below(uint32_t n)
{
    return (uint32_t)rand() % n;
}

uint32_t any_bits(void)
{
    return (uint32_t)rand() << 16 ^ (uint32_t)rand();
}

/* False: it has not ended in time. */
static bool ends(pid_t pid, uint32_t limit_ms, int *status)
{
    for (uint32_t ms = 0; ms < limit_ms; ms += STEP_MS) {
        for (int i = 0; i < 20; i++) {
            if (waitpid(pid, status, WNOHANG) == pid)
                return true;
            yield();
        }
        sleep_ms(STEP_MS);
    }
    return false;
}

enum child_end child_wait(pid_t pid, uint32_t limit_ms, int *status)
{
    bool ended;

    setpgid(pid, pid); /* the child does so too, perhaps later */
    ended = ends(pid, limit_ms, status);
    kill(-pid, SIGKILL);
    if (!ended) {
        waitpid(pid, status, 0);
        return CHILD_STUCK;
    }
    return WIFEXITED(*status) ? CHILD_ENDED : CHILD_KILLED;
}
