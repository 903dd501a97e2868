/*
 * The allocator of 4.4BSD: each case is an expectation of its description (E1,
 * E2 …), whose figures follow from the rules; then random operations, and
 * mistakes.
 *
 * Tests: mm/others/inspect/bsd.c
 */
#include "mm/others/tests/ops.h"
#include "kernel/lib/string.h"
#include "mm/others/bsd.h"

#define MANY 10000

static void *taken[MANY];

static struct bsd_page *page_of(const void *p)
{
    return supply_info(&test_pages, p);
}

/* The bytes of a block for such a request. */
static size_t block_for(size_t size)
{
    other_test_start(&bsd_allocator);
    put(get(size), size);
    get(size);
    return test_counts().stat_requested + test_counts().stat_internal;
}

KTEST(bsd, E1_a_request_takes_the_next_power_of_two)
{
    KT_EQ(block_for(300), 512);
    other_test_start(&bsd_allocator);
    for (int i = 0; i < 8; i++)
        get(300);
    KT_EQ(test_held(), 1);
    KT_EQ(test_waste(), 41);
    get(300);
    KT_EQ(test_held(), 2);
    other_test_check();
}

KTEST(bsd, E2_sizes_just_above_a_power)
{
    static const size_t size[][2] = {{129, 256},   {257, 512},   {513, 1024},
                                     {1025, 2048}, {2049, 4096}, {4096, 4096},
                                     {4097, 8192}, {8192, 8192}, {8193, 12288}};

    for (size_t i = 0; i < ARRAY_SIZE(size); i++) {
        KT_EQ(block_for(size[i][0]), size[i][1]);
        KT_EQ(test_held(), PAGES_FOR(size[i][1]));
    }
}

/* All sizes of a range once: a quarter of the bytes in use is internal waste,
 * within 1 %. */
static void expect_quarter(size_t from, size_t to)
{
    struct other_stat st;

    other_test_start(&bsd_allocator);
    for (size_t size = from; size <= to; size++)
        get(size);
    st = test_counts();
    KT_GE(st.stat_internal * 100, (st.stat_requested + st.stat_internal) * 24);
    KT_LE(st.stat_internal * 100, (st.stat_requested + st.stat_internal) * 26);
    other_test_check();
}

KTEST(bsd, E3_a_quarter_is_internal_waste)
{
    expect_quarter(16, 1024);
    expect_quarter(17, 2048);
    expect_quarter(1025, 2048);
}

/* The first nine blocks of 512 bytes. */
static void take_nine(void)
{
    other_test_start(&bsd_allocator);
    for (int i = 0; i < 8; i++) {
        taken[i] = get(300);
        KT_EQ(test_offset(taken[i]), 0xe00 - 0x200 * i);
    }
    taken[8] = get(300);
    KT_EQ(test_offset(taken[8]), 0x1e00);
    put(taken[7], 300);
    put(taken[0], 300);
    other_test_check();
}

KTEST(bsd, E4_freed_blocks_wait_at_the_tail)
{
    take_nine();
    KT_EQ(test_offset(get(300)), 0x1c00);
    KT_TRUE(bsd_bucket[9].bucket_last == taken[0]);
    KT_EQ(bsd_bucket[9].bucket_free, 8);
    for (int i = 0; i < 6; i++)
        get(300);
    KT_TRUE(get(300) == taken[7]);
    KT_TRUE(get(300) == taken[0]);
    KT_TRUE(bsd_bucket[9].bucket_last == NULL);
    other_test_check();
}

KTEST(bsd, E4_or_come_first)
{
    bsd_lifo = true;
    take_nine();
    KT_TRUE(get(300) == taken[0]);
    KT_TRUE(get(300) == taken[7]);
    KT_EQ(test_offset(get(300)), 0x1c00);
    other_test_check();
}

KTEST(bsd, E5_memory_never_leaves_its_bucket)
{
    other_test_start(&bsd_allocator);
    for (int i = 0; i < MANY; i++)
        taken[i] = get(200);
    KT_EQ(test_held(), 625);
    for (int i = 0; i < MANY; i++)
        put(taken[i], 200);
    KT_EQ(test_held(), 625);
    KT_EQ(bsd_bucket[8].bucket_could_free, 620);
    other_test_check();
    for (int i = 0; i < MANY; i++)
        get(300);
    KT_EQ(test_held(), 1875);
    KT_EQ(test_counts().stat_requested, 3000000);
    KT_EQ(test_waste(), 61);
    KT_EQ(bsd_bucket[8].bucket_calls, MANY);
    KT_EQ(bsd_bucket[8].bucket_total, MANY);
    KT_EQ(bsd_bucket[9].bucket_total, MANY);
    other_test_check();
}

