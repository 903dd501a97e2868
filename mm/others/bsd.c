/*
 * 4.4BSD: powers of two (McKusick, Karels 1988).
 *
 * A request gets a block of the next power of two, 16 bytes or more, from the
 * list of free blocks of that size, its bucket. A bucket that is empty gets a
 * page, all of which becomes blocks of that size.
 *
 *     bucket             free blocks
 *     4,   16 bytes      ●──> ●──> ●
 *     5,   32 bytes
 *     …                  allocations take the first,
 *     9,  512 bytes      ●──> ●──> ●──> ●      frees append behind the last
 *     …
 *     13,   8 KiB        ●
 *
 *     page   0     1     2     3     4  5  6  …
 *     size  16   512   512   16    large, 3 pages
 *     free   0     4     0     3
 *
 * The size of a block is that of its page: a record of 4 bytes for each page
 * says which bucket has it, and how many of its blocks are free. So nothing is
 * in an allocated block, and those that are powers of two waste nothing. (An
 * allocator with a header in each block wastes half of every such block.)
 *
 * Requests above 8 KiB get whole pages, and return them when they are freed.
 * All smaller ones keep theirs: what was a page of 512-byte blocks once is one
 * for ever, even if they are all free.
 *
 * Sources: M. K. McKusick, M. J. Karels, Design of a General Purpose Memory
 * Allocator for the 4.3BSD UNIX Kernel (1988); 4.4BSD's order of frees, which
 * appends; the slab paper, section 5.
 *
 * What the slab paper says against it: objects in the kernel are rarely powers
 * of two, so that a quarter or more of each block is waste, and what a burst
 * has needed of one size is of no use for another. It wasted 20 % of the heap
 * after boot, 43 % after the spike and 45 % after kenbus (slab: 11, 13, 14 %).
 * It is the fastest of its three rivals, 4.1 us for an allocation and a free,
 * but objects at powers of two all use the same few lines of a processor's
 * cache and the same few buses. Every allocation constructs its object anew.
 */
#include "mm/others/bsd.h"
#include "mm/page.h"

bool bsd_lifo;
struct bsd_bucket bsd_bucket[BSD_BUCKETS];

static struct other_heap heap;

/* The common path of an operation is one function: its few steps, macros in
 * 1988, are the point of this allocator. */
#define INLINE static inline __attribute__((always_inline))

/* ---- sizes and pages ---------------------------------------------------- */

/* The smallest power of two that is large enough; the last one is for all that
 * are larger, too. */
static unsigned bucket_of(size_t size)
{
    return MIN(MAX(other_power(size), BSD_MIN_BUCKET), BSD_BUCKETS - 1);
}

/* The record of a page in which there is a block of this bucket. */
static struct bsd_page *record_of(const void *p, unsigned i, size_t size)
{
    struct bsd_page *page = other_page(&heap, p);
    size_t align = MIN((size_t)1 << i, (size_t)PAGE_SIZE);

    if (page->page_bucket != i || ((uintptr_t)p & (align - 1)) != 0)
        mm_panic("bsd: %p is not a block for %zu bytes", p, size);
    return page;
}

/* ---- small blocks ------------------------------------------------------- */

static void bucket_push(struct bsd_bucket *b, struct bsd_block *block)
{
    block->block_next = b->bucket_next;
    b->bucket_next = block;
    if (b->bucket_last == NULL)
        b->bucket_last = block;
}

static void bucket_append(struct bsd_bucket *b, struct bsd_block *block)
{
    if (b->bucket_last == NULL) {
        bucket_push(b, block);
        return;
    }
    block->block_next = NULL;
    b->bucket_last->block_next = block;
    b->bucket_last = block;
}

/* Pages that are got, with their record. The lock is released meanwhile. */
static void *record_pages(size_t pages, unsigned bucket, size_t count)
{
    void *addr = NULL;
    struct bsd_page *page;

    if (pages <= UINT16_MAX)
        addr = other_get_pages(&heap, pages, PAGE_SIZE);
    if (addr == NULL)
        return NULL;
    page = supply_info(heap.heap_supply, addr);
    page->page_bucket = (uint16_t)bucket;
    page->page_count = (uint16_t)count;
    return addr;
}

/* The blocks of a new page, the highest first. What another task has freed
 * meanwhile is behind them. */
static void bucket_refill(unsigned i)
{
    struct bsd_bucket *b = &bsd_bucket[i];
    size_t bytes = (size_t)1 << i;
    char *at = record_pages(PAGES_FOR(bytes), i, b->bucket_blocks);

    if (at == NULL)
        return;
    for (size_t n = 0; n < b->bucket_blocks; n++)
        bucket_push(b, (struct bsd_block *)(at + n * bytes));
    b->bucket_total += b->bucket_blocks;
    b->bucket_free += b->bucket_blocks;
}

INLINE void *bucket_get(unsigned i)
{
    struct bsd_bucket *b = &bsd_bucket[i];
    struct bsd_block *block;
    struct bsd_page *page;

    if (unlikely(b->bucket_next == NULL))
        bucket_refill(i);
    block = b->bucket_next;
    if (unlikely(block == NULL))
        return NULL;
    b->bucket_next = block->block_next;
    if (b->bucket_next == NULL)
        b->bucket_last = NULL;
    page = supply_info(heap.heap_supply, block);
    page->page_count--;
    b->bucket_free--;
    b->bucket_calls++;
    return block;
}

