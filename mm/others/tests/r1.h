/*
 * The generator of the reference trace R1.
 *
 * Its events go to a sink, which is a trace (r1_write), or an allocator itself
 * where there is no room for a trace: in a kernel.
 */
#pragma once

#include "mm/others/tests/trace.h"

#define R1_SEED   12345 /* that of the reference trace; others are like it */
#define R1_BLOCKS 8192  /* that processes and files have at a time, at most */
#define R1_LISTS  512   /* of processes, and of files */
#define R1_CACHES 12

/* Cache 1, 2, … of the trace. */
extern const struct trace_cache r1_cache[R1_CACHES];

struct r1_block {
    uint32_t block_id;
    uint32_t block_slot;
    struct r1_block *block_next;
};

/* The blocks of a process or a file, in the order of their allocation. */
struct r1_elem {
    unsigned elem_ids;
    struct r1_block *elem_first;
    struct r1_block *elem_last;
};

struct r1_vector {
    unsigned vector_elems;
    struct r1_elem vector_elem[R1_LISTS];
};

/* What the generator needs: the caller owns it, and sets the sink. */
struct r1 {
    /* Carries an event out. Returns the slot of an allocation. */
    uint32_t (*r1_sink)(struct r1 *r, const struct trace_event *e);
    void *r1_own; /* the sink's */

    uint32_t r1_random; /* the generator's state */
    uint32_t r1_hash;   /* FNV-1a of all events */
    unsigned r1_part;
    unsigned r1_events;
    unsigned r1_allocs;
    unsigned r1_frees;
    struct trace_event r1_event; /* the last */
    struct r1_vector r1_programs, r1_files, r1_others;
    struct r1_elem r1_opened, r1_program; /* of a step of find */
    struct r1_block *r1_unused;
    struct r1_block r1_block[R1_BLOCKS];
};

/* Makes the events of the trace with this seed. `part` is 1, or how many times
 * shorter its last two phases are. */
void r1_run(struct r1 *r, uint32_t seed, unsigned part);

/* Writes R1 but for its end (trace_end). Returns what it came to, for its
 * self-check. */
const struct r1 *r1_write(struct trace_writer *w);
