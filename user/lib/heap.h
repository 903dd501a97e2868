/*
 * The heap: pages from sbrk, under the slab allocator (mm_sbrk.c).
 */
#pragma once

#include "kernel/lib/types.h"
#include "mm/page.h"

struct heap_stat {
    size_t stat_pages;     /* of the heap, foreign ones left out */
    size_t stat_free;      /* of these in free runs */
    size_t stat_runs;      /* free runs */
    size_t stat_largest;   /* pages in the largest */
    size_t stat_foreign;   /* pages that others got by sbrk */
    uint64_t stat_grows;   /* sbrks up */
    uint64_t stat_shrinks; /* and down */
};

/* Makes the page array and the first pages. False without memory. */
bool heap_init(void);

/* Gives what is free at the end back if it is `least` pages or more. Returns
 * how many. */
size_t heap_trim(size_t least);

/* The pages of the run that begins with `p`, as handed out. */
size_t heap_run_pages(const struct page *p);

void heap_stat(struct heap_stat *out);

/* NULL, or the first broken invariant; *where says where. */
const char *heap_verify(const char **where);
