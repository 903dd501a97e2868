/*
 * Statements S-41 to S-44: reclaiming and the working set (paper, 3.4). One
 * call of kmem_update is the end of one interval of 15 seconds.
 */
#include "mm/tests/kmem_test.h"

/* Slabs that a reap frees: as many as the statistics say. */
static size_t reap(struct kmem_cache *cp)
{
    size_t reapable = test_stat(cp).stat_reapable;
    size_t slabs = kmem_cache_reap(cp, KMEM_REAP_WS);

    KT_EQ(slabs, reapable);
    KT_EQ(cp->cache_last_reap_kept, cp->cache_free_slabs);
    return slabs;
}

KTEST(kmem, S41_free_returns_no_memory)
{
    struct test_supply s;
    struct kmem_cache *cp;

    cp = test_supply_cache(&s, 100, 500);
    test_alloc(cp, 0, 5 * TEST_WS_PER);
    test_free(cp, 0, 5 * TEST_WS_PER);
    KT_EQ(s.held, 5);
    KT_EQ(s.frees, 0);
    KT_EQ(cp->cache_free_slabs, 5);
    KT_EQ(cp->cache_slabs, 5);
    test_destroy(cp);
}

KTEST(kmem, S41_free_slab_is_the_lists_tail)
{
    struct kmem_cache *cp = test_ws_make(3);
    struct kmem_slab *a = kmem_slab_of(test_obj[0]);

    test_free(cp, 0, TEST_WS_PER);
    KT_TRUE(kmem_slab_prev(&cp->cache_null) == a);
    test_free(cp, TEST_WS_PER, 3 * TEST_WS_PER);
    KT_TRUE(kmem_slab_prev(&cp->cache_null) ==
            kmem_slab_of(test_obj[2 * TEST_WS_PER]));
    test_ws_end(cp);
}

KTEST(kmem, S42_interval_zero_reaps_everything)
{
    struct kmem_cache *cp = test_ws_make(4);

    test_free(cp, 0, 3 * TEST_WS_PER);
    KT_EQ(reap(cp), 0);
    test_clock_start();
    kmem_ws_interval = 0;
    KT_EQ(reap(cp), 3);
    kmem_ws_interval = KMEM_WS_DEFAULT_MS;
    test_clock_stop();
    KT_EQ(cp->cache_slabs, 1);
    test_free(cp, 3 * TEST_WS_PER, 4 * TEST_WS_PER);
    test_ws_end(cp);
}

KTEST(kmem, S42_interval_infinite_reaps_nothing)
{
    struct kmem_cache *cp = test_ws_make(4);

    test_free(cp, 0, 4 * TEST_WS_PER);
    kmem_update();
    kmem_update();
    kmem_ws_interval = KMEM_WS_INFINITE;
    KT_EQ(reap(cp), 0);
    KT_EQ(cp->cache_slabs, 4);
    kmem_ws_interval = KMEM_WS_INFINITE - 1;
    KT_EQ(reap(cp), 4);
    test_ws_end(cp);
}

KTEST(kmem, S42_reap_all_ignores_the_working_set)
{
    struct kmem_cache *cp = test_ws_make(5);

    test_free(cp, 0, 3 * TEST_WS_PER + 2);
    KT_EQ(kmem_cache_reap(cp, KMEM_REAP_ALL), 3);
    KT_EQ(cp->cache_last_reap_kept, 0);
    KT_EQ(cp->cache_dtors, 0); /* there is no destructor */
    KT_EQ(cp->cache_slabs, 2);
    test_free(cp, 3 * TEST_WS_PER + 2, 5 * TEST_WS_PER);
    test_ws_end(cp);
}

