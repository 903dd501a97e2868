/*
 * Statements S-34 to S-40: the slab list and the order of allocation (paper,
 * 3.3). Objects of 500 bytes: eight in a slab, no constructor.
 *
 * Tests: mm/kmem_cache.c, mm/kmem_slab.c
 */
#include "mm/tests/kmem_test.h"

#define PER TEST_WS_PER /* objects in a slab */

/* The slab that objects number k·PER … are in. */
static struct kmem_slab *slab(struct kmem_cache *cp, size_t k)
{
    return test_slab_of(cp, test_obj[k * PER]);
}

/* Whether the list is exactly these slabs in this order; ~0u ends. */
static bool listed(struct kmem_cache *cp, struct kmem_slab *a,
                   struct kmem_slab *b, struct kmem_slab *c)
{
    TEST_VERIFY(cp);
    return test_slab(cp, 0) == a && test_slab(cp, 1) == b &&
           test_slab(cp, 2) == c && (c == NULL || test_slab(cp, 3) == NULL);
}

KTEST(kmem, S34_full_then_partial_then_free)
{
    struct kmem_cache *cp = test_ws_make(3);
    struct kmem_slab *a = slab(cp, 0);
    struct kmem_slab *b = slab(cp, 1);
    struct kmem_slab *c = slab(cp, 2);

    KT_TRUE(listed(cp, a, b, c));
    KT_TRUE(cp->cache_freelist == &cp->cache_null);
    test_free(cp, PER, 2 * PER);
    KT_TRUE(listed(cp, a, c, b)); /* b is free: at the tail */
    KT_TRUE(cp->cache_freelist == b);
    test_free(cp, 0, 1);
    KT_TRUE(listed(cp, c, a, b)); /* c full, a partial, b free */
    KT_TRUE(cp->cache_freelist == a);
    test_free(cp, 1, PER);
    KT_TRUE(listed(cp, c, b, a));
    KT_TRUE(cp->cache_freelist == b);
    test_free(cp, 2 * PER, 3 * PER);
    KT_TRUE(listed(cp, b, a, c));
    KT_TRUE(cp->cache_freelist == b);
    test_ws_end(cp);
}

KTEST(kmem, S34_list_is_circular_both_ways)
{
    struct kmem_cache *cp = test_ws_make(5);
    struct kmem_slab *sp = &cp->cache_null;

    for (unsigned i = 0; i < 6; i++) {
        KT_TRUE(kmem_slab_prev(kmem_slab_next(sp)) == sp);
        sp = kmem_slab_next(sp);
    }
    KT_TRUE(sp == &cp->cache_null);
    test_free(cp, 0, 5 * PER);
    test_ws_end(cp);
}

KTEST(kmem, S34_freelist_pointer_of_an_exhausted_cache_is_the_sentinel)
{
    struct kmem_cache *cp = test_ws_make(0);

    KT_TRUE(cp->cache_freelist == &cp->cache_null);
    KT_TRUE(cp->cache_null.slab_head == NULL);
    test_alloc(cp, 0, PER);
    KT_TRUE(cp->cache_freelist == &cp->cache_null);
    test_alloc(cp, PER, PER + 1);
    KT_TRUE(cp->cache_freelist == test_slab_of(cp, test_obj[PER]));
    test_free(cp, 0, PER + 1);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    KT_TRUE(cp->cache_freelist == &cp->cache_null);
    KT_TRUE(test_slab(cp, 0) == NULL);
    test_ws_end(cp);
}

KTEST(kmem, S35_partial_slabs_before_free_ones)
{
    struct kmem_cache *cp = test_ws_make(3);
    struct kmem_slab *b = slab(cp, 1);
    void *obj;

    test_free(cp, 2 * PER, 3 * PER);
    test_free(cp, PER, PER + 1);
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    KT_TRUE(kmem_slab_of(obj) == b);
    KT_TRUE(obj == test_obj[PER]);
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    KT_TRUE(kmem_slab_of(obj) == kmem_slab_of(test_obj[2 * PER]));
    kmem_cache_free(cp, obj);
    test_free(cp, 0, 2 * PER);
    test_ws_end(cp);
}

/* No free slab is used while two partial ones have a free buffer. */
KTEST(kmem, S35_free_slabs_are_the_last_resort)
{
    struct kmem_cache *cp = test_ws_make(4);
    struct kmem_slab *d = slab(cp, 3);

    test_free(cp, 3 * PER, 4 * PER);
    test_free(cp, 0, 1);
    test_free(cp, PER, PER + 2);
    for (unsigned i = 0; i < 3; i++) {
        test_obj[4 * PER + i] = kmem_cache_alloc(cp, KM_SLEEP);
        KT_TRUE(kmem_slab_of(test_obj[4 * PER + i]) != d);
        KT_EQ(cp->cache_free_slabs, 1);
    }
    test_alloc(cp, 4 * PER + 3, 4 * PER + 4);
    KT_TRUE(kmem_slab_of(test_obj[4 * PER + 3]) == d);
    KT_EQ(cp->cache_free_slabs, 0);
    test_free(cp, 1, PER);
    test_free(cp, PER + 2, 3 * PER);
    test_free(cp, 4 * PER, 4 * PER + 4);
    test_ws_end(cp);
}

