/*
 * Tests of lab 4: colours (task 4.7), and all of it together.
 */
#include "docs/labs/04-caches/tests/common.h"
#include "mm/debug/debug.h"
#include "mm/inspect/kmem_stat.h"

#define SLABS 20

/* ---- 4.7 colours -------------------------------------------------------- */

LAB_TEST(4, colours, LAB_PAGES)
{
    static const struct {
        uint16_t size, align, most;
    } table[] = {
        {200, 8, 64},   {128, 8, 96},    {256, 8, 224}, {200, 16, 112},
        {200, 64, 192}, {1000, 8, 96},   {512, 8, 0},   {3000, 8, 288},
        {300, 8, 112},  {1200, 64, 128},
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        size_t most =
            lab4_cache(table[i].size, table[i].align)->cache_colour_max;

        if (most != table[i].most)
            KT_FAIL("objects of %u bytes, aligned to %u: the largest colour is "
                    "%zu, want %u",
                    table[i].size, table[i].align, most, table[i].most);
    }
}

/* The colours of a new cache's slabs, in order, from `front` on. */
static void check_sequence(size_t size, size_t align, size_t front,
                           size_t colours)
{
    struct kmem_cache *cp = lab4_cache(size, align);
    struct kmem_slab *slab[SLABS];

    lab4_pages.limit = SLABS;
    cp->cache_colour_min = cp->cache_colour = front;
    for (size_t i = 0; i < SLABS; i++) {
        size_t want = front + i % colours * align;

        if (i == colours + 1) { /* a failure takes no colour */
            lab4_pages.limit = i;
            KT_TRUE(!kmem_cache_grow(cp));
            lab4_pages.limit = SLABS;
        }
        KT_REQUIRE(kmem_cache_grow(cp));
        slab[i] = kmem_slab_prev(&cp->cache_null);
        if (slab[i]->slab_colour != want) {
            KT_FAIL("%zu bytes, aligned to %zu: slab %zu has colour %u, want "
                    "%zu",
                    size, align, i, (unsigned)slab[i]->slab_colour, want);
            return;
        }
    }
    lab4_pages_back(slab, SLABS);
}

LAB_TEST(4, colour_sequence, LAB_PAGES)
{
    check_sequence(200, 8, 0, 9);
    check_sequence(200, 64, 0, 4);
    check_sequence(64, 8, 0, 5);
    check_sequence(200, 8, 24, 6);
}

/* ---- everything --------------------------------------------------------- */

#define OBJECTS 400
#define BUCKETS 256 /* of the hash table of so many objects */

static size_t unconstructed;

/* An object's first word is its own address while it is constructed. */
static void make(void *obj, size_t size)
{
    memset(obj, 0, size);
    *(void **)obj = obj;
}

static void end(void *obj, size_t size)
{
    (void)size;
    unconstructed += *(void **)obj != obj;
}

/* Allocates OBJECTS, frees every second, allocates these again, frees all. */
static void churn(struct kmem_cache *cp, size_t size)
{
    static void *obj[OBJECTS];
    const char *where;
    const char *broken;

    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < OBJECTS; i += 1 + round) {
            obj[i] = kmem_cache_alloc(cp, KM_SLEEP);
            unconstructed += *(void **)obj[i] != obj[i];
            memset((char *)obj[i] + sizeof(void *), (int)i,
                   size - sizeof(void *));
        }
        for (size_t i = 0; round == 0 && i < OBJECTS; i += 2)
            kmem_cache_free(cp, obj[i]);
    }
    broken = kmem_cache_verify(cp, &where);
    if (broken != NULL)
        KT_FAIL("the cache is broken: %s: %s", broken, where);
    if ((cp->cache_flags & KMF_HASH) != 0 && cp->cache_hash_mask + 1 < BUCKETS)
        KT_FAIL("%u objects are allocated; the hash table has %zu buckets, "
                "want %u",
                OBJECTS, cp->cache_hash_mask + 1, BUCKETS);
    for (size_t i = 0; i < OBJECTS; i++) {
        const uint8_t *byte = obj[i];

        KT_EQ(byte[size - 1], (uint8_t)i);
        kmem_cache_free(cp, obj[i]);
    }
}

/* Creates, uses and destroys a cache in these debugging modes. In mode P, in
 * which objects are constructed with each allocation, a panic says if one was
 * changed before or after it. */
static void live_and_die(size_t size, unsigned modes)
{
    struct kmem_cache *cp = kmem_cache_create("lab4", size, 0, make, end);
    struct kmem_cache_stat st;

    KT_REQUIRE(cp != NULL);
    KT_REQUIRE(modes == 0 || kmem_debug_set(cp, modes) == 0);
    churn(cp, size);
    kmem_cache_stat(cp, &st);
    KT_EQ(st.stat_inuse, 0);
    if (size == 200 && modes == 0 && st.stat_colour_next == 0)
        KT_FAIL("after %zu slabs the next one would have colour 0",
                st.stat_slabs);
    KT_EQ(kmem_cache_destroy(cp), 0);
}

/* The first request finds no pages; the caller chooses to wait. */
static void *no_pages_yet(size_t pages, void *arg)
{
    size_t *calls = arg;

    return ++*calls == 1 ? NULL : kmem_getpages(pages, PAGE_OVERSIZE, NULL);
}

static void pages_back(void *base, size_t pages, void *arg)
{
    (void)arg;
    kmem_freepages(base, pages);
}

static void wait_and_get(void)
{
    size_t calls = 0;
    const struct kmem_supplier late = {
        .getpages = no_pages_yet, .freepages = pages_back, .arg = &calls};
    struct kmem_cache *cp =
        kmem_cache_create_from("lab4_late", 200, 0, NULL, NULL, &late);
    void *obj;

    KT_REQUIRE(cp != NULL);
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    if (obj == NULL)
        KT_FAIL("an allocation with KM_SLEEP gave NULL after it had waited "
                "for memory: there may be a buffer now, or still none");
    else
        kmem_cache_free(cp, obj);
    KT_EQ(kmem_cache_destroy(cp), 0);
}

LAB_TEST(4, whole, LAB_UP)
{
    static const uint16_t sizes[] = {20, 200, 504, 700, 3000};

    unconstructed = 0;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        live_and_die(sizes[i], 0);
        live_and_die(sizes[i], KMF_POISON);
    }
    KT_EQ(unconstructed, 0);
    wait_and_get();
}
