/*
 * The buddy allocator: physical pages in blocks of 2^order.
 *
 * A block of order k starts at a frame number that is a multiple of 2^k; its
 * buddy is the block whose number differs in bit k alone. A request takes the
 * smallest free block that is large enough and halves it, putting the right
 * halves on their free lists, until it fits; a freed block is joined with its
 * buddy as long as the buddy is free and whole:
 *
 *     order 2   [     0-3     ]
 *     order 1   [ 0-1 ][ 2-3  ]        one free list per order
 *     order 0   [0][1][2][3]
 *
 * Only the first frame of a block has its state and order. All others are
 * PAGE_TAIL, so a free of a wrong address is detected.
 *
 * Some pages are reserved: a program was promised them (kernel/vm/commit.h),
 * and takes them one by one. All others can have
 *
 *     available = free - reserved and not taken
 *
 * pages. The subtrahend can be negative, but only for a moment.
 *
 * The loops that halve and join blocks are unrolled: the order is then a
 * constant in each step, and so are the tag, the list and the distance.
 */
#include "kernel/lib/string.h"
#include "mm/buddy_impl.h"

struct buddy_zone buddy_zone; /* buddy_init fills it in */

#define TAG_TAIL PAGE_TAG(PAGE_TAIL, PAGE_NO_ORDER)

/* ---- blocks and lists --------------------------------------------------- */

static inline void block_link(struct page *p, unsigned order)
{
    MM_ASSERT(mm_lock_held(&buddy_zone.zone_lock));
    p->page_tag = PAGE_TAG(PAGE_FREE, order);
    list_insert_after(&buddy_zone.zone_list[order], &p->page_link);
}

/* Halves the block at `p` from order `from` to order `to`; the right halves go
 * to their free lists. */
static inline void block_split(struct page *p, unsigned from, unsigned to)
{
    buddy_zone.zone_splits += from - to;
#pragma GCC unroll 10
    for (unsigned k = 0; k < BUDDY_MAX_ORDER; k++) {
        if (k < to)
            continue;
        if (k == from)
            break;
        block_link(p + ((size_t)1 << k), k);
    }
}

/* Marks the first block of a list as allocated at `order` and takes it. */
static inline struct page *block_take(struct list *head, unsigned order)
{
    struct page *p = buddy_list_page(head->next);

    MM_ASSERT(mm_lock_held(&buddy_zone.zone_lock));
    list_remove(&p->page_link);
    p->page_tag = PAGE_TAG(PAGE_ALLOC, order);
    buddy_zone.zone_allocs[order]++;
    buddy_zone.zone_free -= (size_t)1 << order;
    return p;
}

/* A block of `order`, or NULL: the first of the smallest order that has any,
 * halved until it fits. */
static inline struct page *block_take_any(unsigned order)
{
    struct list *lists = buddy_zone.zone_list;

    for (struct list *l = &lists[order]; l < &lists[BUDDY_ORDERS]; l++)
        if (!list_empty(l)) {
            struct page *p = block_take(l, order);

            if (l != &lists[order])
                block_split(p, (unsigned)(l - lists), order);
            return p;
        }
    return NULL;
}

inline struct page *buddy_of(struct page *p, unsigned order)
{
    return (struct page *)((uintptr_t)p ^ sizeof(struct page) << order);
}

/* Whether a block and its buddy can be joined. The buddy's tag may be changing
 * if the buddy is allocated, but only with the lock does it become free. */
static inline bool can_merge(struct page *p, unsigned order)
{
    return order < BUDDY_MAX_ORDER &&
           MM_UNLOCKED(buddy_of(p, order)->page_tag) ==
               PAGE_TAG(PAGE_FREE, order);
}

/* Joins the block at `p` with its buddy as long as that is free and whole, and
 * puts the result on its list. */
static void block_join(struct page *p, unsigned order)
{
    unsigned joined = order;

    p->page_tag = TAG_TAIL;
#pragma GCC unroll 10
    for (unsigned k = 0; k < BUDDY_MAX_ORDER; k++) {
        struct page *buddy = buddy_of(p, k);

        if (k < order)
            continue;
        if (!can_merge(p, k))
            break;
        list_remove(&buddy->page_link);
        buddy->page_tag = TAG_TAIL;
        p = (struct page *)((uintptr_t)p & (uintptr_t)buddy); /* the left */
        joined = k + 1;
    }
    buddy_zone.zone_merges += joined - order;
    block_link(p, joined);
}

