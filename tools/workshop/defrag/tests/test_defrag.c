/*
 * Partial slabs are sorted, and objects of those with the fewest are evicted.
 *
 * Tests: tools/workshop/defrag/defrag.c
 */
#include "kernel/lib/string.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/kmem_impl.h"
#include "tools/workshop/defrag/defrag.h"
#include "tools/workshop/ktest/ktest.h"

#define SIZE  400 /* 10 objects to a slab */
#define SLABS 5
#define EACH  10

static struct kmem_cache *box;
static void *object[SLABS][EACH];
static unsigned evicted;

/* Slabs with so many objects in use, in the order of their creation. */
static void fill(const unsigned used[SLABS])
{
    box = kmem_cache_create("defrag", SIZE, 0, NULL, NULL);
    KT_REQUIRE(box != NULL);
    KT_REQUIRE(box->cache_slab_chunks == EACH);
    for (unsigned s = 0; s < SLABS; s++)
        for (unsigned i = 0; i < EACH; i++)
            object[s][i] = kmem_cache_alloc(box, KM_SLEEP);
    for (unsigned s = 0; s < SLABS; s++)
        for (unsigned i = used[s]; i < EACH; i++) {
            kmem_cache_free(box, object[s][i]);
            object[s][i] = NULL;
        }
}

static void expect_order(const unsigned want[SLABS])
{
    const struct kmem_slab *sp = &box->cache_null;
    const char *where;

    for (unsigned s = 0; s < SLABS; s++) {
        sp = kmem_slab_next(sp);
        KT_EQ(sp->slab_refcnt, want[s]);
    }
    KT_TRUE(kmem_slab_next(sp) == &box->cache_null);
    KT_TRUE(kmem_cache_verify(box, &where) == NULL);
}

static void end(void)
{
    for (unsigned s = 0; s < SLABS; s++)
        for (unsigned i = 0; i < EACH; i++)
            if (object[s][i] != NULL)
                kmem_cache_free(box, object[s][i]);
    KT_EQ(kmem_cache_destroy(box), 0);
}

KTEST(defrag, the_fullest_partial_slab_comes_first)
{
    static const unsigned used[] = {2, 10, 7, 0, 9};
    static const unsigned sorted[] = {10, 9, 7, 2, 0};
    void *next;

    fill(used);
    defrag_sort(box);
    expect_order(sorted);
    defrag_sort(box);
    expect_order(sorted);
    next = kmem_cache_alloc(box, KM_SLEEP); /* fills the slab with 9 */
    KT_EQ(box->cache_full_slabs, 2);
    kmem_cache_free(box, next);
    end();
}

KTEST(defrag, sorting_takes_no_slab_from_the_full_and_the_free_ones)
{
    static const unsigned full[] = {10, 10, 10, 10, 10};
    static const unsigned none[] = {0, 0, 0, 0, 0};

    fill(full);
    defrag_sort(box);
    expect_order(full);
    end();
    fill(none);
    defrag_sort(box);
    expect_order(none);
    end();
}

/* All objects but the first of each slab may go. */
static bool evict(const void *obj)
{
    for (unsigned s = 0; s < SLABS; s++)
        for (unsigned i = 1; i < EACH; i++)
            if (object[s][i] == obj) {
                kmem_cache_free(box, object[s][i]);
                object[s][i] = NULL;
                evicted++;
                return true;
            }
    return false;
}

KTEST(defrag, objects_of_sparse_slabs_go_first)
{
    static const unsigned used[] = {3, 10, 5, 6, 2};
    const void *room[SLABS * EACH];
    size_t in_use;

    evicted = 0;
    fill(used);
    KT_EQ(defrag(box, evict, false, 2, room, ARRAY_SIZE(room), &in_use), 2);
    KT_TRUE(object[4][1] == NULL); /* of two, then of three */
    KT_TRUE((object[0][1] == NULL) != (object[0][2] == NULL));
    KT_EQ(in_use, 2);
    KT_EQ(defrag(box, evict, false, 99, room, ARRAY_SIZE(room), &in_use), 5);
    KT_EQ(in_use, 3);
    KT_TRUE(object[3][1] != NULL); /* more than half is in use */
    KT_EQ(evicted, 7);
    KT_EQ(defrag(box, evict, true, 99, room, ARRAY_SIZE(room), &in_use), 14);
    KT_EQ(kmem_inuse(box), SLABS);
    end();
}

KTEST(defrag, room_for_fewer_addresses_takes_whole_slabs)
{
    static const unsigned used[] = {3, 4, 0, 0, 5};
    const void *room[8];
    size_t in_use;

    fill(used);
    KT_EQ(defrag(box, evict, false, 99, room, ARRAY_SIZE(room), &in_use), 5);
    KT_EQ(in_use, 2);
    KT_TRUE(object[4][1] != NULL);
    end();
}
