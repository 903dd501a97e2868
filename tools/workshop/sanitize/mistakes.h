/*
 * Mistakes that the sanitizers must find, one of each kind. Most do no harm if
 * they are not stopped: they write to unused memory.
 */
#pragma once

#include "kernel/lib/types.h"

struct mistake {
    const char *mistake_name;
    const char *mistake_kind; /* of the report that it must cause */
    const char *mistake_says; /* in a few words */
    void (*mistake_make)(void);
};

extern const struct mistake mistakes[];
extern const size_t mistake_count;
