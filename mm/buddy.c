/*
 * The buddy allocator: physical pages in blocks of 2^order.
 *
 * A block of order k starts at a frame number that is a multiple of 2^k; its
 * buddy is the block whose number differs in bit k alone. A request takes the
 * smallest free block that is large enough and halves it, putting the right
 * halves back, until it fits; a block that comes back is joined with its buddy
 * as long as that one is free and whole:
 *
 *     order 2   [     0-3     ]
 *     order 1   [ 0-1 ][ 2-3  ]        one free list per order
 *     order 0   [0][1][2][3]
 *
 * Only the first frame of a block carries its state and order. All others say
 * PAGE_TAIL, which is how a free of the wrong thing is noticed. The page array
 * is aligned so that "differs in bit k" holds for the addresses of its entries
 * as it does for their numbers: from a frame to its buddy is one exclusive or.
 */
#include "kernel/lib/string.h"
#include "mm/buddy_impl.h"

struct buddy_zone buddy_zone = {.zone_lock =
                                    MM_LOCK_INIT("buddy", MM_RANK_BUDDY)};

#define TAG_TAIL PAGE_TAG(PAGE_TAIL, PAGE_NO_ORDER)

/* ---- blocks and lists; the lock is held --------------------------------- */

static inline void block_link(struct page *p, unsigned order)
{
    p->page_tag = PAGE_TAG(PAGE_FREE, order);
    list_insert_after(&buddy_zone.zone_list[order], &p->page_link);
}

/*
 * Halves the block at `p` of order `from` until order `to`, the right halves
 * going to the free lists. Those lists are empty: `from` was the smallest
 * order that had a block.
 */
static inline void block_split(struct page *p, unsigned from, unsigned to)
{
    buddy_zone.zone_splits += from - to;
    /* (Unrolled, here and below, every tag and address of a level is a
     * constant: half the instructions.) */
#pragma GCC unroll 10
    for (unsigned k = BUDDY_MAX_ORDER; k-- > 0;) {
        struct page *right = p + ((size_t)1 << k);
        struct list *head = &buddy_zone.zone_list[k];

        if (k >= from)
            continue;
        right->page_tag = PAGE_TAG(PAGE_FREE, k);
        right->page_link.next = head;
        right->page_link.prev = head;
        head->next = &right->page_link;
        head->prev = &right->page_link;
        if (k == to)
            return;
    }
}

/* A block of `order` out of a larger one, or NULL. The list above the last
 * order is never empty, to end the search. */
static __attribute__((noinline)) struct page *block_take_larger(unsigned order)
{
    struct list *head = &buddy_zone.zone_list[order];
    struct page *p;

    do
        head++;
    while (list_empty(head));
    mm_barrier(); /* so that the loop compares in memory */
    if (head == &buddy_zone.zone_list[BUDDY_ORDERS])
        return NULL;
    p = buddy_list_page(head->next);
    list_remove(&p->page_link);
    block_split(p, (unsigned)(head - buddy_zone.zone_list), order);
    return p;
}

/* A block of exactly `order`, handed out, or NULL. */
static inline struct page *block_take(unsigned order)
{
    struct list *head = &buddy_zone.zone_list[order];
    struct list *first = head->next;
    struct list *next = first->next;
    struct page *p = buddy_list_page(first);

    if (likely(first != head)) {
        head->next = next;
        next->prev = head;
    } else {
        p = block_take_larger(order);
        if (p == NULL)
            return NULL;
    }
    p->page_tag = PAGE_TAG(PAGE_ALLOC, order);
    buddy_zone.zone_allocs[order]++;
    return p;
}

/* Whether a block and its buddy can be joined. */
static inline bool can_merge(struct page *p, unsigned order)
{
    return buddy_of(p, order)->page_tag == PAGE_TAG(PAGE_FREE, order) &&
           order != BUDDY_MAX_ORDER;
}

/* Joins the block at `p` with its buddy, and what comes of it with its own,
 * until one is not free; puts the result on its list. Releases the lock. */
static __attribute__((noinline)) void block_merge(struct page *p,
                                                  unsigned order)
{
    unsigned k = order;

    p->page_tag = TAG_TAIL;
#pragma GCC unroll 10
    for (unsigned level = 0; level < BUDDY_MAX_ORDER; level++) {
        struct page *buddy = buddy_of(p, level);

        if (level < order)
            continue;
        k = level;
        if (buddy->page_tag != PAGE_TAG(PAGE_FREE, level))
            break;
        list_remove(&buddy->page_link);
        buddy->page_tag = TAG_TAIL;
        p = (struct page *)((uintptr_t)p & (uintptr_t)buddy);
        k = level + 1;
    }
    buddy_zone.zone_merges += k - order;
    block_link(p, k);
    mm_unlock(&buddy_zone.zone_lock);
}

/* ---- the public half ---------------------------------------------------- */

void buddy_set_pressure(size_t (*reclaim)(void))
{
    buddy_zone.zone_reclaim = reclaim;
}

/* Asks for pages back, without the lock. True if it was worth asking. */
static bool pressure(void)
{
    if (buddy_zone.zone_reclaim == NULL)
        return false;
    buddy_zone.zone_pressures++;
    return buddy_zone.zone_reclaim() != 0;
}

/* What is left to do when the first look found no block: every answer to the
 * call for pages may be the one that completes a block. */
