/*
 * Failures on purpose: exactly the n-th request fails, and no other; and the
 * conditions that a request must fit.
 */
#include "tools/workshop/ktest/ktest.h"
#include "tools/workshop/stress/fail.h"
#include "mm/debug/tests/debug_test.h"
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

KTEST(kmem_fail, sleeping_requests_are_not_counted)
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
    first = kmem_getpages(1, PAGE_OVERSIZE, NULL);
    KT_TRUE(first != NULL && !kmem_fail_fired());
    KT_TRUE(kmem_getpages(1, PAGE_OVERSIZE, NULL) == NULL);
    KT_TRUE(kmem_fail_fired());
    second = kmem_getpages(1, PAGE_OVERSIZE, NULL);
    KT_TRUE(second != NULL);
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    kmem_freepages(first, 1);
    kmem_freepages(second, 1);
}

/* ---- conditions --------------------------------------------------------- */

/* Which of 16 requests of a cache fail. */
static __attribute__((noinline)) unsigned failing(struct kmem_cache *cp)
{
    unsigned mask = 0;

    for (unsigned i = 0; i < 16; i++) {
        void *obj = kmem_cache_alloc(cp, KM_NOSLEEP);

        mask |= (unsigned)(obj == NULL) << i;
        if (obj != NULL)
            kmem_cache_free(cp, obj);
    }
    return mask;
}

static void fail_conditions(const char *letters)
{
    struct kmem_cache *cp = test_debug(letters, 40, 0, false);
    struct kmem_cache *other = kmem_cache_create("t_other", 40, 0, NULL, NULL);
    uint32_t fitted;
    uint32_t failed;
    struct kmem_fail f = {.fail_kind = KMEM_FAIL_SLAB, .fail_nth = 5};
    struct kmem_fail now;

    KT_REQUIRE(other != NULL);
    f.fail_cache = cp;
    kmem_fail(&f);
    KT_EQ(failing(other), 0);
    KT_EQ(failing(cp), 1u << 4);
    kmem_fail_stat(&now, &fitted, &failed);
    KT_EQ(fitted, 16);
    KT_EQ(failed, 1);
    KT_TRUE(now.fail_cache == cp && now.fail_nth == 5);
    KT_EQ(test_stat(cp).stat_fails, 1);

    f = (struct kmem_fail){.fail_kind = KMEM_FAIL_SLAB, .fail_rate = 1};
    f.fail_task = mm_task_id() + 1;
    kmem_fail(&f);
    KT_EQ(failing(cp), 0);
    f.fail_task--;
    kmem_fail(&f);
    KT_EQ(failing(cp), 0xffff);
    f.fail_from = 1;
    f.fail_to = 2;
    kmem_fail(&f);
    KT_EQ(failing(cp), 0);
    f.fail_to = UINTPTR_MAX;
    kmem_fail(&f);
    KT_EQ(failing(cp), 0xffff);
    f.fail_from = (uintptr_t)failing;
    f.fail_to = f.fail_from + 200;
    kmem_fail(&f);
    KT_EQ(failing(cp), 0xffff);
    f.fail_rate = 0; /* neither the n-th nor by chance: none */
    kmem_fail(&f);
    KT_EQ(failing(cp), 0);
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    KT_EQ(failing(cp), 0);
    KT_EQ(other->cache_flags, 0);
    test_destroy(other);
    test_destroy(cp);
}

KTEST(kmem_debug, failures_by_cache_task_and_caller)
{
    fail_conditions("");
    fail_conditions("FPZU");
}

/* By chance, about as often as asked; the same seed gives the same. */
KTEST(kmem_debug, failures_by_chance)
{
    struct kmem_cache *cp = kmem_cache_create("t_fail", 40, 0, NULL, NULL);
    struct kmem_fail f = {
        .fail_kind = KMEM_FAIL_SLAB, .fail_rate = 10, .fail_seed = 3};
    unsigned masks[2][8];
    uint32_t fitted;
    uint32_t failed;

    KT_REQUIRE(cp != NULL);
    f.fail_cache = cp;
    for (size_t round = 0; round < 2; round++) {
        kmem_fail(&f);
        for (size_t i = 0; i < 8; i++)
            masks[round][i] = failing(cp);
    }
    KT_EQ(memcmp(masks[0], masks[1], sizeof(masks[0])), 0);
    for (size_t i = 0; i < 120; i++)
        failing(cp);
    kmem_fail_stat(&f, &fitted, &failed);
    KT_EQ(fitted, 2048);
    KT_TRUE(failed > 150 && failed < 260);
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    test_destroy(cp);
}
