/*
 * SLAB: each case is an expectation of its description (E1, E2 …), whose
 * figures follow from the rules; then random operations, and mistakes. E7, how
 * much its queues serve of the reference trace, is in
 * tools/test/measure/test_traces.py.
 */
#include "mm/others/tests/ops.h"
#include "kernel/lib/string.h"
#include "mm/others/linux_slab.h"

#define MANY 8000

static char *taken[MANY];

static void start(unsigned cpus)
{
    other_cpus = cpus;
    other_cpu = 0;
    other_test_start(&linux_slab_allocator);
}

static struct lslab_cache *create(struct other_cache *c)
{
    KT_REQUIRE(linux_slab_allocator.op_cache_create(c));
    return c->other_own;
}

static void take_objects(struct other_cache *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        taken[i] = get_object(c);
}

static void give_objects(struct other_cache *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        put_object(c, taken[i]);
}

static size_t listed(const struct list *list)
{
    size_t n = 0;

    list_for_each (l, list)
        n++;
    return n;
}

static void expect_slabs(const struct lslab_cache *k, size_t partial,
                         size_t full, size_t free)
{
    KT_EQ(listed(&k->cache.partial), partial);
    KT_EQ(listed(&k->cache_full), full);
    KT_EQ(listed(&k->cache_free), free);
    KT_EQ(k->cache.slabs, partial + full + free);
    other_test_check();
}

/* ---- geometry ----------------------------------------------------------- */

static void construct(void *obj, size_t size)
{
    memset(obj, 0x55, size);
}

static void expect_shape(size_t size, bool made, unsigned num,
                         enum lslab_index index, unsigned colours)
{
    struct other_cache c = {.other_size = size,
                            .other_ctor = made ? construct : NULL};
    const struct lslab_cache *k = create(&c);

    KT_EQ(k->cache.num, num);
    KT_EQ(k->cache_index, index);
    KT_EQ(k->cache_colours, colours);
    take_objects(&c, num);
    KT_EQ(k->cache.slabs, 1);
    other_test_check();
    get_object(&c);
    KT_EQ(k->cache.slabs, 2);
    other_test_check();
}

KTEST(linux_slab, E1_geometry)
{
    static const struct {
        size_t size;
        unsigned num;
        enum lslab_index index;
        unsigned colours;
    } want[] = {
        {16, 240, LSLAB_ON_SLAB, 0},   {32, 124, LSLAB_ON_SLAB, 0},
        {64, 64, LSLAB_IN_OBJECT, 0},  {100, 39, LSLAB_IN_OBJECT, 0},
        {192, 21, LSLAB_IN_OBJECT, 1}, {200, 20, LSLAB_IN_OBJECT, 1},
        {256, 16, LSLAB_IN_OBJECT, 0}, {300, 13, LSLAB_IN_OBJECT, 2},
        {400, 10, LSLAB_IN_OBJECT, 1}, {600, 6, LSLAB_IN_OBJECT, 7},
        {1000, 4, LSLAB_IN_OBJECT, 1},
    };
    struct other_cache ended = {.other_size = 400, .other_dtor = construct};

    start(1);
    for (size_t i = 0; i < ARRAY_SIZE(want); i++)
        expect_shape(want[i].size, false, want[i].num, want[i].index,
                     want[i].colours);
    expect_shape(64, true, 63, LSLAB_ON_SLAB, 0);
    expect_shape(400, true, 10, LSLAB_ON_SLAB, 1);
    expect_shape(1000, true, 4, LSLAB_ON_SLAB, 1);
    expect_shape(1500, false, 2, LSLAB_IN_OBJECT, 17);
    expect_shape(3000, false, 1, LSLAB_IN_OBJECT, 17);
    expect_shape(3, false, 240, LSLAB_ON_SLAB, 0);
    KT_EQ(create(&ended)->cache_index, LSLAB_ON_SLAB);
}

KTEST(linux_slab, E1_geometry_of_larger_slabs)
{
    lslab_max_order = 1;
    start(1);
    expect_shape(1500, false, 5, LSLAB_IN_OBJECT, 10);
    expect_shape(3000, false, 2, LSLAB_IN_OBJECT, 34);
    expect_shape(1000, false, 4, LSLAB_IN_OBJECT, 1);
}

