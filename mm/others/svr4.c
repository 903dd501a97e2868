/*
 * SVr4: the lazy buddy system (Lee, Barkley 1989).
 *
 * Blocks are powers of two. A request gets one of the next power; if there is
 * none, a larger one is split into halves, its buddies, until one has the size.
 *
 *     16 KiB ┌───────────────────────────────┐
 *      8 KiB │       split       │   free    │
 *      4 KiB │  split  │  free   │
 *      2 KiB │used│free│
 *
 * In an ordinary buddy system a free joins two free buddies at once, and then
 * the next allocation splits them again. Here a freed block of class i is only
 * *locally* free at first: no other may join it, and it is the next to be used.
 * It is *globally* free, marked in a bitmap and joined, when its class has too
 * many such blocks. That depends on the class's slack, D:
 *
 *     D = blocks in use - blocks locally free
 *
 *     D ≥ 2   lazy          the block becomes locally free      D falls by 2
 *     D = 1   reclaiming    globally free                       D falls by 1
 *     D = 0   accelerated   globally free, and a local one too  D stays 0
 *
 * So there are never more local blocks than blocks in use. In steady use nearly
 * all frees are lazy, and nothing is split or joined; when use ends, all joins
 * again. A block that is split counts as in use, and two that are joined are
 * freed to the class above by the same rule; otherwise D would fall below 0.
 *
 *     list of a class      local ──> local ──> global ──> global
 *                          allocations take the first; a local block is put
 *                          there, a global one at the end
 *
 *     small pool, 1 page   │bitmap│ 14 × 256 bytes │          8 … 256 bytes
 *     large pool, 16 KiB   │ 16 KiB, bitmap in the descriptor │   … 4 KiB
 *
 * Larger requests get whole pages, and return them when they are freed. A large
 * pool that is one block again is returned by the free that joined it, a small
 * one at the next tick or under pressure, where the original had a daemon.
 *
 * Sources: T. P. Lee, R. E. Barkley, A Watermark-Based Lazy Buddy System for
 * Kernel Memory Allocation (1989); U. Vahalia, UNIX Internals (1996), for the
 * three rules and the pools; the slab paper, section 5.
 *
 * What the slab paper says against it: 9.4 us for an allocation and a free,
 * where slabs need 3.8, though with little spread; and powers of two waste
 * memory as in 4.4BSD: 23 % after boot, 45 % after the spike, 46 % after kenbus
 * (slab: 11, 13, 14 %). What it can join it seldom joins. Objects at powers of
 * two use few lines of a cache and few buses; and every allocation constructs
 * its object anew.
 */
#include "mm/others/svr4.h"
#include "kernel/lib/string.h"
#include "mm/page.h"

bool svr4_eager;
struct svr4_class svr4_class[SVR4_CLASSES];
size_t svr4_pages[SVR4_OVERSIZED + 1];

/* In the place of the first two blocks of a small pool is its bitmap. */
#define SMALL_FIRST ((size_t)2 << SVR4_SMALL_CLASS)

static struct other_heap heap;

/* ---- pools and their bitmaps -------------------------------------------- */

static unsigned svr4_class_of(size_t size)
{
    return MAX(other_power(size), SVR4_MIN_CLASS);
}

static size_t bytes_of(unsigned i)
{
    return (size_t)1 << i;
}

static unsigned top_of(unsigned i)
{
    return i <= SVR4_SMALL_CLASS ? SVR4_SMALL_CLASS : SVR4_LARGE_CLASS;
}

static size_t pool_size(unsigned i)
{
    return i <= SVR4_SMALL_CLASS ? PAGE_SIZE : bytes_of(SVR4_LARGE_CLASS);
}

static enum svr4_kind kind_of(unsigned i)
{
    return i <= SVR4_SMALL_CLASS ? SVR4_SMALL : SVR4_LARGE;
}

/* Where the first block of a pool begins. */
static size_t pool_first(unsigned i)
{
    return i <= SVR4_SMALL_CLASS ? SMALL_FIRST : 0;
}

