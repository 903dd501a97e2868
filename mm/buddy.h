/*
 * The buddy allocator: physical pages in blocks of 2^order, order 0 to 10.
 *
 * The supplier of everything: slabs, page tables, user pages. Sources: the
 * method is Knuth's, The Art of Computer Programming volume 1, section 2.5.
 * Safe in interrupts. One lock, MM_RANK_BUDDY.
 */
#pragma once

#include "mm/page.h"

#define BUDDY_ORDERS    11
#define BUDDY_MAX_ORDER (BUDDY_ORDERS - 1)
#define BUDDY_MAX_PAGES (1u << BUDDY_MAX_ORDER)

/* Takes all usable frames of the page array. Boot only. */
void buddy_init(void);

/*
 * A block of 2^order pages, aligned to its own size, or NULL. When no block
 * is left it asks the pressure callback to give pages back and tries again,
 * until there is a block or nothing more comes. Never sleeps; the callback
 * may run destructors.
 */
struct page *buddy_alloc(unsigned order);

/* Gives back a block as it was handed out. A block that is not out (freed
 * twice, reserved, the middle of another) or was handed out at another order
 * panics and names the address. */
void buddy_free(struct page *p, unsigned order);

/*
 * Exactly `pages` contiguous pages: takes the next power of two and gives the
 * tail back at once. NULL when there is none, or pages is 0 or more than
 * BUDDY_MAX_PAGES. buddy_free_run gives such a run back, whole.
 */
struct page *buddy_alloc_run(size_t pages);
void buddy_free_run(struct page *p, size_t pages);

/* Called without locks when buddy runs dry; returns pages given back. The
 * callback may not call for pages itself. */
void buddy_set_pressure(size_t (*reclaim)(void));

size_t buddy_free_pages(void);

/* NULL, or the name of the first broken invariant; *where gets the frame. */
const char *buddy_verify(const struct page **where);