/* No object has room, and too little is left for the end of the slab. */
KTEST(linux_slab, an_index_beside_the_slab)
{
    struct other_cache c = {.other_size = 128, .other_ctor = construct};
    struct other_cache pages = {.other_size = 3 * PAGE_SIZE,
                                .other_align = PAGE_SIZE,
                                .other_ctor = construct};
    const struct lslab_cache *k;
    size_t metadata;

    start(1);
    expect_shape(128, true, 32, LSLAB_OFF_SLAB, 0);
    k = create(&c);
    metadata = test_counts().stat_metadata;
    taken[0] = get_object(&c);
    KT_EQ(test_counts().stat_metadata - metadata, 32);
    KT_EQ(test_counts().stat_requested, 33 * 128 + 128);
    other_test_check();
    put_object(&c, taken[0]);
    linux_slab_allocator.op_cache_destroy(&c);
    KT_EQ(test_counts().stat_metadata, metadata);
    KT_EQ(create(&pages)->cache.order, 2);
    KT_EQ((uintptr_t)get_object(&pages) % PAGE_SIZE, 0);
    other_test_check();
    KT_TRUE(k == create(&c)); /* the same record */
}

KTEST(linux_slab, E2_colours)
{
    static const unsigned want[] = {64, 128, 192, 256, 320, 384, 0, 64};
    struct other_cache c = {.other_size = 600}, two = {.other_size = 300};

    start(1);
    create(&c);
    create(&two);
    for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
        take_objects(&c, 6);
        KT_EQ(test_offset(taken[5]) % PAGE_SIZE, want[i]); /* popped last */
        take_objects(&two, 13);
        KT_EQ(test_offset(taken[12]) % PAGE_SIZE, i % 2 ? 0 : 64);
    }
    other_test_check();
}

/* ---- queues ------------------------------------------------------------- */

KTEST(linux_slab, E3_queues_of_one_processor)
{
    struct other_cache c = {.other_size = 128};
    const struct lslab_cache *k;

    start(1);
    k = create(&c);
    KT_EQ(k->cache_free_limit, 152);
    take_objects(&c, 1000);
    KT_EQ(k->cache.slabs, 32);
    KT_EQ(k->cache_cpu[0].queue_avail, 24);
    KT_EQ(test_counts().stat_allocs - lslab_stat.stat_alloc_miss, 967);
    KT_EQ(lslab_stat.stat_alloc_miss, 33);
    KT_EQ(test_counts().stat_external, 24 * 128);
    other_test_check();
    give_objects(&c, 1000);
    KT_EQ(k->cache_cpu[0].queue_avail, 64);
    KT_EQ(lslab_stat.stat_free_miss, 16);
    expect_slabs(k, 2, 1, 3);
}

static void pass(unsigned seconds)
{
    linux_slab_allocator.op_tick((uint64_t)seconds * 1000);
    other_test_check();
}

KTEST(linux_slab, E4_only_time_passes)
{
    static const unsigned want[][2] = {{64, 6}, {40, 6}, {16, 5}, {8, 4},
                                       {4, 4},  {2, 3},  {1, 3},  {0, 2}};
    struct other_cache c = {.other_size = 128};
    const struct lslab_cache *k;

    start(1);
    k = create(&c);
    take_objects(&c, 1000);
    give_objects(&c, 1000);
    for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
        pass(2 * i + 2);
        KT_EQ(k->cache_cpu[0].queue_avail, want[i][0]);
        KT_EQ(k->cache.slabs, want[i][1]);
    }
    pass(18);
    pass(20);
    KT_EQ(k->cache.slabs, 1);
    pass(22);
    pass(24);
    KT_EQ(k->cache.slabs, 0);
    KT_EQ(lslab_stat.stat_scanned, 12 * (11 + 1));
}

KTEST(linux_slab, E5_the_shared_queue)
{
    struct other_cache c = {.other_size = 128};
    const struct lslab_cache *k;

    start(4);
    k = create(&c);
    KT_EQ(k->cache_shared.queue_limit, 480);
    take_objects(&c, 1000);
    give_objects(&c, 1000);
    KT_EQ(k->cache.slabs, 27);
    KT_EQ(k->cache_shared.queue_avail, 480);
    KT_EQ(k->cache_cpu[0].queue_avail, 64);
    other_test_check();
    for (unsigned t = 2; t <= 32; t += 2) {
        pass(t);
        KT_EQ(k->cache_shared.queue_avail, t < 20 ? 480 - t / 4 * 96 : 0);
    }
    KT_EQ(k->cache.slabs, 0);
}

