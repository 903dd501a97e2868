/*
 * Statements S-10 to S-14: size classes, and the policy of caches (paper, 3.1).
 *
 * Tests: mm/kmem_alloc.c, mm/kmem_cache.c
 */
#include "mm/tests/kmem_test.h"

/* ---- size classes ------------------------------------------------------- */

static const uint16_t classes[] = {
    8,    16,   24,   32,   40,   48,   56,   64,   80,   96,
    112,  128,  144,  176,  200,  224,  256,  288,  336,  400,
    448,  504,  584,  680,  816,  1024, 1168, 1360, 1632, 2048,
    2336, 2728, 3272, 4096, 5456, 6144, 8192, 9216,
};

KTEST(kmem, S10_classes_are_the_table)
{
    size_t n = 0;

    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp)) {
        struct kmem_cache_stat stat = test_stat(cp);

        if (stat.stat_kind != KMEM_KIND_CLASS)
            continue;
        KT_REQUIRE(n < ARRAY_SIZE(classes));
        KT_EQ(stat.stat_size, classes[n]);
        KT_EQ(stat.stat_chunk, classes[n]);
        n++;
    }
    KT_EQ(n, 38);
}

KTEST(kmem, S10_every_size_has_the_nearest_class)
{
    size_t k = 0;

    for (size_t size = 1; size <= KMEM_MAXBUF; size++) {
        struct kmem_cache *cp = kmem_size_class(size);

        if (size > classes[k])
            k++;
        if (cp == NULL || cp->cache_size != classes[k])
            KT_FAIL("size %zu: class %zu", size, cp ? cp->cache_size : 0);
        if (size >= 64)
            KT_LE(4 * (cp->cache_size - size), cp->cache_size);
    }
    KT_TRUE(kmem_size_class(KMEM_MAXBUF + 1) == NULL);
    KT_TRUE(kmem_size_class(0) == NULL);
}

KTEST(kmem, S11_class_size_uses_that_class_and_one_more_the_next)
{
    for (size_t k = 0; k < ARRAY_SIZE(classes); k++) {
        struct kmem_cache *cp = kmem_size_class(classes[k]);
        uint32_t before = cp->cache_allocs;
        void *buf = kmem_alloc(classes[k], KM_SLEEP);

        KT_EQ(cp->cache_allocs - before, 1);
        KT_TRUE(test_slab_of(cp, buf)->slab_cache == cp);
        kmem_free(buf, classes[k]);
        if (k + 1 == ARRAY_SIZE(classes))
            break;
        before = kmem_size_class(classes[k + 1])->cache_allocs;
        buf = kmem_alloc(classes[k] + 1u, KM_SLEEP);
        KT_EQ(kmem_size_class(classes[k + 1])->cache_allocs - before, 1);
        kmem_free(buf, classes[k] + 1u);
    }
}

KTEST(kmem, S11_larger_requests_take_whole_pages)
{
    struct kmem_oversize_stat before;
    struct kmem_oversize_stat now;
    uint32_t last = kmem_size_class(KMEM_MAXBUF)->cache_allocs;
    void *buf;

    kmem_oversize_stat(&before);
    buf = kmem_alloc(9217, KM_SLEEP);
    KT_REQUIRE(buf != NULL);
    kmem_oversize_stat(&now);
    KT_EQ((uintptr_t)buf % PAGE_SIZE, 0);
    KT_EQ(now.stat_inuse - before.stat_inuse, 1);
    KT_EQ(now.stat_pages - before.stat_pages, 3);
    for (unsigned i = 0; i < 3; i++)
        KT_EQ(virt_to_page(buf)[i].page_state, PAGE_OVERSIZE);
    KT_NE(virt_to_page(buf)[3].page_state, PAGE_OVERSIZE);
    kmem_free(buf, 9217);
    kmem_oversize_stat(&now);
    KT_EQ(now.stat_pages, before.stat_pages);
    KT_EQ(now.stat_inuse, before.stat_inuse);
    KT_EQ(now.stat_frees - before.stat_frees, 1);
    KT_EQ(kmem_size_class(KMEM_MAXBUF)->cache_allocs, last);
}