KTEST(kmem, S43_m_is_the_least_number_of_free_slabs)
{
    struct kmem_cache *cp = test_ws_make(6);

    test_ws_expect(cp, 0, 0, 0);
    test_free(cp, 0, 6 * TEST_WS_PER);
    test_ws_expect(cp, 6, 0, 0);
    kmem_update();
    test_ws_expect(cp, 6, 6, 0);
    test_alloc(cp, 0, 2 * TEST_WS_PER + 1);
    test_ws_expect(cp, 3, 3, 0);
    test_free(cp, 0, 2 * TEST_WS_PER + 1);
    test_ws_expect(cp, 6, 3, 0);
    test_alloc(cp, 0, 1);
    test_ws_expect(cp, 5, 3, 0);
    test_free(cp, 0, 1);
    kmem_update();
    test_ws_expect(cp, 6, 6, 3);
    test_ws_end(cp);
}

KTEST(kmem, S43_a_reap_takes_what_both_bounds_allow)
{
    struct kmem_cache *cp = test_ws_make(6);

    test_free(cp, 0, 6 * TEST_WS_PER);
    kmem_update();
    kmem_update();
    test_ws_expect(cp, 6, 6, 6);
    test_alloc(cp, 0, 4 * TEST_WS_PER);
    test_ws_expect(cp, 2, 2, 6);
    test_free(cp, 0, 4 * TEST_WS_PER);
    KT_EQ(reap(cp), 2); /* m is the smaller */
    KT_EQ(cp->cache_free_slabs, 4);
    kmem_update();
    KT_LE(reap(cp), 2);
    test_ws_end(cp);
}

/* A reap lowers both bounds: the slabs that the first one kept were in use a
 * moment ago, so the next keeps them too. */
KTEST(kmem, S43_a_second_reap_takes_nothing_that_was_used)
{
    struct kmem_cache *cp = test_ws_make(6);

    test_free(cp, 0, 6 * TEST_WS_PER);
    kmem_update();
    kmem_update();
    test_alloc(cp, 0, 2 * TEST_WS_PER);
    test_free(cp, 0, 2 * TEST_WS_PER);
    test_ws_expect(cp, 6, 4, 6);
    KT_EQ(reap(cp), 4);
    test_ws_expect(cp, 2, 0, 2);
    KT_EQ(reap(cp), 0);
    KT_EQ(cp->cache_slabs, 2);
    kmem_update();
    KT_EQ(reap(cp), 0);
    kmem_update();
    KT_EQ(reap(cp), 2);
    test_ws_end(cp);
}

/* Tail first: the slabs that became free last. */
KTEST(kmem, S43_reap_takes_the_tail)
{
    struct kmem_cache *cp = test_ws_make(4);
    struct kmem_slab *sp[2];

    test_free(cp, 2 * TEST_WS_PER, 4 * TEST_WS_PER);
    test_free(cp, 0, 2 * TEST_WS_PER);
    kmem_update();
    test_alloc(cp, 0, TEST_WS_PER + 1); /* leaves two untouched: m = 2 */
    test_free(cp, 0, TEST_WS_PER + 1);
    kmem_update();
    test_ws_expect(cp, 4, 4, 2);
    sp[0] = test_slab(cp, 0);
    sp[1] = test_slab(cp, 1);
    KT_EQ(reap(cp), 2);
    KT_TRUE(test_slab(cp, 0) == sp[0]);
    KT_TRUE(test_slab(cp, 1) == sp[1]);
    KT_TRUE(test_slab(cp, 2) == NULL);
    test_ws_end(cp);
}

KTEST(kmem, S43_reap_everything_then_start_again)
{
    struct kmem_cache *cp = test_ws_make(3);

    test_free(cp, 0, 3 * TEST_WS_PER);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    test_ws_expect(cp, 0, 0, 0);
    test_alloc(cp, 0, 2 * TEST_WS_PER);
    test_free(cp, 0, 2 * TEST_WS_PER);
    test_ws_expect(cp, 2, 0, 0);
    KT_EQ(reap(cp), 0);
    test_ws_end(cp);
}

