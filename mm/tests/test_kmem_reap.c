/*
 * Statements S-41 to S-47: reclaiming and the working set (paper, 3.4). One
 * call of kmem_update is the end of one interval of 15 seconds.
 */
#include "mm/tests/kmem_test.h"

#define PER 8 /* objects of 500 bytes in a slab */

/* `slabs` slabs of eight objects, all in use; the clock stands. */
static struct kmem_cache *make(size_t slabs)
{
    struct kmem_cache *cp = kmem_cache_create("t_ws", 500, 0, NULL, NULL);

    test_clock_stop();
    if (cp == NULL || cp->cache_slab_chunks != PER)
        KT_FAIL("no cache of %u objects in a slab", PER);
    test_alloc(cp, 0, slabs * PER);
    return cp;
}

static void end(struct kmem_cache *cp)
{
    TEST_VERIFY(cp);
    test_clock_start();
    test_destroy(cp);
}

/* Slabs that a reap frees. */
static size_t reap(struct kmem_cache *cp)
{
    struct kmem_reap_result r;

    kmem_cache_reap(cp, KMEM_REAP_WS, &r);
    KT_EQ(r.reap_kept, cp->cache_complete);
    return r.reap_slabs;
}

static void expect(struct kmem_cache *cp, size_t t, size_t m, size_t l)
{
    if (cp->cache_complete != t || cp->cache_ws_min != m ||
        cp->cache_ws_limit != l)
        KT_FAIL("T %zu, m %zu, L %zu; want %zu, %zu, %zu",
                (size_t)cp->cache_complete, (size_t)cp->cache_ws_min,
                (size_t)cp->cache_ws_limit, t, m, l);
}

KTEST(kmem, S41_free_returns_no_memory)
{
    struct test_supply s;
    struct kmem_cache *cp;

    test_supply_init(&s, 100);
    cp = kmem_cache_create_from("t_keep", 500, 0, NULL, NULL, &s.supply);
    test_alloc(cp, 0, 5 * PER);
    test_free(cp, 0, 5 * PER);
    KT_EQ(s.held, 5);
    KT_EQ(s.frees, 0);
    KT_EQ(cp->cache_complete, 5);
    KT_EQ(cp->cache_slabs, 5);
    test_destroy(cp);
}

KTEST(kmem, S41_complete_slab_is_the_lists_tail)
{
    struct kmem_cache *cp = make(3);
    struct kmem_slab *a = kmem_slab_of(test_obj[0]);

    test_free(cp, 0, PER);
    KT_TRUE(kmem_slab_prev(&cp->cache_null) == a);
    test_free(cp, PER, 3 * PER);
    KT_TRUE(kmem_slab_prev(&cp->cache_null) ==
            kmem_slab_of(test_obj[2 * PER]));
    end(cp);
}

KTEST(kmem, S42_interval_zero_reaps_everything)
{
    struct kmem_cache *cp = make(4);

    test_free(cp, 0, 3 * PER);
    KT_EQ(reap(cp), 0);
    test_clock_start();
    kmem_ws_interval = 0;
    KT_EQ(reap(cp), 3);
    kmem_ws_interval = KMEM_WS_DEFAULT_MS;
    test_clock_stop();
    KT_EQ(cp->cache_slabs, 1);
    test_free(cp, 3 * PER, 4 * PER);
    end(cp);
}

KTEST(kmem, S42_interval_infinite_reaps_nothing)
{
    struct kmem_cache *cp = make(4);

    test_free(cp, 0, 4 * PER);
    kmem_update();
    kmem_update();
    kmem_ws_interval = KMEM_WS_INFINITE;
    KT_EQ(reap(cp), 0);
    KT_EQ(cp->cache_slabs, 4);
    kmem_ws_interval = KMEM_WS_INFINITE - 1;
    KT_EQ(reap(cp), 4);
    end(cp);
}

