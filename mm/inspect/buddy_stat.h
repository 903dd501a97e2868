/*
 * The buddy allocator's counts, for commands and tools.
 */
#pragma once

#include "mm/buddy.h"

/* A snapshot; counts are of blocks unless they say pages. */
struct buddy_stat {
    size_t stat_free[BUDDY_ORDERS];
    uint64_t stat_allocs[BUDDY_ORDERS]; /* allocated blocks, by order */
    uint64_t stat_frees[BUDDY_ORDERS];
    uint64_t stat_splits;
    uint64_t stat_merges;
    uint64_t stat_failures;  /* requests that returned NULL */
    uint64_t stat_pressures; /* calls of the pressure callback */
    size_t stat_free_pages;
    size_t stat_total_pages; /* pages under buddy's management */
    int stat_largest;        /* order of the largest free block, or -1 */
};

void buddy_stat(struct buddy_stat *out);

/*
 * External fragmentation: the part of free memory in blocks that are too small
 * for a request of `order`, in thousandths, rounded to the nearest. 0: every
 * free page can be used; 1000: the request fails. 0 if no page is free.
 */
unsigned buddy_unusable(const struct buddy_stat *st, unsigned order);

/* The first frame of the block that holds `p`: `p` itself unless its state is
 * PAGE_TAIL. NULL if no block does, which only a broken array shows. */
const struct page *page_block(const struct page *p);
