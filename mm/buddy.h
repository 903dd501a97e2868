/*
 * The buddy allocator: physical pages in blocks of 2^order, order 0 to 10.
 *
 * The supplier of everything: slabs, page tables, user pages. Sources: the
 * method is Knuth's, The Art of Computer Programming volume 1, section 2.5.
 * Safe in interrupts. One lock, LOCK_RANK_BUDDY.
 */
#pragma once

#include "mm/page.h"

#define BUDDY_ORDERS    11
#define BUDDY_MAX_ORDER (BUDDY_ORDERS - 1)
#define BUDDY_MAX_PAGES (1u << BUDDY_MAX_ORDER)

/* The page array's alignment: the entries of a largest block. */
#define BUDDY_ALIGN (BUDDY_MAX_PAGES * sizeof(struct page))

/* Makes free blocks of all usable frames of the page array. Boot only. */
void buddy_init(void);

/*
 * A block of 2^order pages, aligned to its own size, or NULL. If no block is
 * left, it calls the pressure callback and tries again, until there is a block
 * or the callback releases nothing. Never sleeps; the callback may run
 * destructors.
 */
struct page *buddy_alloc(unsigned order);

/* Frees a block that buddy_alloc returned. Panics and names the address if it
 * is not the start of an allocated block of that order (freed twice, reserved,
 * the middle of another block). */
void buddy_free(struct page *p, unsigned order);

/*
 * Exactly `pages` contiguous pages: takes the next power of two and frees the
 * tail at once. NULL if there is no such block, or pages is 0 or more than
 * BUDDY_MAX_PAGES. buddy_free_run frees such a run, whole.
 */
struct page *buddy_alloc_run(size_t pages);
void buddy_free_run(struct page *p, size_t pages);

/* The callback is called without locks when no block is left, and returns how
 * many pages it released. If it allocates pages itself and none are left, it is
 * called again; that call returns 0. */
void buddy_set_pressure(size_t (*reclaim)(void));

/* Calls it, for a caller that needs free pages. False: it returned none. No
 * lock held. */
bool buddy_pressure(void);

size_t buddy_free_pages(void);

/* NULL, or the name of the first broken invariant; *where gets the frame. */
const char *buddy_verify(const struct page **where);
