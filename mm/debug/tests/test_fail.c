/*
 * Failures on purpose: exactly the n-th request fails, and no other.
 */
#include "tools/workshop/ktest/ktest.h"
#include "mm/debug/fail.h"
#include "mm/segkmem.h"

/* Which of eight requests in a row failed, as a mask. */
static unsigned failures(struct kmem_cache *small, struct kmem_cache *large)
{
    void *out[8];
    unsigned mask = 0;

    for (unsigned i = 0; i < 8; i++) {
        out[i] = kmem_cache_alloc(i % 2 ? large : small, KM_NOSLEEP);
        mask |= (unsigned)(out[i] == NULL) << i;
    }
    for (unsigned i = 0; i < 8; i++)
        if (out[i] != NULL)
            kmem_cache_free(i % 2 ? large : small, out[i]);
    return mask;
}

KTEST(kmem_fail, the_nth_object_fails_once)
{
    struct kmem_cache *small = kmem_cache_create("t_small", 40, 0, NULL, NULL);
    struct kmem_cache *large =
        kmem_cache_create("t_large", 1024, 0, NULL, NULL);
    const char *where;

    KT_REQUIRE(small != NULL && large != NULL);
    KT_EQ(failures(small, large), 0);
    kmem_fail_set(KMEM_FAIL_SLAB, 1);
    KT_EQ(failures(small, large), 1);
    KT_TRUE(kmem_fail_fired());
    kmem_fail_set(KMEM_FAIL_SLAB, 4);
    KT_EQ(failures(small, large), 8);
    KT_EQ(failures(small, large), 0);
    kmem_fail_set(KMEM_FAIL_SLAB, 9);
    KT_EQ(failures(small, large), 0);
    KT_TRUE(!kmem_fail_fired());
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    KT_EQ(failures(small, large), 0);
    KT_TRUE(kmem_verify(&where) == NULL);
    KT_EQ(kmem_cache_destroy(small), 0);
    KT_EQ(kmem_cache_destroy(large), 0);
}

KTEST(kmem_fail, who_may_sleep_is_not_counted)
{
    struct kmem_cache *cp = kmem_cache_create("t_small", 40, 0, NULL, NULL);
    void *buf;

    KT_REQUIRE(cp != NULL);
    kmem_fail_set(KMEM_FAIL_SLAB, 1);
    buf = kmem_cache_alloc(cp, KM_SLEEP);
    KT_TRUE(buf != NULL && !kmem_fail_fired());
    kmem_cache_free(cp, buf);
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    KT_EQ(kmem_cache_destroy(cp), 0);
}

KTEST(kmem_fail, the_nth_page_fails_once)
{
    void *first;
    void *second;

    kmem_fail_set(KMEM_FAIL_PAGE, 2);
    first = kmem_getpages(1, PAGE_LARGE, NULL);
    KT_TRUE(first != NULL && !kmem_fail_fired());
    KT_TRUE(kmem_getpages(1, PAGE_LARGE, NULL) == NULL);
    KT_TRUE(kmem_fail_fired());
    second = kmem_getpages(1, PAGE_LARGE, NULL);
    KT_TRUE(second != NULL);
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    kmem_freepages(first, 1);
    kmem_freepages(second, 1);
}