KTEST(bsd, E6_large_requests_return_their_pages)
{
    struct other_cache c = {.other_size = 9000};
    void *p, *q;

    other_test_start(&bsd_allocator);
    p = get(8192);
    put(p, 8192);
    KT_EQ(test_held(), 2);
    KT_TRUE(get(5000) == p);
    q = get(8193);
    KT_EQ(test_held(), 5);
    KT_EQ(page_of(q)->page_count, 3);
    KT_EQ(bsd_bucket[14].bucket_total, 1);
    other_test_check();
    put(q, 8193);
    KT_EQ(test_held(), 2);
    KT_EQ(page_of(q)->page_bucket, 0);
    KT_EQ(bsd_bucket[14].bucket_total, 0);
    KT_EQ(bsd_bucket[14].bucket_calls, 1);
    q = bsd_allocator.op_cache_alloc(&c);
    KT_EQ(test_held(), 5);
    bsd_allocator.op_cache_free(&c, q);
    KT_EQ(test_held(), 2);
    KT_EQ(c.other_frees, 1);
    other_test_check();
}

/* The last bucket is for all that is larger. */
KTEST(bsd, E6_the_largest_requests)
{
    void *p;

    other_test_start(&bsd_allocator);
    p = get(MIB(1) + 1);
    KT_EQ(page_of(p)->page_bucket, BSD_BUCKETS - 1);
    KT_EQ(test_held(), 257);
    other_test_check();
    put(p, MIB(1) + 1);
    KT_EQ(test_held(), 0);
    other_test_check();
}

KTEST(bsd, E7_the_order_does_not_change_how_much_is_held)
{
    size_t held[2][1000];

    for (int lifo = 0; lifo < 2; lifo++) {
        uint32_t x = 1;

        bsd_lifo = lifo != 0;
        other_test_start(&bsd_allocator);
        memset(taken, 0, sizeof(taken));
        for (int i = 0; i < 1000; i++) {
            unsigned k = (x = x * 1664525 + 1013904223) >> 24;

            if (taken[k] != NULL)
                put(taken[k], 40 * k + 1);
            taken[k] = taken[k] == NULL ? get(40 * k + 1) : NULL;
            held[lifo][i] = test_held();
        }
    }
    KT_TRUE(memcmp(held[0], held[1], sizeof(held[0])) == 0);
}

KTEST(bsd, E8_the_smallest_block)
{
    KT_EQ(block_for(1), 16);
    other_test_start(&bsd_allocator);
    for (int i = 0; i < 256; i++)
        get(1);
    KT_EQ(test_held(), 1);
    KT_EQ(test_counts().stat_external, 0);
    KT_EQ(test_counts().stat_internal, 256 * 15);
    get(1);
    KT_EQ(test_held(), 2);
}

KTEST(bsd, random_operations)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        size_t pages = 0;

        bsd_lifo = seed % 2 == 0;
        other_test_start(&bsd_allocator);
        other_test_random(seed, 20000, seed > 2 ? 300 : 9000);
        for (unsigned i = 0; i < BSD_BUCKETS; i++)
            pages += PAGES_FOR(bsd_bucket[i].bucket_free << i);
        KT_EQ(test_held(), pages);
    }
}

/* ---- the rest ----------------------------------------------------------- */

KTEST(bsd, a_block_is_aligned_to_its_size)
{
    struct other_cache c = {.other_size = 200, .other_align = 1024};
    void *obj;

    other_test_start(&bsd_allocator);
    for (unsigned i = BSD_MIN_BUCKET; i <= 12; i++)
        KT_EQ((uintptr_t)get((size_t)1 << i) & (((size_t)1 << i) - 1), 0);
    obj = bsd_allocator.op_cache_alloc(&c);
    KT_EQ((uintptr_t)obj % 1024, 0);
    KT_EQ(page_of(obj)->page_bucket, 10);
    bsd_allocator.op_cache_free(&c, obj);
    KT_EQ(c.other_allocs, 1);
    KT_EQ(c.other_frees, 1);
    other_test_check();
}

/* ---- what happens while a page is got ----------------------------------- */

static void *no_page(struct supply *s, size_t pages, size_t align)
{
    (void)s;
    (void)pages;
    (void)align;
    KT_FAIL("the supplier was asked for %zu pages", pages);
    return NULL;
}

