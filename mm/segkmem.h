/*
 * segkmem: the page supplier of the slab allocator (paper, 3.1 and 7.1).
 *
 * The firewall between the slab allocator and the rest of memory: whole runs
 * of pages, each marked with the cache that holds it and why, and counted.
 */
#pragma once

#include "mm/page.h"

struct segkmem_stat {
    size_t stat_use[PAGE_STATES]; /* pages by use: PAGE_SLAB … PAGE_UNMAPPED */
    size_t stat_pages;            /* the sum of these */
};

/*
 * Exactly `pages` contiguous pages of kernel memory, or NULL. `use` is one of
 * PAGE_SLAB, PAGE_HASH, PAGE_OVERSIZE; `owner` is the cache they are for, or
 * NULL. Contents are undefined. Never sleeps.
 */
void *kmem_getpages(size_t pages, enum page_state use, void *owner);

/* Changes the use and owner of pages that kmem_getpages returned. */
void kmem_setuse(void *addr, size_t pages, enum page_state use, void *owner);

/* The owner of the page at `addr`, if the page has this use; else NULL. Reads
 * both under one lock: another task may free the page meanwhile. */
void *kmem_page_owner(const void *addr, enum page_state use);

/* Frees a whole run that kmem_getpages returned. */
void kmem_freepages(void *addr, size_t pages);

void segkmem_stat(struct segkmem_stat *out);

/*
 * Between these two a task moves pages from segkmem to a cache or back, or has
 * not counted them yet: what the caches have need not add up to what segkmem
 * has given them. How many tasks are there now, and how many have been.
 */
void kmem_transfer_begin(void);
void kmem_transfer_end(void);

extern uint32_t kmem_transfers;
extern uint32_t kmem_transfers_begun;

/* The name of a use, for pictures and messages. */
const char *page_state_name(enum page_state state);