KTEST(kmem, S43_the_statistics_say_what_a_reap_would_take)
{
    struct kmem_cache *cp = test_ws_make(5);

    test_free(cp, 0, 4 * TEST_WS_PER);
    KT_EQ(test_stat(cp).stat_reapable, 0);
    kmem_update();
    kmem_update();
    KT_EQ(test_stat(cp).stat_reapable, 4);
    KT_EQ(reap(cp), 4);
    KT_EQ(test_stat(cp).stat_reapable, 0);
    test_free(cp, 4 * TEST_WS_PER, 5 * TEST_WS_PER);
    test_ws_end(cp);
}

/* ---- the vectors of S-44 ------------------------------------------------ */

/* Ten slabs filled and freed, one update: t = 15. */
static struct kmem_cache *vector(void)
{
    struct kmem_cache *cp = test_ws_make(10);

    test_ws_expect(cp, 0, 0, 0);
    test_free(cp, 0, 10 * TEST_WS_PER);
    test_ws_expect(cp, 10, 0, 0);
    KT_EQ(reap(cp), 0); /* t = 1 */
    kmem_update();      /* t = 15 */
    test_ws_expect(cp, 10, 10, 0);
    return cp;
}

KTEST(kmem, S44_idle_for_two_intervals)
{
    struct kmem_cache *cp = vector();

    KT_EQ(reap(cp), 0);
    kmem_update(); /* t = 30 */
    test_ws_expect(cp, 10, 10, 10);
    KT_EQ(reap(cp), 10);
    test_ws_expect(cp, 0, 0, 0);
    test_ws_end(cp);
}

KTEST(kmem, S44_four_slabs_used_at_20)
{
    struct kmem_cache *cp = vector();

    test_alloc(cp, 0, 4 * TEST_WS_PER); /* t = 20 */
    test_free(cp, 0, 4 * TEST_WS_PER);
    test_ws_expect(cp, 10, 6, 0);
    kmem_update(); /* t = 30 */
    test_ws_expect(cp, 10, 10, 6);
    KT_EQ(reap(cp), 6);
    KT_EQ(cp->cache_free_slabs, 4);
    KT_EQ(reap(cp), 0); /* kept slabs stay */
    test_ws_end(cp);
}

KTEST(kmem, S44_all_used_at_29)
{
    struct kmem_cache *cp = vector();

    test_alloc(cp, 0, 10 * TEST_WS_PER); /* t = 29 */
    test_free(cp, 0, 10 * TEST_WS_PER);
    test_ws_expect(cp, 10, 0, 0);
    kmem_update(); /* t = 30 */
    test_ws_expect(cp, 10, 10, 0);
    KT_EQ(reap(cp), 0);
    kmem_update(); /* t = 45 */
    KT_EQ(reap(cp), 10);
    test_ws_end(cp);
}

/* ---- the clock ---------------------------------------------------------- */

