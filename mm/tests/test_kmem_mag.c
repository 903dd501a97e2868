/*
 * Magazines (paper, section 7.2) on one processor after the other; tasks that
 * run at once are in mm/tests/explore/.
 *
 * Tests: mm/inspect/kmem_mag_stat.c, mm/kmem_mag.c
 */
#include "mm/debug/debug.h"
#include "mm/tests/kmem_test.h"
#include "tools/workshop/stress/watch.h"

#if defined(MM_HOST) && MM_MAGAZINES

#include <stdio.h>

#define ROUNDS KMEM_ROUNDS /* of objects of up to 256 bytes */
#define MANY   3000u

static struct kmem_cache *cp;

static void begin(size_t size)
{
    host_magazines(true);
    kmem_mag_enough = 0;
    cp = kmem_cache_create("t_mag", size, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
}

static void end(void)
{
    host_cpu = 0;
    TEST_VERIFY(cp);
    KT_EQ(kmem_cache_destroy(cp), 0);
    host_magazines(false);
}

static size_t full(void)
{
    return cp->cache_depot[KMEM_FULL].depot_total;
}

static size_t empty(void)
{
    return cp->cache_depot[KMEM_EMPTY].depot_total;
}

static size_t trapped(void)
{
    return test_stat(cp).stat_trapped;
}

/* The processor gets two magazines, of whose rounds one is full. */
static void warm(unsigned cpu)
{
    host_cpu = cpu;
    test_alloc(cp, 0, 4 * ROUNDS);
    test_free(cp, 0, 4 * ROUNDS);
}

/* ---- what it is for ----------------------------------------------------- */

KTEST(magazines, a_pair_takes_no_lock_on_any_processor)
{
    begin(64);
    for (unsigned cpu = 0; cpu < MM_CPUS_MAX; cpu++) {
        uint64_t locks;
        void *buf = NULL;

        warm(cpu);
        locks = host_locks_taken;
        for (unsigned i = 0; i < 1000; i++) {
            void *before = buf;

            buf = kmem_cache_alloc(cp, KM_NOSLEEP);
            KT_TRUE(before == NULL || buf == before);
            kmem_cache_free(cp, buf);
        }
        KT_EQ(host_locks_taken, locks);
    }
    end();
}

/* Locks for 100 objects, to allocate many, and to free them. */
static void phases(unsigned *allocs, unsigned *frees)
{
    uint64_t locks = host_locks_taken;

    test_alloc(cp, 0, MANY);
    *allocs = (unsigned)((host_locks_taken - locks) * 100 / MANY);
    locks = host_locks_taken;
    test_free(cp, 0, MANY);
    *frees = (unsigned)((host_locks_taken - locks) * 100 / MANY);
}

KTEST(magazines, few_locks_for_many_objects)
{
    unsigned a, f;

    begin(60);
    phases(&a, &f);
    printf("# %u locks to allocate 100 objects, %u to free them\n", a, f);
    KT_LE(a, 35);
    KT_LE(f, 25);
    phases(&a, &f);
    printf("# again: %u, %u\n", a, f);
    KT_LE(a, 10);
    KT_LE(f, 10);
    end();
}

/* Objects are allocated on one processor and freed on another. */
static void stream(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        host_cpu = 0;
        test_alloc(cp, 0, 64);
        host_cpu = 1;
        test_free(cp, 0, 64);
    }
}

KTEST(magazines, a_stream_does_not_enter_the_slabs)
{
    uint32_t refilled, drained;
    uint64_t locks;

    begin(64);
    stream(20);
    refilled = cp->cache_refilled;
    drained = cp->cache_drained;
    locks = host_locks_taken;
    stream(1000);
    KT_EQ(cp->cache_refilled, refilled);
    KT_EQ(cp->cache_drained, drained);
    KT_LE(host_locks_taken - locks, 2 * 64 * 1000 / ROUNDS + 2);
    end();
}

/* With one magazine each of these turns would visit the depot twice. */
KTEST(magazines, the_previous_magazine_prevents_thrashing)
{
    uint64_t locks;

    begin(64);
    warm(0);
    locks = host_locks_taken;
    for (unsigned i = 0; i < 1000; i++) {
        test_alloc(cp, 0, ROUNDS + 1);
        test_free(cp, 0, ROUNDS + 1);
    }
    KT_LE(host_locks_taken - locks, 2);
    end();
}

