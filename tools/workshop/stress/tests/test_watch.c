/*
 * Watching the allocator: kmem_verify at every N-th operation; a cache that is
 * watched for nothing. Failures are in test_fail.c.
 *
 * Tests: tools/workshop/stress/watch.c
 */
#include "mm/debug/tests/debug_test.h"
#include "tools/workshop/stress/watch.h"

#ifdef MM_HOST

static void pairs(struct kmem_cache *cp, size_t n)
{
    while (n-- != 0)
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
}

KTEST(kmem_debug, verify_at_every_nth_operation)
{
    struct kmem_cache *cp = kmem_cache_create("t_verify", 40, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    uint64_t taken = kmem_list_lock.lock_taken;

    kmem_verify_every(3); /* no cache is destroyed meanwhile */
    KT_EQ(kmem_list_lock.lock_taken - taken, 1);
    KT_EQ(kmem_verify_interval(), 3);
    TEST_NO_ERROR(kmem_cache_free(cp, obj));
    TEST_NO_ERROR(pairs(cp, 2));
    TEST_NO_ERROR(obj = kmem_cache_alloc(cp, KM_SLEEP));
    cp->cache_full_slabs++; /* found by the third verification */
    TEST_NO_ERROR(kmem_cache_free(cp, obj));
    TEST_NO_ERROR(obj = kmem_cache_alloc(cp, KM_SLEEP));
    KT_PANICS(kmem_cache_free(cp, obj), "count of full slabs is wrong");
    KT_TRUE(strstr(host_panic_text, "kmem_verify: cache t_verify") != NULL);
    cp->cache_full_slabs--;
    TEST_NO_ERROR(pairs(cp, 30));
    kmem_verify_every(0);
    cp->cache_full_slabs++;
    TEST_NO_ERROR(pairs(cp, 30));
    cp->cache_full_slabs--;
    KT_EQ(cp->cache_flags, 0);
    test_destroy(cp);
}

/* Also in the middle of growing, rescaling and reaping, where the pages of the
 * caches and those of segkmem differ for a moment. */
KTEST(kmem_debug, verify_at_every_operation_raises_no_alarm)
{
    static const char *const modes[] = {"", "FPZU", "S", "G", "T"};
    struct kmem_cache *cp = kmem_cache_create("t_verify", 600, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);

    kmem_verify_every(1);
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        test_alloc(cp, 0, 300);
        kmem_free(kmem_alloc(50000, KM_SLEEP), 50000);
        test_free(cp, 0, 300);
        test_switch(cp, modes[i]);
        test_alloc(cp, 0, 400);
        test_free(cp, 0, 400);
        kmem_reap(KMEM_REAP_ALL);
    }
    kmem_verify_every(0);
    KT_EQ(kmem_last_error.error_kind, KMERR_NONE);
    test_destroy(cp);
}

/* Between two settings a cache can be watched for nothing. */
KTEST(kmem_debug, nothing_fails_in_a_cache_that_is_only_watched)
{
    struct kmem_cache *cp = kmem_cache_create("t_watch", 40, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    cp->cache_flags |= KMF_WATCH;
    TEST_NO_ERROR(pairs(cp, 2));
    cp->cache_flags &= ~KMF_WATCH;
    test_destroy(cp);
}

/* Failures and verifications share the flag: the end of one does not end the
 * other. */
KTEST(kmem_debug, failures_and_verifications_end_apart)
{
    struct kmem_cache *cp = kmem_cache_create("t_watch", 40, 0, NULL, NULL);
    struct kmem_cache *later;

    KT_REQUIRE(cp != NULL);
    kmem_verify_every(1000);
    kmem_fail_set(KMEM_FAIL_SLAB, 1);
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    KT_EQ(test_stat(cp).stat_fails, 1);
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    KT_EQ(cp->cache_flags, KMF_WATCH);
    later = kmem_cache_create("t_later", 40, 0, NULL, NULL);
    KT_REQUIRE(later != NULL);
    KT_EQ(later->cache_flags, KMF_WATCH);
    kmem_fail_set(KMEM_FAIL_SLAB, 1);
    kmem_verify_every(0);
    KT_EQ(cp->cache_flags, KMF_WATCH);
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    KT_EQ(cp->cache_flags | later->cache_flags, 0);
    test_destroy(later);
    test_destroy(cp);
}

/* Each class in a mode that needs the size is watched as other caches are: a
 * request counts once. */
KTEST(kmem_debug, requests_of_a_debugged_class_are_watched)
{
    struct kmem_cache *cp = kmem_size_class(40);
    void *obj;

    test_switch(cp, "Z");
    for (uint32_t n = 1; n <= 2; n++) {
        size_t size = n == 1 ? 40 : 13; /* of this class, and of another */

        kmem_fail(&(struct kmem_fail){.fail_kind = KMEM_FAIL_SLAB,
                                      .fail_nth = 2,
                                      .fail_cache = kmem_size_class(size)});
        obj = kmem_alloc(size, KM_NOSLEEP);
        KT_TRUE(obj != NULL && !kmem_fail_fired());
        KT_TRUE(kmem_alloc(size, KM_NOSLEEP) == NULL);
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        kmem_free(obj, size);
    }
    test_switch(cp, "");
}

#endif