KTEST(kmem, S42_reap_all_ignores_the_working_set)
{
    struct kmem_cache *cp = make(5);
    struct kmem_reap_result r;

    test_free(cp, 0, 3 * PER + 2);
    kmem_cache_reap(cp, KMEM_REAP_ALL, &r);
    KT_EQ(r.reap_slabs, 3);
    KT_EQ(r.reap_pages, 3);
    KT_EQ(r.reap_kept, 0);
    KT_EQ(r.reap_objects, 0); /* there is no destructor */
    KT_EQ(cp->cache_slabs, 2);
    test_free(cp, 3 * PER + 2, 5 * PER);
    end(cp);
}

KTEST(kmem, S43_m_is_the_least_number_of_complete_slabs)
{
    struct kmem_cache *cp = make(6);

    expect(cp, 0, 0, 0);
    test_free(cp, 0, 6 * PER);
    expect(cp, 6, 0, 0);
    kmem_update();
    expect(cp, 6, 6, 0);
    test_alloc(cp, 0, 2 * PER + 1);
    expect(cp, 3, 3, 0);
    test_free(cp, 0, 2 * PER + 1);
    expect(cp, 6, 3, 0);
    test_alloc(cp, 0, 1);
    expect(cp, 5, 3, 0);
    test_free(cp, 0, 1);
    kmem_update();
    expect(cp, 6, 6, 3);
    end(cp);
}

KTEST(kmem, S43_a_reap_takes_what_both_bounds_allow)
{
    struct kmem_cache *cp = make(6);

    test_free(cp, 0, 6 * PER);
    kmem_update();
    kmem_update();
    expect(cp, 6, 6, 6);
    test_alloc(cp, 0, 4 * PER);
    expect(cp, 2, 2, 6);
    test_free(cp, 0, 4 * PER);
    KT_EQ(reap(cp), 2); /* m is the smaller */
    KT_EQ(cp->cache_complete, 4);
    kmem_update();
    KT_LE(reap(cp), 2);
    end(cp);
}

/* Tail first: the slabs that became complete last. */
KTEST(kmem, S43_reap_takes_the_tail)
{
    struct kmem_cache *cp = make(4);
    struct kmem_slab *sp[4];

    for (size_t i = 0; i < 4; i++)
        sp[i] = kmem_slab_of(test_obj[i * PER]);
    test_free(cp, 2 * PER, 4 * PER);
    test_free(cp, 0, 2 * PER);
    kmem_update();
    test_alloc(cp, 0, PER + 1); /* leaves two untouched: m = 2 */
    test_free(cp, 0, PER + 1);
    kmem_update();
    expect(cp, 4, 4, 2);
    KT_TRUE(test_slab(cp, 0) != NULL);
    sp[2] = test_slab(cp, 2);
    sp[3] = test_slab(cp, 3);
    sp[0] = test_slab(cp, 0);
    sp[1] = test_slab(cp, 1);
    KT_EQ(reap(cp), 2);
    KT_TRUE(test_slab(cp, 0) == sp[0]);
    KT_TRUE(test_slab(cp, 1) == sp[1]);
    KT_TRUE(test_slab(cp, 2) == NULL);
    end(cp);
}

KTEST(kmem, S43_reap_everything_then_start_again)
{
    struct kmem_cache *cp = make(3);

    test_free(cp, 0, 3 * PER);
    kmem_cache_reap(cp, KMEM_REAP_ALL, NULL);
    expect(cp, 0, 0, 0);
    test_alloc(cp, 0, 2 * PER);
    test_free(cp, 0, 2 * PER);
    expect(cp, 2, 0, 0);
    KT_EQ(reap(cp), 0);
    end(cp);
}

KTEST(kmem, S43_dry_run_counts_and_changes_nothing)
{
    struct kmem_cache *cp = make(5);
    struct kmem_cache_stat before;
    struct kmem_cache_stat after;
    struct kmem_reap_result r;

    test_free(cp, 0, 4 * PER);
    kmem_update();
    kmem_update();
    before = test_stat(cp);
    kmem_cache_reap(cp, KMEM_REAP_DRY, &r);
    after = test_stat(cp);
    KT_EQ(memcmp(&before, &after, sizeof(before)), 0);
    KT_EQ(r.reap_slabs, 4);
    KT_EQ(r.reap_pages, 4);
    KT_EQ(r.reap_kept, 0);
    KT_EQ(reap(cp), 4);
    test_free(cp, 4 * PER, 5 * PER);
    end(cp);
}