/*
 * A run of n pages is a row of blocks, largest first, one for each bit of n;
 * its tail is a row of blocks, smallest first:
 *
 *     13 = 1101b    [ 8 pages       ][ 4     ][1]|[1][ 2 ]
 *                                         the run | its tail
 *
 * Each block is aligned to its size, since the run is aligned to more.
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

/* Frees the tail. The buddy of each of its blocks has a page of the run,
 * so there is nothing to join. */
static void run_trim(struct page *p, size_t pages, unsigned order)
{
    buddy_zone.zone_free += ((size_t)1 << order) - pages;
    while (pages < (size_t)1 << order) {
        unsigned k = (unsigned)__builtin_ctz((unsigned)pages);

        block_link(p + pages, k);
        pages += (size_t)1 << k;
    }
}

/* A run of `pages`, or NULL: no block is large enough. */
static struct page *run_take(size_t pages)
{
    unsigned order = 31u - (unsigned)__builtin_clz(2 * (unsigned)pages - 1);
    struct page *p = block_take_any(order);

    if (p != NULL && pages != (size_t)1 << order) {
        run_mark(p, pages);
        run_trim(p, pages, order);
    }
    return p;
}

/* ---- memory that is short ----------------------------------------------- */

void buddy_set_pressure(size_t (*reclaim)(void))
{
    buddy_zone.zone_reclaim = reclaim;
}

bool buddy_pressure(void)
{
    if (buddy_zone.zone_reclaim == NULL)
        return false;
    mm_lock(&buddy_zone.zone_lock);
    buddy_zone.zone_pressures++;
    mm_unlock(&buddy_zone.zone_lock);
    return buddy_zone.zone_reclaim() != 0;
}

/* Whether `pages` are available and `keep` stay so. */
static inline bool is_available(size_t pages, size_t keep)
{
    MM_ASSERT(mm_lock_held(&buddy_zone.zone_lock));
    return buddy_zone.zone_free - buddy_zone.zone_reserved >= pages + keep;
}

/* Whether that could be. If not, there is no reason to reclaim memory. */
static bool is_possible(size_t pages, size_t keep)
{
    return keep <= buddy_zone.zone_total_pages &&
           pages <= buddy_zone.zone_total_pages - keep;
}

/* Any request for which a block of a free list does not do: a run, `taken`
 * pages of it from the reserve. Calls the pressure callback until there is a
 * run or it releases nothing, and looks after each call: another task may have
 * freed pages. */
static __attribute__((noinline)) struct page *
alloc_run(size_t pages, size_t keep, size_t taken)
{
    bool possible = pages - 1 < BUDDY_MAX_PAGES && is_possible(pages, keep);
    struct page *p = NULL;

    for (bool more = possible;; more = buddy_pressure()) {
        mm_lock(&buddy_zone.zone_lock);
        if (possible && is_available(pages - taken, keep))
            p = run_take(pages);
        if (p != NULL) {
            buddy_zone.zone_reserved -= taken;
            buddy_zone.zone_taken += taken;
        } else {
            buddy_zone.zone_failures += !more;
        }
        mm_unlock(&buddy_zone.zone_lock);
        if (p != NULL || !more)
            return p;
    }
}

bool buddy_reserve(size_t pages, size_t keep)
{
    bool possible = is_possible(pages, keep);
    bool done;

    for (bool more = possible;; more = buddy_pressure()) {
        mm_lock(&buddy_zone.zone_lock);
        done = possible && is_available(pages, keep);
        buddy_zone.zone_reserved += done ? pages : 0;
        mm_unlock(&buddy_zone.zone_lock);
        if (done || !more)
            return done;
    }
}

void buddy_unreserve(size_t pages)
{
    mm_lock(&buddy_zone.zone_lock);
    buddy_zone.zone_reserved -= pages;
    mm_unlock(&buddy_zone.zone_lock);
}

/* ---- allocating and freeing --------------------------------------------- */

struct page *buddy_alloc(unsigned order)
{
    struct page *p = NULL;

    if (unlikely(order > BUDDY_MAX_ORDER))
        return alloc_run(BUDDY_MAX_PAGES + 1, 0, 0); /* fails */
    mm_lock(&buddy_zone.zone_lock);
    if (likely(!list_empty(&buddy_zone.zone_list[order]) &&
               is_available((size_t)1 << order, mm_keep_most)))
        p = block_take(&buddy_zone.zone_list[order], order);
    mm_unlock(&buddy_zone.zone_lock);
    return likely(p != NULL) ? p : alloc_run((size_t)1 << order, mm_keep(), 0);
}