/* Another processor gets the newest of what this one has flushed. */
KTEST(linux_slab, objects_are_shared)
{
    struct other_cache c = {.other_size = 128};
    const struct lslab_cache *k;
    uint64_t grown;

    start(2);
    k = create(&c);
    take_objects(&c, 120);
    give_objects(&c, 120);
    KT_EQ(k->cache_shared.queue_avail, 60);
    grown = lslab.grown;
    KT_TRUE(get_object(&c) == taken[119]);
    other_cpu = 1;
    KT_TRUE(get_object(&c) == taken[51]); /* 16: it was not used lately */
    KT_EQ(k->cache_shared.queue_avail, 44);
    KT_EQ(k->cache_cpu[1].queue_avail, 15);
    KT_TRUE(k->cache_shared.queue_touched);
    KT_EQ(lslab.grown, grown);
    other_test_check();
}

KTEST(linux_slab, E6_objects_in_queues)
{
    struct other_cache c = {.other_size = 256};
    const struct lslab_cache *k;
    size_t trapped;

    start(8);
    k = create(&c);
    take_objects(&c, 4000);
    for (unsigned i = 0; i < 4000; i++) {
        other_cpu = i % 8;
        put_object(&c, taken[i]);
    }
    trapped = k->cache_shared.queue_avail;
    for (unsigned i = 0; i < 8; i++)
        trapped += k->cache_cpu[i].queue_avail;
    KT_GE(trapped, 1440 - 8 * 60);
    KT_LE(trapped, 1440);
    KT_EQ(k->cache_shared.queue_limit + 8 * k->cache_cpu[0].queue_limit, 1440);
    other_test_check();
}

/* A queue that is used keeps what it has for two more seconds. */
KTEST(linux_slab, a_touched_queue_stays)
{
    struct other_cache c = {.other_size = 128};
    const struct lslab_cache *k;

    start(1);
    k = create(&c);
    put_object(&c, get_object(&c));
    KT_EQ(k->cache_cpu[0].queue_avail, 16);
    pass(2);
    KT_EQ(k->cache_cpu[0].queue_avail, 16);
    put_object(&c, get_object(&c));
    pass(4);
    KT_EQ(k->cache_cpu[0].queue_avail, 16);
    pass(6);
    KT_EQ(k->cache_cpu[0].queue_avail, 8);
}

/* The reaper passes an empty queue: it stays touched until it has objects. */
KTEST(linux_slab, an_empty_queue_stays_touched)
{
    struct other_cache c = {.other_size = 2048};
    const struct lslab_cache *k;

    start(1);
    k = create(&c);
    take_objects(&c, 2); /* all of a slab */
    KT_EQ(k->cache_cpu[0].queue_avail, 0);
    pass(2);
    KT_TRUE(k->cache_cpu[0].queue_touched);
    give_objects(&c, 2);
    pass(4);
    KT_TRUE(!k->cache_cpu[0].queue_touched);
    KT_EQ(k->cache_cpu[0].queue_avail, 2);
    pass(6);
    KT_EQ(k->cache_cpu[0].queue_avail, 1);
}

/* The reaper returns some free slabs, unless one was needed meanwhile. */
KTEST(linux_slab, touched_free_slabs_stay)
{
    struct other_cache c = {.other_size = 2048};
    struct lslab_cache *k;

    start(1);
    k = create(&c);
    take_objects(&c, 48);
    linux_slab_allocator.op_pressure();
    give_objects(&c, 25); /* the last one flushes 12 */
    expect_slabs(k, 0, 18, 6);
    pass(2);
    k->cache_free_touched = false;
    pass(4);
    KT_EQ(lslab.returned, 3);
    expect_slabs(k, 1, 15, 5);
    k->cache_cpu[0].queue_touched = true; /* the next batch is 12 */
    for (int i = 0; i < 9; i++)
        taken[i] = get_object(&c);
    KT_TRUE(k->cache_free_touched);
    KT_EQ(k->cache_free_objects, 0);
    give_objects(&c, 9);
    for (int i = 25; i < 32; i++)
        put_object(&c, taken[i]);
    KT_GE(listed(&k->cache_free), 3);
    pass(8);
    KT_EQ(lslab.returned, 3);
    KT_TRUE(!k->cache_free_touched);
    pass(12);
    KT_EQ(lslab.returned, 6);
}

