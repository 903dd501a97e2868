/*
 * SLUB: each case is an expectation of its description (E1, E2 …), whose
 * figures follow from the rules; then random operations, and mistakes. E8, what
 * it counts on the reference trace, is in tools/test/measure/test_traces.py.
 *
 * Tests: mm/others/slabs.c
 */
#include "mm/others/tests/ops.h"
#include "kernel/lib/string.h"
#include "mm/others/linux_slub.h"

#define MANY 64000

static char *taken[MANY];

static void start(unsigned cpus)
{
    other_cpus = cpus;
    other_cpu = 0;
    other_test_start(&linux_slub_allocator);
}

static struct slub_cache *create(struct other_cache *c)
{
    KT_REQUIRE(linux_slub_allocator.op_cache_create(c));
    return c->other_own;
}

static void destroy(struct other_cache *c)
{
    linux_slub_allocator.op_cache_destroy(c);
}

/* The cache of alloc() for this size. */
static struct slub_cache *class_of(size_t size)
{
    list_for_each (l, &slub.caches) {
        struct slub_cache *k = list_entry(l, struct slub_cache, cache.link);

        if (k->cache.object >= size)
            return k;
    }
    KT_REQUIRE(false);
    return NULL;
}

static void take(size_t size, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        taken[i] = get(size);
}

static void give(size_t size, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        put(taken[i], size);
}

static struct slab *slab_of(const void *obj)
{
    struct slab *page = supply_info(&test_pages, obj);

    return page->num == 0 ? page->head : page;
}

/* ---- geometry ----------------------------------------------------------- */

struct shape {
    size_t size;
    unsigned objects;
    unsigned order;
};

static void expect_shapes(unsigned cpus, const struct shape *want, size_t n)
{
    start(cpus);
    for (size_t i = 0; i < n; i++) {
        struct other_cache c = {.other_size = want[i].size};
        const struct slub_cache *k = create(&c);

        KT_EQ(k->cache.num, want[i].objects);
        KT_EQ(k->cache.order, want[i].order);
        get_object(&c);
        KT_EQ(k->cache.slabs, 1);
        KT_EQ(test_held(), 1u << k->cache.order);
        other_test_check();
        start(cpus);
    }
}

KTEST(linux_slub, E1_objects_in_a_slab_with_8_processors)
{
    static const struct shape want[] = {
        {24, 170, 0},  {32, 128, 0},  {40, 102, 0},  {80, 51, 0},  {184, 22, 0},
        {192, 21, 0},  {328, 24, 1},  {376, 21, 1},  {832, 39, 3}, {984, 33, 3},
        {1896, 17, 3}, {2048, 16, 3}, {2112, 15, 3}, {4096, 8, 3}};

    expect_shapes(8, want, ARRAY_SIZE(want));
}

KTEST(linux_slub, E2_objects_in_a_slab)
{
    static const struct shape one[] = {{300, 13, 0}, {512, 8, 0},  {600, 13, 1},
                                       {1000, 8, 1}, {1024, 8, 1}, {2048, 8, 2},
                                       {4096, 8, 3}};
    static const struct shape four[] = {
        {300, 26, 1}, {512, 16, 1}, {600, 27, 2}, {1024, 16, 2}, {2048, 16, 3}};

    expect_shapes(1, one, ARRAY_SIZE(one));
    expect_shapes(4, four, ARRAY_SIZE(four));
}

KTEST(linux_slub, large_objects)
{
    static const struct shape want[] = {
        {5000, 6, 3}, {20000, 1, 3}, {33000, 1, 4}, {100000, 1, 5}};

    expect_shapes(1, want, ARRAY_SIZE(want));
    KT_EQ(class_of(4095)->cache_min, 6);
    KT_EQ(class_of(2048)->cache_min, 5);
    KT_EQ(class_of(8192)->cache_min, 6);
    KT_EQ(class_of(64)->cache_cpu_most, 4);
    KT_EQ(class_of(256)->cache_cpu_most, 7);
    KT_EQ(class_of(1024)->cache_cpu_most, 6);
    KT_EQ(class_of(4096)->cache_cpu_most, 2);
}