/* ---- the vectors of S-44 -------------------------------------------------------- */

/* Ten slabs filled and freed, one update: t = 15. */
static struct kmem_cache *vector(void)
{
    struct kmem_cache *cp = make(10);

    expect(cp, 0, 0, 0);
    test_free(cp, 0, 10 * PER);
    expect(cp, 10, 0, 0);
    KT_EQ(reap(cp), 0); /* t = 1 */
    kmem_update();      /* t = 15 */
    expect(cp, 10, 10, 0);
    return cp;
}

KTEST(kmem, S44_idle_for_two_intervals)
{
    struct kmem_cache *cp = vector();

    KT_EQ(reap(cp), 0);
    kmem_update(); /* t = 30 */
    expect(cp, 10, 10, 10);
    KT_EQ(reap(cp), 10);
    expect(cp, 0, 0, 0);
    end(cp);
}

KTEST(kmem, S44_four_slabs_used_at_20)
{
    struct kmem_cache *cp = vector();

    test_alloc(cp, 0, 4 * PER); /* t = 20 */
    test_free(cp, 0, 4 * PER);
    expect(cp, 10, 6, 0);
    kmem_update(); /* t = 30 */
    expect(cp, 10, 10, 6);
    KT_EQ(reap(cp), 6);
    KT_EQ(cp->cache_complete, 4);
    KT_EQ(reap(cp), 0); /* what is kept is kept */
    end(cp);
}

KTEST(kmem, S44_all_used_at_29)
{
    struct kmem_cache *cp = vector();

    test_alloc(cp, 0, 10 * PER); /* t = 29 */
    test_free(cp, 0, 10 * PER);
    expect(cp, 10, 0, 0);
    kmem_update(); /* t = 30 */
    expect(cp, 10, 10, 0);
    KT_EQ(reap(cp), 0);
    kmem_update(); /* t = 45 */
    KT_EQ(reap(cp), 10);
    end(cp);
}

/* ---- reap as a service ------------------------------------------------------------ */

static size_t nested_reaps;
static int nested_destroy;
static struct kmem_cache *bystander;

static void reaping_dtor(void *obj, size_t size)
{
    (void)obj;
    (void)size;
    nested_reaps += kmem_reap(KMEM_REAP_ALL);
    nested_destroy = kmem_cache_destroy(bystander);
    test_dtors++;
}

KTEST(kmem, S45_a_second_reap_is_ignored_until_the_first_is_done)
{
    struct kmem_cache *cp;

    bystander = kmem_cache_create("t_by", 100, 0, NULL, NULL);
    cp = kmem_cache_create("t_reaping", 1000, 0, NULL, reaping_dtor);
    KT_REQUIRE(bystander != NULL && cp != NULL);
    test_alloc(bystander, 0, 1);
    test_free(bystander, 0, 1);
    test_alloc(cp, 0, 1);
    test_free(cp, 0, 1);
    test_constructed_reset();
    nested_reaps = 0;
    nested_destroy = 0;
    KT_NE(kmem_reap(KMEM_REAP_ALL), 0);
    KT_NE(test_dtors, 0);
    KT_EQ(nested_reaps, 0);
    KT_EQ(nested_destroy, -KMEM_EAGAIN);
    KT_EQ(bystander->cache_slabs, 0); /* the first one got there */
    KT_TRUE(kmem_cache_find("t_by") == bystander);
    test_destroy(bystander);
    bystander = NULL;
    test_destroy(cp);
}

KTEST(kmem, S45_reap_goes_through_every_cache)
{
    struct kmem_cache *a = kmem_cache_create("t_a", 500, 0, NULL, NULL);
    struct kmem_cache *b = kmem_cache_create("t_b", 1000, 0, NULL, NULL);
    size_t pages;

    kmem_reap(KMEM_REAP_ALL);
    test_alloc(a, 0, 1);
    test_alloc(b, 1, 2);
    test_free(a, 0, 1);
    test_free(b, 1, 2);
    pages = kmem_reap(KMEM_REAP_ALL);
    KT_GE(pages, 2);
    KT_LE(pages, 4); /* and perhaps the slabs of kmem_slab, kmem_bufctl */
    KT_EQ(a->cache_slabs, 0);
    KT_EQ(b->cache_slabs, 0);
    KT_EQ(kmem_reap(KMEM_REAP_ALL), 0);
    test_destroy(a);
    test_destroy(b);
}