KTEST(magazines, a_refill_keeps_the_order_of_the_slab)
{
    begin(64);
    warm(0);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    test_alloc(cp, 0, 60);
    for (unsigned i = 1; i < 60; i++)
        KT_TRUE((char *)test_obj[i] == (char *)test_obj[i - 1] + 64);
    test_free(cp, 0, 60);
    end();
}

/* From one slab, and no more than a magazine has rounds. */
KTEST(magazines, a_refill_takes_objects_of_one_slab)
{
    size_t slab, before;

    begin(64);
    warm(0);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    slab = cp->cache_slab_chunks;
    before = cp->cache_refilled;
    test_alloc(cp, 0, (unsigned)(2 * slab));
    KT_EQ(cp->cache_slabs, 2);
    KT_LE(trapped(), ROUNDS);
    KT_GE(cp->cache_refilled - before, slab);
    test_free(cp, 0, (unsigned)(2 * slab));
    end();
}

KTEST(magazines, larger_objects_have_fewer_rounds)
{
    static const struct {
        size_t size;
        uint32_t rounds;
    } kinds[] = {{8, 15},   {256, 15}, {257, 7},  {1024, 7},
                 {1032, 3}, {2728, 3}, {2736, 1}, {20000, 1}};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        begin(kinds[i].size);
        KT_EQ(cp->cache_rounds, kinds[i].rounds);
        warm(1);
        KT_LE(trapped(), 2 * kinds[i].rounds + full() * kinds[i].rounds);
        KT_NE(trapped(), 0);
        end();
    }
}

/* A cache that is hardly used has nothing of it. */
KTEST(magazines, a_cache_has_none_before_its_64th_allocation)
{
    begin(64);
    kmem_mag_enough = 64;
    test_alloc(cp, 0, 63);
    test_free(cp, 0, 63);
    KT_EQ(trapped(), 0);
    test_alloc(cp, 0, 4);
    test_free(cp, 0, 4);
    KT_NE(trapped(), 0);
    end();
}

/* ---- reaping ------------------------------------------------------------ */

KTEST(magazines, idle_magazines_and_their_slabs_go_in_one_reap)
{
    size_t kept;

    begin(64);
    test_alloc(cp, 0, 20 * ROUNDS);
    test_free(cp, 0, 20 * ROUNDS);
    KT_GE(full(), 10);
    kmem_update();
    kmem_cache_reap(cp, KMEM_REAP_WS);
    KT_GE(full(), 10);
    test_alloc(cp, 0, 6 * ROUNDS);
    test_free(cp, 0, 6 * ROUNDS);
    kmem_update();
    kept = full() - cp->cache_depot[KMEM_FULL].depot_limit;
    KT_GE(kept, 3);
    kmem_cache_reap(cp, KMEM_REAP_WS);
    KT_EQ(full(), kept);
    kmem_update();
    kmem_update();
    kmem_cache_reap(cp, KMEM_REAP_WS);
    KT_EQ(full(), 0);
    KT_EQ(empty(), 0);
    KT_LE(cp->cache_slabs, 1);
    end();
}

/* The extremes of the interval, as for slabs. */
KTEST(magazines, a_reap_follows_the_interval)
{
    uint32_t interval = kmem_ws_interval;

    begin(64);
    test_alloc(cp, 0, 20 * ROUNDS);
    test_free(cp, 0, 20 * ROUNDS);
    kmem_update();
    kmem_update();
    kmem_ws_interval = KMEM_WS_INFINITE;
    kmem_cache_reap(cp, KMEM_REAP_WS);
    KT_GE(full(), 10);
    test_alloc(cp, 0, 20 * ROUNDS); /* so that m is 0 */
    test_free(cp, 0, 20 * ROUNDS);
    kmem_ws_interval = 0;
    kmem_cache_reap(cp, KMEM_REAP_WS);
    KT_EQ(full(), 0);
    kmem_ws_interval = interval;
    end();
}

KTEST(magazines, a_reap_of_all_reaches_every_processor)
{
    begin(64);
    for (unsigned cpu = 0; cpu < MM_CPUS_MAX; cpu++)
        warm(cpu);
    KT_NE(trapped(), 0);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    KT_EQ(trapped(), 0);
    KT_EQ(full(), 0);
    KT_EQ(empty(), 0);
    KT_EQ(cp->cache_slabs, 0);
    end();
}

/* ---- memory is short ---------------------------------------------------- */

