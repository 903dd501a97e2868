/*
 * Statements S-3 to S-7: allocating and freeing objects, and when constructors
 * and destructors run (paper, 2.3).
 *
 * Tests: mm/kmem_cache.c
 */
#include "mm/tests/kmem_test.h"

KTEST(kmem, S3_nosleep_gets_null_when_supplier_is_empty)
{
    struct test_supply s;
    struct kmem_cache *cp;
    size_t n;

    cp = test_supply_cache(&s, 2, 100);
    n = 2 * cp->cache_slab_chunks;
    test_alloc(cp, 0, n);
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    KT_EQ(cp->cache_fails, 1);
    KT_EQ(s.fails, 1);
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    KT_EQ(cp->cache_fails, 2);
    TEST_VERIFY(cp);
    kmem_cache_free(cp, test_obj[0]);
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == test_obj[0]);
    KT_EQ(cp->cache_fails, 2);
    test_free(cp, 0, n);
    test_destroy(cp);
    KT_EQ(s.held, 0);
}

KTEST(kmem, S3_nosleep_gets_null_when_memory_is_used_up)
{
    struct kmem_cache *small = kmem_cache_create("t_dry_s", 64, 0, NULL, NULL);
    struct kmem_cache *large =
        kmem_cache_create("t_dry_l", 1024, 0, NULL, NULL);
    void *a;
    void *b;

    KT_REQUIRE(small != NULL && large != NULL);
    test_flood();
    a = kmem_cache_alloc(small, KM_NOSLEEP);
    b = kmem_cache_alloc(large, KM_NOSLEEP);
    test_flood_end();
    KT_TRUE(a == NULL && b == NULL);
    KT_EQ(small->cache_fails, 1);
    KT_EQ(large->cache_fails, 1);
    a = kmem_cache_alloc(small, KM_NOSLEEP);
    b = kmem_cache_alloc(large, KM_NOSLEEP);
    KT_REQUIRE(a != NULL && b != NULL);
    kmem_cache_free(small, a);
    kmem_cache_free(large, b);
    test_destroy(small);
    test_destroy(large);
}

#ifdef MM_HOST
static struct kmem_cache *waiting_for;
static unsigned waits;

/* Another task frees an object, the third time. */
static bool wait_for_free(void)
{
    if (++waits == 3)
        kmem_cache_free(waiting_for, test_obj[0]);
    return true;
}

/* All objects of a cache with one slab are allocated. An allocation that sleeps
 * gets the one that `wait` frees. */
static void sleep_until(bool (*wait)(void))
{
    struct test_supply s;
    struct kmem_cache *cp;

    cp = test_supply_cache(&s, 1, 100);
    test_alloc(cp, 0, cp->cache_slab_chunks);
    waiting_for = cp;
    waits = 0;
    host_wait = wait;
    KT_TRUE(kmem_cache_alloc(cp, KM_SLEEP) == test_obj[0]);
    KT_EQ(cp->cache_fails, 0);
    test_free(cp, 0, cp->cache_slab_chunks);
    test_destroy(cp);
}

KTEST(kmem, S3_sleeper_waits_and_completes)
{
    sleep_until(wait_for_free);
}

/* Other tasks take the object again and again. */
static bool wait_long(void)
{
    if (++waits == 300000)
        kmem_cache_free(waiting_for, test_obj[0]);
    return true;
}

KTEST(kmem, S3_a_long_wait_needs_no_stack)
{
    sleep_until(wait_long);
}

KTEST(kmem, S3_sleep_without_hope_panics)
{
    struct test_supply s;
    struct kmem_cache *cp;

    cp = test_supply_cache(&s, 0, 100);
    KT_PANICS(kmem_cache_alloc(cp, KM_SLEEP), "100 bytes of t_supply");
    test_destroy(cp);
}
#endif

