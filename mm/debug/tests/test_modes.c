/*
 * Switching debugging modes while a cache is in use: objects that are out find
 * their way back through elders, counts are inherited, and nothing is lost.
 *
 * Tests: mm/debug/modes.c, mm/debug/elder.c
 */
#include "mm/debug/tests/debug_test.h"

static size_t elders(const struct kmem_cache *cp)
{
    size_t n = 0;

    for (cp = cp->cache_elders; cp != NULL; cp = cp->cache_elders)
        n++;
    return n;
}

static void verify_heap(int line)
{
    const char *where;
    const char *why = kmem_verify(&where);

    if (why != NULL)
        ktest_fail(__FILE__, line, "kmem_verify: %s: %s", why, where);
}

/* Objects of three generations are out at once, and come back in any order. */
static void generations(size_t size, bool constructed, const char *const *modes,
                        size_t count)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_switch", size, 0, constructed ? test_ctor : NULL,
                          constructed ? test_dtor : NULL);
    size_t n = 20;
    struct kmem_cache_stat stat;

    test_constructed_reset();
    for (size_t i = 0; i < count; i++) {
        KT_REQUIRE(test_alloc(cp, i * n, (i + 1) * n));
        test_switch(cp, modes[i]);
        KT_EQ(elders(cp), i + 1);
        KT_EQ(kmem_inuse(cp), 0);
        verify_heap(__LINE__);
    }
    for (size_t i = 0; i < count * n; i++) {
        size_t k = i * 17 % (count * n);

        KT_TRUE(!constructed || test_is_constructed(test_obj[k], size));
        if (!constructed)
            memset(test_obj[k], 1, size);
        kmem_cache_free(cp, test_obj[k]);
    }
    verify_heap(__LINE__);
    KT_EQ(elders(cp), count);
    kmem_elders_collect();
    KT_EQ(elders(cp), 0);
    KT_EQ(cp->cache_flags & KMF_ELDERS, 0);
    stat = test_stat(cp);
    KT_EQ(stat.stat_allocs, count * n);
    KT_EQ(stat.stat_frees, count * n);
    KT_EQ(stat.stat_slab_creates, stat.stat_slab_destroys);
    KT_EQ(test_ctors, test_dtors);
    KT_EQ(test_bad, 0);
    verify_heap(__LINE__);
    test_destroy(cp);
}

KTEST(kmem_debug, elders_of_several_generations)
{
    static const char *const one[] = {"FPZU", "", "Z", "U", ""};
    static const char *const other[] = {"P", "FPZU", "", "G", "S", "F", ""};

    generations(40, false, one, ARRAY_SIZE(one));
    generations(40, true, other, ARRAY_SIZE(other));
    generations(700, true, one, ARRAY_SIZE(one));
    generations(700, false, other, ARRAY_SIZE(other));
    generations(9000, false, one, 3);
}

/* An elder is a cache like others to whoever looks: on the list, with the old
 * geometry, its own name and its objects. */
KTEST(kmem_debug, elders_can_be_looked_at)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    size_t chunk = cp->cache_chunk;
    struct kmem_cache *elder;
    struct kmem_buf_stat b;
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    void *young;

    test_switch(cp, "FPZU");
    elder = kmem_cache_find("t_switch~1");
    KT_REQUIRE(elder != NULL);
    KT_TRUE(kmem_cache_heir(elder) == cp && kmem_cache_heir(cp) == NULL);
    KT_EQ(elder->cache_chunk, chunk);
    KT_NE(cp->cache_chunk, chunk);
    KT_EQ(kmem_debug_modes(cp), test_modes("FPZU"));
    KT_EQ(kmem_debug_modes(elder), 0);
    KT_TRUE((test_stat(elder).stat_flags & KMEM_STAT_ELDER) != 0);
    KT_TRUE((test_stat(cp).stat_flags & KMEM_STAT_ELDER) == 0);
    KT_EQ(kmem_inuse(elder), 1);
    KT_TRUE(kmem_buf_stat(obj, &b) && b.stat_cache == elder);
    young = kmem_cache_alloc(cp, KM_SLEEP);
    KT_TRUE(kmem_buf_stat(young, &b) && b.stat_cache == cp);
    KT_TRUE(kmem_elder_holding(cp, obj) == elder);
    KT_TRUE(kmem_elder_holding(cp, young) == cp);
    KT_TRUE(kmem_elder_holding(cp, &b) == NULL);
    KT_EQ(kmem_debug_set(elder, 0), -KMEM_EPERM);
    kmem_cache_free(cp, young);
    kmem_cache_free(cp, obj);
    kmem_elders_collect();
    KT_TRUE(kmem_cache_find("t_switch~1") == NULL);
    test_destroy(cp);
}