/* The pool of a block of this class. */
char *svr4_pool(unsigned i, const void *b)
{
    return (char *)((uintptr_t)b & ~(pool_size(i) - 1));
}

/* The word of the pool's bitmap, and the bit there, of a block: the bits of a
 * class follow those of the class above. */
static inline uint32_t *word_of(unsigned i, const void *b, uint32_t *bit)
{
    char *pool = svr4_pool(i, b);
    struct svr4_page *page = supply_info(heap.heap_supply, pool);
    uint32_t *bits = i <= SVR4_SMALL_CLASS ? (uint32_t *)pool : page->page_bits;
    size_t n = (pool_size(i) + (size_t)((const char *)b - pool)) >> i;

    *bit = (uint32_t)1 << n % 32;
    return &bits[n / 32];
}

bool svr4_is_global(unsigned i, const void *b)
{
    uint32_t bit, *word = word_of(i, b, &bit);

    return *word & bit;
}

char *svr4_buddy(unsigned i, const char *b)
{
    return (char *)((uintptr_t)b ^ bytes_of(i));
}

/* ---- the list of a class ------------------------------------------------ */

static struct svr4_link *link_at(uint32_t n)
{
    return supply_block(heap.heap_supply, n);
}

/* Where the number of the block after this one is, or before it. */
static uint32_t *next_of(struct svr4_class *c, uint32_t n)
{
    return n == 0 ? &c->class_first : &link_at(n)->link_next;
}

static uint32_t *prev_of(struct svr4_class *c, uint32_t n)
{
    return n == 0 ? &c->class_last : &link_at(n)->link_prev;
}

static void class_insert(struct svr4_class *c, void *b, uint32_t prev,
                         uint32_t next)
{
    struct svr4_link *l = b;

    l->link_prev = prev;
    l->link_next = next;
    *next_of(c, prev) = *prev_of(c, next) = supply_number(heap.heap_supply, b);
}

static void put_local(unsigned i, void *b)
{
    struct svr4_class *c = &svr4_class[i];

    class_insert(c, b, 0, c->class_first);
    c->class_local++;
}

static void put_global(unsigned i, void *b)
{
    struct svr4_class *c = &svr4_class[i];
    uint32_t bit, *word = word_of(i, b, &bit);

    if (*word & bit)
        mm_panic("svr4: %p, %zu bytes: it is free already", b, bytes_of(i));
    class_insert(c, b, c->class_last, 0);
    *word |= bit;
    c->class_global++;
}

/* Takes a free block, of either kind, from its list. */
static char *free_take(unsigned i, void *b)
{
    struct svr4_class *c = &svr4_class[i];
    const struct svr4_link *l = b;
    uint32_t bit, *word = word_of(i, b, &bit);

    *next_of(c, l->link_prev) = l->link_next;
    *prev_of(c, l->link_next) = l->link_prev;
    if (*word & bit) {
        *word &= ~bit;
        c->class_global--;
    } else {
        c->class_local--;
    }
    return b;
}

static char *class_take(unsigned i)
{
    return free_take(i, link_at(svr4_class[i].class_first));
}

/* ---- pages -------------------------------------------------------------- */

static void pool_count(enum svr4_kind kind, ptrdiff_t pages)
{
    svr4_pages[kind] += (size_t)pages;
    if (kind == SVR4_SMALL)
        other_count_metadata(&heap, pages * (ptrdiff_t)SMALL_FIRST);
}

/* The lock is released meanwhile. */
static char *pool_pages(enum svr4_kind kind, size_t pages, size_t align)
{
    char *at = other_get_pages(&heap, pages, align);
    struct svr4_page *page;

    if (at == NULL)
        return NULL;
    page = supply_info(heap.heap_supply, at);
    page->page_kind = kind;
    page->page_count = (uint32_t)pages;
    pool_count(kind, (ptrdiff_t)pages);
    return at;
}

