/*
 * Every error path, systematically: an operation is tried with 0, 1, 2, … free
 * pages, and no free object in the allocator's own caches, until it succeeds.
 * Each failure must leave everything as it was.
 *
 * Tests: mm/kmem_cache.c, mm/kmem_slab.c, mm/kmem_hash.c
 */
#include "mm/tests/kmem_test.h"

#define TRIES 80

static struct kmem_cache *subject;
static size_t size; /* of its objects, or of a kmem_zalloc */

static size_t held_pages(void)
{
    struct segkmem_stat s;

    kmem_reap(KMEM_REAP_ALL);
    segkmem_stat(&s);
    return s.stat_pages;
}

static void check_heap(size_t pages)
{
    const char *where;
    const char *why = kmem_verify(&where);

    if (why != NULL)
        KT_FAIL("with %zu pages: %s: %s", pages, why, where);
}

/* The number of pages with which `op` first succeeded. `undo` reverses it. */
static size_t fail_nth(bool (*op)(void), void (*undo)(void))
{
    size_t held = held_pages();

    for (size_t pages = 0; pages < TRIES; pages++) {
        bool done;

        test_flood();
        test_starve();
        test_flood_release(pages);
        done = op();
        check_heap(pages);
        test_flood_end();
        test_starve_end();
        if (done)
            undo();
        check_heap(pages);
        KT_EQ(held_pages(), held);
        if (done)
            return pages;
    }
    KT_FAIL("never succeeds");
    return TRIES;
}

/* ---- create ------------------------------------------------------------- */

static bool create(void)
{
    subject = kmem_cache_create("t_fail", size, 0, NULL, NULL);
    KT_TRUE((kmem_cache_find("t_fail") != NULL) == (subject != NULL));
    return subject != NULL;
}

static void destroy(void)
{
    test_destroy(subject);
}

KTEST(kmem_failure, create_of_a_small_cache)
{
    size = 100;
    KT_EQ(fail_nth(create, destroy), 1);
}

KTEST(kmem_failure, create_of_a_large_cache)
{
    size = 1000;
    /* The cache's slab and the hash table, or its slab. */
    KT_EQ(fail_nth(create, destroy), 2);
}

/* ---- grow --------------------------------------------------------------- */

static bool alloc_one(void)
{
    uint64_t fails = subject->cache_fails;
    uint32_t inuse = kmem_inuse(subject);
    uint32_t slabs = subject->cache_slabs;

    test_obj[0] = kmem_cache_alloc(subject, KM_NOSLEEP);
    if (test_obj[0] != NULL)
        return true;
    KT_EQ(subject->cache_fails, fails + 1);
    KT_EQ(kmem_inuse(subject), inuse);
    KT_EQ(subject->cache_slabs, slabs);
    return false;
}

static void free_one(void)
{
    kmem_cache_free(subject, test_obj[0]);
}

KTEST(kmem_failure, growth_of_a_small_cache)
{
    size = 100;
    KT_REQUIRE(create());
    KT_EQ(fail_nth(alloc_one, free_one), 1);
    destroy();
}

KTEST(kmem_failure, growth_of_a_large_cache)
{
    size = 1000;
    KT_REQUIRE(create());
    /* The slab's page, its kmem_slab, its bufctls. */
    KT_EQ(fail_nth(alloc_one, free_one), 3);
    destroy();
}

/* Enough bufctls for two slabs of them: the second may fail. */
static size_t bufctls_had;

static bool alloc_under_shortage(void)
{
    bool done;

    for (size_t i = 0; i < bufctls_had; i++)
        test_obj[1 + i] = kmem_cache_alloc(kmem_bufctl_cache, KM_NOSLEEP);
    done = alloc_one();
    for (size_t i = 0; i < bufctls_had; i++)
        if (test_obj[1 + i] != NULL)
            kmem_cache_free(kmem_bufctl_cache, test_obj[1 + i]);
    return done;
}

KTEST(kmem_failure, growth_that_runs_out_of_bufctls_half_way)
{
    uint32_t inuse = kmem_inuse(kmem_bufctl_cache);

    size = 1000;
    KT_REQUIRE(create());
    bufctls_had = kmem_bufctl_cache->cache_slab_chunks - 2;
    KT_EQ(fail_nth(alloc_under_shortage, free_one), 4);
    kmem_cache_reap(subject, KMEM_REAP_ALL);
    KT_EQ(kmem_inuse(kmem_bufctl_cache), inuse);
    destroy();
}

/* ---- rescale ------------------------------------------------------------ */

/* From 169 to 170 objects: the object itself may fail, its table may not. */
static bool alloc_and_rescale(void)
{
    if (!alloc_one())
        return false;
    KT_EQ(kmem_inuse(subject), 170);
    if (subject->cache_hash_mask + 1 == 256)
        return true;
    KT_EQ(subject->cache_hash_mask + 1, 64);
    free_one();
    return false;
}

/* The table shrinks only when few objects are left. */
static void shrink_again(void)
{
    test_free(subject, 0, 170);
    kmem_cache_reap(subject, KMEM_REAP_ALL);
    KT_EQ(subject->cache_hash_mask + 1, 64);
    test_alloc(subject, 1, 170);
}

