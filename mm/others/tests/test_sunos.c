/*
 * The allocator of SunOS: each case is an expectation of its description (E1,
 * E2 …), whose figures follow from the rules; then random operations, and
 * mistakes.
 *
 * Tests: mm/others/inspect/sunos.c
 */
#include "mm/others/tests/ops.h"
#include "kernel/lib/string.h"
#include "mm/others/sunos.h"

static size_t nodes(void)
{
    return sunos_stat.stat_nodes;
}

static void expect_node(const struct sunos_node *n, size_t offset, size_t size)
{
    KT_REQUIRE(n != NULL);
    KT_EQ(test_offset((const void *)n->node_addr), offset);
    KT_EQ(n->node_size, size);
}

KTEST(sunos, E1_a_fresh_heap)
{
    other_test_start(&sunos_allocator);
    KT_EQ(test_offset(get(100)), 0);
    KT_EQ(test_counts().stat_internal, 4);
    KT_EQ(nodes(), 1);
    expect_node(sunos_root, 104, 3992);
    KT_EQ(test_held(), 2);
    KT_EQ(test_counts().stat_metadata, PAGE_SIZE);
    other_test_check();
}

KTEST(sunos, E2_neighbours_are_joined)
{
    static const int order[] = {1, 0, 2, 3};
    static const size_t left[] = {2, 2, 2, 1};
    char *p[4];
    sunos_at_once = false;
    other_test_start(&sunos_allocator);
    for (int i = 0; i < 4; i++) {
        p[i] = get(64);
        KT_EQ(test_offset(p[i]), 64 * i);
    }
    for (int i = 0; i < 4; i++) {
        put(p[order[i]], 64);
        KT_EQ(nodes(), left[i]);
        if (i == 2)
            expect_node(sunos_root->node_left, 0, 192);
        other_test_check();
    }
    expect_node(sunos_root, 0, PAGE_SIZE);
    KT_EQ(sunos_stat.stat_coalesced_left, 2);
    KT_EQ(sunos_stat.stat_coalesced_right, 2);
}

/* A heap whose free blocks are exactly these (offset, size), put there in the
 * order in which they are listed. */
static void start_free(const size_t (*block)[2], size_t n)
{
    char *base;

    sunos_at_once = false;
    other_test_start(&sunos_allocator);
    base = get(8 * PAGE_SIZE);
    for (size_t i = 0; i < n; i++)
        put(base + block[i][0], block[i][1]);
    KT_EQ(nodes(), n);
}

static const size_t five[][2] = {
    {0x1000, 64}, {0x2000, 256}, {0x3000, 128}, {0x4000, 512}, {0x5000, 32}};

static void expect_five(void)
{
    expect_node(sunos_root, 0x4000, 512);
    expect_node(sunos_root->node_left, 0x2000, 256);
    expect_node(sunos_root->node_right, 0x5000, 32);
    expect_node(sunos_root->node_left->node_left, 0x1000, 64);
    expect_node(sunos_root->node_left->node_right, 0x3000, 128);
}

KTEST(sunos, E3_one_tree_for_any_order)
{
    size_t order[5][2];

    for (unsigned k = 0; k < 120; k++) {
        unsigned left = 5, rest = k;
        size_t from[5][2];

        memcpy(from, five, sizeof(five));
        for (unsigned i = 0; left > 0; i++) {
            unsigned j = rest % left;

            rest /= left--;
            memcpy(order[i], from[j], sizeof(*from));
            memmove(from + j, from + j + 1, (left - j) * sizeof(*from));
        }
        start_free(order, 5);
        expect_five();
    }
}

