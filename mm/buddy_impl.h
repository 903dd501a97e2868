/*
 * The buddy allocator's inside, for buddy.c, its verifier and its tests.
 */
#pragma once

#include "mm/buddy.h"

struct buddy_zone {
    mm_lock_t zone_lock; /* guards all of this and the tags of pages */
    struct list zone_list[BUDDY_ORDERS]; /* the free blocks of each order */
    size_t zone_total_pages;
    uint64_t zone_allocs[BUDDY_ORDERS];
    uint64_t zone_frees[BUDDY_ORDERS];
    size_t zone_tails; /* pages of runs' tails, freed at once */
    uint64_t zone_splits;
    uint64_t zone_merges;
    uint64_t zone_failures;
    uint64_t zone_pressures;
    size_t (*zone_reclaim)(void);
};

extern struct buddy_zone buddy_zone;

/* Free pages, computed from the counts of allocations and frees: the lists may
 * be long, and every clock interrupt calls this. The caller holds zone_lock. */
size_t buddy_count_free(void);

_Static_assert((sizeof(struct page) & (sizeof(struct page) - 1)) == 0,
               "buddies' entries differ in one bit");

/* The buddy of the block at `p`: the block whose frame number differs in bit
 * `order` alone. The page array is aligned, so the same is true of the
 * addresses of their entries. */
static inline struct page *buddy_of(struct page *p, unsigned order)
{
    return (struct page *)((uintptr_t)p ^ sizeof(struct page) << order);
}

static inline struct page *buddy_list_page(struct list *l)
{
    return list_entry(l, struct page, page_link);
}
