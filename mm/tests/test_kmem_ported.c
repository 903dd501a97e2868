/*
 * Test cases of other allocators of this family: the torture tests of the SPLAT
 * kmem suite, HelenOS' slab1 and slab2, properties of libumem's. (Those of
 * kmem_alloc are in test_kmem_alloc.c.)
 *
 * Tests: mm/kmem*.c
 */
#include "mm/tests/kmem_test.h"

/* ---- SPLAT -------------------------------------------------------------- */

/* Random size and power-of-two alignment; each object has the constructor's
 * contents, and all memory is freed. */
static void check_torture(uint32_t *seed, size_t min, size_t max)
{
    size_t size = min + test_random(seed) % (max - min + 1);
    size_t align = (size_t)8 << test_random(seed) % 10;
    size_t n = 1 + test_random(seed) % 16;
    struct kmem_cache *cp =
        kmem_cache_create("t_splat", size, align, test_ctor, test_dtor);

    KT_REQUIRE(cp != NULL);
    test_alloc(cp, 0, n);
    for (size_t i = 0; i < n; i++) {
        KT_TRUE(test_is_constructed(test_obj[i], size));
        KT_EQ((uintptr_t)test_obj[i] % align, 0);
    }
    test_free(cp, 0, n);
    KT_EQ(test_stat(cp).stat_inuse, 0);
    test_destroy(cp);
}

KTEST(kmem_ported, splat_5_and_6_slabs)
{
    uint32_t seed = 5;

    test_constructed_reset();
    for (unsigned i = 0; i < 100; i++)
        check_torture(&seed, 32, PAGE_SIZE);
    for (unsigned i = 0; i < TEST_MANY(10, 60); i++)
        check_torture(&seed, PAGE_SIZE, TEST_MANY(KIB(16), KIB(512)));
    KT_EQ(test_ctors, test_dtors);
    KT_EQ(test_bad, 0);
}

