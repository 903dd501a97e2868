/*
 * Page frames: the array, and reading a boot loader's memory map.
 *
 * Tests: mm/page.c
 */
#include "mm/inspect/buddy_stat.h"
#include "mm/segkmem.h"
#include "mm/tests/kmem_test.h"

KTEST(page, every_frame_has_a_state)
{
    size_t counts[PAGE_STATES] = {0};

    for (size_t i = 0; i < page_count; i++) {
        KT_REQUIRE(page_array[i].page_state < PAGE_STATES);
        counts[page_array[i].page_state]++;
    }
    KT_EQ(page_usable, page_count - counts[PAGE_RESERVED]);
    KT_NE(counts[PAGE_KERNEL], 0);
}

KTEST(page, low_memory_is_not_used)
{
    for (size_t i = 0; i < MIN(page_count, MIB(1) >> PAGE_SHIFT); i++)
        KT_LE(page_array[i].page_state, PAGE_KERNEL);
}

KTEST(page, addresses_and_frames_lead_to_each_other)
{
    struct page *p = buddy_alloc(1); /* the last frame has none after it */
    char *v;

    KT_REQUIRE(p != NULL);
    v = page_to_virt(p);
    KT_EQ(page_to_phys(p), page_index(p) * PAGE_SIZE);
    KT_TRUE(virt_to_page(v) == p);
    KT_TRUE(virt_to_page(v + PAGE_SIZE - 1) == p);
    KT_TRUE(virt_to_page(v + PAGE_SIZE) == p + 1);
    KT_EQ(mm_virt_to_phys(v), page_to_phys(p));
    KT_TRUE(mm_phys_to_virt(page_to_phys(p)) == v);
    KT_TRUE(virt_to_page(mm_phys_to_virt(page_count << PAGE_SHIFT)) == NULL);
    buddy_free(p, 1);
}

static void check_block(const struct page *p, unsigned order)
{
    for (size_t i = 0; i < (size_t)1 << order; i++)
        KT_TRUE(page_block(p + i) == p);
}

KTEST(page, block_of_every_frame_of_a_block)
{
    for (unsigned order = 0; order <= 6; order++) {
        struct page *p = buddy_alloc(order);

        KT_REQUIRE(p != NULL);
        check_block(p, order);
        buddy_free(p, order);
    }
    KT_TRUE(page_block(&page_array[0]) == &page_array[0]);
}

/* They may be buddies: the first also begins a place for a larger block. */
KTEST(page, block_of_every_frame_of_two_blocks)
{
    struct page *p;
    struct page *q;

    KT_NEEDS(16 * PAGE_SIZE);
    p = buddy_alloc(1);
    q = buddy_alloc(1);
    KT_REQUIRE(p != NULL && q != NULL);
    check_block(p, 1);
    check_block(q, 1);
    buddy_free(q, 1);
    buddy_free(p, 1);
}

KTEST(page, block_of_every_frame_of_the_largest_block)
{
    struct page *p;

    KT_NEEDS(2 * BUDDY_MAX_PAGES * PAGE_SIZE);
    p = buddy_alloc(BUDDY_MAX_ORDER);
    KT_REQUIRE(p != NULL);
    check_block(p, BUDDY_MAX_ORDER);
    buddy_free(p, BUDDY_MAX_ORDER);
}

KTEST(page, states_have_names)
{
    KT_EQ(strcmp(page_state_name(PAGE_FREE), "free"), 0);
    for (unsigned i = 0; i < PAGE_STATES; i++)
        for (unsigned j = 0; j < i; j++)
            KT_NE(strcmp(page_state_name(i), page_state_name(j)), 0);
    KT_EQ(strcmp(page_state_name(PAGE_STATES), "?"), 0);
}

#ifdef MM_HOST

#include "mm/buddy_impl.h"

#include <stdlib.h>

/* The machine that the case started on, saved while another replaces it. */
struct machine {
    struct page *array;
    size_t count;
    struct buddy_zone zone;
    void *made;
};

static void machine_make(struct machine *old, size_t frames,
                         const struct mem_region *regions, size_t n)
{
    *old =
        (struct machine){page_array, page_count, buddy_zone,
                         aligned_alloc(BUDDY_ALIGN, page_array_bytes(frames))};
    memset(old->made, 0x5a, page_array_bytes(frames));
    page_init(old->made, frames, regions, n, MIB(1), MIB(1) + 0x1801);
    buddy_init();
}

static void machine_restore(struct machine *old)
{
    page_array = old->array;
    page_count = old->count;
    buddy_zone = old->zone;
    free(old->made);
}

static unsigned state(size_t frame)
{
    return page_array[frame].page_state;
}

static bool usable(size_t frame)
{
    return state(frame) > PAGE_KERNEL;
}

static void check_buddy(size_t free_pages)
{
    const struct page *where;
    const char *why = buddy_verify(&where);

    if (why != NULL)
        KT_FAIL("%s (frame %zu)", why, where ? page_index(where) : 0);
    KT_EQ(buddy_free_pages(), free_pages);
}

