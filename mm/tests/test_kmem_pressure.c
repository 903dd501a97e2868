/*
 * Statements S-45 to S-47: when caches are reaped, by which requests, and what
 * must not change meanwhile (paper, 3.4).
 *
 * Tests: mm/kmem_reap.c
 */
#include "mm/tests/kmem_test.h"
#include "mm/buddy_impl.h"
#include "mm/inspect/buddy_stat.h"

/* ---- reap as a service -------------------------------------------------- */

static size_t nested_reaps;
static int nested_destroy;
static struct kmem_cache *bystander;

static void reaping_dtor(void *obj, size_t size)
{
    (void)obj;
    (void)size;
    nested_reaps += kmem_reap(KMEM_REAP_ALL);
    if (bystander != NULL)
        nested_destroy = kmem_cache_destroy(bystander);
    bystander = NULL;
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
    nested_destroy = -1;
    KT_NE(kmem_reap(KMEM_REAP_ALL), 0);
    KT_NE(test_dtors, 0);
    KT_EQ(nested_reaps, 0);
    KT_EQ(nested_destroy, 0); /* it is not the one that is reaped */
    KT_TRUE(kmem_cache_find("t_by") == NULL);
    test_destroy(cp);
}

static unsigned owners_asked;
static bool released;

static size_t ask_owner(size_t most)
{
    (void)most;
    owners_asked++;
    return 0;
}

static void dtor_without_memory(void *obj, size_t size)
{
    (void)obj;
    (void)size;
    released = buddy_pressure();
}

/* The objects would not become pages: this reap cannot destroy their slabs. */
KTEST(kmem, S45_owners_free_nothing_while_a_reap_runs)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_dry", 1000, 0, NULL, dtor_without_memory);
    kmem_reclaim_t *before;

    KT_REQUIRE(cp != NULL);
    test_alloc(cp, 0, 1);
    test_free(cp, 0, 1);
    before = kmem_set_reclaim(ask_owner);
    owners_asked = 0;
    released = true;
    KT_NE(kmem_reap(KMEM_REAP_ALL), 0);
    kmem_set_reclaim(before);
    KT_TRUE(!released);
    KT_EQ(owners_asked, 0);
    test_destroy(cp);
}

static void *own_pages(size_t pages, void *arg)
{
    (void)arg;
    return kmem_getpages(pages, PAGE_OVERSIZE, NULL);
}

static void free_own_pages(void *addr, size_t pages, void *arg)
{
    (void)arg;
    kmem_freepages(addr, pages);
}

/* Its pages are not segkmem's, so an allocation that waits gets none. */
KTEST(kmem, S45_pages_of_another_supplier_do_not_count)
{
    const struct kmem_supplier own = {own_pages, free_own_pages, NULL};
    struct kmem_cache *cp =
        kmem_cache_create_from("t_own", 100, 0, NULL, NULL, &own);

    KT_REQUIRE(cp != NULL);
    kmem_reap(KMEM_REAP_ALL);
    test_alloc(cp, 0, 1);
    test_free(cp, 0, 1);
    KT_EQ(kmem_reap(KMEM_REAP_ALL), 0);
    KT_EQ(test_stat(cp).stat_slab_destroys, 1);
    test_destroy(cp);
}