KTEST(kmem_ported, splat_8_slab_reap)
{
    struct kmem_cache *cp = kmem_cache_create("t_splat", 256, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t slabs;

    test_alloc(cp, 0, 1024);
    slabs = cp->cache_slabs;
    for (size_t i = 0; i < 1024; i += 32) {
        test_free(cp, i, i + 32);
        kmem_reap(KMEM_REAP_ALL);
        KT_LE(cp->cache_slabs, slabs);
        slabs = cp->cache_slabs;
        KT_GE(slabs * cp->cache_slab_chunks, kmem_inuse(cp));
    }
    KT_EQ(cp->cache_slabs, 0);
    test_destroy(cp);
}

KTEST(kmem_ported, splat_9_slab_age)
{
    struct kmem_cache *cp = kmem_cache_create("t_splat", 96, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = TEST_OBJS;

    test_clock_stop();
    test_alloc(cp, 0, n);
    test_free(cp, 0, n);
    kmem_reap(KMEM_REAP_WS);
    KT_EQ(cp->cache_free_slabs, cp->cache_slabs);
    KT_GE(cp->cache_slabs, n / cp->cache_slab_chunks);
    kmem_update();
    kmem_reap(KMEM_REAP_WS);
    KT_NE(cp->cache_slabs, 0);
    kmem_update();
    kmem_reap(KMEM_REAP_WS);
    KT_EQ(cp->cache_slabs, 0);
    test_clock_start();
    test_destroy(cp);
}

/* Allocates objects until there is no memory; they are chained through their
 * first words. */
static size_t take_all(struct kmem_cache *cp, void **chain)
{
    size_t n = 0;
    void **obj;

    while ((obj = kmem_cache_alloc(cp, KM_NOSLEEP)) != NULL) {
        *obj = *chain;
        *chain = obj;
        n++;
    }
    return n;
}

static void give_all(struct kmem_cache *cp, void **chain)
{
    while (*chain != NULL) {
        void **obj = *chain;

        *chain = *obj;
        kmem_cache_free(cp, obj);
    }
}

/* Allocates several times as much memory as exists; it works because the slabs
 * of one cache are reaped for the next. */
KTEST(kmem_ported, splat_11_slab_overcommit)
{
    KT_NEEDS(MIB(1));
    static const uint16_t sizes[] = {200, 700, 4096, 24};
    size_t pages = 200;

    test_flood();
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct kmem_cache *cp;
        void *chain = NULL;
        size_t n;

        test_flood_release(i == 0 ? pages : 0);
        cp = kmem_cache_create("t_splat", sizes[i], 0, NULL, NULL);
        KT_TRUE(cp != NULL);
        if (cp == NULL)
            break;
        n = take_all(cp, &chain);
        KT_GE(n * sizes[i], pages * PAGE_SIZE * 3 / 4);
        give_all(cp, &chain);
        test_destroy(cp);
    }
    test_flood_end();
}

/* A large part of memory in idle slabs, then pressure by pages: most of it is
 * freed. */
KTEST(kmem_ported, splat_13_slab_reclaim)
{
    KT_NEEDS(MIB(3));
    struct kmem_cache *cp =
        kmem_cache_create("t_splat", KIB(128), 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = TEST_MANY(16, 64);
    size_t slabs;

    test_alloc(cp, 0, n);
    slabs = cp->cache_slabs;
    test_free(cp, 0, n);
    KT_EQ(cp->cache_slabs, slabs);
    test_flood(); /* reaps, and allocates everything */
    test_flood_end();
    KT_LE(cp->cache_slabs, slabs / 4);
    test_destroy(cp);
}

/* ---- HelenOS ------------------------------------------------------------ */

static void mark(void **obj, size_t i)
{
    obj[0] = obj;
    obj[1] = (void *)(uintptr_t)i;
}

static void check_marks(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        void **obj = test_obj[i];

        KT_TRUE(obj[0] == obj && obj[1] == (void *)(uintptr_t)i);
    }
}

static void alloc_marked(struct kmem_cache *cp, size_t from, size_t to)
{
    test_alloc(cp, from, to);
    for (size_t i = from; i < to; i++)
        mark(test_obj[i], i);
}

static void check_slab1(size_t size, size_t n)
{
    struct kmem_cache *cp = kmem_cache_create("t_slab1", size, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    alloc_marked(cp, 0, n);
    check_marks(0, n);
    test_free(cp, 0, n);
    alloc_marked(cp, 0, n);
    for (size_t i = n; i-- > n / 2;)
        test_free(cp, i, i + 1);
    alloc_marked(cp, n / 2, n);
    check_marks(0, n);
    test_free(cp, 0, n);
    TEST_VERIFY(cp);
    test_destroy(cp);
}

KTEST(kmem_ported, helenos_slab1)
{
    KT_NEEDS(MIB(5));
    check_slab1(100, 1024);
    check_slab1(200, 1024);
    check_slab1(1024, 1024);
    check_slab1(2048, 512);
    check_slab1(4000, 128);
    check_slab1(8192, 128);
    check_slab1(16384, 128);
    check_slab1(16385, 128);
}

/* Two caches share little memory; slabs reaped from the second serve the
 * first. */
static void check_slab2(struct kmem_cache *a, struct kmem_cache *b)
{
    void *chain_a = NULL;
    void *chain_b = NULL;
    size_t more;
    void **x;
    void **y;

    do {
        x = kmem_cache_alloc(a, KM_NOSLEEP);
        y = kmem_cache_alloc(b, KM_NOSLEEP);
        if (x != NULL) {
            *x = chain_a;
            chain_a = x;
        }
        if (y != NULL) {
            *y = chain_b;
            chain_b = y;
        }
    } while (x != NULL && y != NULL);
    give_all(b, &chain_b);
    more = take_all(a, &chain_a);
    KT_GE(more, 30);
    KT_EQ(b->cache_slabs, 0);
    give_all(a, &chain_a);
}

KTEST(kmem_ported, helenos_slab2)
{
    struct kmem_cache *a = kmem_cache_create("t_slab2_a", 256, 0, NULL, NULL);
    struct kmem_cache *b = kmem_cache_create("t_slab2_b", 256, 0, NULL, NULL);

    KT_REQUIRE(a != NULL && b != NULL);
    test_flood();
    test_flood_release(40);
    check_slab2(a, b);
    check_slab2(a, b);
    test_flood_end();
    test_destroy(a);
    test_destroy(b);
}

/* ---- libumem ------------------------------------------------------------ */

static const char *numbered(const char *name, unsigned i)
{
    static char text[KMEM_NAME_MAX + 1];

    snprintf(text, sizeof(text), "%s_%u", name, i);
    return text;
}

KTEST(kmem_ported, libumem_many_caches)
{
    struct kmem_cache *cp[48];
    unsigned n = ARRAY_SIZE(cp);

    KT_NEEDS(MIB(1));
    for (unsigned i = 0; i < n; i++) {
        cp[i] = kmem_cache_create(numbered("t_many", i), 20 + 60 * i, 0, NULL,
                                  NULL);
        KT_REQUIRE(cp[i] != NULL);
        test_obj[i] = kmem_cache_alloc(cp[i], KM_SLEEP);
        memset(test_obj[i], (int)i, 20 + 60 * i);
    }
    for (unsigned i = 0; i < n; i++) {
        const uint8_t *b = test_obj[i];

        KT_TRUE(b[0] == i && b[20 + 60 * i - 1] == i);
        KT_TRUE(kmem_cache_find(numbered("t_many", i)) == cp[i]);
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned k = i * 7 % n; /* in another order */

        kmem_cache_free(cp[k], test_obj[k]);
        test_destroy(cp[k]);
    }
}

/* Two caches of one size: objects freed in the other cache's order are not
 * mixed. */
KTEST(kmem_ported, two_caches_freed_crosswise)
{
    struct kmem_cache *a = kmem_cache_create("t_cross_a", 104, 0, NULL, NULL);
    struct kmem_cache *b = kmem_cache_create("t_cross_b", 104, 0, NULL, NULL);

    KT_REQUIRE(a != NULL && b != NULL);
    for (size_t i = 0; i < 400; i++) {
        test_obj[i] = kmem_cache_alloc(i % 2 == 0 ? a : b, KM_SLEEP);
        KT_TRUE(kmem_slab_of(test_obj[i])->slab_cache == (i % 2 == 0 ? a : b));
    }
    for (size_t i = 400; i-- > 0;) {
        size_t k = i * 123 % 400;

        kmem_cache_free(k % 2 == 0 ? a : b, test_obj[k]);
        if (i % 50 == 0) {
            TEST_VERIFY(a);
            TEST_VERIFY(b);
        }
    }
    KT_EQ(a->cache_free_slabs, a->cache_slabs);
    KT_EQ(b->cache_free_slabs, b->cache_slabs);
    test_destroy(a);
    test_destroy(b);
}

/* Growing a cache of large objects grows that of their bufctls on the way. */
KTEST(kmem_ported, growth_within_growth)
{
    struct kmem_cache *cp = kmem_cache_create("t_nested", 512, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t chunks = kmem_bufctl_cache->cache_slab_chunks;
    uint32_t before = kmem_bufctl_cache->cache_slabs;
    size_t n = 0;

    while (kmem_bufctl_cache->cache_slabs < before + 3) {
        test_alloc(cp, n, n + 1);
        n++;
    }
    KT_GE(n, 2 * chunks - 16);
    TEST_VERIFY(cp);
    TEST_VERIFY(kmem_bufctl_cache);
    test_free(cp, 0, n);
    test_destroy(cp);
}

/* The longest soak that fits: memory ends where it began. */
KTEST(kmem_ported, soak_returns_every_page)
{
    static const uint16_t sizes[] = {16, 100, 200, 504, 600, 1500, 4096};
    size_t pages;
    uint32_t seed = 99;

    KT_NEEDS(MIB(2));
    kmem_reap(KMEM_REAP_ALL);
    pages = buddy_free_pages();
    for (unsigned round = 0; round < TEST_MANY(3, 20); round++) {
        for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
            struct kmem_cache *cp =
                kmem_cache_create("t_soak", sizes[k], 0, NULL, NULL);
            size_t n = 1 + test_random(&seed) % 300;

            KT_REQUIRE(cp != NULL);
            test_alloc(cp, 0, n);
            for (size_t i = 0; i < n; i += 2)
                test_free(cp, i, i + 1);
            for (size_t i = 0; i < n; i += 2)
                test_alloc(cp, i, i + 1);
            test_free(cp, 0, n);
            test_destroy(cp);
        }
    }
    kmem_reap(KMEM_REAP_ALL);
    KT_EQ(buddy_free_pages(), pages);
}
