/*
 * The allocator of SVr4: each case is an expectation of its description (E1,
 * E2 …), whose figures follow from the rules; then random operations, and
 * mistakes.
 *
 * Tests: mm/others/inspect/svr4.c, mm/others/inspect/verify.c
 */
#include "mm/others/tests/ops.h"
#include "kernel/lib/string.h"
#include "mm/others/svr4.h"

static char *taken[512];

/* The sum of a count over all classes. */
#define TOTAL(member)                                                          \
    ({                                                                         \
        uint64_t sum = 0;                                                      \
                                                                               \
        for (unsigned n = 0; n < SVR4_CLASSES; n++)                            \
            sum += svr4_class[n].member;                                       \
        sum;                                                                   \
    })

static void expect_class(unsigned i, size_t used, size_t local, size_t global)
{
    KT_EQ(svr4_class[i].class_used, used);
    KT_EQ(svr4_class[i].class_local, local);
    KT_EQ(svr4_class[i].class_global, global);
}

/* All that is free is joined. */
static void expect_empty(void)
{
    KT_EQ(TOTAL(class_used), 0);
    KT_EQ(TOTAL(class_local), 0);
    KT_EQ(svr4_pages[SVR4_LARGE], 0);
    KT_EQ(svr4_pages[SVR4_OVERSIZED], 0);
    other_test_check();
    svr4_allocator.op_pressure();
    KT_EQ(test_held(), 0);
    other_test_check();
}

static void take_four(void)
{
    static const unsigned splits[] = {2, 2, 3, 3};

    other_test_start(&svr4_allocator);
    for (int i = 0; i < 4; i++) {
        taken[i] = get(64);
        KT_EQ(test_offset(taken[i]), 0x200 + 64 * i);
        KT_EQ(TOTAL(class_splits), splits[i]);
        other_test_check();
        if (i > 0)
            continue;
        expect_class(6, 1, 1, 0);
        expect_class(7, 1, 1, 0);
        expect_class(8, 1, 0, 13);
    }
}

KTEST(svr4, E1_a_block_is_split)
{
    take_four();
    expect_class(6, 4, 0, 0);
    expect_class(7, 2, 0, 0);
    KT_EQ(test_held(), 1);
    KT_EQ(test_counts().stat_metadata, 512);
    KT_EQ(test_counts().stat_external, 13 * 256);
}

KTEST(svr4, E2_three_ways_to_free)
{
    static const size_t want[][3] = {
        {3, 1, 0}, {2, 2, 0}, {1, 1, 2}, {0, 0, 0}};

    take_four();
    for (int i = 0; i < 4; i++) {
        put(taken[i], 64);
        expect_class(6, want[i][0], want[i][1], want[i][2]);
        KT_EQ(svr4_class[6].class_lazy, MIN(i + 1, 2));
        KT_EQ(svr4_class[6].class_accelerated, MAX(i - 1, 0));
        other_test_check();
    }
    expect_class(8, 0, 0, 14);
    KT_EQ(TOTAL(class_joins), 3);
    KT_EQ(test_held(), 1);
    expect_empty();
}

static void expect_per_page(size_t size, unsigned blocks)
{
    other_test_start(&svr4_allocator);
    for (unsigned i = 0; i < blocks; i++)
        get(size);
    KT_EQ(test_held(), 1);
    KT_EQ(test_counts().stat_external, 0);
    KT_EQ(test_counts().stat_requested, 3584);
    other_test_check();
    get(size);
    KT_EQ(test_held(), 2);
    other_test_check();
}

KTEST(svr4, E3_blocks_in_a_small_pool)
{
    expect_per_page(256, 14);
    expect_per_page(8, 448);
}

KTEST(svr4, E4_a_large_pool)
{
    char *p, *q;

    other_test_start(&svr4_allocator);
    p = get(300);
    KT_EQ(test_held(), 4);
    KT_EQ(test_offset(p), 0);
    for (unsigned i = 9; i <= 13; i++)
        expect_class(i, 1, 1, 0);
    expect_class(14, 1, 0, 0);
    KT_EQ(TOTAL(class_splits), 5);
    q = get(300);
    KT_EQ(q - p, 512);
    KT_EQ(TOTAL(class_splits), 5);
    other_test_check();
    put(p, 300);
    KT_EQ(test_held(), 4);
    put(q, 300);
    KT_EQ(test_held(), 0);
    other_test_check();
}

/* A thousand pairs beside eight blocks. */
static void expect_pairs(unsigned splits, unsigned joins)
{
    uint64_t before;

    other_test_start(&svr4_allocator);
    for (int i = 0; i < 8; i++)
        get(64);
    before = TOTAL(class_splits);
    for (int i = 0; i < 1000; i++)
        put(get(64), 64);
    KT_EQ(TOTAL(class_splits) - before, splits);
    KT_EQ(TOTAL(class_joins), joins);
    other_test_check();
}

KTEST(svr4, E5_steady_use_neither_splits_nor_joins)
{
    expect_pairs(2, 0);
    svr4_eager = true;
    expect_pairs(750, 750);
}