/* ---- slabs -------------------------------------------------------------- */

/* Free slabs are used if no partial one is left. */
KTEST(linux_slab, partial_slabs_come_first)
{
    struct other_cache c = {.other_size = 2048};
    struct lslab_cache *k;

    start(1);
    k = create(&c);
    take_objects(&c, 48);
    linux_slab_allocator.op_pressure();
    expect_slabs(k, 0, 24, 0);
    put_object(&c, taken[0]);
    for (int i = 4; i < 28; i++) /* the last one flushes 12 */
        put_object(&c, taken[i]);
    expect_slabs(k, 2, 17, 5);
    for (int i = 0; i < 13; i++)
        get_object(&c);
    k->cache_batch = 2;
    KT_TRUE(get_object(&c) == taken[14]);
    KT_TRUE(get_object(&c) == taken[0]);
    expect_slabs(k, 0, 19, 5);
}

/* The index is in the first object that is freed into a full slab, which is
 * therefore the last that is allocated. */
KTEST(linux_slab, an_index_in_an_object)
{
    struct other_cache c = {.other_size = 300};
    const struct lslab_cache *k;
    const struct slab *s;

    start(1);
    k = create(&c);
    take_objects(&c, 13);
    linux_slab_allocator.op_pressure();
    s = list_entry(k->cache_full.next, struct slab, link);
    KT_TRUE(s->index == NULL);
    for (int i = 3; i < 6; i++)
        put_object(&c, taken[i]);
    linux_slab_allocator.op_pressure();
    KT_TRUE(s->index == (uint8_t *)taken[3]);
    KT_EQ(s->active, 10);
    expect_slabs(k, 1, 0, 0);
    KT_TRUE(get_object(&c) == taken[3]); /* a queue gets all: the last first */
    KT_TRUE(s->index == NULL);
    expect_slabs(k, 0, 1, 0);
}

KTEST(linux_slab, free_objects_stay_constructed)
{
    start(1);
    other_test_constructed();
}

KTEST(linux_slab, check_while_slabs_go_back)
{
    start(1);
    other_test_going_back();
}

/* ---- the rest ----------------------------------------------------------- */

KTEST(linux_slab, random_operations)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        lslab_max_order = seed == 4;
        start(seed % 2 ? 1 : 4);
        other_test_random(seed, 20000, seed > 2 ? 300 : 9000);
        linux_slab_allocator.op_pressure();
        KT_EQ(test_held(), 0);
        other_test_check();
    }
}

/* An object of 96 bytes is aligned to a line, and so takes two. */
KTEST(linux_slab, memory_of_any_size)
{
    char *p;

    start(1);
    for (size_t size = 1; size <= SLABS_MAX; size *= 2)
        KT_EQ((uintptr_t)get(size) % MIN(size, (size_t)LSLAB_LINE), 0);
    p = get(96);
    KT_EQ(p - (char *)get(90), 128);
    KT_EQ(get(200) - get(256), 256);
    other_test_check();
    p = get(SLABS_MAX + 1);
    KT_EQ(test_offset(p) % (4 * PAGE_SIZE), 0);
    other_test_check();
    put(p, SLABS_MAX + 1);
    other_test_check();
}

KTEST(linux_slab, without_memory_it_returns_null)
{
    struct other_cache c = {.other_size = 300};
    struct other_cache made = {.other_size = 128, .other_ctor = construct};
    size_t held;

    start(1);
    create(&c);
    create(&made);
    test_pages.supply_quota = 0;
    KT_TRUE(linux_slab_allocator.op_cache_alloc(&c) == NULL);
    KT_TRUE(linux_slab_allocator.op_alloc(64) == NULL);
    KT_TRUE(linux_slab_allocator.op_alloc(SLABS_MAX + 1) == NULL);
    KT_EQ(test_counts().stat_fails, 3);
    KT_EQ(c.other_fails, 1);
    test_pages.supply_quota = 1; /* for the slab, but not for its index */
    held = test_held();
    KT_TRUE(linux_slab_allocator.op_cache_alloc(&made) == NULL);
    KT_EQ(test_held(), held);
    get_object(&c);
    other_test_check();
}

