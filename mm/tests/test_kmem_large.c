/*
 * Statements S-29 to S-33: the layout of large objects and its hash table
 * (paper, 3.2.3).
 *
 * Tests: mm/kmem_slab.c, mm/kmem_hash.c
 */
#include "mm/tests/kmem_test.h"

/* ---- layout ------------------------------------------------------------- */

KTEST(kmem, S29_slab_and_bufctls_come_from_their_own_caches)
{
    uint32_t slabs = kmem_inuse(kmem_slab_cache);
    uint32_t bufctls = kmem_inuse(kmem_bufctl_cache);
    struct kmem_cache *cp = kmem_cache_create("t_large", 700, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;
    struct kmem_slab *sp;

    test_alloc(cp, 0, 2 * n + 1);
    KT_EQ(kmem_inuse(kmem_slab_cache) - slabs, 3);
    KT_EQ(kmem_inuse(kmem_bufctl_cache) - bufctls, 3 * n);
    sp = test_slab_of(cp, test_obj[0]);
    KT_REQUIRE(sp != NULL);
    KT_TRUE(test_slab_of(kmem_slab_cache, sp)->slab_cache == kmem_slab_cache);
    test_free(cp, 0, 2 * n + 1);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    KT_EQ(kmem_inuse(kmem_slab_cache), slabs);
    KT_EQ(kmem_inuse(kmem_bufctl_cache), bufctls);
    test_destroy(cp);
}

/* From the first buffer to the end of the slab's pages, no byte changes by
 * allocating and freeing. */
KTEST(kmem, S29_pages_hold_no_data_of_the_allocator)
{
    struct kmem_cache *cp = kmem_cache_create("t_large", 1500, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;
    size_t bytes = cp->cache_slab_pages * PAGE_SIZE;
    size_t changed = 0;
    uint8_t *base;

    test_alloc(cp, 0, n);
    base = test_slab_of(cp, test_obj[0])->slab_base;
    memset(base, 0x3c, bytes);
    test_free(cp, 0, n);
    test_alloc(cp, 0, n);
    test_free(cp, n / 2, n);
    test_alloc(cp, n / 2, n);
    for (size_t i = 0; i < bytes; i++)
        changed += base[i] != 0x3c;
    KT_EQ(changed, 0);
    KT_EQ(cp->cache_slabs, 1);
    test_free(cp, 0, n);
    test_destroy(cp);
}

KTEST(kmem, S29_constructed_large_objects_need_no_extra_word)
{
    KT_EQ(test_setup(512, 0, true)->cache_chunk, 512);
    KT_EQ(test_setup(504, 0, true)->cache_chunk, 504);
    KT_EQ(test_setup(504, 0, true)->cache_slab_chunks, 8);
}

KTEST(kmem, S30_waste_is_at_most_an_eighth)
{
    for (size_t size = 505; size <= 9216; size++) {
        struct kmem_cache *cp = test_setup(size, 0, false);
        size_t bytes = cp->cache_slab_pages * PAGE_SIZE;
        size_t left = bytes - cp->cache_slab_chunks * cp->cache_chunk;

        KT_TRUE((cp->cache_flags & KMF_HASH) != 0);
        KT_LE(8 * left, bytes);
        KT_TRUE(left < cp->cache_chunk);
    }
}

KTEST(kmem, S31_slab_size_table)
{
    static const struct {
        uint16_t size, pages, objects, left;
    } table[] = {
        {512, 1, 8, 0},     {520, 2, 15, 392},  {600, 2, 13, 392},
        {704, 2, 11, 448},  {768, 1, 5, 256},   {1000, 1, 4, 96},
        {1024, 1, 4, 0},    {1200, 3, 10, 288}, {1504, 3, 8, 256},
        {2048, 1, 2, 0},    {2400, 3, 5, 288},  {2560, 2, 3, 512},
        {3000, 3, 4, 288},  {3504, 6, 7, 48},   {5000, 5, 4, 480},
        {6000, 3, 2, 288},  {7168, 7, 4, 0},    {9000, 7, 3, 1672},
        {9216, 7, 3, 1024},
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct kmem_cache *cp = test_setup(table[i].size, 0, false);

        KT_EQ(cp->cache_chunk, table[i].size);
        KT_EQ(cp->cache_slab_pages, table[i].pages);
        KT_EQ(cp->cache_slab_chunks, table[i].objects);
        KT_EQ(test_stat(cp).stat_slab_left, table[i].left);
    }
}

/* ---- the hash table ----------------------------------------------------- */

KTEST(kmem, S32_steps_of_the_rule)
{
    static const struct {
        uint32_t from, buffers, to;
    } steps[] = {
        {64, 0, 64},          {64, 126, 64},        {64, 169, 64},
        {64, 170, 256},       {256, 681, 256},      {256, 682, 1024},
        {1024, 2729, 1024},   {1024, 2730, 4096},   {4096, 10921, 4096},
        {4096, 10922, 16384}, {16384, 5460, 16384}, {16384, 5459, 4096},
        {4096, 1364, 4096},   {4096, 1363, 1024},   {1024, 340, 1024},
        {1024, 339, 256},     {256, 84, 256},       {256, 83, 64},
        {256, 0, 64},         {4096, 0, 64},
    };

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
        if (kmem_hash_want(steps[i].from, steps[i].buffers) != steps[i].to)
            KT_FAIL("%zu buckets, %zu buffers: %zu, want %zu",
                    (size_t)steps[i].from, (size_t)steps[i].buffers,
                    kmem_hash_want(steps[i].from, steps[i].buffers),
                    (size_t)steps[i].to);
}

static size_t buckets(const struct kmem_cache *cp)
{
    return cp->cache_hash_mask + 1;
}

/* Objects of a page, so that every object is a slab. */
static void check_steps(struct kmem_cache *cp, const size_t *grow, size_t steps)
{
    size_t n = 0;
    size_t size = 64;

    KT_EQ(buckets(cp), size);
    for (size_t i = 0; i < steps; i++) {
        test_alloc(cp, n, grow[i] - 1);
        KT_EQ(buckets(cp), size);
        test_alloc(cp, grow[i] - 1, grow[i]);
        n = grow[i];
        size *= 4;
        KT_EQ(buckets(cp), size);
        KT_EQ(test_stat(cp).stat_hash_rescales, i + 1);
        TEST_VERIFY(cp);
    }
    while (steps-- != 0) {
        size_t shrink = (size_t[]){83, 339, 1363, 5459}[steps];

        test_free(cp, shrink + 1, n);
        kmem_cache_reap(cp, KMEM_REAP_ALL);
        KT_EQ(buckets(cp), size);
        test_free(cp, shrink, shrink + 1);
        kmem_cache_reap(cp, KMEM_REAP_ALL);
        size /= 4;
        KT_EQ(buckets(cp), size);
        n = shrink;
        TEST_VERIFY(cp);
    }
    test_free(cp, 0, n);
}

KTEST(kmem, S32_table_grows_and_shrinks_in_steps)
{
    KT_NEEDS(MIB(3));
    static const size_t grow[] = {170, 682, 2730, 10922};
    struct kmem_cache *cp = kmem_cache_create("t_steps", 4096, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    check_steps(cp, grow, TEST_MANY(2, 4));
    test_destroy(cp);
}

static size_t chain(struct kmem_cache *cp, size_t bucket)
{
    size_t n = 0;

    for (const struct kmem_bufctl *b = cp->cache_hash[bucket]; b != NULL;
         b = b->bufctl_next)
        n++;
    return n;
}

KTEST(kmem, S32_only_allocated_buffers_are_in_the_table)
{
    struct kmem_cache *cp = kmem_cache_create("t_table", 600, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = 3 * cp->cache_slab_chunks - 2;
    size_t entries;

    test_alloc(cp, 0, n);
    for (size_t out = n; out-- > 0;) {
        test_free(cp, out, out + 1);
        entries = 0;
        for (size_t i = 0; i < buckets(cp); i++)
            entries += chain(cp, i);
        KT_EQ(entries, out);
        KT_TRUE(test_slab_of(cp, test_obj[out]) == NULL);
    }
    test_destroy(cp);
}

/* The bucket follows from the address alone; a new entry is the first of its
 * chain, unless the table has just been replaced, which reverses chains. */
KTEST(kmem, S32_bucket_is_the_address_without_its_low_bits)
{
    struct kmem_cache *cp = kmem_cache_create("t_bucket", 600, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    KT_EQ(cp->cache_hash_shift, 9);
    KT_EQ(test_setup(512, 0, false)->cache_chunk, 512);
    for (size_t i = 0; i < 200; i++) {
        uint64_t rescales = cp->cache_hash_rescales;
        const struct kmem_bufctl *bcp;

        test_alloc(cp, i, i + 1);
        bcp = cp->cache_hash[((uintptr_t)test_obj[i] >> 9) & (buckets(cp) - 1)];
        while (cp->cache_hash_rescales != rescales && bcp != NULL &&
               bcp->bufctl_addr != test_obj[i])
            bcp = bcp->bufctl_next;
        KT_TRUE(bcp != NULL && bcp->bufctl_addr == test_obj[i]);
    }
    test_free(cp, 0, 200);
    test_destroy(cp);
}

KTEST(kmem, S32_shift_is_the_logarithm_of_the_chunk)
{
    static const uint16_t sizes[][2] = {{512, 9},   {1016, 9},  {1024, 10},
                                        {2047, 11}, {5000, 12}, {9216, 13}};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct kmem_cache *cp =
            kmem_cache_create("t_shift", sizes[i][0], 0, NULL, NULL);

        KT_REQUIRE(cp != NULL);
        KT_EQ(cp->cache_hash_shift, sizes[i][1]);
        test_destroy(cp);
    }
}

KTEST(kmem, S32_chains_stay_short_and_no_address_is_lost)
{
    KT_NEEDS(MIB(2));
    struct kmem_cache *cp = kmem_cache_create("t_chains", 512, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = TEST_MANY(2000, 20000);

    for (size_t i = 0; i < n; i++) {
        test_alloc(cp, i, i + 1);
        if (i % 97 == 0)
            KT_LE(10 * kmem_inuse(cp), 27 * buckets(cp));
    }
    for (size_t i = 0; i < n; i++)
        KT_TRUE(test_slab_of(cp, test_obj[i]) != NULL);
    TEST_VERIFY(cp);
    test_free(cp, 0, n);
    test_destroy(cp);
}

KTEST(kmem, S32_depth_counts_extra_steps_only)
{
    struct kmem_cache *cp = kmem_cache_create("t_depth", 4096, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    uintptr_t bucket;
    size_t steps = 0;

    test_alloc(cp, 0, 100);
    kmem_cache_free(cp, test_obj[99]);
    KT_EQ(test_stat(cp).stat_hash_depth, 0); /* it was the first of its chain */
    for (size_t i = 0; i < 99; i++) {
        const struct kmem_bufctl *b = *kmem_hash_bucket(cp, test_obj[i]);

        bucket = (uintptr_t)test_obj[i];
        for (; KT_PTR(b->bufctl_addr) != bucket; b = b->bufctl_next)
            steps++;
        kmem_cache_free(cp, test_obj[i]);
        KT_EQ(test_stat(cp).stat_hash_depth, steps);
    }
    KT_NE(steps, 0);
    test_destroy(cp);
}

/* No memory for a new table: the old one stays in use, and nothing else
 * fails. */
KTEST(kmem, S32_a_table_that_failed_to_grow_grows_later)
{
    KT_NEEDS(MIB(3));
    struct kmem_cache *cp = kmem_cache_create("t_later", 4096, 0, NULL, NULL);
    size_t n = 680;

    KT_REQUIRE(cp != NULL);
    test_alloc(cp, 0, n);
    KT_EQ(buckets(cp), 256);
    test_flood();
    for (; n < 700; n++) {
        test_flood_release(1);
        test_obj[n] = kmem_cache_alloc(cp, KM_NOSLEEP);
        if (test_obj[n] == NULL)
            break;
    }
    KT_TRUE(n > 682);
    KT_EQ(buckets(cp), 256);
    TEST_VERIFY(cp);
    test_flood_end();
    test_alloc(cp, n, n + 1);
    KT_EQ(buckets(cp), 1024);
    TEST_VERIFY(cp);
    test_free(cp, 0, n + 1);
    test_destroy(cp);
}

/* ---- the flag word ------------------------------------------------------ */

KTEST(kmem, S33_one_word_selects_the_common_case)
{
    struct kmem_cache *small =
        kmem_cache_create("t_small", 64, 0, test_ctor, NULL);
    KT_REQUIRE(small != NULL);
    struct kmem_cache *large = kmem_cache_create("t_large", 640, 0, NULL, NULL);

    KT_REQUIRE(large != NULL);
    KT_EQ(small->cache_flags, 0);
    KT_EQ(large->cache_flags, KMF_HASH);
    KT_EQ(KMF_DEBUG & (KMF_HASH | KMF_DESTROYED), 0);
    test_destroy(small);
    test_destroy(large);
}