/* A pool of which all blocks are globally free. */
static void pool_get(unsigned top)
{
    size_t bytes = pool_size(top);
    char *at = pool_pages(kind_of(top), bytes >> PAGE_SHIFT, bytes);

    if (at == NULL)
        return;
    if (top == SVR4_SMALL_CLASS)
        memset(at, 0, SVR4_SMALL_WORDS * sizeof(uint32_t));
    for (size_t i = pool_first(top); i < bytes; i += bytes_of(top))
        put_global(top, at + i);
}

/* None of the blocks is on a list. */
static void pool_put(char *at)
{
    struct svr4_page *page = supply_info(heap.heap_supply, at);

    pool_count(page->page_kind, -(ptrdiff_t)page->page_count);
    page->page_kind = SVR4_NONE;
    other_put_pages(&heap, at, page->page_count);
}

/* ---- blocks ------------------------------------------------------------- */

/* The smallest class, not below i, that has a free block. */
static unsigned class_find(unsigned i)
{
    unsigned top = top_of(i);

    while (i <= top && svr4_class[i].class_first == 0)
        i++;
    return i;
}

/* A block of class i, by splitting larger ones. */
static char *class_get(unsigned i)
{
    unsigned j = class_find(i);
    char *b;

    if (j > top_of(i)) {
        pool_get(top_of(i));
        j = class_find(i);
    }
    if (j > top_of(i))
        return NULL;
    b = class_take(j);
    svr4_class[j].class_used++;
    while (j > i) {
        svr4_class[j--].class_splits++;
        svr4_class[j].class_used++;
        put_local(j, b + bytes_of(j));
    }
    return b;
}

static void class_put(unsigned i, char *b);

/* Joins a block with its buddy, if that is globally free, too. */
static void make_global(unsigned i, char *b)
{
    char *buddy = svr4_buddy(i, b);

    if (i == SVR4_LARGE_CLASS) {
        pool_put(b);
    } else if (i != SVR4_SMALL_CLASS && svr4_is_global(i, buddy)) {
        svr4_class[i].class_joins++;
        free_take(i, buddy);
        class_put(i + 1, MIN(b, buddy));
    } else {
        put_global(i, b);
    }
}

/* Frees a block by the slack of its class. */
static void class_put(unsigned i, char *b)
{
    struct svr4_class *c = &svr4_class[i];
    size_t slack = c->class_used - c->class_local;

    if (c->class_used == 0)
        mm_panic("svr4: %p: no block of %zu bytes is allocated", (void *)b,
                 bytes_of(i));
    c->class_used--;
    if (slack == 1 || svr4_eager) {
        c->class_reclaiming++;
        make_global(i, b);
    } else if (slack >= 2) {
        c->class_lazy++;
        put_local(i, b);
    } else {
        char *other = class_take(i);

        c->class_accelerated++;
        make_global(i, b);
        make_global(i, other);
    }
}

/* Panics unless `p` can be a block for requests of `size`. */
static void check_block(const char *p, size_t size)
{
    unsigned i = svr4_class_of(size);
    bool pages = size > SVR4_MAX_REQUEST;
    const char *pool = pages ? p : svr4_pool(i, p);
    const struct svr4_page *page = supply_info(heap.heap_supply, pool);

    if (page == NULL)
        mm_panic("svr4: %p is not memory", (const void *)p);
    if (page->page_kind != (pages ? SVR4_OVERSIZED : kind_of(i)) ||
        (pages ? PAGES_FOR(size) != page->page_count
               : ((uintptr_t)p & (bytes_of(i) - 1)) != 0 ||
                     (size_t)(p - pool) < pool_first(i)))
        mm_panic("svr4: %p is not a block for %zu bytes", (const void *)p,
                 size);
}

static size_t svr4_bytes(size_t size)
{
    return size > SVR4_MAX_REQUEST ? ROUND_UP(size, (size_t)PAGE_SIZE)
                                   : bytes_of(svr4_class_of(size));
}

