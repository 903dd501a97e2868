/*
 * Children that run what a fuzzer makes: shared by syscallfuzz and codefuzz.
 */
#pragma once

#include "user/lib/unistd.h"

enum child_end {
    CHILD_ENDED,  /* by itself */
    CHILD_KILLED, /* by a signal, for a fault or from itself */
    CHILD_STUCK,  /* by child_wait, after the limit */
};

/* Waits for a child, at most about `limit_ms`, and kills what is left of the
 * group that it is to lead. *status is the child's, as wait() returns it. */
enum child_end child_wait(pid_t pid, uint32_t limit_ms, int *status);