static void take_one(void)
{
    taken[0] = get(512);
}

static void free_without_pages(void)
{
    put(taken[1], 512);
    test_pages.supply_get = other_test_no_pages;
}

/* It takes a block, and then frees one. */
KTEST(bsd, what_an_interrupt_does_meanwhile)
{
    void *p;

    other_test_start(&bsd_allocator);
    other_test_meanwhile(take_one);
    p = get(512);
    KT_EQ(test_offset(taken[0]), 0xe00);
    KT_EQ(test_offset(p), 0x1e00);
    KT_EQ(bsd_bucket[9].bucket_free, 14);
    other_test_check();
    for (int i = 0; i < 7; i++)
        get(512);
    KT_EQ(test_offset(get(512)), 0xc00); /* behind those of the new page */
    for (int i = 0; i < 6; i++)
        taken[1] = get(512);
    KT_EQ(bsd_bucket[9].bucket_free, 0);
    other_test_meanwhile(free_without_pages);
    KT_TRUE(get(512) == taken[1]);
    other_test_check();
}

KTEST(bsd, without_memory_it_returns_null)
{
    struct other_cache c = {.other_size = 64};

    other_test_start(&bsd_allocator);
    test_pages.supply_quota = 1;
    KT_TRUE(bsd_allocator.op_alloc(5000) == NULL);
    KT_TRUE(bsd_allocator.op_alloc(50000) == NULL);
    get(1);
    KT_TRUE(bsd_allocator.op_cache_alloc(&c) == NULL);
    KT_EQ(test_counts().stat_fails, 3);
    KT_EQ(c.other_fails, 1);
    other_test_check();
    test_pages.supply_quota = SIZE_MAX; /* a record counts 65,535 pages */
    test_pages.supply_get = no_page;
    KT_TRUE(bsd_allocator.op_alloc(MIB(256)) == NULL);
    other_test_check();
}

KTEST(bsd, mistakes_of_clients_are_reported)
{
    char *p, *large;

    other_test_start(&bsd_allocator);
    p = get(100);
    large = get(3 * PAGE_SIZE);
    KT_PANICS(put(p, 200), "is not a block for 200 bytes");
    KT_PANICS(put(p + 8, 100), "is not a block for 100 bytes");
    KT_PANICS(put(large, 100), "is not a block for 100 bytes");
    KT_PANICS(put(large, 13000), "with 3 pages, freed with 13000 bytes");
    KT_PANICS(put(&p, 100), "is not memory");
    put(large, 3 * PAGE_SIZE);
    KT_PANICS(put(large, 3 * PAGE_SIZE), "is not a block for 12288 bytes");
    put(p, 100);
    KT_PANICS(put(p, 100), "all blocks of its page are free already");
}

/* ---- check() ------------------------------------------------------------ */

static void damaged(void)
{
    other_test_start(&bsd_allocator);
    taken[0] = get(500);
    taken[1] = get(50000);
    taken[2] = get(16);
    other_test_check();
}

KTEST(bsd, check_finds_damage)
{
    struct bsd_bucket *b = &bsd_bucket[9];
    struct bsd_block outside = {.block_next = NULL};

    damaged();
    b->bucket_next->block_next = &outside;
    expect_wrong("a block of another bucket");
    damaged();
    b->bucket_next->block_next = bsd_bucket[4].bucket_next;
    expect_wrong("a block of another bucket");
    damaged();
    b->bucket_next = (struct bsd_block *)((char *)b->bucket_next + 8);
    expect_wrong("a block of another bucket");
    damaged();
    b->bucket_last->block_next = b->bucket_next;
    expect_wrong("not as many blocks as its bucket");
    damaged();
    b->bucket_next->block_next->block_next = b->bucket_next;
    expect_wrong("a block twice");
    damaged();
    b->bucket_next = b->bucket_next->block_next;
    expect_wrong("not as many blocks as its bucket");
    damaged();
    b->bucket_last = b->bucket_next;
    expect_wrong("does not end at its last");
    damaged();
    page_of(taken[0])->page_count++;
    expect_wrong("as many blocks on the list as it counts");
    damaged();
    b->bucket_total--;
    expect_wrong("neither free nor allocated");
    damaged();
    page_of(taken[1])->page_count--;
    expect_wrong("not as many as are held");
    damaged();
    b->bucket_next = b->bucket_next->block_next;
    b->bucket_free--;
    b->bucket_total--;
    page_of(taken[0])->page_count--;
    expect_wrong("are not all");
}
