/*
 * The buddy allocator's inside, for buddy.c, its verifier and its tests.
 */
#pragma once

#include "mm/buddy.h"

struct buddy_zone {
    mm_lock_t zone_lock; /* guards all of this and the tags of pages */
    struct list zone_list[BUDDY_ORDERS]; /* the free blocks of each order */
    size_t zone_total_pages;
    size_t zone_free;     /* on the lists */
    size_t zone_reserved; /* by buddy_reserve, and not yet taken */
    size_t zone_taken;    /* by buddy_alloc_reserved */
    uint64_t zone_allocs[BUDDY_ORDERS];
    uint64_t zone_frees[BUDDY_ORDERS];
    uint64_t zone_splits;
    uint64_t zone_merges;
    uint64_t zone_failures;
    uint64_t zone_pressures;
    size_t (*zone_reclaim)(void);
};

extern struct buddy_zone buddy_zone;

/* Calls the pressure callback. False: it released nothing. No lock held. */
bool buddy_pressure(void);

_Static_assert((sizeof(struct page) & (sizeof(struct page) - 1)) == 0,
               "buddies' entries differ in one bit");

/* The buddy of the block at `p`: the block whose frame number differs in bit
 * `order` alone. The page array is aligned, so the same is true of the
 * addresses of their entries. */
struct page *buddy_of(struct page *p, unsigned order);

static inline struct page *buddy_list_page(struct list *l)
{
    return list_entry(l, struct page, page_link);
}