/* The letters that are set already, or T alone, make no elder. */
KTEST(kmem_debug, switching_to_the_same_makes_no_elder)
{
    struct kmem_cache *cp = test_debug("FZ", 40, 0, false);
    struct kmem_slab *sp;
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    sp = test_slab(cp, 0);
    test_switch(cp, "ZF");
    test_switch(cp, "ZFT");
    KT_EQ(kmem_debug_modes(cp), test_modes("FZT"));
    test_switch(cp, "FZ");
    KT_EQ(elders(cp), 0);
    KT_TRUE(test_slab(cp, 0) == sp);
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

/* Empty slabs are no reason for an elder to stay. */
KTEST(kmem_debug, empty_elders_end_at_once)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    struct kmem_cache *big = kmem_cache_create("t_big", 4000, 0, NULL, NULL);

    KT_REQUIRE(test_alloc(big, 0, 30));
    test_free(big, 0, 30);
    for (size_t i = 0; i < 10; i++) {
        test_switch(cp, i % 2 ? "" : "FPZU");
        KT_EQ(elders(cp), 0);
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    }
    test_switch(big, "F");
    KT_EQ(elders(big), 0);
    KT_EQ(big->cache_slabs, 0);
    KT_EQ(test_stat(big).stat_allocs, 30);
    KT_EQ(test_stat(big).stat_frees, 30);
    KT_EQ(test_stat(cp).stat_allocs, 10);
    verify_heap(__LINE__);
    test_destroy(cp);
    test_destroy(big);
}

/* As it was before: the same flags, geometry and hot path. */
KTEST(kmem_debug, S59_off_again_is_as_never_on)
{
    static const size_t sizes[] = {40, 700};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct kmem_cache *cp =
            kmem_cache_create("t_switch", sizes[i], 0, NULL, NULL);
        struct kmem_cache before = *cp;

        KT_REQUIRE(test_alloc(cp, 0, 3));
        test_switch(cp, "FPZU");
        test_switch(cp, "");
        KT_TRUE((cp->cache_flags & KMF_ELDERS) != 0);
        KT_EQ(cp->cache_flags & KMF_SLOW, before.cache_flags & KMF_SLOW);
        KT_TRUE(cp->cache_alloc_slow == before.cache_alloc_slow);
        test_free(cp, 0, 3);
        kmem_elders_collect();
        KT_EQ(cp->cache_flags, before.cache_flags);
        KT_EQ(cp->cache_chunk, before.cache_chunk);
        KT_EQ(cp->cache_bufctl, before.cache_bufctl);
        KT_EQ(cp->cache_colour_min, 0);
        KT_EQ(cp->cache_colour_max, before.cache_colour_max);
        KT_EQ(cp->cache_slab_pages, before.cache_slab_pages);
        KT_EQ(cp->cache_slab_chunks, before.cache_slab_chunks);
        KT_TRUE(cp->cache_alloc_slow == before.cache_alloc_slow);
        KT_TRUE(cp->cache_free_slow == before.cache_free_slow);
        test_destroy(cp);
    }
    KT_EQ(kmem_direct_max, KMEM_MAXBUF);
}

KTEST(kmem_debug, who_may_not_switch)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    struct test_supply s;
    struct kmem_cache *supplied;

    test_supply_init(&s, 10);
    supplied =
        kmem_cache_create_from("t_supplied", 40, 0, NULL, NULL, &s.supply);
    KT_EQ(kmem_debug_set(kmem_slab_cache, KMF_CHECK), -KMEM_EPERM);
    KT_EQ(kmem_debug_set(kmem_bufctl_debug_cache, KMF_FIREWALL), -KMEM_EPERM);
    KT_EQ(kmem_debug_set(&kmem_cache_cache, KMF_REDZONE), -KMEM_EPERM);
    KT_EQ(kmem_debug_set(supplied, KMF_UNMAP), -KMEM_EINVAL);
    KT_EQ(kmem_debug_set(supplied, KMF_FIREWALL | KMF_CHECK), -KMEM_EINVAL);
    cp->cache_busy++;
    KT_EQ(kmem_debug_set(cp, KMF_CHECK), -KMEM_EAGAIN);
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EAGAIN);
    cp->cache_busy--;
    kmem_reaping = true;
    KT_EQ(kmem_debug_set(cp, KMF_CHECK), -KMEM_EAGAIN);
    kmem_reaping = false;
    KT_EQ(kmem_debug_modes(cp), 0);
    KT_EQ(kmem_debug_modes(supplied), 0);
    verify_heap(__LINE__);
    test_destroy(supplied);
    test_destroy(cp);
}