KTEST(kmem, S36a_last_buffer_moves_the_pointer_only)
{
    struct kmem_cache *cp = test_ws_make(3);
    struct kmem_slab *a = slab(cp, 0);
    struct kmem_slab *b = slab(cp, 1);
    struct kmem_slab *c = slab(cp, 2);

    test_free(cp, 0, 1);
    test_free(cp, PER, PER + 1);
    KT_TRUE(listed(cp, c, b, a));
    KT_TRUE(cp->cache_freelist == b);
    test_alloc(cp, PER, PER + 1);
    KT_TRUE(listed(cp, c, b, a)); /* nobody moved */
    KT_TRUE(cp->cache_freelist == a);
    test_alloc(cp, 0, 1);
    KT_TRUE(listed(cp, c, b, a));
    KT_TRUE(cp->cache_freelist == &cp->cache_null);
    test_free(cp, 0, 3 * PER);
    test_ws_end(cp);
}

KTEST(kmem, S36b_slab_no_longer_full_is_the_freelists_head)
{
    struct kmem_cache *cp = test_ws_make(3);
    struct kmem_slab *a = slab(cp, 0);
    struct kmem_slab *b = slab(cp, 1);
    struct kmem_slab *c = slab(cp, 2);

    test_free(cp, 2 * PER, 2 * PER + 3);
    KT_TRUE(cp->cache_freelist == c);
    test_free(cp, PER, PER + 1);
    KT_TRUE(cp->cache_freelist == b);
    KT_TRUE(listed(cp, a, b, c));
    test_free(cp, 0, 1);
    KT_TRUE(cp->cache_freelist == a);
    KT_TRUE(listed(cp, a, b, c));
    /* Only the first free moves the slab. */
    test_free(cp, 2 * PER + 3, 2 * PER + 4);
    KT_TRUE(listed(cp, a, b, c));
    test_free(cp, 1, PER);
    test_free(cp, PER + 1, 2 * PER);
    test_free(cp, 2 * PER + 4, 3 * PER);
    test_ws_end(cp);
}

KTEST(kmem, S36c_free_slab_goes_to_the_tail)
{
    struct kmem_cache *cp = test_ws_make(3);
    struct kmem_slab *a = slab(cp, 0);
    struct kmem_slab *b = slab(cp, 1);
    struct kmem_slab *c = slab(cp, 2);

    test_free(cp, 0, 1);
    test_free(cp, PER, PER + 1);
    test_free(cp, 2 * PER, 2 * PER + 1);
    KT_TRUE(listed(cp, c, b, a));
    test_free(cp, PER + 1, 2 * PER);
    KT_TRUE(listed(cp, c, a, b));
    KT_TRUE(cp->cache_freelist == c);
    test_free(cp, 2 * PER + 1, 3 * PER);
    KT_TRUE(listed(cp, a, b, c));
    KT_TRUE(cp->cache_freelist == a);
    test_free(cp, 1, PER);
    KT_TRUE(listed(cp, b, c, a));
    KT_TRUE(cp->cache_freelist == b);
    test_ws_end(cp);
}

KTEST(kmem, S36d_new_slab_is_the_freelists_head_and_the_lists_tail)
{
    struct kmem_cache *cp = test_ws_make(2);
    struct kmem_slab *c;

    KT_TRUE(cp->cache_freelist == &cp->cache_null);
    test_alloc(cp, 2 * PER, 2 * PER + 1);
    c = slab(cp, 2);
    KT_TRUE(cp->cache_freelist == c);
    KT_TRUE(kmem_slab_prev(&cp->cache_null) == c);
    test_free(cp, 0, 2 * PER + 1);
    test_ws_end(cp);
}

