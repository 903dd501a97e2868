/*
 * Statements S-15 to S-22: the layout of small objects (paper, 3.2.2).
 *
 * Tests: mm/kmem_slab.c
 */
#include "mm/tests/kmem_test.h"

KTEST(kmem, S15_small_below_an_eighth_of_a_page)
{
    KT_TRUE(!kmem_is_large(504, 0, false));
    KT_TRUE(kmem_is_large(505, 0, false)); /* its chunk is 512 */
    KT_TRUE(kmem_is_large(511, 0, false));
    KT_TRUE(kmem_is_large(512, 0, false));
    KT_TRUE((test_setup(504, 0, false)->cache_flags & KMF_HASH) == 0);
    KT_TRUE((test_setup(512, 0, false)->cache_flags & KMF_HASH) != 0);
}

KTEST(kmem, S15_the_chunk_is_compared)
{
    KT_TRUE(!kmem_is_large(504 - TEST_WORD, 0, true));
    KT_TRUE(kmem_is_large(504 - TEST_WORD + 1, 0, true));
    KT_TRUE(kmem_is_large(504, 0, true)); /* the extra word makes it 512 */
    KT_TRUE(!kmem_is_large(384, 128, false));
    KT_TRUE(kmem_is_large(385, 128, false));
    KT_TRUE(kmem_is_large(257, 256, false));
    KT_TRUE(kmem_is_large(8, 512, false));
}

/* All caches of small objects up to the limit, by their objects per slab. */
KTEST(kmem, S17_objects_per_slab)
{
    for (size_t size = 1; size <= 504; size++) {
        struct kmem_cache *cp = test_setup(size, 0, false);
        size_t chunk = (size + 7) / 8 * 8;

        KT_EQ(cp->cache_chunk, chunk);
        KT_EQ(cp->cache_slab_pages, 1);
        KT_EQ(cp->cache_slab_chunks, (4096 - TEST_H) / chunk);
    }
    if (TEST_H == 32)
        KT_EQ(test_setup(200, 0, false)->cache_slab_chunks, 20);
}

KTEST(kmem, S16_header_is_the_end_of_the_page)
{
    static const size_t sizes[] = {8, 24, 100, 200, 504};

    for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
        struct kmem_cache *cp =
            kmem_cache_create("t_header", sizes[k], 0, NULL, NULL);
        KT_REQUIRE(cp != NULL);
        size_t n = 2 * cp->cache_slab_chunks;

        test_alloc(cp, 0, n);
        for (size_t i = 0; i < n; i++) {
            uintptr_t addr = (uintptr_t)test_obj[i];
            struct kmem_slab *sp =
                (struct kmem_slab *)((addr & ~(uintptr_t)4095) + 4096 - TEST_H);

            KT_TRUE(sp->slab_cache == cp);
            KT_EQ(KT_PTR(sp->slab_base), addr & ~(uintptr_t)4095);
            KT_TRUE(sp == kmem_slab_of(test_obj[i]));
            KT_TRUE(sp == kmem_slab_of((char *)test_obj[i] + sizes[k] - 1));
            KT_LE(addr + cp->cache_chunk, (uintptr_t)sp);
        }
        test_free(cp, 0, n);
        test_destroy(cp);
    }
}