/* The n-th allocation that switching needs fails, for each n: nothing changes,
 * nothing stays behind. */
KTEST(kmem_debug, switching_without_memory)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    uint32_t n = 1;
    int error;

    KT_REQUIRE(test_alloc(cp, 0, 5));
    for (;; n++) {
        kmem_fail_set(KMEM_FAIL_SLAB, n);
        error = kmem_debug_set(cp, test_modes("FPZ"));
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        if (error == 0)
            break;
        KT_EQ(error, -KMEM_ENOMEM);
        KT_EQ(kmem_debug_modes(cp), 0);
        KT_EQ(elders(cp), 0);
        verify_heap(__LINE__);
    }
    KT_TRUE(n >= 2 && n < 6);
    for (n = 1;; n++) {
        kmem_fail_set(KMEM_FAIL_PAGE, n);
        error = kmem_debug_set(cp, test_modes("P"));
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        verify_heap(__LINE__);
        if (error == 0)
            break;
        KT_EQ(error, -KMEM_ENOMEM);
        KT_EQ(kmem_debug_modes(cp), test_modes("FPZ"));
    }
    KT_TRUE(n < 6);
    test_free(cp, 0, 5);
    test_destroy(cp);
}

/* Caches with pages of their own: elders are found by asking their slabs. */
KTEST(kmem_debug, switching_with_a_supplier)
{
    struct test_supply s;
    struct kmem_cache *cp;

    test_supply_init(&s, 200);
    cp = kmem_cache_create_from("t_switch", 100, 0, NULL, NULL, &s.supply);
    KT_REQUIRE(test_alloc(cp, 0, 50));
    test_switch(cp, "FPZU");
    KT_REQUIRE(test_alloc(cp, 50, 100));
    test_switch(cp, "");
    KT_REQUIRE(test_alloc(cp, 100, 150));
    verify_heap(__LINE__);
    for (size_t i = 0; i < 150; i++)
        kmem_cache_free(cp, test_obj[i * 77 % 150]);
    verify_heap(__LINE__);
    test_destroy(cp);
    KT_EQ(s.held, 0);
}

/* A reap finds elders, and takes their complete slabs. */
KTEST(kmem_debug, elders_are_reaped)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 500, 0, NULL, NULL);
    size_t n = cp->cache_slab_chunks;
    struct kmem_cache *elder;

    KT_REQUIRE(test_alloc(cp, 0, 4 * n));
    test_switch(cp, "Z");
    test_free(cp, 0, 3 * n);
    elder = cp->cache_elders;
    KT_EQ(elder->cache_free_slabs, 3);
    kmem_reap(KMEM_REAP_ALL);
    KT_EQ(elder->cache_slabs, 1);
    verify_heap(__LINE__);
    test_free(cp, 3 * n, 4 * n);
    kmem_reap(KMEM_REAP_ALL);
    KT_EQ(elder->cache_slabs, 0);
    KT_TRUE(cp->cache_elders == elder);
    test_destroy(cp);
}

/* The update of working sets ends empty elders; not while one is busy, or a
 * reap runs. */
KTEST(kmem_debug, elders_end_when_they_may)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    test_switch(cp, "F");
    kmem_elders_collect();
    KT_EQ(elders(cp), 1);
    kmem_cache_free(cp, obj);
    kmem_reaping = true;
    kmem_elders_collect();
    KT_EQ(elders(cp), 1);
    kmem_reaping = false;
    cp->cache_elders->cache_busy++;
    kmem_elders_collect();
    KT_EQ(elders(cp), 1);
    cp->cache_elders->cache_busy--;
    kmem_elders_collect();
    KT_EQ(elders(cp), 0);
    KT_EQ(cp->cache_busy, 0);
    test_destroy(cp);
}

KTEST(kmem_debug, S8_destroy_with_elders)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    test_switch(cp, "FPZU");
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
    KT_EQ(kmem_cache_destroy(cp->cache_elders), -KMEM_EPERM);
    KT_EQ(elders(cp), 1);
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