KTEST(kmem, S12_size_zero)
{
    struct kmem_oversize_stat before;
    struct kmem_oversize_stat after;

    kmem_oversize_stat(&before);
    KT_TRUE(kmem_alloc(0, KM_NOSLEEP) == NULL);
    KT_TRUE(kmem_alloc(0, KM_SLEEP) == NULL);
    KT_TRUE(kmem_zalloc(0, KM_SLEEP) == NULL);
    kmem_free(NULL, 0);
    kmem_oversize_stat(&after);
    KT_EQ(memcmp(&before, &after, sizeof(before)), 0);
}

/* ---- policy ------------------------------------------------------------- */

KTEST(kmem, S13_no_limits_and_no_watermarks)
{
    struct kmem_cache *cp = kmem_cache_create("t_free", 200, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;
    size_t objs = MIN((size_t)2000, (size_t)TEST_OBJS);

    test_clock_stop();
    for (size_t i = 0; i < objs; i++) {
        test_alloc(cp, i, i + 1);
        KT_EQ(cp->cache_slabs, i / n + 1);
    }
    test_free(cp, 0, objs);
    for (unsigned i = 0; i < 5; i++)
        kmem_update();
    KT_EQ(cp->cache_slabs, (objs - 1) / n + 1);
    test_alloc(cp, 0, objs);
    KT_EQ(cp->cache_slabs, (objs - 1) / n + 1);
    KT_EQ(cp->cache_slab_creates, cp->cache_slabs);
    test_free(cp, 0, objs);
    test_clock_start();
    test_destroy(cp);
}

static struct kmem_cache *other_cache;

/* While one cache grows, another can be used: no lock of the first is held. */
static void use_other(void *obj, size_t size)
{
    (void)obj;
    (void)size;
    kmem_cache_free(other_cache, kmem_cache_alloc(other_cache, KM_SLEEP));
    test_ctors++;
}

KTEST(kmem, S14_caches_share_no_state)
{
    struct kmem_cache *a =
        kmem_cache_create("t_a", 100, 0, use_other, use_other);
    struct kmem_cache *b = kmem_cache_create("t_b", 100, 0, NULL, NULL);
    size_t a_objects;

    KT_REQUIRE(a != NULL && b != NULL);
    a_objects = a->cache_slab_chunks;
    other_cache = b;
    test_constructed_reset();
    KT_TRUE(&a->cache_lock != &b->cache_lock);
    test_alloc(a, 0, 1);
    KT_EQ(test_ctors, a_objects);
    KT_EQ(b->cache_allocs, test_ctors);
    test_free(a, 0, 1);
    test_destroy(a);
    KT_EQ(test_ctors, 2 * a_objects);
    KT_EQ(b->cache_allocs, test_ctors);
    test_destroy(b);
}

#ifdef MM_HOST
KTEST(kmem, S14_a_pair_takes_its_own_lock_only)
{
    static const size_t sizes[] = {100, 1000};
    /* A large allocation is distinguished from a small one under the lock, and
     * takes the lock again. */
    static const uint64_t holds[] = {2, 3};

    for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
        struct kmem_cache *cp =
            kmem_cache_create("t_lock", sizes[k], 0, NULL, NULL);
        uint64_t all;
        uint64_t own;

        KT_REQUIRE(cp != NULL);
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
        all = host_locks_taken;
        own = cp->cache_lock.lock_taken;
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
        KT_EQ(host_locks_taken - all, holds[k]);
        KT_EQ(cp->cache_lock.lock_taken - own, holds[k]);
        test_destroy(cp);
    }
}

/* Without memory: to look for a buffer, twice to grow, and to look again. */
KTEST(kmem, a_failure_is_certain_under_the_lock)
{
    struct test_supply none;
    struct kmem_cache *cp;
    uint64_t taken;

    cp = test_supply_cache(&none, 0, 100);
    taken = cp->cache_lock.lock_taken;
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    KT_EQ(cp->cache_lock.lock_taken - taken, 4);
    test_destroy(cp);
}
#endif
