/*
 * Tests of lab 5, "Reaping", tasks 5.1 to 5.5: the working set, reaping,
 * pressure (mm/kmem_reap.c). One call of kmem_update is the end of an interval;
 * the clock is stopped. Caches have eight objects in a slab (test_ws_make).
 */
#include "tools/workshop/labs/guard.h"
#include "tools/workshop/labs/lab.h"
#include "tools/workshop/labs/seed.h"
#include "mm/tests/kmem_test.h"

/* What follows from the seed. */
enum {
    FREE_SLABS = 50
};

#define SLABS (6 + lab_pick(FREE_SLABS, 6))
#define PER   TEST_WS_PER

/* How many slabs a reap would release. */
static size_t would_take(struct kmem_cache *cp)
{
    return test_stat(cp).stat_reapable;
}

/* A cache with SLABS slabs, all of them free. */
static struct kmem_cache *idle_cache(void)
{
    struct kmem_cache *cp = test_ws_make(SLABS);

    test_free(cp, 0, SLABS * PER);
    return cp;
}

/* ---- 5.1: T, m and L ---------------------------------------------------- */

LAB_TEST(5, idle, LAB_BARE)
{
    struct kmem_cache *cp = idle_cache();

    test_ws_expect(cp, SLABS, 0, 0);
    kmem_update();
    test_ws_expect(cp, SLABS, SLABS, 0);
    kmem_update();
    test_ws_expect(cp, SLABS, SLABS, SLABS);
    kmem_update();
    test_ws_expect(cp, SLABS, SLABS, SLABS);
    test_ws_end(cp);
}

LAB_TEST(5, used, LAB_BARE)
{
    struct kmem_cache *cp = idle_cache();

    kmem_update();
    test_alloc(cp, 0, 2 * PER + 1); /* three slabs are needed */
    test_ws_expect(cp, SLABS - 3, SLABS - 3, 0);
    test_free(cp, 0, 2 * PER + 1);
    test_ws_expect(cp, SLABS, SLABS - 3, 0);
    test_alloc(cp, 0, 1); /* and then one: the minimum does not rise */
    test_ws_expect(cp, SLABS - 1, SLABS - 3, 0);
    test_free(cp, 0, 1);
    kmem_update();
    test_ws_expect(cp, SLABS, SLABS, SLABS - 3);
    test_alloc(cp, 0, 5 * PER);
    test_ws_expect(cp, SLABS - 5, SLABS - 5, SLABS - 3);
    test_free(cp, 0, 5 * PER);
    kmem_update();
    test_ws_expect(cp, SLABS, SLABS, SLABS - 5);
    test_ws_end(cp);
}

/* ---- 5.2: reapable slabs ------------------------------------------------ */

LAB_TEST(5, bounds, LAB_BARE)
{
    static const uint8_t bounds[][3] = {
        {6, 6, 6}, {6, 0, 0}, {0, 6, 0}, {4, 2, 2}, {2, 4, 2}, {1, 6, 1},
    };
    struct kmem_cache *cp = idle_cache();

    for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
        cp->cache_ws_limit = bounds[i][0];
        cp->cache_ws_min = bounds[i][1];
        if (would_take(cp) != bounds[i][2])
            KT_FAIL(
                "with T = %u, L = %u and m = %u a reap may release %u slabs, "
                "not %zu",
                SLABS, bounds[i][0], bounds[i][1], bounds[i][2],
                would_take(cp));
    }
    test_ws_end(cp);
}

LAB_TEST(5, interval, LAB_BARE)
{
    struct kmem_cache *cp = idle_cache();

    cp->cache_ws_limit = 3;
    cp->cache_ws_min = 3;
    kmem_ws_interval = KMEM_WS_INFINITE;
    if (would_take(cp) != 0)
        KT_FAIL("the interval is infinite, and a reap may release %zu slabs",
                would_take(cp));
    kmem_ws_interval = 0;
    if (would_take(cp) != SLABS)
        KT_FAIL("the interval is 0, and a reap may release %zu slabs of %u",
                would_take(cp), SLABS);
    kmem_ws_interval = KMEM_WS_INFINITE - 1;
    KT_EQ(would_take(cp), 3);
    test_ws_end(cp);
}

