/*
 * The generator of the reference trace R1.
 */
#pragma once

#include "mm/others/tests/trace.h"

/* Writes R1 but for its end (trace_end). */
void r1_write(struct trace_writer *w);

/* What the generator did last, for its self-check. */
extern struct r1 {
    uint32_t r1_random; /* its state */
    uint32_t r1_hash;   /* FNV-1a of all events */
    unsigned r1_events;
    unsigned r1_allocs;
    unsigned r1_frees;
} r1;