KTEST(sunos, E3_better_fit_and_first_fit)
{
    start_free(five, 5);
    KT_EQ(test_offset(get(100)), 0x3000);
    expect_node(sunos_root->node_left->node_right, 0x3068, 24);
    sunos_policy = SUNOS_LEFTMOST;
    start_free(five, 5);
    KT_EQ(test_offset(get(100)), 0x2000);
    expect_node(sunos_root->node_left, 0x2068, 152);
    KT_EQ(sunos_stat.stat_exact_fits, 1); /* of start_free */
    KT_EQ(test_offset(get(152)), 0x2068);
    KT_EQ(sunos_stat.stat_exact_fits, 2);
    KT_EQ(nodes(), 4);
    KT_EQ(sunos_depth(), 3);
    KT_EQ(sunos_root->node_size, 512); /* the largest */
}

KTEST(sunos, E4_better_fit_is_not_best_fit)
{
    static const size_t block[][2] = {
        {0x2000, 200}, {0x3000, 104}, {0x4000, 512}, {0x6000, 152}};

    start_free(block, 4);
    KT_EQ(test_offset(get(100)), 0x6000);
}

/* Of two children that fit, the smaller; the left one if they are alike. */
KTEST(sunos, better_fit_prefers_the_smaller_child)
{
    static const size_t alike[][2] = {
        {0x4000, 512}, {0x2000, 128}, {0x6000, 128}};
    static const size_t smaller[][2] = {
        {0x4000, 512}, {0x2000, 128}, {0x6000, 120}};

    start_free(alike, 3);
    KT_EQ(test_offset(get(100)), 0x2000);
    start_free(smaller, 3);
    KT_EQ(test_offset(get(100)), 0x6000);
    KT_EQ(test_offset(get(128)), 0x2000);
    KT_EQ(test_offset(get(128)), 0x4000);
}

KTEST(sunos, a_node_sinks_below_larger_children)
{
    static const size_t block[][2] = {{0x4000, 512},
                                      {0x2000, 256},
                                      {0x1000, 64},
                                      {0x3000, 128},
                                      {0x6000, 32}};
    uint64_t before;

    start_free(block, 5);
    before = sunos_stat.stat_relinks;
    KT_EQ(test_offset(get(408)), 0x4000);
    KT_EQ(sunos_stat.stat_relinks - before, 2);
    expect_node(sunos_root, 0x2000, 256);
    expect_node(sunos_root->node_left, 0x1000, 64);
    expect_node(sunos_root->node_right, 0x3000, 128);
    expect_node(sunos_root->node_right->node_right, 0x4198, 104);
    expect_node(sunos_root->node_right->node_right->node_right, 0x6000, 32);
}

KTEST(sunos, E5_what_a_page_holds)
{
    unsigned n = 0;

    other_test_start(&sunos_allocator);
    do {
        get(100);
        n++;
    } while (sunos_root->node_size >= 104);
    KT_EQ(n, 39);
    expect_node(sunos_root, 4056, 40);
    KT_EQ(test_held(), 2);
    get(300);
    KT_EQ(test_counts().stat_internal, 39 * 4 + 4);
}

KTEST(sunos, E6_random_operations_return_all_pages)
{
    for (unsigned seed = 1; seed <= 3; seed++) {
        sunos_policy = seed == 2 ? SUNOS_LEFTMOST : SUNOS_BETTER;
        sunos_inline = seed == 3;
        other_test_start(&sunos_allocator);
        other_test_random(seed, 20000, 9000);
        KT_TRUE(sunos_root == NULL);
        KT_EQ(test_held(), sunos_stat.stat_node_pages);
        KT_EQ(sunos_stat.stat_node_pages == 0, sunos_inline);
    }
}

/* Pages of nodes separate runs. */
KTEST(sunos, E6_random_operations_keep_all_pages)
{
    sunos_at_once = false;
    other_test_start(&sunos_allocator);
    other_test_random(4, 20000, 9000);
    KT_GE(sunos_stat.stat_node_pages + 1, sunos_stat.stat_nodes);
    KT_EQ(test_counts().stat_external >> PAGE_SHIFT,
          test_held() - sunos_stat.stat_node_pages);
    sunos_allocator.op_pressure();
    KT_EQ(test_held(), sunos_stat.stat_node_pages);
    KT_TRUE(sunos_root == NULL);
    other_test_check();
}

/* ---- the rest ----------------------------------------------------------- */