/* Buddy is dry, one cache has complete slabs: another gets their pages. */
static void check_pressure(enum kmem_reap_mode mode)
{
    struct kmem_cache *rich = kmem_cache_create("t_rich", 500, 0, NULL, NULL);
    struct kmem_cache *poor = kmem_cache_create("t_poor", 64, 0, NULL, NULL);
    struct buddy_stat before;
    struct buddy_stat after;
    void *obj;

    test_clock_stop();
    test_alloc(rich, 0, 2 * PER);
    test_flood();
    test_free(rich, 0, 2 * PER);
    if (mode == KMEM_REAP_WS) {
        kmem_update();
        kmem_update();
    }
    buddy_stat(&before);
    obj = kmem_cache_alloc(poor, KM_NOSLEEP);
    buddy_stat(&after);
    KT_TRUE(obj != NULL);
    KT_EQ(after.stat_pressures - before.stat_pressures, 1);
    KT_EQ(after.stat_failures, before.stat_failures);
    KT_EQ(poor->cache_fails, 0);
    KT_EQ(rich->cache_slabs, 0);
    KT_EQ(buddy_free_pages(), 1);
    if (obj != NULL)
        kmem_cache_free(poor, obj);
    test_flood_end();
    test_clock_start();
    test_destroy(rich);
    test_destroy(poor);
}

KTEST(kmem, S46_a_dry_supplier_reaps_once_and_retries)
{
    check_pressure(KMEM_REAP_WS);
}

KTEST(kmem, S46_pressure_breaks_the_working_set_before_it_fails)
{
    check_pressure(KMEM_REAP_ALL);
}

KTEST(kmem, S46_pressure_within_the_working_set_leaves_the_rest)
{
    struct kmem_cache *cp = make(4);
    struct kmem_cache *poor = kmem_cache_create("t_poor", 64, 0, NULL, NULL);
    void *obj;

    test_free(cp, 0, 4 * PER);
    kmem_update();
    test_alloc(cp, 0, 2 * PER);
    test_flood(); /* reaps: what was complete is gone */
    test_free(cp, 0, 2 * PER);
    kmem_update();
    test_alloc(cp, 0, PER);
    test_free(cp, 0, PER);
    kmem_update();
    expect(cp, 2, 2, 1);
    obj = kmem_cache_alloc(poor, KM_NOSLEEP);
    KT_TRUE(obj != NULL);
    expect(cp, 1, 1, 0);
    if (obj != NULL)
        kmem_cache_free(poor, obj);
    test_flood_end();
    test_destroy(poor);
    end(cp);
}

KTEST(kmem, S46_pressure_takes_nothing_if_the_interval_is_infinite)
{
    struct kmem_cache *cp = make(2);
    struct kmem_cache *poor = kmem_cache_create("t_poor", 64, 0, NULL, NULL);

    test_flood();
    test_free(cp, 0, 2 * PER);
    kmem_ws_interval = KMEM_WS_INFINITE;
    KT_TRUE(kmem_cache_alloc(poor, KM_NOSLEEP) == NULL);
    KT_EQ(cp->cache_complete, 2);
    kmem_ws_interval = KMEM_WS_INFINITE - 1;
    test_flood_end();
    test_destroy(poor);
    end(cp);
}

/* ---- what else happens meanwhile ------------------------------------------------- */

static void *freed_by_ctor;

/* Somebody frees an object while its cache grows. (In life an interrupt: a
 * constructor may not use its own cache.) */
static void freeing_ctor(void *obj, size_t size)
{
    (void)obj;
    (void)size;
    if (freed_by_ctor != NULL)
        kmem_cache_free(bystander, freed_by_ctor);
    freed_by_ctor = NULL;
}