/* ---- 5.3: one cache ----------------------------------------------------- */

/* One slab is full, one partial, and the rest free. */
static struct kmem_cache *mixed_cache(void)
{
    struct kmem_cache *cp = test_ws_make(SLABS);

    test_free(cp, PER + 3, SLABS * PER);
    return cp;
}

/* Pops a slab, which must be the list's last; a wrong one is left alone. */
static bool pop_tail(struct kmem_cache *cp)
{
    struct kmem_slab *tail = kmem_slab_prev(&cp->cache_null);
    struct kmem_slab *sp = kmem_slab_pop(cp, KMEM_REAP_ALL);

    if (sp != tail) {
        KT_FAIL("kmem_slab_pop returned %p, the list's tail is %p", (void *)sp,
                (void *)tail);
        return false;
    }
    TEST_VERIFY(cp);
    kmem_slab_destroy(cp, sp);
    return true;
}

LAB_TEST(5, pop, LAB_BARE)
{
    struct kmem_cache *cp = mixed_cache();
    uint64_t destroys = cp->cache_slab_destroys;

    cp->cache_ws_limit = 3;
    cp->cache_ws_min = 2;
    lab_guard("cache_slabs", &cp->cache_slabs, lab_spin_held);
    lab_guard("cache_free_slabs", &cp->cache_free_slabs, lab_spin_held);
    for (size_t left = SLABS - 2; left > 0; left--) {
        KT_REQUIRE(pop_tail(cp));
        KT_EQ(cp->cache_free_slabs, left - 1);
        KT_EQ(cp->cache_slabs, left + 1);
    }
    KT_EQ(cp->cache_slab_destroys - destroys, SLABS - 2);
    KT_EQ(cp->cache_ws_limit, 0); /* used up, and never below 0 */
    KT_EQ(cp->cache_ws_min, 0);
    KT_EQ(cp->cache_dtors, 0); /* it has no destructor */
    if (kmem_slab_pop(cp, KMEM_REAP_ALL) != NULL)
        KT_FAIL("there is no free slab any more, and kmem_slab_pop returned "
                "one");
    test_free(cp, 0, PER + 3); /* both slabs must still be on the list */
    TEST_VERIFY(cp);
    test_alloc(cp, 0, 2 * PER + 1);
    KT_EQ(cp->cache_slabs, 3);
    test_free(cp, 0, 2 * PER + 1);
    while (cp->cache_slabs > 0)
        KT_REQUIRE(pop_tail(cp));
    if (kmem_slab_pop(cp, KMEM_REAP_ALL) != NULL)
        KT_FAIL("there is no slab any more, and kmem_slab_pop returned one");
    test_ws_end(cp);
}

/* In a debugging mode that constructs and destroys at each allocation and free,
 * no destructor runs when a slab is destroyed. */
static void destroy_debugged(struct kmem_cache *cp)
{
    uint64_t dtors;

    kmem_cache_reap(cp, KMEM_REAP_ALL);
    KT_REQUIRE(kmem_debug_set(cp, KMF_POISON) == 0);
    test_alloc(cp, 0, 2);
    test_free(cp, 0, 2);
    dtors = cp->cache_dtors;
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    if (cp->cache_dtors != dtors)
        KT_FAIL("a slab of a cache in mode P was destroyed: cache_dtors counts "
                "%llu calls of the destructor, and there were none",
                (unsigned long long)(cp->cache_dtors - dtors));
}

