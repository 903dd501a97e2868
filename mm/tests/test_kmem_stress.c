/*
 * Random operations against the shadow model, compared after every one.
 *
 * Tests: mm/kmem*.c
 */
#include "mm/tests/model.h"

#define OPS TEST_MANY(8000, 100000)

static struct model model;
static void *live[1024];

/* In waves, so that slabs become full, partial and free. */
static bool grows(size_t op, uint32_t r, size_t n, size_t max)
{
    unsigned share = op / 500 % 3 == 0 ? 70 : op / 500 % 3 == 1 ? 50 : 25;

    return n == 0 || (n < max && r % 100 < share);
}

static void step(struct model *m, size_t op, uint32_t *seed, size_t *n,
                 size_t max)
{
    uint32_t r = test_random(seed);

    if (r % 211 == 0) {
        kmem_update();
        model_update(m);
    } else if (r % 223 == 0) {
        model_reap(m, (enum kmem_reap_mode)(r / 223 % 2));
    } else if (grows(op, test_random(seed), *n, max)) {
        live[*n] = model_alloc(m);
        *n += live[*n] != NULL;
    } else {
        size_t k = r % 4 == 0 ? *n - 1 : r % 4 == 1 ? 0 : r / 4 % *n;

        model_free(m, live[k]);
        live[k] = live[--*n];
    }
}

static void check_random(size_t size, size_t align, bool constructed,
                         size_t limit, uint32_t seed)
{
    struct test_supply s;
    struct kmem_cache *cp;
    size_t n = 0;
    size_t max;

    test_supply_init(&s, limit);
    cp = kmem_cache_create_from("t_model", size, align,
                                constructed ? test_ctor : NULL,
                                constructed ? test_dtor : NULL, &s.supply);
    KT_REQUIRE(cp != NULL);
    test_clock_stop();
    test_constructed_reset();
    model_init(&model, cp, &s);
    max = MIN(ARRAY_SIZE(live), MODEL_SLABS * cp->cache_slab_chunks);
    for (size_t op = 0; op < OPS; op++) {
        step(&model, op, &seed, &n, max);
        if (!model_compare(&model))
            break;
        if (op % 512 == 0)
            TEST_VERIFY(cp);
    }
    while (n != 0)
        model_free(&model, live[--n]);
    model_compare(&model);
    test_clock_start();
    test_destroy(cp);
    KT_EQ(s.held, 0);
    KT_EQ(test_ctors, test_dtors);
    KT_EQ(test_bad, 0);
}

KTEST(kmem_stress, list_order_small_objects)
{
    check_random(300, 0, false, SIZE_MAX, 1);
}

KTEST(kmem_stress, list_order_constructed_objects)
{
    check_random(490, 0, true, SIZE_MAX, 2);
}

KTEST(kmem_stress, list_order_large_objects)
{
    check_random(1300, 0, false, SIZE_MAX, 3);
}

KTEST(kmem_stress, list_order_one_object_in_a_slab)
{
    check_random(4096, 4096, true, SIZE_MAX, 4);
}

KTEST(kmem_stress, list_order_two_objects_in_a_slab)
{
    check_random(2048, 0, false, SIZE_MAX, 5);
}

KTEST(kmem_stress, list_order_under_a_limit)
{
    check_random(400, 64, false, 6, 6);
    check_random(700, 0, true, 6, 7);
}