struct page *buddy_alloc_run(size_t pages)
{
    return alloc_run(pages, mm_keep(), 0);
}

struct page *buddy_alloc_reserved(size_t pages)
{
    return alloc_run(pages, 0, pages);
}

/* NULL, or why this page cannot be freed at this order, judged by its tag. */
static const char *free_error(const struct page *p, unsigned order)
{
    if (p->page_tag == PAGE_TAG(PAGE_ALLOC, order))
        return NULL;
    if (p->page_state == PAGE_FREE)
        return "is already free";
    if (p->page_state == PAGE_ALLOC)
        return "is allocated at another order";
    if (p->page_state > PAGE_ALLOC)
        return "belongs to segkmem";
    if (p->page_state == PAGE_TAIL)
        return "is not the start of a block";
    return "is not allocated";
}

/* Counts a free, with `taken` pages that return to the reserve. */
static inline void count_block(unsigned order, size_t taken)
{
    MM_ASSERT(mm_lock_held(&buddy_zone.zone_lock));
    buddy_zone.zone_frees[order]++;
    buddy_zone.zone_free += (size_t)1 << order;
    buddy_zone.zone_reserved += taken;
    buddy_zone.zone_taken -= taken;
}

/* A free that is wrong, or of a block with a buddy to join. */
static __attribute__((noinline)) void
free_and_join(struct page *p, unsigned order, size_t taken)
{
    const char *error;

    mm_lock(&buddy_zone.zone_lock);
    error = free_error(p, order);
    if (error == NULL) {
        count_block(order, taken);
        block_join(p, order);
    }
    mm_unlock(&buddy_zone.zone_lock);
    if (error != NULL)
        mm_panic("buddy_free: page 0x%lx, order %u: %s",
                 (unsigned long)page_to_phys(p), order, error);
}

static inline void free_block(struct page *p, unsigned order, size_t taken)
{
    bool plain;

    mm_lock(&buddy_zone.zone_lock);
    plain = p->page_tag == PAGE_TAG(PAGE_ALLOC, order) && !can_merge(p, order);
    if (likely(plain)) {
        count_block(order, taken);
        block_link(p, order);
    }
    mm_unlock(&buddy_zone.zone_lock);
    if (unlikely(!plain))
        free_and_join(p, order, taken);
}

void buddy_free(struct page *p, unsigned order)
{
    free_block(p, order, 0);
}

static void free_run(struct page *p, size_t pages, bool reserved)
{
    while (pages != 0) {
        unsigned k = 31u - (unsigned)__builtin_clz((unsigned)pages);

        free_block(p, k, reserved ? (size_t)1 << k : 0);
        p += (size_t)1 << k;
        pages -= (size_t)1 << k;
    }
}

void buddy_free_run(struct page *p, size_t pages)
{
    free_run(p, pages, false);
}

void buddy_free_reserved(struct page *p, size_t pages)
{
    free_run(p, pages, true);
}

/* ---- counts ------------------------------------------------------------- */

void buddy_pages(struct buddy_pages *out)
{
    mm_lock(&buddy_zone.zone_lock);
    out->pages_total = buddy_zone.zone_total_pages;
    out->pages_free = buddy_zone.zone_free;
    out->pages_reserved = buddy_zone.zone_reserved + buddy_zone.zone_taken;
    out->pages_taken = buddy_zone.zone_taken;
    mm_unlock(&buddy_zone.zone_lock);
}

size_t buddy_free_pages(void)
{
    return MM_UNLOCKED(buddy_zone.zone_free); /* one word */
}

/* ---- starting ----------------------------------------------------------- */

/* Makes the largest aligned blocks of the usable frames [first, end). */
static void give_range(size_t first, size_t end)
{
    buddy_zone.zone_total_pages += end - first;
    buddy_zone.zone_free += end - first;
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
    mm_lock_init(&buddy_zone.zone_lock, "buddy", LOCK_RANK_BUDDY);
    for (unsigned k = 0; k < BUDDY_ORDERS; k++)
        list_init(&buddy_zone.zone_list[k]);
    mm_lock(&buddy_zone.zone_lock);
    while (first < page_count) {
        size_t end = first;

        while (end < page_count && page_array[end].page_state == PAGE_TAIL)
            end++;
        give_range(first, end);
        first = end + 1;
    }
    mm_unlock(&buddy_zone.zone_lock);
}