/* A page that is all free stays; it is only counted. */
INLINE void bucket_put(void *p, unsigned i, size_t size)
{
    struct bsd_bucket *b = &bsd_bucket[i];
    struct bsd_page *page = record_of(p, i, size);

    if (page->page_count == b->bucket_blocks)
        mm_panic("bsd: %p, %zu bytes: all blocks of its page are free already",
                 p, size);
    page->page_count++;
    b->bucket_free++;
    if (page->page_count == b->bucket_blocks &&
        b->bucket_free > 5 * b->bucket_blocks)
        b->bucket_could_free++;
    if (bsd_lifo)
        bucket_push(b, p);
    else
        bucket_append(b, p);
}

/* ---- whole pages -------------------------------------------------------- */

static void *large_get(size_t size)
{
    unsigned i = bucket_of(size);
    size_t pages = PAGES_FOR(size);
    void *p = record_pages(pages, i, pages);

    if (p != NULL) {
        bsd_bucket[i].bucket_calls++;
        bsd_bucket[i].bucket_total++;
    }
    return p;
}

static void large_put(void *p, size_t size)
{
    unsigned i = bucket_of(size);
    struct bsd_page *page = record_of(p, i, size);
    size_t pages = page->page_count;

    if (pages != PAGES_FOR(size))
        mm_panic("bsd: %p was allocated with %zu pages, freed with %zu bytes",
                 p, pages, size);
    *page = (struct bsd_page){0};
    bsd_bucket[i].bucket_total--;
    other_put_pages(&heap, p, pages);
}

/* ---- the operations ----------------------------------------------------- */

/* A block is aligned to its size, up to a page. */
static size_t bsd_size(const struct other_cache *c)
{
    return MAX(c->other_size, c->other_align);
}

INLINE void *small_alloc(size_t asked, size_t size, struct other_cache *c)
{
    unsigned i = bucket_of(size);
    void *p;

    other_lock(&heap);
    p = bucket_get(i);
    if (likely(p != NULL))
        other_count_alloc(&heap, c, asked, (size_t)1 << i, 0);
    else
        other_count_fail(&heap, c);
    other_unlock(&heap);
    return p;
}

INLINE void small_free(void *p, size_t asked, size_t size,
                       struct other_cache *c)
{
    unsigned i = bucket_of(size);

    other_lock(&heap);
    bucket_put(p, i, size);
    other_count_free(&heap, c, asked, (size_t)1 << i, 0);
    other_unlock(&heap);
}

static __attribute__((noinline)) void *large_alloc(size_t asked, size_t size,
                                                   struct other_cache *c)
{
    void *p;

    other_lock(&heap);
    p = large_get(size);
    if (p != NULL)
        other_count_alloc(&heap, c, asked, ROUND_UP(size, (size_t)PAGE_SIZE),
                          0);
    else
        other_count_fail(&heap, c);
    other_unlock(&heap);
    return p;
}

static __attribute__((noinline)) void
large_free(void *p, size_t asked, size_t size, struct other_cache *c)
{
    other_lock(&heap);
    large_put(p, size);
    other_count_free(&heap, c, asked, ROUND_UP(size, (size_t)PAGE_SIZE), 0);
    other_end(&heap);
}

static void bsd_init(struct supply *s)
{
    other_init(&heap, "bsd", s);
    for (unsigned i = 0; i < BSD_BUCKETS; i++)
        bsd_bucket[i] = (struct bsd_bucket){
            .bucket_blocks = MAX((size_t)PAGE_SIZE >> i, (size_t)1)};
}

static void *bsd_alloc(size_t size)
{
    if (size == 0)
        return OTHER_NOTHING;
    return likely(size <= BSD_MAX_SAVE) ? small_alloc(size, size, NULL)
                                        : large_alloc(size, size, NULL);
}

static void bsd_free(void *p, size_t size)
{
    if (p == OTHER_NOTHING)
        return;
    if (likely(size <= BSD_MAX_SAVE))
        small_free(p, size, size, NULL);
    else
        large_free(p, size, size, NULL);
}

static void *bsd_cache_alloc(struct other_cache *c)
{
    size_t size = bsd_size(c);
    void *obj = likely(size <= BSD_MAX_SAVE)
                    ? small_alloc(c->other_size, size, c)
                    : large_alloc(c->other_size, size, c);

    return other_construct(c, obj);
}

static void bsd_cache_free(struct other_cache *c, void *obj)
{
    size_t size = bsd_size(c);

    other_destroy(c, obj);
    if (likely(size <= BSD_MAX_SAVE))
        small_free(obj, c->other_size, size, c);
    else
        large_free(obj, c->other_size, size, c);
}

/* ---- counts ------------------------------------------------------------- */

static size_t bsd_free_bytes(void)
{
    size_t bytes = 0;

    for (unsigned i = 0; i < BSD_BUCKETS; i++)
        bytes += bsd_bucket[i].bucket_free << i;
    return bytes;
}

static const char *bsd_check(void)
{
    return bsd_verify(&heap);
}

static void bsd_stat(struct other_stat *out)
{
    other_lock(&heap);
    other_stat(&heap, bsd_free_bytes(), out);
    other_unlock(&heap);
}

const struct other_allocator bsd_allocator = {
    .op_name = "bsd",
    .op_init = bsd_init,
    .op_cache_alloc = bsd_cache_alloc,
    .op_cache_free = bsd_cache_free,
    .op_alloc = bsd_alloc,
    .op_free = bsd_free,
    .op_stat = bsd_stat,
    .op_check = bsd_check,
};