KTEST(page, partly_covered_frames_are_not_used)
{
    static const struct mem_region map[] = {
        {0, 0xa0000, true},
        {MIB(1) + 0x8001, MIB(2) + 4095, true}, /* edges cut frames */
    };
    struct machine old;

    machine_make(&old, 1000, map, ARRAY_SIZE(map));
    KT_TRUE(page_regions == map);
    KT_EQ(page_region_count, ARRAY_SIZE(map));
    KT_EQ(state(0), PAGE_RESERVED);
    KT_EQ(state(256), PAGE_KERNEL); /* the image: whatever the map says */
    KT_EQ(state(257), PAGE_KERNEL); /* its last byte */
    KT_EQ(state(258), PAGE_RESERVED);
    KT_EQ(state(264), PAGE_RESERVED);
    KT_TRUE(usable(265));
    KT_TRUE(usable(511));
    KT_EQ(state(512), PAGE_RESERVED);
    for (size_t i = 0; i < page_count; i++)
        KT_TRUE(page_array[i].page_owner == NULL);
    check_buddy(512 - 265);
    machine_restore(&old);
}

KTEST(page, reserved_wins_over_usable_in_any_order)
{
    static const struct mem_region map[] = {
        {MIB(2) + 10, MIB(2) + 11, false},
        {MIB(1), MIB(4), true},
        {MIB(3) - 1, MIB(3) + 1, false},
        {MIB(3) + 100000, MIB(3) + 50000, false}, /* nonsense */
        {MIB(3) + 50000, MIB(3) + 50000, false},
        {MIB(2), MIB(3), true},
    };
    struct machine old;

    machine_make(&old, 1024, map, ARRAY_SIZE(map));
    KT_EQ(state(512), PAGE_RESERVED);
    KT_TRUE(usable(511) && usable(513));
    KT_EQ(state(767), PAGE_RESERVED);
    KT_EQ(state(768), PAGE_RESERVED);
    KT_TRUE(usable(766) && usable(769));
    KT_EQ(page_usable, 768 - 3);
    check_buddy(768 - 2 - 3);
    machine_restore(&old);
}

KTEST(page, memory_above_the_limit_is_counted_as_unused)
{
    static const struct mem_region map[] = {
        {MIB(1), MIB(64), true},
        {1ull << 32, 5ull << 30, true},
        {UINT64_MAX - 10, UINT64_MAX, true},
        {UINT64_MAX - 10, UINT64_MAX, false},
        {6ull << 30, 7ull << 30, false},
        {8ull << 30, (8ull << 30) + 100, true}, /* not a whole frame */
    };
    static const struct mem_region low = {0, MIB(4), true};
    struct machine old;

    machine_make(&old, 5000, map, ARRAY_SIZE(map));
    KT_EQ(page_beyond, MIB(64) - 5000 * PAGE_SIZE + (1ull << 30));
    check_buddy(5000 - 256 - 2);
    machine_restore(&old);
    machine_make(&old, 5000, &low, 1);
    KT_EQ(page_beyond, 0);
    machine_restore(&old);
}

/* No buddy of a block lies outside the array, whatever its length. */
KTEST(page, arrays_of_any_length)
{
    static const size_t lengths[] = {257,  300,  511,  512,  1023,
                                     1024, 1025, 2047, 2049, 4097};

    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        const struct mem_region map = {0, 1ull << 32, true};
        struct machine old;
        size_t pages = lengths[i] - 256 - MIN((size_t)2, lengths[i] - 256);

        machine_make(&old, lengths[i], &map, 1);
        check_buddy(pages);
        while (pages != 0) {
            KT_TRUE(buddy_alloc(0) != NULL);
            pages--;
        }
        KT_TRUE(buddy_alloc(0) == NULL);
        for (size_t f = 258; f < lengths[i]; f++)
            buddy_free(&page_array[f], 0);
        check_buddy(lengths[i] - 256 - MIN((size_t)2, lengths[i] - 256));
        machine_restore(&old);
    }
}

KTEST(page, an_empty_map_leaves_nothing)
{
    struct machine old;

    machine_make(&old, 600, NULL, 0);
    check_buddy(0);
    KT_TRUE(buddy_alloc(0) == NULL);
    KT_EQ(page_usable, 2);
    machine_restore(&old);
}

KTEST(page, block_of_a_frame_in_no_block)
{
    const struct mem_region map = {0, 1ull << 32, true};
    struct machine old;

    machine_make(&old, 1024, &map, 1);
    page_array[512].page_tag = PAGE_TAG(PAGE_TAIL, PAGE_NO_ORDER);
    KT_TRUE(page_block(&page_array[600]) == NULL);
    page_array[512].page_tag = PAGE_TAG(PAGE_ALLOC, 3); /* ends before it */
    KT_TRUE(page_block(&page_array[600]) == NULL);
    machine_restore(&old);
}
#endif
