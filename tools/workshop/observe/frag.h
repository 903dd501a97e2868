/*
 * Fragmentation, as `frag` prints it and marks remember it.
 */
#pragma once

#include "kernel/lib/types.h"

/* Fragmentation of all slabs, in bytes: frag_consumed is the sum of the other
 * four. Memory of the allocator's own caches is all overhead. */
struct heap_frag {
    uint64_t frag_consumed;
    uint64_t frag_requested; /* objects in use, at the size asked for */
    uint64_t frag_internal;  /* rounding, colour, rests of slabs */
    uint64_t frag_free;      /* free buffers */
    uint64_t frag_meta;      /* headers, hash tables, the allocator's own */
};

void heap_frag(struct heap_frag *out);

/* Label and fragmentation of mark number `i`, oldest first; false if there are
 * no more. */
bool heap_mark(size_t i, const char **label, struct heap_frag *frag);