/* What is wrong with the elder's objects is found, and named by the elder. */
#ifdef MM_HOST
KTEST(kmem_debug, elders_find_errors)
{
    struct kmem_cache *cp = test_debug("FZ", 40, 0, false);
    char *obj = kmem_cache_alloc(cp, KM_SLEEP);
    char *twice = kmem_cache_alloc(cp, KM_SLEEP);
    struct kmem_cache *elder;

    test_switch(cp, "");
    elder = cp->cache_elders;
    obj[40] = 1;
    TEST_ERROR(KMEM_ERROR_END, kmem_cache_free(cp, obj));
    KT_TRUE(kmem_last_error.error_owner == elder);
    kmem_cache_free(cp, twice);
    TEST_ERROR(KMEM_ERROR_DOUBLE, kmem_cache_free(cp, twice));
    TEST_ERROR(KMEM_ERROR_INTERIOR, kmem_cache_free(cp, twice + 8));
    TEST_ERROR(KMEM_ERROR_INTERIOR, kmem_cache_free(cp, (char *)elder + 1));
    test_pardon(elder, obj);
    test_destroy(cp);
}

/* Also where an elder's slab has been taken away. */
KTEST(kmem_debug, elders_find_double_frees_of_what_is_unmapped)
{
    struct kmem_cache *cp = test_debug("S", 40, 0, false);
    struct kmem_cache *elder;
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    test_switch(cp, "F");
    elder = cp->cache_elders;
    kmem_cache_free(cp, obj);
    TEST_ERROR(KMEM_ERROR_DOUBLE, kmem_cache_free(cp, obj));
    KT_TRUE(kmem_last_error.error_owner == elder);
    test_destroy(cp);
}

/* kmem_free passes sizes on to an elder. */
KTEST(kmem_debug, sizes_after_switching)
{
    struct kmem_cache *cp = kmem_size_class(100);
    struct kmem_cache *elder;
    void *plain = kmem_alloc(100, KM_SLEEP);
    void *obj;
    void *wrong;

    test_switch(cp, "FZ");
    obj = kmem_alloc(98, KM_SLEEP);
    wrong = kmem_alloc(97, KM_SLEEP);
    test_switch(cp, "");
    elder = cp->cache_elders;
    KT_EQ(kmem_direct_max, 0);
    TEST_NO_ERROR(kmem_free(plain, 100));
    TEST_NO_ERROR(kmem_free(obj, 98));
    TEST_ERROR(KMEM_ERROR_SIZE, kmem_free(wrong, 98));
    test_pardon(elder, wrong);
    kmem_elders_collect();
    KT_EQ(kmem_direct_max, KMEM_MAXBUF);
    KT_EQ(elders(cp), 0);
}

/* ---- at boot ------------------------------------------------------------ */

KTEST(kmem_debug, modes_at_boot)
{
    struct test_supply s;
    struct kmem_cache *cp[5];

    test_supply_init(&s, 10);
    kmem_debug_boot(test_modes("FZSG"), "t_b,t_c,t_s");
    cp[0] = kmem_cache_create("t_a", 40, 0, NULL, NULL);
    cp[1] = kmem_cache_create("t_b", 40, 0, NULL, NULL);
    cp[2] = kmem_cache_create("t_c", 40, 0, NULL, NULL);
    cp[3] = kmem_cache_create("t_bc", 40, 0, NULL, NULL);
    cp[4] = kmem_cache_create_from("t_s", 40, 0, NULL, NULL, &s.supply);
    KT_EQ(kmem_debug_modes(cp[0]), 0);
    KT_EQ(kmem_debug_modes(cp[1]), test_modes("FZSG"));
    KT_EQ(kmem_debug_modes(cp[2]), test_modes("FZSG"));
    KT_EQ(kmem_debug_modes(cp[3]), 0);
    KT_EQ(kmem_debug_modes(cp[4]), test_modes("FZ"));
    kmem_debug_boot(test_modes("P"), NULL);
    for (size_t i = 0; i < 5; i++) {
        kmem_cache_free(cp[i], kmem_cache_alloc(cp[i], KM_SLEEP));
        test_destroy(cp[i]);
    }
    cp[0] = kmem_cache_create("t_a", 40, 0, NULL, NULL);
    KT_EQ(kmem_debug_modes(cp[0]), test_modes("P"));
    test_destroy(cp[0]);
    kmem_debug_boot(test_modes("P"), "");
    cp[0] = kmem_cache_create("t_a", 40, 0, NULL, NULL);
    KT_EQ(kmem_debug_modes(cp[0]), 0);
    test_destroy(cp[0]);
    kmem_debug_boot(test_modes("U"), "t_a");
    KT_TRUE(kmem_log_kept() == 0);
    kmem_debug_init();
    cp[0] = kmem_cache_create("t_a", 40, 0, NULL, NULL);
    kmem_cache_free(cp[0], kmem_cache_alloc(cp[0], KM_SLEEP));
    KT_EQ(kmem_log_kept(), 2);
    test_destroy(cp[0]);
    kmem_debug_boot(0, NULL);
}
#endif
