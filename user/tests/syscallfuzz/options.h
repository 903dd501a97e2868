/*
 * The options of a fuzzer: -s SEED, -n how many, -v. Shared by syscallfuzz,
 * codefuzz and stormfuzz.
 */
#pragma once

#include "kernel/lib/types.h"

struct fuzz_options {
    uint32_t fuzz_seed;
    uint32_t fuzz_count; /* of calls, streams or rounds */
    bool fuzz_verbose;
};

/* Reads the options into *o, which holds the usual count, and prints the seed.
 * Without -s the seed is the time since boot. Ends the program if an option is
 * wrong; `counted` names the count in its message. */
void fuzz_begin(int argc, char **argv, const char *counted,
                struct fuzz_options *o);
