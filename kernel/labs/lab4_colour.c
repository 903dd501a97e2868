/*
 * Tests of lab 4: colours (task 4.7), and all of it together.
 */
#include "kernel/labs/lab4_common.h"
#include "mm/kmem_stat.h"

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

/* The colours of the slabs of a new cache, in the order in which they come. */
static void check_sequence(size_t size, size_t align, size_t colours)
{
    struct kmem_cache *cp = lab4_cache(size, align);
    struct kmem_slab *slab[SLABS];

    lab4_pages.limit = SLABS;
    for (size_t i = 0; i < SLABS; i++) {
        size_t want = i % colours * align;

        if (i == colours + 1) { /* what fails takes no colour */
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
    check_sequence(200, 8, 9);
    check_sequence(200, 64, 4);
    check_sequence(64, 8, 5);
}

/* ---- everything --------------------------------------------------------- */

#define OBJECTS 400

static size_t unconstructed;

/* An object's first word is its own address, as long as it is constructed. */
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
    for (size_t i = 0; i < OBJECTS; i++) {
        const uint8_t *byte = obj[i];

        KT_EQ(byte[size - 1], (uint8_t)i);
        kmem_cache_free(cp, obj[i]);
    }
}

LAB_TEST(4, whole, LAB_UP)
{
    static const uint16_t sizes[] = {20, 200, 504, 700, 3000};

    unconstructed = 0;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct kmem_cache *cp =
            kmem_cache_create("lab4", sizes[i], 0, make, end);
        struct kmem_cache_stat st;

        KT_REQUIRE(cp != NULL);
        churn(cp, sizes[i]);
        kmem_cache_stat(cp, &st);
        KT_EQ(st.stat_inuse, 0);
        if (sizes[i] == 200 && st.stat_colour_next == 0)
            KT_FAIL("after %zu slabs the next one would have colour 0",
                    st.stat_slabs);
        KT_EQ(kmem_cache_destroy(cp), 0);
    }
    KT_EQ(unconstructed, 0);
}