/* A cache with free slabs only: the freelist pointer is at one. */
LAB_TEST(5, destruct, LAB_BARE)
{
    struct kmem_cache *cp;
    size_t per, slabs;

    cp = kmem_cache_create("t_dtor", 200, 0, test_ctor, test_dtor);
    KT_REQUIRE(cp != NULL);
    per = cp->cache_slab_chunks;
    test_constructed_reset();
    test_alloc(cp, 0, 3 * per);
    test_free(cp, 0, 3 * per);
    slabs = kmem_cache_reap(cp, KMEM_REAP_ALL);
    if (test_dtors != 3 * per)
        KT_FAIL("3 slabs of %zu objects were reaped: the destructor ran %zu "
                "times",
                per, test_dtors);
    KT_EQ(test_bad, 0);
    KT_EQ(cp->cache_dtors, 3 * per);
    KT_EQ(slabs, 3);
    KT_EQ(cp->cache_last_reap_kept, 0);
    TEST_VERIFY(cp);
    test_alloc(cp, 0, per + 1); /* a new slab, constructed again */
    KT_EQ(test_ctors, 5 * per);
    test_free(cp, 0, per + 1);
    destroy_debugged(cp);
    test_destroy(cp);
}

/* The slabs that the first reap left were needed a moment ago: the next leaves
 * them too. */
static void reap_twice(uint32_t limit, uint32_t min)
{
    struct kmem_cache *cp = idle_cache();
    size_t slabs;

    cp->cache_ws_limit = limit;
    cp->cache_ws_min = min;
    KT_EQ(kmem_cache_reap(cp, KMEM_REAP_WS), MIN(limit, min));
    slabs = kmem_cache_reap(cp, KMEM_REAP_WS);
    if (slabs != 0)
        KT_FAIL("with L = %u and m = %u a second reap took %zu more slabs",
                (unsigned)limit, (unsigned)min, slabs);
    test_ws_end(cp);
}

LAB_TEST(5, keeps, LAB_BARE)
{
    struct kmem_cache *cp = idle_cache();
    size_t slabs;

    cp->cache_ws_limit = 4;
    cp->cache_ws_min = 4;
    KT_EQ(kmem_cache_reap(cp, KMEM_REAP_WS), 4);
    KT_EQ(cp->cache_last_reap_kept, SLABS - 4);
    KT_EQ(cp->cache_slabs, SLABS - 4);
    slabs = kmem_cache_reap(cp, KMEM_REAP_WS);
    if (slabs != 0)
        KT_FAIL("the working set of %u slabs was kept once, then released: %zu "
                "slabs",
                SLABS - 4, slabs);
    test_ws_end(cp);
    reap_twice(SLABS, 3);
    reap_twice(2, 5);
}

/* ---- 5.4: all caches ---------------------------------------------------- */

#define CACHES 128u

static uint64_t reaps[CACHES];

/* Every cache has been reaped once since `reaps` was filled in. */
static void expect_reaped(void)
{
    size_t n = 0;

    for (struct kmem_cache *cp = kmem_cache_first(); cp && n < CACHES;
         cp = kmem_cache_next(cp), n++) {
        if (cp->cache_reaps == reaps[n] + 1)
            continue;
        KT_FAIL("kmem_reap(KMEM_REAP_WS) reaped the cache %s %llu times; want "
                "once",
                cp->cache_name,
                (unsigned long long)(cp->cache_reaps - reaps[n]));
        return;
    }
}

LAB_TEST(5, all_caches, LAB_BARE)
{
    size_t n = 0;

    for (struct kmem_cache *cp = kmem_cache_first(); cp && n < CACHES;
         cp = kmem_cache_next(cp))
        reaps[n++] = cp->cache_reaps;
    kmem_ws_interval = KMEM_WS_INFINITE; /* reaps release nothing */
    KT_EQ(kmem_reap(KMEM_REAP_WS), 0);
    expect_reaped();
    kmem_ws_interval = KMEM_WS_DEFAULT_MS;
}

/* Slabs of large objects have their headers in another cache, which was created
 * before. */
