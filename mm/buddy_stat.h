/*
 * The buddy allocator's counts, for those who print them.
 */
#pragma once

#include "mm/buddy.h"

/* A snapshot; counts are of blocks unless they say pages. */
struct buddy_stat {
    size_t stat_free[BUDDY_ORDERS];
    uint64_t stat_allocs[BUDDY_ORDERS]; /* blocks handed out, by order */
    uint64_t stat_frees[BUDDY_ORDERS];
    uint64_t stat_splits;
    uint64_t stat_merges;
    uint64_t stat_failures;  /* requests that got NULL in the end */
    uint64_t stat_pressures; /* times that memory was asked back */
    size_t stat_free_pages;
    size_t stat_total_pages; /* pages under buddy's management */
    int stat_largest;        /* order of the largest free block, or -1 */
};

void buddy_stat(struct buddy_stat *out);

/*
 * External fragmentation: how much of the free memory lies in blocks that are
 * too small for a request of `order`, in thousandths, rounded to the nearest.
 * 0 means that every free page is of use, 1000 that the request fails. Where
 * nothing is free nothing is unusable.
 */
unsigned buddy_unusable(const struct buddy_stat *st, unsigned order);