static void *svr4_get(size_t asked, size_t size, struct other_cache *c)
{
    void *p;

    other_lock(&heap);
    p = size > SVR4_MAX_REQUEST
            ? pool_pages(SVR4_OVERSIZED, PAGES_FOR(size), PAGE_SIZE)
            : class_get(svr4_class_of(size));
    if (p != NULL)
        other_count_alloc(&heap, c, asked, svr4_bytes(size), 0);
    else
        other_count_fail(&heap, c);
    other_unlock(&heap);
    return p;
}

static void svr4_put(void *p, size_t asked, size_t size, struct other_cache *c)
{
    other_lock(&heap);
    check_block(p, size);
    if (size > SVR4_MAX_REQUEST)
        pool_put(p);
    else
        class_put(svr4_class_of(size), p);
    other_count_free(&heap, c, asked, svr4_bytes(size), 0);
    other_end(&heap);
}

/* ---- the operations ----------------------------------------------------- */

static void svr4_init(struct supply *s)
{
    other_init(&heap, "svr4", s);
    memset(svr4_class, 0, sizeof(svr4_class));
    memset(svr4_pages, 0, sizeof(svr4_pages));
}

static void *svr4_alloc(size_t size)
{
    return size == 0 ? OTHER_NOTHING : svr4_get(size, size, NULL);
}

static void svr4_free(void *p, size_t size)
{
    if (p != OTHER_NOTHING)
        svr4_put(p, size, size, NULL);
}

/* A block is aligned to its size. */
static size_t svr4_size(const struct other_cache *c)
{
    return MAX(c->other_size, c->other_align);
}

static void *svr4_cache_alloc(struct other_cache *c)
{
    return other_construct(c, svr4_get(c->other_size, svr4_size(c), c));
}

static void svr4_cache_free(struct other_cache *c, void *obj)
{
    other_destroy(c, obj);
    svr4_put(obj, c->other_size, svr4_size(c), c);
}

/* Whether all largest blocks of a pool are globally free. */
static bool pool_idle(unsigned top, char *pool)
{
    for (size_t i = pool_first(top); i < pool_size(top); i += bytes_of(top))
        if (!svr4_is_global(top, pool + i))
            return false;
    return true;
}

/* The daemon: returns idle pools. */
static void svr4_pressure(void)
{
    const struct supply *s = heap.heap_supply;

    other_lock(&heap);
    for (size_t n = 0; n < s->supply_pages; n++) {
        struct svr4_page *page = (struct svr4_page *)s->supply_info[n];
        /* SVR4_NONE, too, of pages that another processor returns now */
        enum svr4_kind kind = MM_UNLOCKED(page->page_kind);
        char *pool = supply_page(s, page);
        unsigned top = kind == SVR4_SMALL ? SVR4_SMALL_CLASS : SVR4_LARGE_CLASS;

        if (kind != kind_of(top) || !pool_idle(top, pool))
            continue;
        for (size_t i = pool_first(top); i < pool_size(top); i += bytes_of(top))
            free_take(top, pool + i);
        pool_put(pool);
    }
    other_end(&heap);
}

/* ---- counts ------------------------------------------------------------- */

static size_t svr4_free_bytes(void)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < SVR4_CLASSES; i++)
        bytes += (svr4_class[i].class_local + svr4_class[i].class_global) << i;
    return bytes;
}

static const char *svr4_check(void)
{
    return svr4_verify(&heap);
}

static void svr4_stat(struct other_stat *out)
{
    other_lock(&heap);
    other_stat(&heap, svr4_free_bytes(), out);
    other_unlock(&heap);
}

static void svr4_tick(uint64_t now_ms UNUSED)
{
    svr4_pressure();
}

const struct other_allocator svr4_allocator = {
    .op_name = "svr4",
    .op_init = svr4_init,
    .op_cache_alloc = svr4_cache_alloc,
    .op_cache_free = svr4_cache_free,
    .op_alloc = svr4_alloc,
    .op_free = svr4_free,
    .op_tick = svr4_tick,
    .op_pressure = svr4_pressure,
    .op_stat = svr4_stat,
    .op_check = svr4_check,
};