/* In the middle, or after an object that stays constructed. */
static void construct(void *obj, size_t size)
{
    memset(obj, 0x55, size);
}

KTEST(linux_slub, where_the_link_is)
{
    struct other_cache plain = {.other_size = 300};
    struct other_cache made = {.other_size = 301, .other_ctor = construct};
    struct other_cache tiny = {.other_size = 3};
    struct other_cache aligned = {.other_size = 300, .other_align = 64};

    start(1);
    KT_EQ(create(&plain)->cache_offset, 148);
    KT_EQ(create(&made)->cache_offset, 304);
    KT_EQ(create(&made)->cache.size, 312);
    KT_EQ(create(&tiny)->cache_offset, 4);
    KT_EQ(create(&tiny)->cache.size, 8);
    KT_EQ(create(&aligned)->cache.size, 320);
    KT_EQ((uintptr_t)get_object(&aligned) % 64, 0);
    KT_EQ((uintptr_t)get_object(&aligned) % 64, 0);
}

/* ---- one processor ------------------------------------------------------ */

KTEST(linux_slub, E3_a_slab_and_one_object)
{
    start(1);
    take(64, 65);
    KT_EQ(slub_stat.stat_alloc_slow, 2);
    KT_EQ(slub.grown, 2);
    KT_EQ(test_counts().stat_allocs - slub_stat.stat_alloc_slow, 63);
    KT_EQ(slub_stat.stat_bypass, 1);
    for (int i = 1; i < 64; i++)
        KT_EQ(taken[i] - taken[i - 1], 64);
    other_test_check();
    give(64, 65);
    KT_EQ(slub_stat.stat_cpu_free, 1);
    KT_EQ(slub_stat.stat_free_frozen, 63);
    KT_EQ(test_counts().stat_frees - slub_stat.stat_free_slow, 1);
    KT_EQ(test_held(), 2);
    KT_EQ(test_counts().stat_external, 2 * PAGE_SIZE);
    other_test_check();
}

KTEST(linux_slub, E4_what_stays_after_a_burst)
{
    const struct slub_cache *k;

    start(1);
    k = class_of(64);
    take(64, MANY);
    KT_EQ(k->cache.slabs, 1000);
    give(64, MANY);
    KT_EQ(k->cache.slabs, 9);
    KT_EQ(k->cache_cpu[0].cpu_partials, 3);
    KT_EQ(k->cache_partials, 5);
    KT_EQ(slub_stat.stat_cpu_drain, 249);
    KT_EQ(slub.returned, 991);
    KT_EQ(test_counts().stat_frees - slub_stat.stat_free_slow, 64);
    other_test_check();
    linux_slub_allocator.op_pressure();
    KT_EQ(test_held(), 0);
    KT_EQ(slub.returned, 1000);
    KT_EQ(slub_stat.stat_deactivate_empty, 1);
    other_test_check();
    take(256, 16000);
    give(256, 16000);
    KT_EQ(test_held(), 11);
    other_test_check();
}

KTEST(linux_slub, E5_every_second_object_is_freed)
{
    const struct slub_cache *k;

    start(1);
    k = class_of(64);
    take(64, 6400);
    for (int i = 0; i < 6400; i += 2)
        put(taken[i], 64);
    KT_EQ(k->cache.slabs, 100);
    KT_EQ(k->cache_cpu[0].cpu_partials, 3);
    KT_EQ(k->cache_partials, 96);
    other_test_check();
    take(64, 3200);
    KT_EQ(k->cache.slabs, 100);
    KT_EQ(k->cache_partials, 0);
    KT_EQ(slub_stat.stat_from_partial, 24);
    KT_EQ(slub_stat.stat_cpu_node, 72);
    KT_EQ(test_counts().stat_external, 0);
    other_test_check();
}

/* ---- several processors ------------------------------------------------- */