KTEST(magazines, no_request_fails_while_a_processor_has_rounds)
{
    struct test_supply s;
    unsigned n = 0;

    host_magazines(true);
    kmem_mag_enough = 0;
    cp = test_supply_cache(&s, 2, 64);
    for (unsigned cpu = 0; cpu < 2; cpu++)
        warm(cpu);
    host_cpu = 2;
    while ((test_obj[n] = kmem_cache_alloc(cp, KM_NOSLEEP)) != NULL)
        n++;
    KT_EQ(n, 2 * cp->cache_slab_chunks);
    host_cpu = 3;
    test_free(cp, 0, n);
    end();
}

static unsigned reclaims;

static size_t count_reclaim(size_t objects)
{
    (void)objects;
    reclaims++;
    return 0;
}

KTEST(magazines, a_free_never_reclaims)
{
    kmem_reclaim_t *before;

    begin(64);
    test_alloc(cp, 0, 200);
    test_flood();
    before = kmem_set_reclaim(count_reclaim);
    reclaims = 0;
    test_free(cp, 0, 200);
    KT_EQ(reclaims, 0);
    KT_EQ(trapped(), 0);
    kmem_set_reclaim(before);
    test_flood_end();
    end();
}

/* ---- counts ------------------------------------------------------------- */

KTEST(magazines, counts_are_those_of_clients)
{
    struct kmem_cache_stat st;

    begin(200);
    for (unsigned cpu = 0; cpu < MM_CPUS_MAX; cpu++)
        warm(cpu);
    test_alloc(cp, 0, 100);
    st = test_stat(cp);
    KT_EQ(st.stat_inuse, 100);
    KT_EQ(st.stat_allocs, 100 + MM_CPUS_MAX * 4 * ROUNDS);
    KT_EQ(st.stat_frees, MM_CPUS_MAX * 4 * ROUNDS);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    test_free(cp, 0, 100);
    st = test_stat(cp);
    KT_EQ(st.stat_inuse, 0);
    KT_EQ(st.stat_frees, st.stat_allocs);
    end();
}

/* Counts of more allocations than there were rounds are wrong: that must be
 * visible. */
KTEST(magazines, wrong_counts_are_shown)
{
    struct kmem_cache_stat before, st;

    begin(64);
    warm(0);
    before = test_stat(cp);
    cp->cache_cpu[0]->cc_allocs += (uint32_t)before.stat_trapped + 3;
    st = test_stat(cp);
    cp->cache_cpu[0]->cc_allocs -= (uint32_t)before.stat_trapped + 3;
    KT_EQ(st.stat_inuse, kmem_inuse(cp) + 3);
    KT_EQ(test_stat(cp).stat_trapped, before.stat_trapped);
    end();
}

KTEST(magazines, what_tools_see)
{
    struct kmem_mag_stat st;
    struct kmem_buf_stat buf;
    void *round;

    begin(64);
    for (unsigned cpu = 0; cpu < 3; cpu++)
        warm(cpu);
    kmem_mag_stat(cp, &st);
    KT_EQ(st.stat_rounds, ROUNDS);
    KT_EQ(st.stat_cpus, 3);
    KT_EQ(st.stat_full.stat_total, full());
    KT_EQ(st.stat_empty.stat_total, empty());
    KT_GE(st.stat_served, 3 * 4 * ROUNDS);
    KT_LE(st.stat_served, 3 * 8 * ROUNDS);
    round = kmem_cache_alloc(cp, KM_NOSLEEP);
    KT_TRUE(kmem_buf_stat(round, &buf));
    KT_TRUE(buf.stat_state == KMEM_BUF_USED && !buf.stat_in_magazine);
    kmem_cache_free(cp, round);
    KT_TRUE(kmem_buf_stat(round, &buf));
    KT_TRUE(buf.stat_state == KMEM_BUF_FREE && buf.stat_in_magazine);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    kmem_mag_stat(cp, &st);
    KT_EQ(st.stat_cpus, 0);
    KT_GE(st.stat_served, 3 * 4 * ROUNDS);
    end();
}

/* Each round is found, whichever processor or depot has it. */
KTEST(magazines, every_round_is_found)
{
    struct kmem_buf_stat buf;
    size_t found = 0;

    begin(64);
    for (unsigned cpu = 0; cpu < MM_CPUS_MAX; cpu++)
        warm(cpu);
    test_alloc(cp, 0, 20 * ROUNDS);
    test_free(cp, 0, 20 * ROUNDS);
    for (size_t i = 0; i < 20 * ROUNDS; i++)
        found += kmem_buf_stat(test_obj[i], &buf) && buf.stat_in_magazine;
    KT_GE(found, 19 * ROUNDS);
    KT_GE(full(), 10);
    end();
}