KTEST(kmem, S4_objects_are_handed_out_constructed)
{
    static const size_t sizes[] = {1, 20, 100, 300, 600, 3000};

    test_constructed_reset();
    for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
        struct kmem_cache *cp =
            kmem_cache_create("t_built", sizes[k], 0, test_ctor, test_dtor);
        KT_REQUIRE(cp != NULL);
        size_t n = cp->cache_slab_chunks + 2;

        for (unsigned round = 0; round < 3; round++) {
            test_alloc(cp, 0, n);
            for (size_t i = 0; i < n; i++)
                KT_TRUE(test_is_constructed(test_obj[i], sizes[k]));
            test_free(cp, 0, n);
        }
        test_destroy(cp);
    }
    KT_EQ(test_bad, 0);
    KT_EQ(test_ctors, test_dtors);
}

KTEST(kmem, S5_pairs_run_no_constructor)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_pairs", 64, 0, test_ctor, test_dtor);
    KT_REQUIRE(cp != NULL);
    size_t pairs = TEST_MANY(200000, 1000000);

    test_constructed_reset();
    kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    KT_EQ(test_ctors, cp->cache_slab_chunks);
    for (size_t i = 0; i < pairs; i++)
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    KT_EQ(test_ctors, cp->cache_slab_chunks);
    KT_EQ(test_dtors, 0);
    KT_EQ(test_stat(cp).stat_allocs, pairs + 1);
    KT_EQ(test_stat(cp).stat_frees, pairs + 1);
    test_destroy(cp);
}

static void check_reap_destroys(size_t size)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_reap", size, 0, test_ctor, test_dtor);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;

    test_constructed_reset();
    test_alloc(cp, 0, 5 * n);
    test_free(cp, 0, 3 * n);
    KT_EQ(kmem_cache_reap(cp, KMEM_REAP_ALL), 3);
    KT_EQ(test_dtors, 3 * n);
    KT_EQ(test_stat(cp).stat_dtors, 3 * n);
    KT_EQ(test_stat(cp).stat_ctors, 5 * n);
    test_free(cp, 3 * n, 5 * n);
    test_destroy(cp);
    KT_EQ(test_dtors, 5 * n);
    KT_EQ(test_bad, 0);
}

KTEST(kmem, S5_reap_of_k_slabs_destroys_k_times_n)
{
    check_reap_destroys(64);
    check_reap_destroys(700);
}

KTEST(kmem, S6_no_constructor_while_an_object_is_available)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_avail", 100, 0, test_ctor, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;

    test_constructed_reset();
    for (size_t i = 0; i < 3 * n; i++) {
        size_t before = test_ctors;

        test_alloc(cp, i, i + 1);
        KT_EQ(test_ctors - before, i % n == 0 ? n : 0);
    }
    test_free(cp, 0, 3 * n);
    test_destroy(cp);
}

/* Constructors cannot fail, so they run after every step that can. */
KTEST(kmem, S7_no_constructor_before_the_slab_is_certain)
{
    struct test_supply s;
    struct kmem_cache *cp;

    test_supply_init(&s, 16);
    cp = kmem_cache_create_from("t_certain", 600, 0, test_ctor, test_dtor,
                                &s.supply);
    KT_REQUIRE(cp != NULL);
    test_constructed_reset();
    test_supply_init(&s, 16);
    test_flood();
    test_starve();
    for (size_t pages = 0; pages < 64; pages++) {
        void *obj = kmem_cache_alloc(cp, KM_NOSLEEP);

        if (obj != NULL) {
            KT_EQ(test_ctors, cp->cache_slab_chunks);
            KT_TRUE(pages > 0);
            kmem_cache_free(cp, obj);
            break;
        }
        KT_EQ(test_ctors, 0);
        KT_EQ(s.held, 0);
        TEST_VERIFY(cp);
        test_flood_release(1);
    }
    KT_NE(test_ctors, 0);
    test_flood_end();
    test_starve_end();
    test_destroy(cp);
    KT_EQ(test_dtors, test_ctors);
}