KTEST(linux_slub, E6_another_processor_frees)
{
    uint64_t locks;

    start(2);
    take(64, 64);
    locks = test_counts().stat_locks;
    other_cpu = 1;
    give(64, 64);
    KT_EQ(slub_stat.stat_free_slow, 64);
    KT_EQ(slub_stat.stat_free_frozen, 64);
    other_test_check();
    other_cpu = 0;
    KT_TRUE(get(64) == taken[63]);
    KT_EQ(slub_stat.stat_refill, 1);
    KT_EQ(slub.grown, 1);
    KT_EQ(test_counts().stat_locks, locks);
    other_test_check();
}

/* A slab that was full belongs to the processor that frees. */
KTEST(linux_slub, slabs_migrate_to_who_frees)
{
    const struct slub_cache *k;

    start(2);
    k = class_of(64);
    take(64, 65);
    other_cpu = 1;
    put(taken[5], 64);
    KT_EQ(k->cache_cpu[0].cpu_partials, 0);
    KT_EQ(k->cache_cpu[1].cpu_partials, 1);
    KT_TRUE(get(64) == taken[5]);
    KT_TRUE(k->cache_cpu[1].cpu_slab == slab_of(taken[5]));
    other_test_check();
}

/* What has become of a slab that a processor gives up. */
KTEST(linux_slub, deactivated_slabs)
{
    struct slub_cache *k;
    char *head, *tail;

    start(2);
    k = class_of(512);
    take(512, 32); /* two slabs: the first is full, the second current */
    head = taken[31];
    put(head, 512);
    other_cpu = 1;
    tail = get(512);
    get(512);
    other_cpu = 0;
    put(tail, 512); /* from afar */
    linux_slub_allocator.op_pressure();
    KT_EQ(slub_stat.stat_deactivate_head, 1);
    KT_EQ(slub_stat.stat_deactivate_tail, 1);
    KT_EQ(slub_stat.stat_deactivate_remote, 1);
    KT_EQ(k->cache_partials, 2);
    other_test_check();
    KT_TRUE(get(512) == head);
    linux_slub_allocator.op_pressure();
    KT_EQ(slub_stat.stat_deactivate_full, 1);
    KT_EQ(k->cache_partials, 1);
    other_test_check();
}

/* The list of a processor comes first, then what others have freed. */
KTEST(linux_slub, both_lists_of_a_deactivated_slab)
{
    start(2);
    take(512, 16);
    put(taken[0], 512);
    put(taken[1], 512);
    other_cpu = 1;
    put(taken[2], 512);
    put(taken[3], 512);
    linux_slub_allocator.op_pressure();
    other_test_check();
    KT_TRUE(get(512) == taken[1]);
    KT_TRUE(get(512) == taken[0]);
    KT_TRUE(get(512) == taken[3]);
    KT_TRUE(get(512) == taken[2]);
    KT_EQ(slub_stat.stat_from_partial, 1);
}

/* What counts are free objects of a processor's partial slabs: 13 of 256 bytes,
 * and half of them when it gets some from the node's list. */
KTEST(linux_slub, as_of_2014)
{
    const struct slub_cache *k;

    slub_2014 = true;
    start(1);
    k = class_of(256);
    KT_EQ(k->cache_offset, 0);
    take(256, 16 * 4);
    for (int i = 0; i < 13; i++)
        put(taken[i], 256);
    put(taken[16], 256);
    KT_EQ(k->cache_cpu[0].cpu_partials, 2);
    put(taken[32], 256);
    KT_EQ(slub_stat.stat_cpu_drain, 1);
    KT_EQ(k->cache_cpu[0].cpu_partials, 1);
    KT_EQ(k->cache_partials, 2);
    other_test_check();
    KT_TRUE(get(256) == taken[32]);
    for (int i = 17; i < 24; i++)
        put(taken[i], 256);
    put(taken[48], 256);
    KT_EQ(k->cache_cpu[0].cpu_partials, 1);
    linux_slub_allocator.op_pressure();
    KT_EQ(k->cache_partials, 3);
    get(256); /* the slab of 48 becomes current; that of 16 is partial */
    KT_EQ(slub_stat.stat_cpu_node, 1);
    KT_EQ(k->cache_partials, 1);
    other_test_check();
}