KTEST(kmem, S35_an_object_freed_while_the_cache_grows_goes_first)
{
    size_t n;

    bystander = kmem_cache_create("t_grow", 496 - TEST_WORD, 0, freeing_ctor,
                                  NULL);
    n = bystander->cache_slab_chunks;
    test_alloc(bystander, 0, n);
    freed_by_ctor = test_obj[3];
    KT_TRUE(kmem_cache_alloc(bystander, KM_NOSLEEP) == test_obj[3]);
    KT_EQ(bystander->cache_slabs, 2);
    KT_EQ(bystander->cache_complete, 1);
    TEST_VERIFY(bystander);
    test_free(bystander, 0, n);
    test_destroy(bystander);
}

static size_t taken_by_dtor;

/* Somebody allocates while slabs are given up. */
static void taking_dtor(void *obj, size_t size)
{
    (void)obj;
    (void)size;
    if (taken_by_dtor < 2 * PER)
        test_alloc(bystander, taken_by_dtor, taken_by_dtor + 1);
    taken_by_dtor++;
}

KTEST(kmem, S43_slabs_taken_while_a_reap_runs_are_left)
{
    struct kmem_reap_result r;

    bystander = kmem_cache_create("t_race", 4096, 0, NULL, taking_dtor);
    test_alloc(bystander, 0, 4);
    test_free(bystander, 0, 4);
    taken_by_dtor = 0;
    kmem_cache_reap(bystander, KMEM_REAP_ALL, &r);
    KT_EQ(r.reap_slabs, 2); /* and as many were taken meanwhile */
    KT_EQ(r.reap_kept, 0);
    KT_EQ(kmem_inuse(bystander), 2);
    TEST_VERIFY(bystander);
    taken_by_dtor = 2 * PER;
    test_free(bystander, 0, 2);
    test_destroy(bystander);
}

/* Reaped pages are spoiled by their supplier at once: whoever still needs a
 * header on them, or gives up a page that is not its own, is caught. */
KTEST(kmem, S47_idle_slabs_keep_their_headers)
{
    struct test_supply s;
    struct kmem_cache *cp;
    struct kmem_slab *sp;

    test_supply_init(&s, 10);
    cp = kmem_cache_create_from("t_idle", 500, 0, NULL, NULL, &s.supply);
    test_alloc(cp, 0, 3 * PER);
    test_free(cp, 0, 3 * PER);
    kmem_update();
    kmem_cache_reap(cp, KMEM_REAP_DRY, NULL);
    for (size_t i = 0; i < 3; i++) {
        sp = test_slab(cp, i);
        KT_TRUE(sp->slab_cache == cp && kmem_slab_of(sp->slab_base) == sp);
    }
    TEST_VERIFY(cp);
    kmem_cache_reap(cp, KMEM_REAP_ALL, NULL);
    KT_EQ(s.held, 0);
    test_alloc(cp, 0, 3 * PER);
    TEST_VERIFY(cp);
    test_free(cp, 0, 3 * PER);
    test_destroy(cp);
    KT_EQ(s.gets, s.frees);
}

/* ---- the clock ------------------------------------------------------------------------ */

#ifdef MM_HOST
KTEST(kmem, S43_updates_come_with_the_clock)
{
    struct kmem_cache *cp = kmem_cache_create("t_ws", 500, 0, NULL, NULL);

    kmem_update_poll();
    test_alloc(cp, 0, 4 * PER);
    test_free(cp, 0, 4 * PER);
    host_clock_ms += 14999;
    kmem_update_poll();
    expect(cp, 4, 0, 0);
    host_clock_ms += 1;
    kmem_update_poll();
    expect(cp, 4, 4, 0);
    kmem_update_poll();
    expect(cp, 4, 4, 0);
    host_clock_ms += 14999;
    kmem_update_poll();
    expect(cp, 4, 4, 0);
    host_clock_ms += 1;
    kmem_update_poll();
    expect(cp, 4, 4, 4);
    test_destroy(cp);
}