#ifdef MM_HOST
/* A cache of objects of 500 bytes. Its slabs have become free after a poll. */
static struct kmem_cache *make_after_poll(size_t slabs)
{
    struct kmem_cache *cp = kmem_cache_create("t_ws", 500, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    kmem_update_poll();
    test_alloc(cp, 0, slabs * TEST_WS_PER);
    test_free(cp, 0, slabs * TEST_WS_PER);
    return cp;
}

KTEST(kmem, S43_updates_come_with_the_clock)
{
    struct kmem_cache *cp = make_after_poll(4);

    host_clock_ms += 14999;
    kmem_update_poll();
    test_ws_expect(cp, 4, 0, 0);
    host_clock_ms += 1;
    kmem_update_poll();
    test_ws_expect(cp, 4, 4, 0);
    kmem_update_poll();
    test_ws_expect(cp, 4, 4, 0);
    host_clock_ms += 14999;
    kmem_update_poll();
    test_ws_expect(cp, 4, 4, 0);
    host_clock_ms += 1;
    kmem_update_poll();
    test_ws_expect(cp, 4, 4, 4);
    test_destroy(cp);
}

KTEST(kmem, S43_a_long_silence_counts_as_two_updates)
{
    struct kmem_cache *cp = make_after_poll(1);

    host_clock_ms += 1000 * 1000 * 1000ull * 1000;
    kmem_update_poll();
    test_ws_expect(cp, 1, 1, 1);
    test_destroy(cp);
}

KTEST(kmem, S43_two_intervals_without_a_poll_are_two_updates)
{
    struct kmem_cache *cp = make_after_poll(1);

    host_clock_ms += 2 * KMEM_WS_DEFAULT_MS - 1;
    kmem_update_poll();
    test_ws_expect(cp, 1, 1, 0);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    test_alloc(cp, 0, TEST_WS_PER);
    test_free(cp, 0, TEST_WS_PER);
    host_clock_ms += KMEM_WS_DEFAULT_MS + 1;
    kmem_update_poll();
    test_ws_expect(cp, 1, 1, 1);
    test_destroy(cp);
}

/* Time that passed before the allocator was up is not counted. */
KTEST(kmem, S43_the_first_interval_begins_when_the_allocator_is_up)
{
    host_clock_ms = 1000000;
    kmem_reap_init();
    KT_EQ(kmem_update_due(), KMEM_WS_DEFAULT_MS);
}

KTEST(kmem, S43_the_interval_can_be_set)
{
    struct kmem_cache *cp = make_after_poll(1);

    kmem_ws_interval = 100;
    host_clock_ms += 99;
    kmem_update_poll();
    test_ws_expect(cp, 1, 0, 0);
    host_clock_ms += 1;
    kmem_update_poll();
    test_ws_expect(cp, 1, 1, 0);
    test_destroy(cp);
}

KTEST(kmem, S43_updates_continue_at_interval_0_or_infinite)
{
    static const uint32_t intervals[] = {0, KMEM_WS_INFINITE};
    struct kmem_cache *cp = kmem_cache_create("t_ws", 500, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    for (size_t i = 0; i < 2; i++) {
        kmem_ws_interval = intervals[i];
        kmem_update_poll();
        KT_LE(kmem_update_due(), KMEM_WS_DEFAULT_MS);
        test_alloc(cp, 0, TEST_WS_PER);
        test_free(cp, 0, TEST_WS_PER);
        host_clock_ms += 14999;
        kmem_update_poll();
        test_ws_expect(cp, 1, 0, 0);
        host_clock_ms += 1;
        kmem_update_poll();
        test_ws_expect(cp, 1, 1, 0);
        kmem_cache_reap(cp, KMEM_REAP_ALL);
        host_clock_ms += 15000;
        kmem_update_poll();
        host_clock_ms += 15000;
        kmem_update_poll();
        test_ws_expect(cp, 0, 0, 0);
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

/* The moment of the last update is kept modulo 2^32. */
KTEST(kmem, updates_go_on_after_49_days)
{
    uint32_t before;

    kmem_ws_interval = 15000;
    host_clock_ms = (1ull << 32) - 40000;
    kmem_update_poll();
    host_clock_ms += kmem_update_due();
    kmem_update_poll();
    before = kmem_updates;
    for (uint32_t i = 1; i <= 4; i++) {
        host_clock_ms += 14999;
        KT_EQ(kmem_update_due(), 1);
        kmem_update_poll();
        KT_EQ(kmem_updates, before + i - 1);
        host_clock_ms += 1;
        kmem_update_poll();
        KT_EQ(kmem_updates, before + i);
    }
    KT_GE(host_clock_ms, 1ull << 32);
    host_clock_ms += 30000;
    kmem_update_poll();
    KT_EQ(kmem_updates, before + 6);
}

static size_t idle_updates(struct kmem_cache *cp)
{
    struct kmem_slab_stat s;

    KT_TRUE(kmem_slab_stat(cp, 0, &s));
    return s.stat_idle_updates;
}

/* Polls once in each interval for so many hours. */
static void let_pass(uint32_t hours)
{
    for (uint32_t n = hours * 240; n != 0; n--) {
        host_clock_ms += KMEM_WS_DEFAULT_MS;
        kmem_update_poll();
    }
}

KTEST(kmem, S43_idle_time_of_free_slabs)
{
    struct kmem_cache *cp = make_after_poll(1);

    host_clock_ms += kmem_update_due() - 1;
    kmem_update_poll();
    KT_EQ(idle_updates(cp), 0);
    host_clock_ms++;
    kmem_update_poll();
    KT_EQ(idle_updates(cp), 1);
    host_clock_ms += KMEM_WS_DEFAULT_MS;
    kmem_update_poll();
    KT_EQ(idle_updates(cp), 2);
    test_alloc(cp, 0, 1);
    KT_EQ(idle_updates(cp), 0);
    test_free(cp, 0, 1);
    KT_EQ(idle_updates(cp), 0);
    test_destroy(cp);
}

/* Its time begins with it, not with the first update. */
KTEST(kmem, S43_idle_time_of_a_slab_that_was_never_used)
{
    struct kmem_cache *cp = kmem_cache_create("t_ws", 500, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    let_pass(1);
    KT_REQUIRE(kmem_cache_grow(cp));
    KT_EQ(idle_updates(cp), 0);
    host_clock_ms += KMEM_WS_DEFAULT_MS;
    kmem_update_poll();
    KT_EQ(idle_updates(cp), 1);
    test_destroy(cp);
}

KTEST(kmem, S43_idle_time_does_not_wrap)
{
    struct kmem_cache *cp = make_after_poll(1);

    let_pass(19);
    KT_EQ(idle_updates(cp), 19 * 240);
    let_pass(12 * 24);
    KT_EQ(idle_updates(cp), (19 + 12 * 24) * 240);
    test_destroy(cp);
}

/* Not its slabs: here, a slab has several. */
KTEST(kmem, a_reap_of_all_returns_pages)
{
    struct kmem_cache *cp =
        kmem_cache_create("pages", 3 * PAGE_SIZE, 0, NULL, NULL);
    struct segkmem_stat before, after;
    size_t pages;

    KT_REQUIRE(cp != NULL);
    KT_GE(cp->cache_slab_pages, 3);
    kmem_reap(KMEM_REAP_ALL);
    kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    segkmem_stat(&before);
    pages = kmem_reap(KMEM_REAP_ALL);
    segkmem_stat(&after);
    KT_GE(pages, cp->cache_slab_pages);
    KT_EQ(pages, before.stat_use[PAGE_SLAB] - after.stat_use[PAGE_SLAB]);
    test_destroy(cp);
}

KTEST(kmem, S43_a_reap_is_recorded)
{
    struct kmem_cache *cp = test_ws_make(3);

    test_free(cp, 0, 2 * TEST_WS_PER);
    KT_EQ(test_stat(cp).stat_last_reap_ms, 0);
    host_clock_ms = 77777;
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    KT_EQ(test_stat(cp).stat_reaps, 1);
    KT_EQ(test_stat(cp).stat_last_reap_ms, 77777);
    KT_EQ(test_stat(cp).stat_last_reap_freed, 2);
    KT_EQ(test_stat(cp).stat_last_reap_kept, 0);
    test_free(cp, 2 * TEST_WS_PER, 3 * TEST_WS_PER);
    kmem_cache_reap(cp, KMEM_REAP_WS);
    KT_EQ(test_stat(cp).stat_last_reap_freed, 0);
    KT_EQ(test_stat(cp).stat_last_reap_kept, 1);
    test_ws_end(cp);
}

KTEST(kmem, S45_released_pages_wake_waiting_tasks)
{
    struct kmem_cache *cp = test_ws_make(2);
    uint64_t before;

    test_free(cp, 0, 2 * TEST_WS_PER);
    before = host_returns;
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    KT_NE(host_returns, before);
    test_ws_end(cp);
}
#endif