/* ---- shrinking ---------------------------------------------------------- */

KTEST(linux_slub, a_shrink_sorts_the_list)
{
    const struct slub_cache *k;
    unsigned free = 0;

    start(1);
    k = class_of(64);
    take(64, 64 * 12);
    for (int slab = 0; slab < 11; slab++)
        for (int i = 0; i < (slab * 7) % 11 * 6; i++)
            put(taken[64 * slab + i], 64);
    linux_slub_allocator.op_pressure();
    KT_EQ(k->cache_partials, 10);
    list_for_each (l, &k->cache.partial) {
        const struct slab *s = list_entry(l, struct slab, link);
        unsigned is = (unsigned)(s->num - s->inuse);

        if (free < 30) /* and then any above 32 */
            KT_EQ(is, free + 6);
        else
            KT_GE(is, 36);
        free = is;
    }
    other_test_check();
    KT_TRUE(slab_of(get(64)) == slab_of(taken[64 * 8]));
}

/* A slab that becomes free on the node's list returns if enough are there. */
KTEST(linux_slub, the_node_keeps_some_slabs)
{
    const struct slub_cache *k;

    start(1);
    k = class_of(512);
    take(512, 8 * 8);
    for (int i = 0; i < 8; i++)
        put(taken[8 * i], 512);
    linux_slub_allocator.op_pressure();
    KT_EQ(k->cache_partials, 8);
    for (int slab = 0; slab < 8; slab++) {
        for (int i = 1; i < 8; i++)
            put(taken[8 * slab + i], 512);
        KT_EQ(k->cache_partials, slab < 4 ? 7 - slab : 4);
    }
    KT_EQ(slub.returned, 4);
    other_test_check();
}

/* ---- caches ------------------------------------------------------------- */

KTEST(linux_slub, E7_like_caches_are_merged)
{
    static const size_t merged[] = {92, 60, 28};
    struct other_cache c[3], other = {.other_size = 84};
    struct other_cache made = {.other_size = 92, .other_ctor = construct};
    struct other_cache line = {.other_size = 92, .other_align = 64};
    struct other_cache more = {.other_size = 88};
    struct other_cache ended = {.other_size = 76, .other_dtor = construct};
    struct other_cache as_large = {.other_size = 80};

    start(1);
    for (int i = 0; i < 3; i++) {
        c[i] = (struct other_cache){.other_size = merged[i]};
        KT_TRUE(create(&c[i]) == class_of(merged[i]));
        KT_EQ(class_of(merged[i])->cache.users, 2);
    }
    KT_TRUE(create(&other) != class_of(84));
    KT_TRUE(create(&more) == other.other_own);
    KT_TRUE(create(&made) != class_of(92));
    KT_TRUE(create(&line) == class_of(128));
    KT_EQ(create(&ended)->cache_offset, 76);
    KT_TRUE(create(&as_large) != ended.other_own);
    KT_EQ(slub_stat.stat_aliases, 5);
    taken[0] = get_object(&c[0]);
    KT_EQ(c[0].other_allocs, 1);
    KT_EQ(test_counts().stat_internal, 4);
    put_object(&c[0], taken[0]);
    KT_EQ(c[0].other_frees, 1);
}

/* The last of its users returns the slabs. */
KTEST(linux_slub, merged_caches_end_with_the_last)
{
    struct other_cache a = {.other_size = 84}, b = {.other_size = 88};
    struct slub_cache *k;

    start(1);
    k = create(&a);
    KT_TRUE(create(&b) == k);
    put_object(&a, get_object(&a));
    destroy(&a);
    KT_EQ(test_held(), 1);
    KT_EQ(k->cache.users, 1);
    other_test_check();
    put_object(&b, get_object(&b));
    destroy(&b);
    KT_EQ(test_held(), 0);
    KT_TRUE(create(&a) == k); /* the same record */
    other_test_check();
}

