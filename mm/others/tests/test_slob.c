/*
 * SLOB: each case is an expectation of its description (E1, E2 …), whose
 * figures follow from the rules; then random operations, and mistakes.
 *
 * Tests: mm/others/whole.c, mm/others/inspect/slob.c
 */
#include "mm/others/tests/ops.h"
#include "kernel/lib/string.h"
#include "mm/others/slob.h"

#define MANY 512

static void *taken[MANY];

/* How many blocks come from the first page; c NULL: of `size` bytes. */
static unsigned per_page(struct other_cache *c, size_t size)
{
    unsigned n = 0;
    void *p;

    other_test_start(&slob_allocator);
    for (;; n++) {
        p = c != NULL ? get_object(c) : get(size);
        if (test_offset(p) >= PAGE_SIZE)
            break;
    }
    other_test_check();
    return n;
}

static void expect_per_page(const unsigned *want)
{
    static const size_t size[] = {8, 64, 100, 300, 512, 1024, 2048, 4000};

    for (size_t i = 0; i < ARRAY_SIZE(size); i++)
        KT_EQ(per_page(NULL, size[i]), want[i]);
}

KTEST(slob, E1_blocks_in_a_page)
{
    expect_per_page((const unsigned[]){256, 56, 36, 13, 7, 3, 1, 1});
    slob_header = 4;
    expect_per_page((const unsigned[]){341, 60, 39, 13, 7, 3, 1, 1});
}

KTEST(slob, E2_objects_in_a_page)
{
    static const struct {
        size_t size;
        unsigned objects;
    } want[] = {{48, 85},  {100, 39}, {200, 20},
                {300, 13}, {1000, 4}, {1500, 2}};

    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        struct other_cache c = {.other_size = want[i].size};

        KT_EQ(per_page(&c, 0), want[i].objects);
    }
}

KTEST(slob, E2_aligned_powers_of_two_waste_half)
{
    slob_pow2 = true;
    KT_EQ(per_page(NULL, 64), 32);
    KT_EQ(per_page(NULL, 100), 36);
    KT_EQ(per_page(NULL, 4), 256);
}

/* The free list of the first page is these (unit, length); and its units. */
static void expect_free(unsigned units, const unsigned (*want)[2], size_t n)
{
    const struct slob_page *p =
        supply_info(&test_pages, test_pages.supply_base);
    const int16_t *page = (const int16_t *)test_pages.supply_base;
    int at = p->slob_first;

    for (size_t i = 0; i < n; i++) {
        KT_REQUIRE(at != SLOB_UNITS);
        KT_EQ(at, want[i][0]);
        KT_EQ(slob_block_length(page, at), want[i][1]);
        at = slob_block_next(page, at);
    }
    KT_EQ(at, SLOB_UNITS);
    KT_EQ(p->slob_units, units);
}

#define EXPECT_FREE(units, ...)                                                \
    expect_free(units, (const unsigned[][2]){__VA_ARGS__},                     \
                sizeof((const unsigned[][2]){__VA_ARGS__}) /                   \
                    sizeof(unsigned[2]))

KTEST(slob, E3_the_free_list_of_a_page)
{
    void *p[4];

    other_test_start(&slob_allocator);
    p[0] = get(100);
    p[1] = get(200);
    p[2] = get(50);
    p[3] = get(28);
    KT_EQ(test_offset(p[0]), 8);
    KT_EQ(test_offset(p[1]), 0x70 + 8);
    KT_EQ(test_offset(p[2]), 0x140 + 8);
    KT_EQ(test_offset(p[3]), 0x180 + 8);
    EXPECT_FREE(1843, {54, 2}, {189, 3}, {210, 1838});
    put(p[1], 200);
    EXPECT_FREE(1947, {54, 106}, {189, 3}, {210, 1838});
    put(p[0], 100);
    EXPECT_FREE(2001, {0, 160}, {189, 3}, {210, 1838});
    KT_EQ(test_offset(get(60)), 8);
    EXPECT_FREE(1967, {34, 126}, {189, 3}, {210, 1838});
    other_test_check();
}