KTEST(sunos, whole_pages_are_cut_out)
{
    char *p[3];

    other_test_start(&sunos_allocator);
    p[0] = get(5000);
    p[1] = get(10000);
    p[2] = get(1000);
    put(p[1], 10000);
    other_test_check();
    KT_EQ(nodes(), 3);
    KT_EQ(test_held(), 4); /* of 6, one of them of nodes */
    KT_TRUE(!test_pages.supply_used[3] && !test_pages.supply_used[4]);
    put(p[2], 1000);
    put(p[0], 5000);
    KT_EQ(test_held(), 1);
}

KTEST(sunos, parts_of_pages_stay)
{
    char *base;

    other_test_start(&sunos_allocator);
    base = get(8 * PAGE_SIZE);
    put(base + 0x800, 2 * PAGE_SIZE);
    KT_TRUE(test_pages.supply_used[0] && !test_pages.supply_used[1] &&
            test_pages.supply_used[2]);
    KT_EQ(nodes(), 2);
    expect_node(sunos_root, 0x800, 0x800);
    expect_node(sunos_root->node_right, 0x2000, 0x800);
    other_test_check();
    put(base + 0x2800, 0x800); /* page 2 is free now */
    KT_TRUE(!test_pages.supply_used[2]);
    KT_EQ(nodes(), 1);
    other_test_check();
}

KTEST(sunos, aligned_objects)
{
    struct other_cache c = {.other_size = 200, .other_align = 1024};
    char *obj;

    other_test_start(&sunos_allocator);
    get(8);
    obj = sunos_allocator.op_cache_alloc(&c);
    KT_EQ(test_offset(obj), 1024);
    KT_EQ(nodes(), 2);
    KT_EQ(test_counts().stat_requested, 208);
    other_test_check();
    sunos_allocator.op_cache_free(&c, obj);
    KT_EQ(nodes(), 1);
    KT_EQ(c.other_frees, 1);
}

/* At interrupt level, and where there is no memory for a page of nodes. */
KTEST(sunos, frees_that_wait)
{
    char *p[2000];

    other_test_start(&sunos_allocator);
    for (int i = 0; i < 2000; i++)
        p[i] = get(16);
    sunos_free_later(p[0], 16);
    sunos_free_later(p[2], 16);
    KT_EQ(nodes(), 1);
    other_test_check();
    get(1);
    KT_EQ(nodes(), 3); /* both, and what the last page has left */
    other_test_check();
    test_pages.supply_quota = test_pages.supply_held;
    for (int i = 10; i < 2000; i += 2)
        put(p[i], 16);
    KT_LE(nodes(), PAGE_SIZE / sizeof(struct sunos_node));
    other_test_check();
    KT_TRUE(sunos_allocator.op_alloc(1000) == NULL);
    KT_EQ(test_counts().stat_fails, 1);
    other_test_check();
    test_pages.supply_quota = TEST_PAGES;
    get(16);
    KT_GE(nodes(), 900);
    other_test_check();
}

/* Each call returns the blocks that can be joined with a neighbour or get a
 * node that has become spare. */
KTEST(sunos, pressure_returns_blocks_that_wait)
{
    char *p[2000];
    size_t held;

    other_test_start(&sunos_allocator);
    for (int i = 0; i < 2000; i++)
        p[i] = get(16);
    test_pages.supply_quota = test_pages.supply_held;
    for (int i = 0; i < 2000; i += 2)
        put(p[i], 16);
    KT_TRUE(sunos_laters != 0);
    for (int i = 1; i < 2000; i += 2)
        put(p[i], 16);
    do {
        held = test_held();
        sunos_allocator.op_pressure();
        other_test_check();
    } while (test_held() < held);
    KT_EQ(test_held(), sunos_stat.stat_node_pages);
    KT_EQ(sunos_laters, 0);
}

/* Another task puts the blocks that wait into the tree. */
static void take_one(void)
{
    get(16);
}

static void check(void)
{
    KT_TRUE(sunos_allocator.op_check() == NULL);
}