KTEST(linux_slub, free_objects_stay_constructed)
{
    start(1);
    other_test_constructed();
}

KTEST(linux_slub, check_while_slabs_go_back)
{
    start(1);
    other_test_going_back();
}

/* ---- the rest ----------------------------------------------------------- */

KTEST(linux_slub, random_operations)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        start(seed % 2 ? 1 : 4);
        other_test_random(seed, 20000, seed > 2 ? 300 : 9000);
        linux_slub_allocator.op_pressure();
        KT_EQ(test_held(), 0);
        other_test_check();
    }
}

KTEST(linux_slub, large_requests_get_whole_pages)
{
    char *p;

    start(1);
    p = get(SLABS_MAX);
    KT_EQ(test_held(), 8); /* a slab */
    put(p, SLABS_MAX);
    p = get(SLABS_MAX + 1);
    KT_EQ(test_held(), 8 + 4);
    KT_EQ(test_offset(p) % (4 * PAGE_SIZE), 0);
    KT_EQ(test_counts().stat_internal, 2 * PAGE_SIZE - 1);
    other_test_check();
    put(p, SLABS_MAX + 1);
    KT_EQ(test_held(), 8);
    other_test_check();
}

/* Without memory for a large slab a small one serves. */
KTEST(linux_slub, a_slab_of_the_least_order)
{
    const struct slub_cache *k;

    start(1);
    k = class_of(2048);
    KT_EQ(k->cache.order, 2);
    test_pages.supply_quota = 3;
    take(2048, 6);
    KT_EQ(slub_stat.stat_fallback, 3);
    KT_EQ(test_held(), 3);
    KT_TRUE(linux_slub_allocator.op_alloc(2048) == NULL);
    KT_EQ(test_counts().stat_fails, 1);
    other_test_check();
    test_pages.supply_quota = TEST_PAGES;
    take(2048, 4);
    KT_EQ(slub_stat.stat_fallback, 3);
    KT_EQ(test_held(), 7);
    other_test_check();
}

KTEST(linux_slub, without_memory_it_returns_null)
{
    struct other_cache c = {.other_size = 300};

    start(1);
    create(&c);
    test_pages.supply_quota = 0;
    KT_TRUE(linux_slub_allocator.op_cache_alloc(&c) == NULL);
    KT_TRUE(linux_slub_allocator.op_alloc(64) == NULL);
    KT_TRUE(linux_slub_allocator.op_alloc(SLABS_MAX + 1) == NULL);
    KT_EQ(test_counts().stat_fails, 3);
    KT_EQ(c.other_fails, 1);
    test_pages.supply_quota = 1;
    get_object(&c);
    other_test_check();
}

KTEST(linux_slub, without_memory_there_is_no_cache)
{
    struct other_cache c = {.other_size = 300};

    start(1);
    test_pages.supply_room_bytes = 0;
    test_pages.supply_get = other_test_no_pages;
    KT_TRUE(!linux_slub_allocator.op_cache_create(&c));
}

static void take_one(void)
{
    taken[0] = get(512);
}

/* An interrupt gets a slab while a new one is made, which is a partial one
 * then. */
KTEST(linux_slub, what_an_interrupt_does_meanwhile)
{
    const struct slub_cache *k;

    start(1);
    k = class_of(512);
    other_test_meanwhile(take_one);
    taken[1] = get(512);
    KT_TRUE(slab_of(taken[1]) == slab_of(taken[0]));
    KT_EQ(k->cache.slabs, 2);
    KT_EQ(k->cache_cpu[0].cpu_partials, 1);
    other_test_check();
}

static void take_last(void)
{
    take_one();
    test_pages.supply_get = other_test_no_pages;
}