LAB_TEST(5, order, LAB_UP)
{
    struct kmem_cache *large, *small;
    size_t pages;

    large = kmem_cache_create("t_large", 2048, 0, NULL, NULL);
    small = kmem_cache_create("t_small", 100, 0, NULL, NULL);
    KT_REQUIRE(large != NULL && small != NULL);
    test_alloc(large, 0, 400);
    test_alloc(small, 400, 440);
    test_free(large, 0, 400);
    test_free(small, 400, 440);
    pages = buddy_free_pages();
    KT_LE(kmem_reap(KMEM_REAP_ALL), buddy_free_pages() - pages);
    if (buddy_free_pages() - pages <= 202)
        KT_FAIL("400 objects of 2048 bytes and a page of small ones released "
                "%zu pages; their slab headers and bufctls should have "
                "followed",
                buddy_free_pages() - pages);
    KT_EQ(kmem_reap(KMEM_REAP_ALL), 0);
    test_destroy(large);
    test_destroy(small);
}

/* The pages of all caches that get them from segkmem. */
static size_t pages_held(void)
{
    size_t pages = 0;

    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp))
        if (cp->cache_supplier.getpages == NULL)
            pages += cp->cache_slabs * cp->cache_slab_pages;
    return pages;
}

/* Slabs of several pages, and slabs whose pages come from elsewhere. */
LAB_TEST(5, pages, LAB_UP)
{
    struct kmem_cache *large, *other;
    struct test_supply supply;
    size_t returned, released;

    large = kmem_cache_create("t_large", 1200, 0, NULL, NULL);
    other = test_supply_cache(&supply, 2, 500);
    KT_REQUIRE(large != NULL && other != NULL && large->cache_slab_pages > 1);
    test_alloc(large, 0, 40);
    test_alloc(other, 40, 40 + 2 * PER);
    test_free(large, 0, 40);
    test_free(other, 40, 40 + 2 * PER);
    released = pages_held();
    returned = kmem_reap(KMEM_REAP_ALL);
    released -= pages_held();
    if (returned != released)
        KT_FAIL("kmem_reap released %zu pages of segkmem and returned %zu; "
                "among them were %u slabs of %u pages, and of a cache with "
                "another supplier 2 pages",
                released, returned, 40 / (unsigned)large->cache_slab_chunks,
                (unsigned)large->cache_slab_pages);
    KT_EQ(supply.held, 0);
    test_destroy(large);
    test_destroy(other);
}

/* ---- 5.5: pressure ------------------------------------------------------ */

/* Takes the place of the inode cache. */
static struct {
    unsigned calls;
    unsigned gives;  /* so many calls release something */
    size_t most;     /* of the last call */
    uint64_t reaped; /* reaps of `probe` at the first call */
} fake;

static struct kmem_cache *probe;

static size_t fake_reclaim(size_t most)
{
    fake.most = most;
    if (fake.calls++ == 0)
        fake.reaped = probe->cache_reaps;
    return fake.calls <= fake.gives ? most : 0;
}

/* Requests a page when there is none; `gives` calls of fn release something. */
static struct page *ask(kmem_reclaim_t *fn, unsigned gives)
{
    kmem_reclaim_t *before = kmem_set_reclaim(fn);
    struct page *p;

    fake.calls = 0;
    fake.gives = gives;
    p = buddy_alloc(0);
    kmem_set_reclaim(before);
    return p;
}

LAB_TEST(5, first, LAB_UP)
{
    uint64_t reaped;

    probe = kmem_cache_find("inode"); /* any cache */
    test_flood();
    KT_TRUE(ask(NULL, 0) == NULL);
    reaped = probe->cache_reaps;
    KT_TRUE(ask(fake_reclaim, 0) == NULL);
    KT_EQ(fake.calls, 1);
    KT_EQ(fake.most, KMEM_RECLAIM_STEP);
    if (fake.reaped != reaped)
        KT_FAIL("slabs were released before objects that are only cached");
    KT_TRUE(ask(fake_reclaim, 3) == NULL);
    if (fake.calls != 4)
        KT_FAIL("three steps freed objects and no slab became free: called "
                "%u times, not until nothing was freed",
                fake.calls);
    test_flood_end();
}

