/*
 * What the fuzzers syscallfuzz, codefuzz and stormfuzz share: their options,
 * random numbers, and the end of a child.
 */
#pragma once

#include "user/lib/unistd.h"

struct fuzz_options {
    uint32_t fuzz_seed;
    uint32_t fuzz_count; /* of calls, streams or rounds */
    bool fuzz_verbose;
};

/* Reads the options -s SEED, -n how many and -v into *o, which holds the usual
 * count, and prints the seed. Without -s the seed is the time since boot. Ends
 * the program if an option is wrong; `counted` names the count in its message.
 */
void fuzz_begin(int argc, char **argv, const char *counted,
                struct fuzz_options *o);

/* Random numbers, after srand(): below n; of 32 bits. */
uint32_t below(uint32_t n);
uint32_t any_bits(void);

enum child_end {
    CHILD_ENDED,  /* by itself */
    CHILD_KILLED, /* by a signal, for a fault or from itself */
    CHILD_STUCK,  /* by child_wait, after the limit */
};

/* Waits for a child, at most about `limit_ms`, and kills what is left of the
 * group that it is to lead. *status is the child's, as wait() returns it. */
enum child_end child_wait(pid_t pid, uint32_t limit_ms, int *status);
