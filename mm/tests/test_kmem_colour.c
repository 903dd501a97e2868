/*
 * Statements S-23 to S-28: slab colouring (paper, 4.3).
 *
 * Tests: mm/kmem_slab.c
 */
#include "mm/tests/kmem_test.h"

/* Makes `n` slabs, the first objects of which end in test_obj[0 … n-1], with
 * all the rest after them. Returns the number of allocated objects. */
static size_t make_slabs(struct kmem_cache *cp, size_t n)
{
    size_t per = cp->cache_slab_chunks;
    size_t rest = n;

    for (size_t i = 0; i < n; i++) {
        test_alloc(cp, i, i + 1);
        test_alloc(cp, rest, rest + per - 1);
        rest += per - 1;
    }
    return rest;
}

static size_t offset(const void *obj)
{
    return (uintptr_t)obj % PAGE_SIZE;
}

static void check_sequence(size_t size, size_t align, size_t slabs,
                           size_t expect_max)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_colour", size, align, NULL, NULL);
    size_t colours = expect_max / MAX(align, (size_t)8) + 1;
    size_t objs;

    KT_REQUIRE(cp != NULL);
    KT_EQ(cp->cache_colour_max, expect_max);
    objs = make_slabs(cp, slabs);
    for (size_t k = 0; k < slabs && objs != 0; k++) {
        struct kmem_slab *sp = test_slab_of(cp, test_obj[k]);

        KT_EQ(offset(sp->slab_base), 0);
        KT_EQ(offset(test_obj[k]), k % colours * MAX(align, (size_t)8));
        KT_EQ(sp->slab_colour, offset(test_obj[k]));
    }
    test_free(cp, 0, objs);
    test_destroy(cp);
}

KTEST(kmem, S23_colour_sequence)
{
    size_t left = test_geometry(200, 8, false).left;

    if (TEST_H == 32)
        KT_EQ(left, 64);
    check_sequence(200, 8, 20, left);
}

KTEST(kmem, S23_buffers_follow_the_colour)
{
    struct kmem_cache *cp = kmem_cache_create("t_colour", 200, 8, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;

    test_alloc(cp, 0, 2 * n);
    for (size_t i = 0; i < n; i++) {
        KT_EQ(offset(test_obj[i]), 200 * i);
        KT_EQ(offset(test_obj[n + i]), 200 * i + 8);
    }
    test_free(cp, 0, 2 * n);
    test_destroy(cp);
}

KTEST(kmem, S23_large_slabs_are_coloured_too)
{
    KT_NEEDS(MIB(1));
    /* 1000 bytes: 4 in a page, 96 left: 0, 8, … 96. */
    check_sequence(1000, 8, 20, 96);
    /* 3000 bytes: 4 in 3 pages, 288 left. */
    check_sequence(3000, 8, 40, 288);
}

KTEST(kmem, S24_step_is_the_alignment_and_it_wraps)
{
    size_t left16 = test_geometry(200, 16, false).left;
    size_t left64 = test_geometry(200, 64, false).left;

    if (TEST_H == 32) {
        KT_EQ(left16, 112);
        KT_EQ(left64, 224);
    }
    check_sequence(200, 16, 20, left16 / 16 * 16);
    check_sequence(200, 64, 9, left64 / 64 * 64);
}

KTEST(kmem, S25_colour_costs_no_object)
{
    struct kmem_cache *cp = kmem_cache_create("t_colour", 128, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t objs = make_slabs(cp, 15);

    for (size_t i = 0; i < 15; i++) {
        struct kmem_slab *sp = test_slab(cp, i);

        KT_EQ(sp->slab_chunks, cp->cache_slab_chunks);
        KT_LE(sp->slab_colour + sp->slab_chunks * 128, 4096 - TEST_H);
    }
    KT_TRUE(test_slab(cp, 15) == NULL);
    test_free(cp, 0, objs);
    test_destroy(cp);
}

KTEST(kmem, S26_first_slab_has_colour_0)
{
    struct kmem_cache *cp = kmem_cache_create("t_colour", 200, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    KT_EQ(cp->cache_colour, 0);
    test_alloc(cp, 0, 1);
    KT_EQ(offset(test_obj[0]), 0);
    KT_EQ(cp->cache_colour, 8);
    test_free(cp, 0, 1);
    test_destroy(cp);
}

KTEST(kmem, S26_colour_stays_below_a_page)
{
    for (size_t size = 512; size <= KMEM_SIZE_MAX / 4; size += 1 + size / 64)
        KT_LE(test_setup(size, 0, false)->cache_colour_max, 4095);
    /* 36 pages would leave more than a page unused. */
    KT_LE(test_setup(36 * 4096 - 5000, 0, false)->cache_colour_max, 4088);
}

KTEST(kmem, S27_powers_of_two_have_the_most_colours_or_none)
{
    if (TEST_H == 32) {
        KT_EQ(test_setup(128, 0, false)->cache_colour_max / 8 + 1, 13);
        KT_EQ(test_setup(256, 0, false)->cache_colour_max / 8 + 1, 29);
        KT_EQ(test_setup(200, 0, false)->cache_colour_max / 8 + 1, 9);
    }
    KT_TRUE(test_setup(256, 0, false)->cache_colour_max >
            test_setup(200, 0, false)->cache_colour_max);
    KT_EQ(test_setup(512, 0, false)->cache_colour_max, 0);
    KT_EQ(test_setup(1024, 0, false)->cache_colour_max, 0);
    check_sequence(512, 0, 3, 0);
}

KTEST(kmem, S28_first_objects_spread_over_the_page)
{
    struct kmem_cache *cp = kmem_cache_create("t_colour", 200, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t colours = cp->cache_colour_max / 8 + 1;
    size_t objs = make_slabs(cp, colours);

    if (TEST_H == 32)
        KT_EQ(colours, 9);
    for (size_t i = 0; i < colours && objs != 0; i++)
        for (size_t j = 0; j < i; j++)
            KT_NE(offset(test_obj[i]), offset(test_obj[j]));
    test_free(cp, 0, objs);
    test_destroy(cp);
}

/* A slab that could not be created uses no colour. */
KTEST(kmem, S23_failed_growth_keeps_the_colour)
{
    struct test_supply s;
    struct kmem_cache *cp;

    cp = test_supply_cache(&s, 1, 200);
    test_alloc(cp, 0, cp->cache_slab_chunks);
    KT_EQ(cp->cache_colour, 8);
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    KT_EQ(cp->cache_colour, 8);
    test_free(cp, 0, cp->cache_slab_chunks);
    test_destroy(cp);
}

/* Caches whose slabs are created and destroyed still cycle through the
 * colours. */
KTEST(kmem, S23_colour_goes_on_after_a_reap)
{
    struct kmem_cache *cp = kmem_cache_create("t_colour", 200, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t colours = cp->cache_colour_max / 8 + 1;

    for (size_t k = 0; k < 2 * colours; k++) {
        test_alloc(cp, 0, 1);
        KT_EQ(offset(test_obj[0]), k % colours * 8);
        test_free(cp, 0, 1);
        kmem_cache_reap(cp, KMEM_REAP_ALL);
    }
    test_destroy(cp);
}