static __attribute__((noinline)) struct page *
alloc_under_pressure(unsigned order)
{
    struct page *p = NULL;

    while (order <= BUDDY_MAX_ORDER && p == NULL && pressure()) {
        mm_lock(&buddy_zone.zone_lock);
        p = block_take(order);
        mm_unlock(&buddy_zone.zone_lock);
    }
    if (p == NULL)
        buddy_zone.zone_failures++;
    return p;
}

struct page *buddy_alloc(unsigned order)
{
    struct page *p;

    if (unlikely(order > BUDDY_MAX_ORDER))
        return alloc_under_pressure(order);
    mm_lock(&buddy_zone.zone_lock);
    p = block_take(order);
    mm_unlock(&buddy_zone.zone_lock);
    if (unlikely(p == NULL))
        return alloc_under_pressure(order);
    return p;
}

/* Says which of the ways to free wrongly this was. */
static __attribute__((noipa, cold)) void bad_free(const struct page *p,
                                                  unsigned order)
{
    const char *what = "was not handed out";

    mm_unlock(&buddy_zone.zone_lock);
    if (p->page_state == PAGE_FREE)
        what = "is already free";
    else if (p->page_state == PAGE_ALLOC)
        what = "was handed out at another order";
    else if (p->page_state > PAGE_ALLOC)
        what = "belongs to segkmem";
    else if (p->page_state == PAGE_TAIL)
        what = "is not the start of a block";
    mm_panic("buddy_free: page 0x%lx, order %u: %s",
             (unsigned long)page_to_phys(p), order, what);
}

void buddy_free(struct page *p, unsigned order)
{
    mm_lock(&buddy_zone.zone_lock);
    if (unlikely(p->page_tag != PAGE_TAG(PAGE_ALLOC, order))) {
        bad_free(p, order);
        return;
    }
    buddy_zone.zone_frees[order]++;
    if (unlikely(can_merge(p, order))) {
        block_merge(p, order);
        return;
    }
    block_link(p, order);
    mm_unlock(&buddy_zone.zone_lock);
}

/*
 * A run of n pages is a row of blocks, largest first, one for each bit of n;
 * its tail is one of blocks that grow:
 *
 *     13 = 1101b    [ 8 pages       ][ 4     ][1]|[1][ 2 ]
 *                                         the run | its tail
 *
 * Every one of them is aligned to its size, since the run is aligned to more.
 */
static void run_mark(struct page *p, size_t pages)
{
    while (pages != 0) {
        unsigned k = 31u - (unsigned)__builtin_clz((unsigned)pages);

        p->page_tag = PAGE_TAG(PAGE_ALLOC, k);
        p += (size_t)1 << k;
        pages -= (size_t)1 << k;
    }
}

/* Gives the tail back. The buddy of each of its blocks has a page of the run,
 * so there is nothing to join. */
static void run_trim(struct page *p, size_t pages, unsigned order)
{
    buddy_zone.zone_tails += ((size_t)1 << order) - pages;
    while (pages < (size_t)1 << order) {
        unsigned k = (unsigned)__builtin_ctz((unsigned)pages);

        block_link(p + pages, k);
        pages += (size_t)1 << k;
    }
}

struct page *buddy_alloc_run(size_t pages)
{
    unsigned order = 0;
    struct page *p;

    if (pages == 0 || pages > BUDDY_MAX_PAGES)
        return NULL;
    while (((size_t)1 << order) < pages)
        order++;
    p = buddy_alloc(order);
    if (p == NULL || pages == (size_t)1 << order)
        return p;
    mm_lock(&buddy_zone.zone_lock);
    run_mark(p, pages);
    run_trim(p, pages, order);
    mm_unlock(&buddy_zone.zone_lock);
    return p;
}

void buddy_free_run(struct page *p, size_t pages)
{
    while (pages != 0) {
        unsigned k = 31u - (unsigned)__builtin_clz((unsigned)pages);

        buddy_free(p, k);
        p += (size_t)1 << k;
        pages -= (size_t)1 << k;
    }
}

/* ---- starting ---------------------------------------------------------- */

/* Makes the largest aligned blocks of the usable frames [first, end). */
static void give_range(size_t first, size_t end)
{
    buddy_zone.zone_total_pages += end - first;
    while (first < end) {
        unsigned k = BUDDY_MAX_ORDER;

        if (first != 0)
            k = MIN(k, (unsigned)__builtin_ctz((unsigned)first));
        while (first + ((size_t)1 << k) > end)
            k--;
        block_link(&page_array[first], k);
        first += (size_t)1 << k;
    }
}

void buddy_init(void)
{
    size_t first = 0;

    memset(&buddy_zone, 0, sizeof(buddy_zone));
    mm_lock_init(&buddy_zone.zone_lock, "buddy", MM_RANK_BUDDY);
    for (unsigned k = 0; k < BUDDY_ORDERS; k++)
        list_init(&buddy_zone.zone_list[k]);
    buddy_zone.zone_list[BUDDY_ORDERS].next = &buddy_zone.zone_list[0];
    while (first < page_count) {
        size_t end = first;

        while (end < page_count && page_array[end].page_state == PAGE_TAIL)
            end++;
        if (end > first)
            give_range(first, end);
        first = end + 1;
    }
}