KTEST(svr4, E7_random_operations_return_all_pages)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        svr4_eager = seed == 4;
        other_test_start(&svr4_allocator);
        other_test_random(seed, 20000, seed == 1 ? 9000 : 600);
        if (!svr4_eager)
            expect_empty();
    }
}

/* ---- the rest ----------------------------------------------------------- */

/* D is 1 only if a globally free block was allocated. */
KTEST(svr4, a_free_at_a_slack_of_one)
{
    other_test_start(&svr4_allocator);
    taken[0] = get(256);
    put(taken[0], 256);
    KT_EQ(svr4_class[8].class_reclaiming, 1);
    expect_class(8, 0, 0, 14);
    expect_empty();
}

KTEST(svr4, locally_free_blocks_come_first)
{
    other_test_start(&svr4_allocator);
    for (int i = 0; i < 4; i++)
        taken[i] = get(256);
    put(taken[1], 256);
    expect_class(8, 3, 1, 10);
    KT_TRUE(get(256) == taken[1]);
    expect_class(8, 4, 0, 10);
    other_test_check();
}

/* Then the freed one, and then the local one that became global with it. */
KTEST(svr4, an_accelerated_free_appends_the_freed_block_first)
{
    take_four();
    for (int i = 0; i < 3; i++)
        put(taken[i], 64);
    KT_EQ(svr4_class[6].class_accelerated, 1);
    KT_TRUE(get(64) == taken[0]);
    KT_TRUE(get(64) == taken[2]);
    KT_TRUE(get(64) == taken[1]);
    other_test_check();
}

KTEST(svr4, large_requests_return_their_pages)
{
    struct other_cache c = {.other_size = 5000, .other_align = PAGE_SIZE};
    char *p;

    other_test_start(&svr4_allocator);
    p = get(4096);
    KT_EQ(test_held(), 4);
    KT_EQ(svr4_pages[SVR4_LARGE], 4);
    put(p, 4096);
    KT_EQ(test_held(), 0);
    p = get(4097);
    KT_EQ(test_held(), 2);
    KT_EQ(svr4_pages[SVR4_OVERSIZED], 2);
    other_test_check();
    put(p, 4097);
    KT_EQ(test_held(), 0);
    p = svr4_allocator.op_cache_alloc(&c);
    KT_EQ((uintptr_t)p % PAGE_SIZE, 0);
    KT_EQ(test_counts().stat_internal, 3192);
    svr4_allocator.op_cache_free(&c, p);
    KT_EQ(c.other_allocs, 1);
    KT_EQ(c.other_frees, 1);
    expect_empty();
}

KTEST(svr4, a_block_is_aligned_to_its_size)
{
    struct other_cache c = {.other_size = 20, .other_align = 1024};
    size_t internal;
    char *obj;

    other_test_start(&svr4_allocator);
    get(1);
    for (unsigned i = SVR4_MIN_CLASS; i <= 12; i++)
        KT_EQ((uintptr_t)get((size_t)1 << i) % ((size_t)1 << i), 0);
    internal = test_counts().stat_internal;
    obj = svr4_allocator.op_cache_alloc(&c);
    KT_EQ((uintptr_t)obj % 1024, 0);
    KT_EQ(test_counts().stat_internal - internal, 1024 - 20);
    other_test_check();
    svr4_allocator.op_cache_free(&c, obj);
    other_test_check();
}

/* The daemon returns a pool of which nothing is used, and no other. */
KTEST(svr4, pressure_returns_idle_pools)
{
    other_test_start(&svr4_allocator);
    for (int i = 0; i < 14 * 3; i++)
        taken[i] = get(256);
    KT_EQ(test_held(), 3);
    for (int i = 14; i < 35; i++)
        put(taken[i], 256);
    expect_class(8, 21, 21, 0);
    svr4_allocator.op_pressure();
    KT_EQ(svr4_pages[SVR4_SMALL], 3); /* local blocks stay */
    for (int i = 35; i < 42; i++)
        put(taken[i], 256);
    expect_class(8, 14, 14, 14);
    svr4_allocator.op_pressure();
    KT_EQ(test_held(), 2);
    other_test_check();
    for (int i = 0; i < 13; i++)
        put(taken[i], 256);
    svr4_allocator.op_pressure();
    KT_EQ(test_held(), 2); /* one block is used, and one locally free */
    KT_EQ(test_counts().stat_metadata, 1024);
    other_test_check();
    put(taken[13], 256);
    expect_empty();
}

static void take_one(void)
{
    taken[0] = get(4096);
}

/* An interrupt gets a pool, too: the second one is not needed then. */
KTEST(svr4, what_an_interrupt_does_meanwhile)
{
    other_test_start(&svr4_allocator);
    other_test_meanwhile(take_one);
    KT_EQ((char *)get(4096) - taken[0], 4096);
    expect_class(14, 1, 0, 1); /* the second pool */
    KT_EQ(test_held(), 8);
    other_test_check();
    svr4_allocator.op_pressure();
    KT_EQ(test_held(), 4);
    other_test_check();
}