KTEST(kmem_failure, rescale_of_a_hash_table)
{
    KT_NEEDS(MIB(1));
    subject = kmem_cache_create("t_fail", 4096, 0, NULL, NULL);
    KT_REQUIRE(subject != NULL);
    test_alloc(subject, 1, 170);
    fail_nth(alloc_and_rescale, shrink_again);
    test_free(subject, 1, 170);
    destroy();
}

/* A supplier that keeps its free pages: freeing slabs to it helps no other
 * cache. */
static void *pool;
static bool pool_closed; /* pages go to buddy */

static void *pool_get(size_t pages, void *arg)
{
    void **p = pool;

    (void)pages;
    (void)arg;
    if (p != NULL)
        pool = *p;
    return p;
}

static void pool_free(void *addr, size_t pages, void *arg)
{
    (void)pages;
    (void)arg;
    if (pool_closed) {
        buddy_free(virt_to_page(addr), 0);
        return;
    }
    *(void **)addr = pool;
    pool = addr;
}

static const struct kmem_supplier pool_supplier = {pool_get, pool_free, NULL};

static void pool_drain(void *unused)
{
    (void)unused;
    pool_closed = true;
    while (pool != NULL)
        buddy_free(virt_to_page(pool_get(1, NULL)), 0);
}

static void pool_fill(size_t pages)
{
    pool_closed = false;
    ktest_undo(pool_drain, NULL);
    while (pages-- != 0) {
        struct page *p = buddy_alloc(0);

        KT_REQUIRE(p != NULL);
        pool_free(page_to_virt(p), 1, NULL);
    }
}

/*
 * A reap leaves 339 buffers, for which the table is too large; looking for
 * memory for a smaller one reaps again and leaves 60, for which that one is
 * too large as well. It is dropped.
 */
KTEST(kmem_failure, rescale_overtaken_by_a_reap)
{
    KT_NEEDS(MIB(3));
    struct kmem_cache *rich = kmem_cache_create("t_rich", 500, 0, NULL, NULL);
    struct kmem_cache *cp;

    pool_fill(700);
    cp = kmem_cache_create_from("t_fail", 4096, 0, NULL, NULL, &pool_supplier);
    KT_REQUIRE(rich != NULL && cp != NULL);
    test_alloc(cp, 0, 690);
    KT_EQ(cp->cache_hash_mask + 1, 1024);
    test_clock_stop();
    test_obj[690] = kmem_cache_alloc(rich, KM_SLEEP);
    test_flood();
    test_free(cp, 60, 60 + 351);
    kmem_update();
    kmem_update();
    test_free(cp, 60 + 351, 690);
    kmem_cache_free(rich, test_obj[690]);
    KT_EQ(kmem_cache_reap(cp, KMEM_REAP_WS), 351);
    KT_EQ(cp->cache_slabs, 60);
    KT_EQ(rich->cache_slabs, 0);
    KT_NE(cp->cache_hash_mask + 1, 256);
    TEST_VERIFY(cp);
    check_heap(0);
    test_flood_end();
    test_clock_start();
    test_free(cp, 0, 60);
    test_destroy(cp);
    test_destroy(rich);
    pool_drain(NULL);
}

/* ---- kmem_alloc --------------------------------------------------------- */

static bool alloc_sized(void)
{
    test_obj[0] = kmem_zalloc(size, KM_NOSLEEP);
    return test_obj[0] != NULL;
}

static void free_sized(void)
{
    kmem_free(test_obj[0], size);
}

KTEST(kmem_failure, kmem_alloc_of_whole_pages)
{
    size = 5 * PAGE_SIZE;
    KT_GE(fail_nth(alloc_sized, free_sized), 8);
}

KTEST(kmem_failure, kmem_alloc_of_a_class)
{
    size = 3000;
    KT_GE(fail_nth(alloc_sized, free_sized), 3);
}

/* ---- a supplier that fails at the n-th call ----------------------------- */

/* Allocates until the supplier, which has `limit` pages, fails; then frees. */
static void check_supplier(size_t object, size_t limit)
{
    struct test_supply s;
    struct kmem_cache *cp;
    size_t n = 0;

    test_supply_init(&s, limit);
    cp = kmem_cache_create_from("t_fail", object, 0, test_ctor, test_dtor,
                                &s.supply);
    KT_REQUIRE(cp != NULL);
    while ((test_obj[n] = kmem_cache_alloc(cp, KM_NOSLEEP)) != NULL)
        n++;
    KT_EQ(n, limit / cp->cache_slab_pages * cp->cache_slab_chunks);
    KT_EQ(cp->cache_fails, 1);
    TEST_VERIFY(cp);
    test_free(cp, 0, n);
    test_destroy(cp);
    KT_EQ(s.held, 0);
}

KTEST(kmem_failure, suppliers_that_run_dry)
{
    test_constructed_reset();
    for (size_t limit = 0; limit < 8; limit++) {
        check_supplier(100, limit);
        check_supplier(1500, limit);
    }
    KT_EQ(test_ctors, test_dtors);
    KT_EQ(test_bad, 0);
}