KTEST(kmem, S45_reap_goes_through_every_cache)
{
    struct kmem_cache *a = kmem_cache_create("t_a", 500, 0, NULL, NULL);
    KT_REQUIRE(a != NULL);
    struct kmem_cache *b = kmem_cache_create("t_b", 1000, 0, NULL, NULL);
    size_t pages;

    KT_REQUIRE(b != NULL);
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

/* Buddy has no page, one cache has free slabs: another cache gets their
 * pages. */
static void check_pressure(enum kmem_reap_mode mode)
{
    struct kmem_cache *rich = kmem_cache_create("t_rich", 500, 0, NULL, NULL);
    struct kmem_cache *poor = kmem_cache_create("t_poor", 64, 0, NULL, NULL);
    struct buddy_stat before;
    struct buddy_stat after;
    void *obj;

    KT_REQUIRE(rich != NULL && poor != NULL);
    test_clock_stop();
    test_alloc(rich, 0, 2 * TEST_WS_PER);
    test_flood();
    test_free(rich, 0, 2 * TEST_WS_PER);
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
    struct kmem_cache *cp = test_ws_make(4);
    struct kmem_cache *poor = kmem_cache_create("t_poor", 64, 0, NULL, NULL);
    KT_REQUIRE(poor != NULL);
    void *obj;

    test_free(cp, 0, 4 * TEST_WS_PER);
    kmem_update();
    test_alloc(cp, 0, 2 * TEST_WS_PER);
    test_flood(); /* reaps: no slab is free any more */
    test_free(cp, 0, 2 * TEST_WS_PER);
    kmem_update();
    test_alloc(cp, 0, TEST_WS_PER);
    test_free(cp, 0, TEST_WS_PER);
    kmem_update();
    test_ws_expect(cp, 2, 2, 1);
    obj = kmem_cache_alloc(poor, KM_NOSLEEP);
    KT_TRUE(obj != NULL);
    test_ws_expect(cp, 1, 1, 0);
    if (obj != NULL)
        kmem_cache_free(poor, obj);
    test_flood_end();
    test_destroy(poor);
    test_ws_end(cp);
}

/* A callback that frees objects three times, but never a whole page. */
static unsigned reclaims;

static size_t free_no_page(size_t most)
{
    (void)most;
    return ++reclaims <= 3;
}

KTEST(kmem, S46_pressure_takes_nothing_if_the_interval_is_infinite)
{
    struct kmem_cache *cp = test_ws_make(2);
    struct kmem_cache *poor = kmem_cache_create("t_poor", 64, 0, NULL, NULL);
    kmem_reclaim_t *before;

    KT_REQUIRE(poor != NULL);
    test_flood();
    test_free(cp, 0, 2 * TEST_WS_PER);
    before = kmem_set_reclaim(free_no_page);
    reclaims = 0;
    kmem_ws_interval = KMEM_WS_INFINITE;
    KT_TRUE(kmem_cache_alloc(poor, KM_NOSLEEP) == NULL);
    KT_EQ(cp->cache_free_slabs, 2);
    KT_EQ(reclaims, 0);
    kmem_set_reclaim(before);
    kmem_ws_interval = KMEM_WS_INFINITE - 1;
    test_flood_end();
    test_destroy(poor);
    test_ws_end(cp);
}

/* ---- what else happens meanwhile ---------------------------------------- */

static void *freed_by_ctor;

/* Another task frees an object while its cache grows. (In reality an interrupt
 * does: a constructor may not use its own cache.) */
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

    freed_by_ctor = NULL;
    bystander =
        kmem_cache_create("t_grow", 496 - TEST_WORD, 0, freeing_ctor, NULL);
    KT_REQUIRE(bystander != NULL);
    n = bystander->cache_slab_chunks;
    test_alloc(bystander, 0, n);
    freed_by_ctor = test_obj[3];
    KT_REQUIRE(kmem_cache_alloc(bystander, KM_NOSLEEP) == test_obj[3]);
    KT_EQ(bystander->cache_slabs, 2);
    KT_EQ(bystander->cache_free_slabs, 1);
    TEST_VERIFY(bystander);
    test_free(bystander, 0, n);
    test_destroy(bystander);
}

static size_t taken_by_dtor;

/* Another task allocates while slabs are reaped. */
static void taking_dtor(void *obj, size_t size)
{
    (void)obj;
    (void)size;
    if (taken_by_dtor < 2 * TEST_WS_PER)
        test_obj[taken_by_dtor] = kmem_cache_alloc(bystander, KM_NOSLEEP);
    taken_by_dtor++;
}

static void take_no_more(void *unused)
{
    (void)unused;
    taken_by_dtor = 2 * TEST_WS_PER;
}

KTEST(kmem, S43_slabs_taken_while_a_reap_runs_are_left)
{
    size_t slabs;

    bystander = kmem_cache_create("t_race", 4096, 0, NULL, taking_dtor);
    KT_REQUIRE(bystander != NULL);
    taken_by_dtor = 2 * TEST_WS_PER;
    ktest_undo(take_no_more, NULL);
    test_alloc(bystander, 0, 4);
    test_free(bystander, 0, 4);
    taken_by_dtor = 0;
    slabs = kmem_cache_reap(bystander, KMEM_REAP_ALL);
    KT_REQUIRE(test_obj[0] != NULL && test_obj[1] != NULL);
    KT_EQ(slabs, 2); /* and as many were taken meanwhile */
    KT_EQ(bystander->cache_last_reap_kept, 0);
    KT_EQ(kmem_inuse(bystander), 2);
    TEST_VERIFY(bystander);
    take_no_more(NULL);
    test_free(bystander, 0, 2);
    test_destroy(bystander);
}

/* The supplier overwrites freed pages at once: the test fails if the allocator
 * still needs a header there, or frees a page twice. */
KTEST(kmem, S47_idle_slabs_keep_their_headers)
{
    struct test_supply s;
    struct kmem_cache *cp;
    struct kmem_slab *sp;

    cp = test_supply_cache(&s, 10, 500);
    test_alloc(cp, 0, 3 * TEST_WS_PER);
    test_free(cp, 0, 3 * TEST_WS_PER);
    kmem_update();
    KT_EQ(test_stat(cp).stat_reapable, 0);
    for (size_t i = 0; i < 3; i++) {
        sp = test_slab(cp, i);
        KT_TRUE(sp->slab_cache == cp && kmem_slab_of(sp->slab_base) == sp);
    }
    TEST_VERIFY(cp);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    KT_EQ(s.held, 0);
    test_alloc(cp, 0, 3 * TEST_WS_PER);
    TEST_VERIFY(cp);
    test_free(cp, 0, 3 * TEST_WS_PER);
    test_destroy(cp);
    KT_EQ(s.gets, s.frees);
}