KTEST(sunos, what_others_do_while_a_page_is_got)
{
    char *p[1000];

    other_test_start(&sunos_allocator);
    for (int i = 0; i < 1000; i++) {
        other_test_meanwhile(check);
        p[i] = get(16);
    }
    test_pages.supply_quota = test_pages.supply_held;
    for (int i = 0; i < 1000; i += 2)
        put(p[i], 16);
    KT_TRUE(sunos_laters != 0);
    test_pages.supply_quota = TEST_PAGES;
    other_test_meanwhile(take_one);
    get(16);
    KT_EQ(sunos_laters, 0);
    other_test_check();
}

KTEST(sunos, without_memory_it_returns_null)
{
    struct other_cache c = {.other_size = 64, .other_align = 64};

    other_test_start(&sunos_allocator);
    test_pages.supply_quota = 1;
    KT_TRUE(sunos_allocator.op_alloc(64) == NULL); /* no page of nodes */
    KT_EQ(test_held(), 0);
    KT_TRUE(sunos_allocator.op_cache_alloc(&c) == NULL);
    KT_EQ(test_held(), 1);
    test_pages.supply_quota = 2;
    get(64);
    KT_EQ(test_counts().stat_fails, 2);
    KT_EQ(c.other_fails, 1);
    other_test_check();
}

KTEST(sunos, mistakes_of_clients_are_reported)
{
    char *p, *q;

    other_test_start(&sunos_allocator);
    p = get(100);
    put(p, 100); /* its page goes back */
    KT_PANICS(put(p, 100), "is not a block of 100 bytes");
    KT_PANICS(put(&p, 100), "is not memory");
    p = get(100);
    q = get(100);
    put(p, 100);
    KT_PANICS(put(p, 100), ", 104 bytes: part of it is free already");
    other_test_start(&sunos_allocator);
    p = get(100);
    q = get(100);
    put(q, 100);
    KT_PANICS(put(p, 200), "part of it is free already");
}

/* ---- check() ------------------------------------------------------------ */

static void damaged(void)
{
    start_free(five, 5);
    other_test_check();
}

KTEST(sunos, check_finds_damage)
{
    struct sunos_node *n;

    damaged();
    sunos_root->node_size = 64;
    expect_wrong("larger than its parent");
    damaged();
    sunos_root->node_right->node_size = 0;
    expect_wrong("a size that no block has");
    damaged();
    sunos_root->node_right->node_size = 31;
    expect_wrong("a size that no block has");
    damaged();
    sunos_root->node_right->node_size = 24;
    expect_wrong("free bytes are not");
    damaged();
    sunos_root->node_right->node_addr = sunos_root->node_addr + 512;
    expect_wrong("neighbours are not joined");
    damaged();
    sunos_root->node_right = NULL;
    expect_wrong("does not find every node");
    damaged();
    n = sunos_root->node_left;
    sunos_root->node_left = sunos_root->node_right;
    sunos_root->node_right = n;
    expect_wrong("does not find every node");
    damaged();
    n = sunos_root->node_left->node_left;
    n->node_left = sunos_root;
    expect_wrong("does not find every node");
}

/* A block that waits, and what follows it on the list. */
static struct sunos_later *waiting(void)
{
    char *p;

    other_test_start(&sunos_allocator);
    p = get(64);
    sunos_free_later(p, 64);
    other_test_check();
    return (struct sunos_later *)p;
}

KTEST(sunos, check_finds_damage_in_frees_that_wait)
{
    waiting()->later_size = 0;
    expect_wrong("blocks that wait are not as many");
    waiting()->later_size = PAGE_SIZE;
    expect_wrong("blocks that wait are not as many");
    waiting()->later_next = TEST_PAGES * PAGE_SIZE / 8 + 1;
    expect_wrong("blocks that wait are not as many");
    waiting()->later_next = sunos_laters;
    expect_wrong("a block that waits is free already");
    waiting()->later_size = 1;
    expect_wrong("free bytes are not as many");
}
