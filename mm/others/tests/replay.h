/*
 * Replays a trace on an allocator.
 */
#pragma once

#include "mm/others/others.h"
#include "mm/others/tests/trace.h"

struct replay_block {
    uint8_t *block_at; /* NULL: the slot has none */
    uint32_t block_size;
    uint32_t block_cache; /* 0: untyped */
};

struct replay {
    const struct other_allocator *replay_allocator;
    struct trace *replay_trace;
    struct other_cache *replay_cache;  /* by number */
    struct replay_block *replay_block; /* by slot */
    uint64_t replay_ticked;
    /* set by the caller, after replay_begin */
    void (*replay_mark)(struct replay *r, uint32_t mark); /* or NULL */
    uint32_t replay_check_each; /* events; 0: only at marks and at the end */
};

/* Prepares to replay `t` on an allocator whose heap is empty. */
void replay_begin(struct replay *r, const struct other_allocator *a,
                  struct trace *t);

/* Carries out all events in the order of the file. NULL, or what went wrong:
 * a block that another one overlaps, a failure that the trace does not have, a
 * broken invariant. */
const char *replay_run(struct replay *r);

/* Frees what is still allocated, in the order of slots, and ends the replay.
 * NULL, or what went wrong. */
const char *replay_end(struct replay *r);