/* One object in a slab: it is full or free, never partial. */
KTEST(kmem, S36_slabs_of_one_object)
{
    struct kmem_cache *cp = kmem_cache_create("t_list", 4096, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_slab *sp[3];

    test_alloc(cp, 0, 3);
    for (size_t i = 0; i < 3; i++)
        sp[i] = test_slab_of(cp, test_obj[i]);
    KT_TRUE(listed(cp, sp[0], sp[1], sp[2]));
    test_free(cp, 0, 1);
    KT_TRUE(listed(cp, sp[1], sp[2], sp[0]));
    KT_TRUE(cp->cache_freelist == sp[0]);
    test_free(cp, 1, 2);
    KT_TRUE(listed(cp, sp[2], sp[0], sp[1]));
    KT_EQ(cp->cache_free_slabs, 2);
    KT_TRUE(kmem_cache_alloc(cp, KM_SLEEP) == test_obj[0]);
    KT_TRUE(listed(cp, sp[2], sp[0], sp[1]));
    KT_TRUE(cp->cache_freelist == sp[1]);
    kmem_cache_free(cp, test_obj[0]);
    test_free(cp, 2, 3);
    KT_EQ(cp->cache_free_slabs, 3);
    TEST_VERIFY(cp);
    test_destroy(cp);
}

/* Destroying a slab unlinks only that slab: links and freelists of all others
 * stay. */
KTEST(kmem, S37_reclaim_touches_one_slab)
{
    struct kmem_cache *cp = test_ws_make(4);
    struct kmem_slab *sp[4];
    struct kmem_bufctl *heads[4];

    for (size_t i = 0; i < 4; i++)
        sp[i] = slab(cp, i);
    test_free(cp, PER, PER + 3);
    test_free(cp, 3 * PER, 4 * PER);
    for (size_t i = 0; i < 3; i++)
        heads[i] = sp[i]->slab_head;
    KT_TRUE(test_slab(cp, 3) == sp[3]);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    KT_EQ(cp->cache_slabs, 3);
    KT_TRUE(listed(cp, sp[0], sp[2], sp[1]));
    for (size_t i = 0; i < 3; i++)
        KT_TRUE(sp[i]->slab_head == heads[i]);
    test_free(cp, 0, PER);
    test_free(cp, PER + 3, 3 * PER);
    test_ws_end(cp);
}

KTEST(kmem, S38_last_freed_is_first_allocated)
{
    struct kmem_cache *cp = test_ws_make(1);

    test_free(cp, 2, 6);
    for (size_t i = 6; i-- > 2;)
        KT_TRUE(kmem_cache_alloc(cp, KM_SLEEP) == test_obj[i]);
    test_free(cp, 0, PER);
    test_ws_end(cp);
}

static void check_ascending(size_t size)
{
    struct kmem_cache *cp = kmem_cache_create("t_fresh", size, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;

    test_alloc(cp, 0, n);
    for (size_t i = 1; i < n; i++)
        KT_TRUE((char *)test_obj[i] ==
                (char *)test_obj[i - 1] + cp->cache_chunk);
    test_free(cp, 0, n);
    test_destroy(cp);
}

KTEST(kmem, S38_fresh_slab_hands_out_ascending_addresses)
{
    check_ascending(24);
    check_ascending(500);
    check_ascending(600);
    check_ascending(3000);
}

/* The paper's list, not a tree by fullness: the slab refilled last is used
 * first, though another has fewer free buffers. */
KTEST(kmem, S39_partial_slabs_are_not_sorted_by_fullness)
{
    struct kmem_cache *cp = test_ws_make(2);
    struct kmem_slab *b = slab(cp, 1);

    test_free(cp, 0, 1);
    test_free(cp, PER, PER + 6);
    KT_TRUE(cp->cache_freelist == b);
    KT_EQ(b->slab_refcnt, 2);
    test_free(cp, 1, PER);
    test_free(cp, PER + 6, 2 * PER);
    test_ws_end(cp);
}

KTEST(kmem, S40_full_partial_and_free_in_the_statistics)
{
    struct kmem_cache *cp = test_ws_make(6);
    struct kmem_cache_stat stat;
    struct kmem_slab_stat s;
    static const uint8_t states[] = {KMEM_SLAB_FULL, KMEM_SLAB_FULL,
                                     KMEM_SLAB_FULL, KMEM_SLAB_PARTIAL,
                                     KMEM_SLAB_FREE, KMEM_SLAB_FREE};

    test_free(cp, 0, 2 * PER);
    test_free(cp, 2 * PER, 2 * PER + 5);
    stat = test_stat(cp);
    KT_EQ(stat.stat_full_slabs, 3);
    KT_EQ(stat.stat_partial_slabs, 1);
    KT_EQ(stat.stat_free_slabs, 2);
    for (size_t i = 0; i < 6; i++) {
        KT_TRUE(kmem_slab_stat(cp, i, &s));
        KT_EQ(s.stat_state, states[i]);
        KT_EQ(s.stat_freelist, i == 3);
    }
    KT_TRUE(!kmem_slab_stat(cp, 6, &s));
    test_free(cp, 2 * PER + 5, 6 * PER);
    test_ws_end(cp);
}