KTEST(linux_slub, an_interrupt_leaves_objects)
{
    start(1);
    other_test_meanwhile(take_last);
    KT_EQ((char *)get(512) - taken[0], 512);
    other_test_check();
}

KTEST(linux_slub, mistakes_of_clients_are_reported)
{
    struct other_cache c = {.other_size = 300};
    char *last;

    start(1);
    create(&c);
    for (int i = 0; i < 13; i++)
        last = get_object(&c);
    other_test_mistakes(&c, last);
    start(1);
    take(512, 9);
    put(taken[0], 512);
    KT_PANICS(put(taken[0], 512), "512 bytes: it is free already");
    start(1);
    take(512, 8);
    linux_slub_allocator.op_pressure(); /* it is not the current one */
    give(512, 8);
    KT_PANICS(put(taken[3], 512), "512 bytes: it is free already");
}

/* ---- check() ------------------------------------------------------------ */

static struct slub_cache *damaged_cache;

/* One slab on the processor's list, one current, one full, one of the node;
 * returns the current one. */
static struct slab *damaged(void)
{
    start(1);
    damaged_cache = class_of(512);
    take(512, 8 * 4);
    put(taken[0], 512);
    put(taken[1], 512);
    linux_slub_allocator.op_pressure();
    put(taken[8], 512); /* the processor's */
    put(taken[9], 512);
    KT_TRUE(get(512) == taken[9]); /* current */
    put(taken[16], 512);
    other_test_check();
    KT_EQ(damaged_cache->cache_partials, 1);
    KT_EQ(damaged_cache->cache_cpu[0].cpu_partials, 1);
    return slab_of(taken[9]);
}

static uint32_t *link_of(char *obj)
{
    return (uint32_t *)(obj + damaged_cache->cache_offset);
}

KTEST(linux_slub, check_finds_damage_in_lists)
{
    damaged();
    *link_of(taken[0]) = 0x12345678;
    expect_wrong("an object of another slab");
    damaged();
    *link_of(taken[0]) += 1;
    expect_wrong("an object of another slab");
    damaged();
    *link_of(taken[0]) = slab_of(taken[16])->free;
    expect_wrong("an object of another slab");
    damaged();
    *link_of(taken[0]) = slab_of(taken[0])->free;
    expect_wrong("or one twice");
    damaged();
    *link_of(taken[1]) = 0;
    expect_wrong("not as many free objects as it counts");
    damaged()->inuse--;
    expect_wrong("not as many free objects as it counts");
    damaged();
    damaged_cache->cache_cpu[0].cpu_free = 0;
    expect_wrong("neither free nor allocated");
    damaged();
    damaged_cache->cache_cpu[0].cpu_free = slab_of(taken[16])->free;
    expect_wrong("an object of another slab");
}

KTEST(linux_slub, check_finds_damage_in_slabs)
{
    struct slab *s = damaged();

    s->frozen = 0;
    expect_wrong("a slab that is not frozen");
    damaged();
    slab_of(taken[0])->frozen = 1;
    expect_wrong("a slab of another list");
    damaged();
    slab_of(taken[0])->cache = &class_of(64)->cache;
    expect_wrong("a slab of another list");
    damaged();
    slab_of(taken[0])->free = 0;
    expect_wrong("a slab of another list");
    damaged();
    slab_of(taken[16])->frozen = 0;
    expect_wrong("a slab of another list");
    damaged();
    slab_of(taken[24])->frozen = 1;
    expect_wrong("no processor has it");
    damaged();
    damaged_cache->cache.slabs++;
    expect_wrong("slabs are not as many as counted");
    damaged();
    damaged_cache->cache_partials++;
    expect_wrong("not as many slabs as are counted");
    damaged();
    list_remove(&slab_of(taken[0])->link);
    expect_wrong("not as many slabs as are counted");
    damaged();
    list_remove(&slab_of(taken[0])->link);
    damaged_cache->cache_partials--;
    expect_wrong("is on no list");
    damaged();
    damaged_cache->cache_partials--;
    expect_wrong("not as many slabs as are counted");
}
