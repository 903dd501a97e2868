/*
 * The heap: pages from sbrk, under the slab allocator (mm_sbrk.c).
 */
#pragma once

#include "kernel/lib/types.h"
#include "mm/page.h"

struct heap_stat {
    size_t stat_pages;     /* of the heap, without foreign ones */
    size_t stat_free;      /* of these in free runs */
    size_t stat_runs;      /* free runs */
    uint64_t stat_grows;   /* calls of sbrk that grew the heap */
    uint64_t stat_shrinks; /* and that shrank it */
};

/* Creates the page array and the first pages. False: no memory. */
bool heap_init(void);

/* Returns free pages at the end of the heap to the system if there are at least
 * `least`. Returns how many. */
size_t heap_trim(size_t least);

void heap_stat(struct heap_stat *out);

/* NULL, or the first broken invariant; *where says where. */
const char *heap_verify(const char **where);