KTEST(kmem, S43_a_long_silence_counts_as_two_updates)
{
    struct kmem_cache *cp = kmem_cache_create("t_ws", 500, 0, NULL, NULL);

    kmem_update_poll();
    test_alloc(cp, 0, PER);
    test_free(cp, 0, PER);
    host_clock_ms += 1000 * 1000 * 1000ull * 1000;
    kmem_update_poll();
    expect(cp, 1, 1, 1);
    test_destroy(cp);
}

KTEST(kmem, S43_the_interval_can_be_set)
{
    struct kmem_cache *cp = kmem_cache_create("t_ws", 500, 0, NULL, NULL);

    kmem_update_poll();
    kmem_ws_interval = 100;
    test_alloc(cp, 0, PER);
    test_free(cp, 0, PER);
    host_clock_ms += 99;
    kmem_update_poll();
    expect(cp, 1, 0, 0);
    host_clock_ms += 1;
    kmem_update_poll();
    expect(cp, 1, 1, 0);
    test_destroy(cp);
}

KTEST(kmem, S43_updates_go_on_where_the_interval_says_nothing)
{
    static const uint32_t intervals[] = {0, KMEM_WS_INFINITE};
    struct kmem_cache *cp = kmem_cache_create("t_ws", 500, 0, NULL, NULL);

    for (size_t i = 0; i < 2; i++) {
        kmem_ws_interval = intervals[i];
        kmem_update_poll();
        test_alloc(cp, 0, PER);
        test_free(cp, 0, PER);
        host_clock_ms += 14999;
        kmem_update_poll();
        expect(cp, 1, 0, 0);
        host_clock_ms += 1;
        kmem_update_poll();
        expect(cp, 1, 1, 0);
        kmem_cache_reap(cp, KMEM_REAP_ALL, NULL);
        host_clock_ms += 15000;
        kmem_update_poll();
        host_clock_ms += 15000;
        kmem_update_poll();
        expect(cp, 0, 0, 0);
    }
    test_destroy(cp);
}

KTEST(kmem, S43_time_to_the_next_update)
{
    kmem_update_poll();
    host_clock_ms += 40000;
    kmem_update_poll();
    KT_EQ(kmem_update_due(), 5000);
    host_clock_ms += 4999;
    KT_EQ(kmem_update_due(), 1);
    host_clock_ms += 100;
    KT_EQ(kmem_update_due(), 0);
}

KTEST(kmem, S43_idle_time_of_complete_slabs)
{
    struct kmem_cache *cp = kmem_cache_create("t_ws", 500, 0, NULL, NULL);
    struct kmem_slab_stat s;

    host_clock_ms = 5000;
    kmem_update_poll();
    test_alloc(cp, 0, 1);
    KT_TRUE(kmem_slab_stat(cp, 0, &s));
    KT_EQ(s.stat_idle_ms, 0);
    test_free(cp, 0, 1);
    host_clock_ms = 12300;
    kmem_update_poll();
    KT_TRUE(kmem_slab_stat(cp, 0, &s));
    KT_EQ(s.stat_idle_ms, 7000);
    test_destroy(cp);
}

KTEST(kmem, S43_a_reap_is_noted)
{
    struct kmem_cache *cp = make(3);

    test_free(cp, 0, 2 * PER);
    KT_EQ(test_stat(cp).stat_last_reap_ms, 0);
    host_clock_ms = 77777;
    kmem_cache_reap(cp, KMEM_REAP_ALL, NULL);
    KT_EQ(test_stat(cp).stat_reaps, 1);
    KT_EQ(test_stat(cp).stat_reaped_slabs, 2);
    KT_EQ(test_stat(cp).stat_last_reap_ms, 77777);
    KT_EQ(test_stat(cp).stat_last_reap_freed, 2);
    KT_EQ(test_stat(cp).stat_last_reap_kept, 0);
    test_free(cp, 2 * PER, 3 * PER);
    end(cp);
}

KTEST(kmem, S45_pages_given_back_wake_the_waiting)
{
    struct kmem_cache *cp = make(2);
    uint64_t before;

    test_free(cp, 0, 2 * PER);
    before = host_returns;
    kmem_cache_reap(cp, KMEM_REAP_ALL, NULL);
    KT_NE(host_returns, before);
    end(cp);
}
#endif