/* The pages of a list, as the digits of a number: 321 is P3, P2, P1. */
static unsigned order_of(enum slob_class class)
{
    unsigned digits = 0;

    list_for_each (l, &slob_list[class])
        digits =
            digits * 10 + 1 +
            (unsigned)(test_offset(supply_page(&test_pages, l)) >> PAGE_SHIFT);
    return digits;
}

KTEST(slob, E4_the_list_rotates_to_the_page_that_was_used)
{
    struct other_cache c = {.other_size = 1000};

    other_test_start(&slob_allocator);
    for (int i = 0; i < 12; i++)
        taken[i] = get_object(&c);
    KT_EQ(test_held(), 3);
    KT_EQ(order_of(SLOB_MEDIUM), 321);
    put_object(&c, taken[1]);
    KT_TRUE(get_object(&c) == taken[1]);
    KT_EQ(order_of(SLOB_MEDIUM), 132);
    other_test_check();
}

KTEST(slob, E5_the_header_decides_the_list)
{
    other_test_start(&slob_allocator);
    get(247);
    KT_EQ(order_of(SLOB_SMALL), 1);
    get(248);
    KT_EQ(order_of(SLOB_MEDIUM), 2);
    get(1015);
    KT_EQ(order_of(SLOB_MEDIUM), 2);
    get(1016);
    KT_EQ(order_of(SLOB_LARGE), 3);
    slob_header = 4;
    other_test_start(&slob_allocator);
    get(251);
    KT_EQ(order_of(SLOB_SMALL), 1);
    get(252);
    KT_EQ(order_of(SLOB_MEDIUM), 2);
}

KTEST(slob, E6_large_requests_get_whole_pages)
{
    void *p;

    other_test_start(&slob_allocator);
    p = get(4087);
    KT_EQ(test_held(), 1);
    KT_EQ(test_counts().stat_metadata, 8);
    put(p, 4087);
    KT_EQ(test_held(), 0);
    p = get(4088);
    KT_EQ(test_held(), 1);
    KT_EQ(test_counts().stat_internal, 8);
    get(4097);
    KT_EQ(test_held(), 3);
    put(p, 4088);
    p = get(8193);
    KT_EQ(test_held(), 6);
    KT_EQ(test_offset(p) % (4 * PAGE_SIZE), 0);
    other_test_check();
}

KTEST(slob, random_operations)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        slob_header = seed % 2 ? 8 : 4;
        test_align = slob_header;
        slob_pow2 = seed > 2;
        other_test_start(&slob_allocator);
        other_test_random(seed, 20000, seed == 4 ? 300 : 5000);
        KT_EQ(test_held(), 0);
    }
}

/* ---- the rest ----------------------------------------------------------- */

KTEST(slob, a_full_page_is_on_no_list)
{
    struct other_cache c = {.other_size = 2048};
    struct other_cache unit = {.other_size = 2};

    other_test_start(&slob_allocator);
    taken[0] = get_object(&c);
    KT_EQ(order_of(SLOB_LARGE), 1);
    taken[1] = get_object(&c);
    KT_EQ(order_of(SLOB_LARGE), 0);
    KT_EQ(test_held(), 1);
    put_object(&c, taken[1]);
    KT_EQ(order_of(SLOB_LARGE), 1);
    KT_TRUE(get_object(&c) == taken[1]);
    for (int i = 0; i < MANY; i++)
        taken[i] = get_object(&unit);
    other_test_check();
    KT_EQ(slob_stat.stat_gaps, MANY - 1);
    for (int i = 0; i < MANY; i++)
        put_object(&unit, taken[(i * 5) % MANY]);
    other_test_check();
    KT_EQ(test_held(), 1);
}