KTEST(svr4, without_memory_it_returns_null)
{
    struct other_cache c = {.other_size = 64};

    other_test_start(&svr4_allocator);
    test_pages.supply_quota = 1;
    KT_TRUE(svr4_allocator.op_alloc(300) == NULL);
    KT_TRUE(svr4_allocator.op_alloc(5000) == NULL);
    for (int i = 0; i < 14; i++)
        get(256);
    KT_TRUE(svr4_allocator.op_cache_alloc(&c) == NULL);
    KT_EQ(test_counts().stat_fails, 3);
    KT_EQ(c.other_fails, 1);
    other_test_check();
}

KTEST(svr4, mistakes_of_clients_are_reported)
{
    char *p, *pages;

    other_test_start(&svr4_allocator);
    p = get(100);
    pages = get(3 * PAGE_SIZE);
    KT_PANICS(put(p, 300), "is not a block for 300 bytes");
    KT_PANICS(put(p + 8, 100), "is not a block for 100 bytes");
    KT_PANICS(put(p - 256, 100), "is not a block for 100 bytes");
    KT_PANICS(put(p, 5000), "is not a block for 5000 bytes");
    KT_PANICS(put(pages, 5000), "is not a block for 5000 bytes");
    KT_PANICS(put((char *)&p, 100), "is not memory");
    KT_PANICS(put(p, 20), "no block of 32 bytes is allocated");
    other_test_start(&svr4_allocator);
    svr4_eager = true;
    p = get(256);
    get(256);
    put(p, 256);
    KT_PANICS(put(p, 256), ", 256 bytes: it is free already");
}

/* ---- check() ------------------------------------------------------------ */

/* Local and global blocks: class 6 is (2, 2, 0), class 8 (1, 0, 13). */
static struct svr4_class *damaged(void)
{
    take_four();
    put(taken[0], 64);
    put(taken[2], 64);
    expect_class(6, 2, 2, 0);
    other_test_check();
    return svr4_class;
}

/* The links of a free block: the next, the one before. */
static uint32_t *links(char *b)
{
    return (uint32_t *)b;
}

KTEST(svr4, check_finds_damage_in_lists)
{
    struct svr4_class *c = damaged();

    links(taken[2])[0] += 1;
    expect_wrong("a block of another class");
    damaged();
    links(taken[2])[0] = (uint32_t)(TEST_PAGES * PAGE_SIZE / 8) + 1;
    expect_wrong("a block of another class");
    damaged();
    links(taken[2])[0] = (uint32_t)(8 * PAGE_SIZE / 8) + 1;
    expect_wrong("a block of another class");
    damaged();
    links(taken[0])[0] = c[6].class_first;
    expect_wrong("a block twice");
    damaged();
    links(taken[0])[1] = 0;
    expect_wrong("without a way back");
    damaged();
    links(taken[2])[0] = 0;
    expect_wrong("not as many blocks as its class");
    damaged();
    c[6].class_local--;
    expect_wrong("not as many blocks as its class");
    damaged();
    c[6].class_used++;
    expect_wrong("neither split nor allocated");
    damaged();
    c[6].class_used--;
    expect_wrong("more locally free blocks");
    damaged();
    c[7].class_used--;
    expect_wrong("more split blocks");
    damaged();
    svr4_pages[SVR4_SMALL]++;
    expect_wrong("pages are not as many");
}

KTEST(svr4, check_finds_damage_in_bitmaps)
{
    struct svr4_class *c = damaged();
    uint32_t *bits = (uint32_t *)test_pages.supply_base;

    bits[0] |= 1u << 18; /* a block of 256 bytes that is split */
    expect_wrong("blocks in bitmaps");
    damaged();
    bits[0] &= ~(1u << 19); /* the first on the list */
    expect_wrong("not as many blocks as its class");
    damaged();
    bits[0] &= ~(1u << 19);
    c[8].class_global--;
    c[8].class_local++;
    c[8].class_used++;
    expect_wrong("neither split nor allocated");
    damaged();
    bits[0] &= ~(1u << 20); /* the second on the list */
    c[8].class_global--;
    expect_wrong("after globally free ones");
    take_four();
    put(taken[0], 64);
    put(taken[1], 64);
    bits[2] |= 3u << 8;
    c[6].class_local -= 2;
    c[6].class_global += 2;
    expect_wrong("two buddies are globally free");
}

/* A block on its list, though it is split, and parts of it are free. */
static void free_twice(void)
{
    for (int i = 0; i < 4; i++)
        taken[i] = get(64);
    put(taken[1], 64);
    put(taken[3], 64);
    other_test_check();
    svr4_class[7].class_first = svr4_class[7].class_last =
        (uint32_t)(test_offset(taken[0]) / 8) + 1;
    svr4_class[7].class_local++;
    memset(taken[0], 0, 8);
    expect_wrong("part of another");
}

KTEST(svr4, check_finds_blocks_that_overlap)
{
    other_test_start(&svr4_allocator);
    free_twice();
    other_test_start(&svr4_allocator); /* far from the first page */
    get(1000 * PAGE_SIZE);
    free_twice();
}
