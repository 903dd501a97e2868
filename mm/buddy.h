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
 * A block of 2^order pages, aligned to its own size, or NULL. Reserved pages,
 * and as many more as mm_keep() says, stay free. If no block is left that can
 * be taken, it calls the pressure callback and tries again, until there is one
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

/*
 * Reserves `pages` of those that are available, if `keep` more stay so; which
 * ones is not said. It calls the pressure callback as buddy_alloc does. False:
 * there are not so many. buddy_unreserve takes it back: of pages that were not
 * taken, or that have returned to the reserve.
 */
bool buddy_reserve(size_t pages, size_t keep);
void buddy_unreserve(size_t pages);

/*
 * A run from the reserve, and back to it. One page is always found if no more
 * than the reserve are taken; NULL: no page is free, or no run of so many.
 */
struct page *buddy_alloc_reserved(size_t pages);
void buddy_free_reserved(struct page *p, size_t pages);

/* The callback is called without locks when a request would fail, and returns
 * how many pages it released. If it allocates pages itself and none are left,
 * it is called again; that call returns 0. */
void buddy_set_pressure(size_t (*reclaim)(void));

struct buddy_pages {
    size_t pages_total;
    size_t pages_free;
    size_t pages_reserved; /* those that are taken included */
    size_t pages_taken;    /* from the reserve */
};

/* All at one moment. */
void buddy_pages(struct buddy_pages *out);

/* Of these, the pages that are free and not reserved. */
static inline size_t buddy_available(const struct buddy_pages *b)
{
    return b->pages_free + b->pages_taken - b->pages_reserved;
}

size_t buddy_free_pages(void);

/* NULL, or the name of the first broken invariant; *where gets the frame. */
const char *buddy_verify(const struct page **where);
