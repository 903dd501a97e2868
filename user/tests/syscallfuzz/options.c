/*
 * The options of a fuzzer. The seed is printed before anything else runs, so
 * that a run that ends the machine can be repeated.
 */
#include "user/tests/syscallfuzz/options.h"
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/unistd.h"

static void wrong(const char *counted) __attribute__((noreturn));
static void wrong(const char *counted)
{
    char arguments[64];

    snprintf(arguments, sizeof(arguments), "[-s SEED] [-n %s] [-v]", counted);
    usage(arguments);
}

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
