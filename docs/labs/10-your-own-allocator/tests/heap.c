/*
 * The heap of the tests of lab 10, in an arena whose pages are buddy's.
 */
#include "docs/labs/10-your-own-allocator/tests/heap.h"
#include "kernel/lib/string.h"
#include "mm/buddy.h"

struct supply heap_pages;
size_t heap_held, heap_peak;
const struct other_allocator *heap_of;

static struct page *arena;
static struct page *notes; /* the descriptors, and then which are used */
static void *(*arena_get)(struct supply *s, size_t pages, size_t align);
static void (*arena_put)(struct supply *s, void *addr, size_t pages);

#define INFO_BYTES (HEAP_PAGES * sizeof(*heap_pages.supply_info))
#define NOTE_PAGES PAGES_FOR(INFO_BYTES + HEAP_PAGES)

static void *get_pages(struct supply *s, size_t pages, size_t align)
{
    void *p = arena_get(s, pages, align);

    heap_held += p != NULL ? pages : 0;
    heap_peak = MAX(heap_peak, heap_held);
    return p;
}

/* Overwrites the pages: an allocator must not return pages that it needs. */
static void put_pages(struct supply *s, void *addr, size_t pages)
{
    arena_put(s, addr, pages);
    memset(addr, 0xdb, pages << PAGE_SHIFT);
    heap_held -= pages;
}

/* Also after a test that did not come to its end. */
static void free_arena(void *arg UNUSED)
{
    if (arena != NULL)
        buddy_free_run(arena, HEAP_PAGES);
    if (notes != NULL)
        buddy_free_run(notes, NOTE_PAGES);
    arena = notes = NULL;
}

void heap_begin(const struct other_allocator *a)
{
    char *info;

    ktest_undo(free_arena, NULL);
    arena = buddy_alloc_run(HEAP_PAGES);
    notes = buddy_alloc_run(NOTE_PAGES);
    KT_REQUIRE(arena != NULL && notes != NULL);
    info = page_to_virt(notes);
    supply_arena(&heap_pages, page_to_virt(arena), HEAP_PAGES, info,
                 (uint8_t *)info + INFO_BYTES);
    arena_get = heap_pages.supply_get;
    arena_put = heap_pages.supply_put;
    heap_pages.supply_get = get_pages;
    heap_pages.supply_put = put_pages;
    heap_held = heap_peak = 0;
    heap_of = a;
    a->op_init(&heap_pages);
}

void heap_end(void)
{
    free_arena(NULL);
}

/* ---- blocks ------------------------------------------------------------- */

/* All of its bytes are in pages that the supply has handed out. */
static bool is_in_supply(const struct own_block *b)
{
    size_t at = (size_t)((char *)b->block_at - heap_pages.supply_base);

    if (at >= HEAP_PAGES * PAGE_SIZE ||
        b->block_size > HEAP_PAGES * PAGE_SIZE - at)
        return false;
    for (size_t page = at >> PAGE_SHIFT;
         page <= (at + b->block_size - 1) >> PAGE_SHIFT; page++)
        if (!heap_pages.supply_used[page])
            return false;
    return true;
}

static void check_place(const struct own_block *b)
{
    size_t align = 8;

    if (b->block_cache != NULL)
        align = MAX(align, b->block_cache->other_align);
    if (!is_in_supply(b)) {
        KT_FAIL("a block of %zu bytes is at %p: not in pages of the supply",
                b->block_size, (void *)b->block_at);
        ktest_stop(__FILE__, __LINE__, "the block is in pages of the supply");
    }
    if ((uintptr_t)b->block_at % align != 0)
        KT_FAIL("a block of %zu bytes is at %p: no multiple of %zu",
                b->block_size, (void *)b->block_at, align);
}

static unsigned char filling(const struct own_block *b)
{
    return (unsigned char)((uintptr_t)b->block_at >> 3 ^ b->block_size);
}

bool block_new(struct own_block *b, size_t size, struct other_cache *c)
{
    *b = (struct own_block){.block_size = size, .block_cache = c};
    b->block_at =
        c != NULL ? heap_of->op_cache_alloc(c) : heap_of->op_alloc(size);
    if (b->block_at == NULL)
        return false;
    check_place(b);
    if (c == NULL || c->other_ctor == NULL)
        memset(b->block_at, filling(b), size);
    return true;
}

static void check_contents(const struct own_block *b)
{
    for (size_t i = 0; i < b->block_size; i++) {
        if (b->block_at[i] == filling(b))
            continue;
        KT_FAIL("byte %zu of a block of %zu bytes at %p has changed: another "
                "block overlaps it, or the allocator wrote there",
                i, b->block_size, (void *)b->block_at);
        ktest_stop(__FILE__, __LINE__, "the contents of a block last");
    }
}

void block_drop(struct own_block *b)
{
    if (b->block_cache == NULL || b->block_cache->other_ctor == NULL)
        check_contents(b);
    if (b->block_cache != NULL)
        heap_of->op_cache_free(b->block_cache, b->block_at);
    else
        heap_of->op_free(b->block_at, b->block_size);
    b->block_at = NULL;
}

struct other_stat heap_counts(void)
{
    struct other_stat st;

    heap_of->op_stat(&st);
    KT_EQ(st.stat_held, st.stat_requested + st.stat_internal +
                            st.stat_external + st.stat_metadata);
    KT_EQ((st.stat_held + heap_pages.supply_fixed) >> PAGE_SHIFT, heap_held);
    KT_LE(st.stat_internal, st.stat_held);
    KT_LE(st.stat_external, st.stat_held);
    KT_LE(st.stat_metadata, st.stat_held);
    return st;
}