KTEST(linux_slab, without_memory_there_is_no_cache)
{
    struct other_cache c = {.other_size = 300};

    start(1);
    test_pages.supply_room_bytes = 0;
    test_pages.supply_get = other_test_no_pages;
    KT_TRUE(!linux_slab_allocator.op_cache_create(&c));
    KT_PANICS(linux_slab_allocator.op_init(&test_pages),
              "no memory for its caches");
}

static struct other_cache plain;

static void take_plain(void)
{
    taken[0] = get_object(&plain);
}

/* An interrupt gets a slab, too: the second one is free then. */
KTEST(linux_slab, what_an_interrupt_does_meanwhile)
{
    const struct lslab_cache *k;

    plain = (struct other_cache){.other_size = 256};
    start(1);
    k = create(&plain);
    other_test_meanwhile(take_plain);
    taken[1] = get_object(&plain);
    KT_EQ(taken[0] - taken[1], 256);
    KT_EQ(k->cache_free_objects, 16);
    expect_slabs(k, 0, 1, 1);
}

KTEST(linux_slab, mistakes_of_clients_are_reported)
{
    struct other_cache c = {.other_size = 300};
    char *p;

    start(1);
    create(&c);
    /* A queue gives the last one first. */
    other_test_mistakes(&c, get_object(&c));
    start(1);
    p = get(2048);
    put(p, 2048);
    for (unsigned t = 2; t < 8; t += 2)
        pass(t);
    KT_PANICS(put(p, 2048), "2048 bytes: it is free already");
}

/* ---- check() ------------------------------------------------------------ */

static struct lslab_cache *k_damaged;
static struct other_cache c_damaged;

/* A slab of each list, and objects in the queue: 4 of the third slab. */
static struct slab *damaged(void)
{
    start(1);
    c_damaged = (struct other_cache){.other_size = 512};
    k_damaged = create(&c_damaged);
    take_objects(&c_damaged, 32);
    linux_slab_allocator.op_pressure();
    put_object(&c_damaged, taken[0]);
    for (int i = 8; i < 16; i++)
        put_object(&c_damaged, taken[i]);
    pass(2);
    pass(4);
    for (int i = 16; i < 20; i++)
        put_object(&c_damaged, taken[i]);
    k_damaged->cache_free_touched = true;
    for (unsigned t = 6; listed(&k_damaged->cache_free) == 0; t += 2)
        pass(t);
    KT_GE(k_damaged->cache_cpu[0].queue_avail, 2);
    expect_slabs(k_damaged, 1, 2, 1);
    return list_entry(k_damaged->cache.partial.next, struct slab, link);
}

KTEST(linux_slab, check_finds_damage)
{
    struct slab *s = damaged();
    struct lslab_queue *q;

    s->active = 0;
    expect_wrong("a slab of another list");
    damaged()->active = 9;
    expect_wrong("a slab of another list");
    damaged()->cache = NULL;
    expect_wrong("a slab of another list");
    damaged();
    k_damaged->cache.slabs--;
    expect_wrong("slabs are not as many as counted");
    s = damaged();
    s->index[s->active] = 8;
    expect_wrong("an index has an object twice, or one that is not");
    s = list_entry(k_damaged->cache_free.next, struct slab, link);
    damaged();
    s->index[3] = s->index[4];
    expect_wrong("an index has an object twice");
    damaged();
    q = &k_damaged->cache_cpu[0];
    q->queue_avail = q->queue_limit + 1;
    expect_wrong("more objects than it may");
    damaged();
    q->queue_entry[0] = q;
    expect_wrong("neither free nor allocated");
    s = damaged();
    q->queue_entry[0] = s->first + s->index[s->active] * 512;
    expect_wrong("an object that is free, or twice");
    damaged();
    q->queue_entry[0] = q->queue_entry[1];
    expect_wrong("an object that is free, or twice");
    damaged();
    q->queue_avail--;
    expect_wrong("neither free nor allocated");
    damaged();
    k_damaged->cache_free_objects++;
    expect_wrong("not as many as counted");
    damaged();
    list_remove(&s->link);
    expect_wrong("not as many as counted");
}
