/*
 * SLMB: each case is an expectation of its description (E1, E2 …), whose
 * figures follow from the rules; then random operations, and mistakes. E4, how
 * many pages it looks at on the reference trace, is in
 * tools/test/measure/test_traces.py.
 */
#include "mm/others/tests/ops.h"
#include "kernel/lib/string.h"
#include "mm/others/slmb.h"

#define MANY 512

static void *taken[MANY];

static void start(unsigned cpus)
{
    other_cpus = cpus;
    other_cpu = 0;
    other_test_start(&slmb_allocator);
}

static size_t listed(unsigned cpu, unsigned class)
{
    size_t n = 0;

    list_for_each (l, &slmb_list[cpu][class])
        n++;
    return n;
}

static struct slob_page *page_of(const void *p)
{
    return supply_info(&test_pages, p);
}

KTEST(slmb, E1_lists_by_size)
{
    static const struct {
        size_t size;
        unsigned class;
    } want[] = {{1, 1},    {8, 1},     {16, 2},    {56, 7},
                {57, 8},   {120, 9},   {121, 10},  {248, 10},
                {249, 11}, {1016, 11}, {1017, 11}, {4000, 11}};

    KT_EQ(ARRAY_SIZE(slmb_list[0]), 12);
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        start(4);
        KT_EQ(page_of(get(want[i].size))->slob_class, want[i].class);
        KT_EQ(listed(0, want[i].class), 1);
        other_test_check();
    }
}

/* An object of each bound's size on each of 4 processors. */
static size_t pages_of_48(const struct other_allocator *a)
{
    struct other_cache c[SLMB_CLASSES];

    other_cpus = 4;
    other_test_start(a);
    for (unsigned i = 0; i < SLMB_CLASSES; i++)
        c[i] = (struct other_cache){.other_size = slmb_bound[i]};
    for (unsigned i = 0; i < 4 * SLMB_CLASSES; i++) {
        other_cpu = i % 4;
        KT_TRUE(a->op_cache_alloc(&c[i / 4]) != NULL);
    }
    KT_EQ(test_counts().stat_requested, 7168);
    other_test_check();
    return test_held();
}

KTEST(slmb, E2_a_page_for_each_list)
{
    KT_EQ(pages_of_48(&slmb_allocator), 48);
    KT_EQ(slmb_stat.stat_missed, 36);
    KT_EQ(pages_of_48(&slob_allocator), 3);
}

KTEST(slmb, E3_pages_go_to_the_processor_that_frees)
{
    struct other_cache c = {.other_size = 64};

    start(2);
    for (int i = 0; i < 512; i++)
        taken[i] = get_object(&c);
    KT_EQ(test_held(), 8);
    KT_EQ(listed(0, 7), 0);
    other_cpu = 1;
    for (int i = 0; i < 512; i += 64)
        put_object(&c, taken[i]);
    KT_EQ(listed(1, 7), 8);
    KT_EQ(slmb_stat.stat_migrated, 8);
    other_test_check();
    other_cpu = 0;
    get_object(&c);
    KT_EQ(test_held(), 9);
    KT_EQ(slmb_stat.stat_missed, 1);
    put_object(&c, taken[1]); /* the page stays where it is */
    KT_EQ(slmb_stat.stat_foreign, 1);
    KT_EQ(listed(1, 7), 8);
    KT_EQ(page_of(taken[1])->slob_cpu, 1);
    other_test_check();
}

/* Where blocks are after random operations. */
#define STEPS 4000

static void run(const struct other_allocator *a, size_t *offset)
{
    static struct {
        void *at;
        size_t size;
    } block[MANY];
    uint32_t x = 1;
    unsigned n = 0;

    other_test_start(a);
    for (unsigned i = 0; i < STEPS; i++) {
        x = x * 1664525 + 1013904223;
        offset[i] = test_held();
        if (n < MANY && (x >> 16) % 100 < 55) {
            block[n].size = (x >> 8) % ((x >> 20) % 4 == 0 ? 3000 : 300) + 1;
            block[n].at = a->op_alloc(block[n].size);
            offset[i] = test_offset(block[n++].at);
        } else if (n > 0) {
            unsigned k = (x >> 8) % n;

            a->op_free(block[k].at, block[k].size);
            block[k] = block[--n];
        }
    }
    other_test_check();
}

KTEST(slmb, E6_with_three_lists_it_is_slob)
{
    static const size_t three[] = {255, 1023, SIZE_MAX};
    static size_t slob[STEPS], slmb[STEPS];
    unsigned differ = 0;

    run(&slob_allocator, slob);
    run(&slmb_allocator, slmb);
    for (unsigned i = 0; i < STEPS; i++)
        differ += slob[i] != slmb[i];
    KT_GE(differ, STEPS / 2);
    memcpy(slmb_bound, three, sizeof(three));
    run(&slmb_allocator, slmb);
    for (unsigned i = 0; i < STEPS; i++)
        KT_EQ(slob[i], slmb[i]);
}

KTEST(slmb, random_operations)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        start(seed % 2 ? 1 : 4);
        other_test_random(seed, 20000, seed == 4 ? 300 : 5000);
        KT_EQ(test_held(), 0);
    }
}

/* ---- the rest ----------------------------------------------------------- */

KTEST(slmb, gaps_and_single_units)
{
    struct other_cache unit = {.other_size = 2};

    start(1);
    for (int i = 0; i < MANY; i++)
        taken[i] = get_object(&unit);
    KT_EQ(slob_stat.stat_gaps, MANY - 1);
    other_test_check();
    put_object(&unit, get_object(&unit)); /* a new page */
    KT_EQ(slmb_stat.stat_missed, 0);      /* the room was the processor's own */
    for (int i = 0; i < MANY; i++)
        put_object(&unit, taken[(i * 5) % MANY]);
    KT_EQ(test_held(), 0);
    other_test_check();
}

KTEST(slmb, without_memory_it_returns_null)
{
    struct other_cache c = {.other_size = 64};
    struct other_cache pages = {.other_size = PAGE_SIZE};

    start(1);
    test_pages.supply_quota = 0;
    KT_TRUE(slmb_allocator.op_alloc(64) == NULL);
    KT_TRUE(slmb_allocator.op_cache_alloc(&c) == NULL);
    KT_TRUE(slmb_allocator.op_cache_alloc(&pages) == NULL);
    KT_EQ(test_counts().stat_fails, 3);
    test_pages.supply_quota = 1;
    get(64);
    other_test_check();
}

/* check() finds what is wrong with SLMB's lists, each in a heap of its own.
 * What may be wrong with a page is in test_slob.c. */
static struct slob_page *damaged(void)
{
    start(2);
    taken[0] = get(100);
    taken[1] = get(100);
    put(taken[1], 100);
    other_test_check();
    return page_of(taken[0]);
}

KTEST(slmb, check_finds_damage)
{
    damaged()->slob_class++;
    expect_wrong("of another list");
    damaged()->slob_cpu = 1;
    expect_wrong("of another list");
}