/* ---- objects that are kept in case -------------------------------------- */

static struct kmem_cache *kept_cache;
static size_t kept; /* allocated objects that can be reclaimed */
static size_t asked;
static size_t largest_request;

static size_t reclaim_kept(size_t most)
{
    size_t n = MIN(kept, most);

    asked++;
    largest_request = MAX(largest_request, most);
    kept -= n;
    test_free(kept_cache, kept, kept + n);
    return n;
}

/* No page is free; only reclaiming these objects, in steps, frees some. */
KTEST(kmem, reclaimable_objects_are_freed_before_a_failure)
{
    struct kmem_cache *poor = kmem_cache_create("t_poor", 64, 0, NULL, NULL);
    kmem_reclaim_t *before;
    void *obj;

    kept_cache = kmem_cache_create("t_kept", 24, 0, NULL, NULL);
    KT_REQUIRE(poor != NULL && kept_cache != NULL);
    test_clock_stop();
    kept = 3 * KMEM_RECLAIM_STEP;
    asked = 0;
    largest_request = 0;
    test_alloc(kept_cache, 0, kept);
    test_flood();
    before = kmem_set_reclaim(reclaim_kept);
    obj = kmem_cache_alloc(poor, KM_NOSLEEP);
    KT_TRUE(obj != NULL);
    KT_GE(asked, 1);
    KT_EQ(largest_request, KMEM_RECLAIM_STEP);
    KT_TRUE(kept < 3 * KMEM_RECLAIM_STEP);
    if (obj != NULL)
        kmem_cache_free(poor, obj);
    test_flood_end();
    test_free(kept_cache, 0, kept);
    kmem_set_reclaim(before);
    test_clock_start();
    test_destroy(kept_cache);
    test_destroy(poor);
}

/* The callback frees a page but returns 0. */
static size_t give_page(size_t most)
{
    (void)most;
    test_flood_release(1);
    return 0;
}

KTEST(kmem, S3_a_page_that_the_callback_freed_is_found)
{
    struct kmem_cache *cp = kmem_cache_create("t_late", 64, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    kmem_reclaim_t *before;
    struct buddy_stat old;
    struct buddy_stat now;
    void *obj;

    test_flood();
    before = kmem_set_reclaim(give_page);
    buddy_stat(&old);
    obj = kmem_cache_alloc(cp, KM_NOSLEEP);
    buddy_stat(&now);
    kmem_set_reclaim(before);
    KT_TRUE(obj != NULL);
    KT_EQ(now.stat_failures, old.stat_failures);
    if (obj != NULL)
        kmem_cache_free(cp, obj);
    test_flood_end();
    test_destroy(cp);
}

static struct page *spare; /* a block of two pages */

/* Frees objects at its first two calls, at the second a block too. */
static size_t give_block(size_t most)
{
    (void)most;
    if (++asked == 2)
        buddy_free(spare, 1);
    return asked <= 2;
}

/* A reap that releases pages, but no block that is large enough, is followed by
 * another. */
KTEST(kmem, pressure_continues_while_it_releases_pages)
{
    struct kmem_cache *cp = test_ws_make(1);
    kmem_reclaim_t *before;
    struct buddy_stat old;
    struct buddy_stat now;
    struct page *p;

    spare = buddy_alloc(1);
    KT_TRUE(spare != NULL);
    if (spare == NULL) {
        test_free(cp, 0, TEST_WS_PER);
        goto end;
    }
    test_flood();
    test_free(cp, 0, TEST_WS_PER);
    before = kmem_set_reclaim(give_block);
    asked = 0;
    buddy_stat(&old);
    p = buddy_alloc(1);
    KT_TRUE(p == spare);
    buddy_stat(&now);
    KT_EQ(now.stat_pressures - old.stat_pressures, 2);
    KT_EQ(asked, 3);
    KT_EQ(cp->cache_slabs, 0);
    kmem_set_reclaim(before);
    if (p != NULL || asked < 2)
        buddy_free(spare, 1);
    test_flood_end();
end:
    test_ws_end(cp);
}

KTEST(kmem, S46_the_callback_is_asked_while_it_frees_objects)
{
    kmem_reclaim_t *before;

    test_flood();
    before = kmem_set_reclaim(free_no_page);
    reclaims = 0;
    KT_TRUE(buddy_alloc(0) == NULL);
    KT_EQ(reclaims, 4);
    kmem_set_reclaim(before);
    test_flood_end();
}