/* Frees the objects of one more slab of `probe`. */
static size_t free_a_slab(size_t most)
{
    unsigned slab = fake.calls++;

    (void)most;
    if (slab >= fake.gives)
        return 0;
    test_free(probe, slab * PER, (slab + 1) * PER);
    return PER;
}

/* A destructor that needs a page. */
static void need_a_page(void *obj, size_t size)
{
    struct page *p = buddy_alloc(0);

    (void)obj;
    (void)size;
    if (p != NULL)
        buddy_free(p, 0);
}

/* A reap runs when a page is needed: pressure could not release one, whatever
 * was dropped. */
static void drop_in_vain(void)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_needs", 500, 0, NULL, need_a_page);
    kmem_reclaim_t *before;

    KT_REQUIRE(cp != NULL);
    probe = cp;
    test_alloc(cp, 0, PER);
    test_flood();
    test_free(cp, 0, PER);
    before = kmem_set_reclaim(fake_reclaim);
    fake.calls = 0;
    fake.gives = 3;
    kmem_reap(KMEM_REAP_ALL);
    kmem_set_reclaim(before);
    if (fake.calls != 0)
        KT_FAIL("a destructor, called by a reap, needed a page: fn was called "
                "%u times, and no object that it drops can become a page now",
                fake.calls);
    test_flood_end();
    test_destroy(cp);
}

LAB_TEST(5, enough, LAB_UP)
{
    struct page *p;

    probe = test_ws_make(SLABS);
    test_flood();
    p = ask(free_a_slab, SLABS);
    KT_TRUE(p != NULL);
    if (fake.calls != 1)
        KT_FAIL("one page was needed, and the first objects that were dropped "
                "released one: fn was called %u times, not once",
                fake.calls);
    if (p != NULL)
        buddy_free(p, 0);
    test_flood_end();
    test_free(probe, MIN(fake.calls, SLABS) * PER, SLABS * PER);
    test_ws_end(probe);
    drop_in_vain();
}

/* All memory is allocated except one cache's free slabs; another cache needs a
 * page. Returns how many slabs the first has left. */
static size_t slabs_left(uint32_t limit, uint32_t min, uint32_t interval)
{
    struct kmem_cache *poor = kmem_cache_create("t_poor", 64, 0, NULL, NULL);
    struct kmem_cache *cp = test_ws_make(2);
    size_t left;
    void *obj;

    test_flood();
    test_free(cp, 0, 2 * PER);
    cp->cache_ws_limit = limit;
    cp->cache_ws_min = min;
    kmem_ws_interval = interval;
    obj = kmem_cache_alloc(poor, KM_NOSLEEP);
    if (obj == NULL && interval != KMEM_WS_INFINITE)
        KT_FAIL("an allocation failed, and a cache had two free slabs");
    if (obj != NULL && interval == KMEM_WS_INFINITE)
        KT_FAIL("the interval is infinite, and a working set was released");
    if (obj != NULL)
        kmem_cache_free(poor, obj);
    left = cp->cache_slabs;
    test_flood_end();
    test_destroy(poor);
    test_ws_end(cp);
    return left;
}

LAB_TEST(5, last_resort, LAB_UP)
{
    if (slabs_left(0, 0, KMEM_WS_INFINITE - 1) != 0)
        KT_FAIL("an allocation failed, or not all was released: a working "
                "set had two slabs");
}

LAB_TEST(5, protects, LAB_UP)
{
    KT_EQ(slabs_left(1, 1, KMEM_WS_INFINITE - 1), 1);
    KT_EQ(slabs_left(1, 1, KMEM_WS_INFINITE), 2);
}