KTEST(slob, objects_of_pages_and_constructors)
{
    struct other_cache c = {.other_size = 8192, .other_align = PAGE_SIZE};
    void *obj;

    other_test_start(&slob_allocator);
    obj = get_object(&c);
    KT_EQ(test_held(), 2);
    KT_EQ(c.other_allocs, 1);
    put_object(&c, obj);
    KT_EQ(c.other_frees, 1);
    KT_EQ(test_counts().stat_frees, 1);
    KT_EQ(test_held(), 0);
}

KTEST(slob, without_memory_it_returns_null)
{
    struct other_cache c = {.other_size = 64};
    struct other_cache pages = {.other_size = PAGE_SIZE};

    other_test_start(&slob_allocator);
    test_pages.supply_quota = 0;
    KT_TRUE(slob_allocator.op_alloc(64) == NULL);
    KT_TRUE(slob_allocator.op_alloc(PAGE_SIZE) == NULL);
    KT_TRUE(slob_allocator.op_cache_alloc(&c) == NULL);
    KT_TRUE(slob_allocator.op_cache_alloc(&pages) == NULL);
    KT_EQ(test_counts().stat_fails, 4);
    KT_EQ(c.other_fails, 1);
    test_pages.supply_quota = 1;
    get(64);
    other_test_check();
}

KTEST(slob, mistakes_of_clients_are_reported)
{
    struct other_cache c = {.other_size = 1500};
    char *p, *whole;
    void *obj;

    other_test_start(&slob_allocator);
    p = get(100);
    whole = get(2 * PAGE_SIZE);
    KT_PANICS(put(p, 99), "was allocated with 100 bytes, freed with 99");
    KT_PANICS(put(whole, 5000), "is not a block of 5000 bytes");
    KT_PANICS(put(&p, 100), "is not memory");
    obj = get_object(&c);
    put_object(&c, obj); /* its page goes back */
    KT_PANICS(put_object(&c, obj), "is not an object of 1500 bytes");
    KT_PANICS(put_object(&c, whole), "is not an object");
}

/* check() finds what is wrong: each of these damages a heap of its own. */
static struct slob_page *damaged(unsigned char **page)
{
    other_test_start(&slob_allocator);
    taken[0] = get(100);
    taken[1] = get(100);
    taken[2] = get(100);
    put(taken[1], 100);
    other_test_check();
    *page = (unsigned char *)test_pages.supply_base;
    return supply_info(&test_pages, *page);
}

KTEST(slob, check_finds_damage)
{
    unsigned char *page;
    struct slob_page *p = damaged(&page);

    p->slob_units++;
    expect_wrong("not as many as are counted");
    p = damaged(&page);
    ((int16_t *)page)[p->slob_first + 1] = 1;
    expect_wrong("does not ascend");
    p = damaged(&page);
    ((int16_t *)page)[p->slob_first + 1] = 3000;
    expect_wrong("does not ascend");
    p = damaged(&page);
    ((int16_t *)page)[p->slob_first] = 3000;
    expect_wrong("does not ascend");
    p = damaged(&page);
    ((int16_t *)page)[p->slob_first] = 10; /* of 54: two that are neighbours */
    ((int16_t *)page)[p->slob_first + 11] =
        ((int16_t *)page)[p->slob_first + 1];
    ((int16_t *)page)[p->slob_first + 10] = 44;
    ((int16_t *)page)[p->slob_first + 1] = (int16_t)(p->slob_first + 10);
    expect_wrong("or has neighbours");
    p = damaged(&page);
    p->slob_first = 0;
    p->slob_units = SLOB_UNITS; /* of a page that would have gone back */
    ((int16_t *)page)[0] = ((int16_t *)page)[1] = SLOB_UNITS;
    expect_wrong("not as many as are counted");
    p = damaged(&page);
    p->slob_units++; /* one of the block behind */
    ((int16_t *)page)[p->slob_first]++;
    expect_wrong("free bytes are not as many");
    p = damaged(&page);
    p->slob_class = SLOB_LARGE;
    expect_wrong("of another list");
    p = damaged(&page);
    list_remove(&p->slob_link);
    expect_wrong("on no list");
    p = damaged(&page);
    p->slob_used = 0;
    expect_wrong("or of another list");
}