/* ---- off, and on again -------------------------------------------------- */

KTEST(magazines, a_debugging_mode_sees_every_operation)
{
    begin(64);
    for (unsigned cpu = 0; cpu < MM_CPUS_MAX; cpu++)
        warm(cpu);
    KT_EQ(kmem_debug_set(cp, KMF_CHECK | KMF_POISON), 0);
    KT_EQ(cp->cache_rounds, 0);
    for (unsigned cpu = 0; cpu < MM_CPUS_MAX; cpu++)
        warm(cpu);
    KT_EQ(trapped(), 0);
    KT_EQ(kmem_debug_set(cp, 0), 0);
    warm(1);
    KT_NE(trapped(), 0);
    end();
}

KTEST(magazines, verify_every_sees_every_operation)
{
    begin(64);
    warm(2);
    kmem_verify_every(1000000);
    KT_EQ(trapped(), 0);
    warm(2);
    KT_EQ(trapped(), 0);
    kmem_verify_every(0);
    warm(2);
    KT_NE(trapped(), 0);
    end();
}

KTEST(magazines, they_can_be_switched_off)
{
    begin(64);
    warm(0);
    kmem_mag_set(false);
    KT_TRUE(!kmem_mag_is_on());
    KT_EQ(trapped(), 0);
    warm(0);
    KT_EQ(trapped(), 0);
    kmem_mag_set(false); /* is not counted */
    kmem_mag_set(true);
    KT_TRUE(kmem_mag_is_on());
    warm(0);
    KT_NE(trapped(), 0);
    end();
}

static bool count_leak(const struct kmem_buf_stat *buf, void *count)
{
    (void)buf;
    ++*(unsigned *)count;
    return true;
}

KTEST(magazines, a_round_is_no_leak)
{
    struct kmem_leak_stat st;
    unsigned n = 0;

    begin(64);
    for (unsigned cpu = 0; cpu < MM_CPUS_MAX; cpu++)
        warm(cpu);
    KT_TRUE(kmem_leak_scan(count_leak, &n, &st));
    KT_EQ(n, 0);
    KT_EQ(trapped(), 0);
    warm(1);
    KT_NE(trapped(), 0);
    end();
}

KTEST(magazines, destroy_takes_back_every_round)
{
    begin(64);
    for (unsigned cpu = 0; cpu < MM_CPUS_MAX; cpu++)
        warm(cpu);
    test_alloc(cp, 0, 1);
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
    test_free(cp, 0, 1);
    end();
}

/* What the layer needs itself would call the layer. */
KTEST(magazines, the_allocators_own_caches_have_none)
{
    host_magazines(true);
    for (struct kmem_cache *c = kmem_cache_first(); c != NULL;
         c = kmem_cache_next(c))
        KT_EQ(c->cache_rounds != 0, c->cache_kind != KMEM_KIND_INTERNAL);
    host_magazines(false);
}

/* ---- errors ------------------------------------------------------------- */

KTEST(magazines, a_wrong_address_is_found_when_it_is_drained)
{
    static char nothing[8];
    struct kmem_cpu_cache *cc;
    void *buf;

    begin(1000);
    warm(0);
    cc = cp->cache_cpu[0];
    buf = kmem_cache_alloc(cp, KM_NOSLEEP);
    kmem_cache_free(cp, nothing);
    KT_PANICS(kmem_cache_reap(cp, KMEM_REAP_ALL),
              "was freed, but is not an allocated buffer of cache t_mag");
    cp->cache_drained += cc->cc_rounds - 1; /* the wrong one is the last */
    cc->cc_rounds = 1;
    cc->cc_loaded->mag_round[0] = buf;
    kmem_release(cp);
    end();
}

KTEST(magazines, verify_finds_a_wrong_depot)
{
    const char *where;
    const char *why;

    begin(64);
    test_alloc(cp, 0, 20 * ROUNDS);
    test_free(cp, 0, 20 * ROUNDS);
    cp->cache_depot[KMEM_FULL].depot_total++;
    why = kmem_verify(&where);
    KT_TRUE(why != NULL && strstr(why, "another number of magazines") != NULL);
    cp->cache_depot[KMEM_FULL].depot_total--;
    cp->cache_depot[KMEM_FULL].depot_min = MANY;
    why = kmem_verify(&where);
    KT_TRUE(why != NULL && strstr(why, "m exceeds T") != NULL);
    cp->cache_depot[KMEM_FULL].depot_min = 0;
    end();
}

#endif