/* Walks the links of a fresh slab: they lead through every buffer once. */
KTEST(kmem, S18_free_buffers_are_their_own_control_blocks)
{
    struct kmem_cache *cp = kmem_cache_create("t_links", 40, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    uint32_t bufctls = kmem_inuse(kmem_bufctl_cache);
    uint32_t slabs = kmem_inuse(kmem_slab_cache);
    const struct kmem_bufctl *bcp;
    struct kmem_slab *sp;
    size_t i = 1;

    test_alloc(cp, 0, 1);
    sp = test_slab_of(cp, test_obj[0]);
    for (bcp = sp->slab_head; bcp != NULL; bcp = bcp->bufctl_next, i++) {
        KT_TRUE((const char *)bcp ==
                (char *)sp->slab_base + i * 40 + 40 - TEST_WORD);
        KT_TRUE(kmem_bufctl_buf(cp, bcp) == kmem_slab_chunk(sp, i));
    }
    KT_EQ(i, sp->slab_chunks);
    KT_EQ(kmem_inuse(kmem_bufctl_cache), bufctls);
    KT_EQ(kmem_inuse(kmem_slab_cache), slabs);
    test_free(cp, 0, 1);
    test_destroy(cp);
}

KTEST(kmem, S19_only_the_last_word_of_a_free_buffer_changes)
{
    struct kmem_cache *cp = kmem_cache_create("t_last", 100, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t chunk = cp->cache_chunk;
    uint8_t *a;
    uint8_t *b;
    void *link;

    test_alloc(cp, 0, 2);
    a = test_obj[0];
    b = test_obj[1];
    memset(a, 0x11, chunk);
    memset(b, 0x22, chunk);
    kmem_cache_free(cp, a);
    kmem_cache_free(cp, b);
    for (size_t i = 0; i < chunk - TEST_WORD; i++) {
        KT_EQ(a[i], 0x11);
        KT_EQ(b[i], 0x22);
    }
    link = *(void **)(b + chunk - TEST_WORD);
    KT_TRUE(link == a + chunk - TEST_WORD);
    link = *(void **)(a + chunk - TEST_WORD);
    KT_TRUE(link == (uint8_t *)test_obj[1] + 2 * chunk - TEST_WORD);
    test_destroy(cp);
}

/* An allocated buffer keeps every byte when its neighbours are used. */
KTEST(kmem, S19_neighbours_of_a_live_object_do_not_touch_it)
{
    struct kmem_cache *cp = kmem_cache_create("t_live", 16, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    uint8_t *mid;

    test_alloc(cp, 0, 3);
    mid = test_obj[1];
    memset(mid, 0x77, 16);
    for (unsigned i = 0; i < 10; i++) {
        test_free(cp, 0, 1);
        test_free(cp, 2, 3);
        test_alloc(cp, 0, 1);
        test_alloc(cp, 2, 3);
    }
    for (size_t i = 0; i < 16; i++)
        KT_EQ(mid[i], 0x77);
    test_free(cp, 0, 3);
    test_destroy(cp);
}

KTEST(kmem, S20_constructed_objects_have_an_extra_word)
{
    for (size_t align = 8; align <= 64; align *= 2) {
        for (size_t size = 1; size + TEST_WORD <= 504; size++) {
            size_t chunk = (size + TEST_WORD + align - 1) / align * align;

            if (chunk < 512)
                KT_EQ(test_setup(size, align, true)->cache_chunk, chunk);
        }
    }
}

KTEST(kmem, S20_a_destructor_alone_needs_the_word_too)
{
    struct kmem_cache *cp = kmem_cache_create("t_dtor", 24, 0, NULL, test_dtor);

    KT_REQUIRE(cp != NULL);
    KT_EQ(cp->cache_chunk, 32);
    test_destroy(cp);
}

static void check_kept(size_t size)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_kept", size, 0, test_ctor, test_dtor);

    KT_REQUIRE(cp != NULL);
    test_alloc(cp, 0, 2);
    test_free(cp, 0, 1);
    KT_TRUE(test_is_constructed(test_obj[0], size));
    KT_TRUE(kmem_cache_alloc(cp, KM_SLEEP) == test_obj[0]);
    KT_TRUE(test_is_constructed(test_obj[0], size));
    test_free(cp, 0, 2);
    test_destroy(cp);
}

KTEST(kmem, S20_the_link_never_overlaps_constructed_state)
{
    test_constructed_reset();
    for (size_t size = 1; size <= 511; size++)
        check_kept(size);
    KT_EQ(test_bad, 0);
}

struct row {
    uint16_t size, chunk, objects, left, colours;
    uint16_t c_chunk, c_objects, c_left; /* constructed */
};

static void check_row(const struct row *r)
{
    struct kmem_cache *cp = test_setup(r->size, 0, false);

    KT_EQ(cp->cache_chunk, r->chunk);
    KT_EQ(cp->cache_slab_chunks, r->objects);
    KT_EQ(test_stat(cp).stat_slab_left, r->left);
    KT_EQ(cp->cache_colour_max / 8 + 1, r->colours);
    if (r->c_chunk == 0)
        return;
    cp = test_setup(r->size, 0, true);
    KT_EQ(cp->cache_chunk, r->c_chunk);
    KT_EQ(cp->cache_slab_chunks, r->c_objects);
    KT_EQ(test_stat(cp).stat_slab_left, r->c_left);
}

/* The table as it is printed; on other machines only the rules are tested. */
KTEST(kmem, S21_geometry_table)
{
    static const struct row table[] = {
        {8, 8, 508, 0, 1, 16, 254, 0},
        {16, 16, 254, 0, 1, 24, 169, 8},
        {24, 24, 169, 8, 2, 32, 127, 0},
        {32, 32, 127, 0, 1, 40, 101, 24},
        {64, 64, 63, 32, 5, 72, 56, 32},
        {96, 96, 42, 32, 5, 104, 39, 8},
        {100, 104, 39, 8, 2, 104, 39, 8},
        {128, 128, 31, 96, 13, 136, 29, 120},
        {192, 192, 21, 32, 5, 200, 20, 64},
        {200, 200, 20, 64, 9, 208, 19, 112},
        {256, 256, 15, 224, 29, 264, 15, 104},
        {300, 304, 13, 112, 15, 304, 13, 112},
        {384, 384, 10, 224, 29, 392, 10, 144},
        {400, 400, 10, 64, 9, 408, 9, 392},
        {448, 448, 9, 32, 5, 456, 8, 416},
        {504, 504, 8, 32, 5, 0, 0, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct test_geometry g = test_geometry(table[i].size, 0, false);
        struct kmem_cache *cp = test_setup(table[i].size, 0, false);

        KT_EQ(cp->cache_slab_chunks, g.objects);
        KT_EQ(cp->cache_colour_max, g.colour_max);
        if (TEST_H == 32 && TEST_WORD == 4)
            check_row(&table[i]);
    }
    KT_TRUE((test_setup(504, 0, true)->cache_flags & KMF_HASH) != 0);
}

KTEST(kmem, S22_geometry_with_a_header_of_56_bytes)
{
    static const struct row table[] = {
        {200, 200, 20, 40, 6, 0, 0, 0},
        {128, 128, 31, 72, 10, 0, 0, 0},
        {256, 256, 15, 200, 26, 0, 0, 0},
        {64, 64, 63, 8, 2, 0, 0, 0},
    };

    KT_TRUE(TEST_H == (TEST_WORD == 4 ? 32 : 56));
    for (size_t i = 0; i < ARRAY_SIZE(table) && TEST_H == 56; i++)
        check_row(&table[i]);
}

/* Every size and alignment of both layouts: the cache has the geometry that the
 * rules give. */
static void check_geometry(size_t size, size_t align, bool constructed)
{
    struct kmem_cache *cp = test_setup(size, align, constructed);
    struct test_geometry g = test_geometry(size, align, constructed);
    struct kmem_cache_stat stat = test_stat(cp);
    size_t bytes = g.pages * 4096;

    if (((cp->cache_flags & KMF_HASH) != 0) == g.large &&
        cp->cache_chunk == g.chunk && cp->cache_slab_pages == g.pages &&
        cp->cache_slab_chunks == g.objects &&
        cp->cache_colour_max == g.colour_max && stat.stat_slab_left == g.left &&
        (!g.large || 8 * g.left <= bytes) &&
        g.objects * g.chunk + g.left + (g.large ? 0 : TEST_H) == bytes)
        return;
    KT_FAIL("size %zu, align %zu%s: chunk %zu, %zu pages, %zu objects, %zu "
            "left, colour to %zu; want %zu, %zu, %zu, %zu, %zu",
            size, align, constructed ? ", constructed" : "", cp->cache_chunk,
            cp->cache_slab_pages, cp->cache_slab_chunks, stat.stat_slab_left,
            cp->cache_colour_max, g.chunk, g.pages, g.objects, g.left,
            g.colour_max);
}

KTEST(kmem, predicted_geometry_is_actual)
{
    size_t step = TEST_MANY(7, 1);

    for (size_t align = 8; align <= PAGE_SIZE; align *= 2) {
        for (size_t size = 1; size <= 9216; size += size < 600 ? 1 : step) {
            check_geometry(size, align, false);
            if (size <= 520)
                check_geometry(size, align, true);
        }
    }
}
