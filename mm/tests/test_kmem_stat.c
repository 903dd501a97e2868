/*
 * Snapshots: the numbers that the shell and the tools print.
 *
 * Tests: mm/inspect/kmem_stat.c
 */
#include "mm/tests/kmem_test.h"

KTEST(kmem_stat, geometry_and_identity)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_stat", 200, 16, test_ctor, test_dtor);
    KT_REQUIRE(cp != NULL);
    struct kmem_cache_stat s = test_stat(cp);
    struct test_geometry g = test_geometry(200, 16, true);

    KT_EQ(strcmp(s.stat_name, "t_stat"), 0);
    KT_EQ(s.stat_kind, KMEM_KIND_NAMED);
    KT_EQ(s.stat_flags, KMEM_STAT_CTOR | KMEM_STAT_DTOR);
    KT_EQ(s.stat_size, 200);
    KT_EQ(s.stat_align, 16);
    KT_EQ(s.stat_chunk, g.chunk);
    KT_EQ(s.stat_slab_pages, g.pages);
    KT_EQ(s.stat_slab_objects, g.objects);
    KT_EQ(s.stat_slab_left, g.left);
    KT_EQ(s.stat_colour_min, 0);
    KT_EQ(s.stat_colour_max, g.colour_max);
    KT_NE(s.stat_colour_max, 0);
    KT_EQ(s.stat_ctor, (uintptr_t)test_ctor);
    KT_EQ(s.stat_dtor, (uintptr_t)test_dtor);
    test_destroy(cp);
}

KTEST(kmem_stat, flags_of_a_large_cache_with_a_supplier)
{
    struct test_supply supply;
    struct kmem_cache *cp;
    struct kmem_cache_stat s;

    cp = test_supply_cache(&supply, 10, 600);
    s = test_stat(cp);
    KT_EQ(s.stat_flags, KMEM_STAT_LARGE | KMEM_STAT_SUPPLY);
    KT_EQ(s.stat_hash_size, 64);
    KT_EQ(s.stat_hash_bytes, TEST_WORD == 4 ? 0 : 4096);
    KT_EQ(s.stat_mem, s.stat_hash_bytes);
    test_destroy(cp);
}

KTEST(kmem_stat, objects_slabs_and_traffic)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_stat", 200, 0, test_ctor, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;
    struct kmem_cache_stat s;

    KT_EQ(test_stat(cp).stat_flags, KMEM_STAT_CTOR);
    KT_EQ(test_stat(cp).stat_modes, 0);
    test_alloc(cp, 0, 3 * n + 1);
    test_free(cp, n, 2 * n);
    s = test_stat(cp);
    KT_EQ(s.stat_inuse, 2 * n + 1);
    KT_EQ(s.stat_trapped, 0);
    KT_EQ(s.stat_total, 4 * n);
    KT_EQ(s.stat_slabs, 4);
    KT_EQ(s.stat_full_slabs, 2);
    KT_EQ(s.stat_partial_slabs, 1);
    KT_EQ(s.stat_free_slabs, 1);
    KT_EQ(s.stat_slab_bytes, 4 * 4096);
    KT_EQ(s.stat_mem, 4 * 4096);
    KT_EQ(s.stat_max_slabs, 4);
    KT_EQ(s.stat_allocs, 3 * n + 1);
    KT_EQ(s.stat_frees, n);
    KT_EQ(s.stat_fails, 0);
    KT_EQ(s.stat_slab_creates, 4);
    KT_EQ(s.stat_ctors, 4 * n);
    KT_EQ(s.stat_dtors, 0);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    s = test_stat(cp);
    KT_EQ(s.stat_slabs, 3);
    KT_EQ(s.stat_max_slabs, 4);
    KT_EQ(s.stat_slab_destroys, 1);
    KT_EQ(s.stat_dtors, 0); /* it has none */
    test_free(cp, 0, n);
    test_free(cp, 2 * n, 3 * n + 1);
    test_destroy(cp);
}

/* The counts of the hot path are 32 bits wide; the totals are not. */
KTEST(kmem_stat, counts_go_beyond_32_bits)
{
    struct kmem_cache *cp = kmem_cache_create("t_stat", 200, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    uint32_t near = 0xfffffff0u;

    test_alloc(cp, 0, 1);
    test_free(cp, 0, 1);
    KT_EQ(test_stat(cp).stat_flags, 0);
    cp->cache_allocs_total = cp->cache_allocs = near;
    cp->cache_frees_total = cp->cache_frees = near;
    for (unsigned i = 0; i < 100; i++) {
        test_alloc(cp, 0, 2);
        KT_EQ(kmem_inuse(cp), 2);
        test_free(cp, 0, 2);
    }
    KT_EQ(test_stat(cp).stat_allocs, 0xfffffff0ull + 200);
    KT_EQ(test_stat(cp).stat_frees, 0xfffffff0ull + 200);
    for (unsigned i = 0; i < 2; i++) { /* more than 2^32 without a snapshot */
        cp->cache_allocs += 0xc0000000u;
        cp->cache_frees += 0xc0000000u;
        kmem_update();
    }
    KT_EQ(test_stat(cp).stat_allocs, 0xfffffff0ull + 200 + 0x180000000ull);
    KT_EQ(test_stat(cp).stat_frees, 0xfffffff0ull + 200 + 0x180000000ull);
    TEST_VERIFY(cp);
    test_destroy(cp);
}

KTEST(kmem_stat, caches_are_listed_in_creation_order)
{
    struct kmem_cache *a = kmem_cache_create("t_a", 8, 0, NULL, NULL);
    struct kmem_cache *b = kmem_cache_create("t_b", 8, 0, NULL, NULL);
    size_t own = 0;

    KT_REQUIRE(a != NULL && b != NULL);
    KT_EQ(strcmp(kmem_cache_first()->cache_name, "kmem_cache"), 0);
    KT_TRUE(kmem_cache_next(a) == b);
    KT_TRUE(kmem_cache_next(b) == NULL);
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp)) {
        own += test_stat(cp).stat_kind == KMEM_KIND_INTERNAL;
        KT_TRUE(kmem_cache_find(cp->cache_name) == cp);
    }
    KT_EQ(own, 5 + MM_MAGAZINES);
    test_destroy(a);
    KT_TRUE(kmem_cache_find("t_b") == b);
    KT_TRUE(kmem_cache_find("t_a") == NULL);
    test_destroy(b);
}

KTEST(kmem_stat, slab_map_has_a_bit_for_each_allocated_object)
{
    struct kmem_cache *cp = kmem_cache_create("t_stat", 300, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;
    struct kmem_slab_stat slab;
    struct kmem_slab *sp;

    test_alloc(cp, 0, n);
    KT_TRUE(kmem_slab_stat(cp, 0, &slab));
    for (size_t i = 0; i < n; i++)
        KT_TRUE(kmem_slab_used(&slab, i));
    test_free(cp, 2, 4);
    test_free(cp, 9, 10);
    KT_TRUE(kmem_slab_stat(cp, 0, &slab));
    for (size_t i = 0; i < n; i++)
        KT_EQ(kmem_slab_used(&slab, i), i != 2 && i != 3 && i != 9);
    sp = test_slab(cp, 0);
    sp->slab_cache = NULL; /* damaged: all seem allocated */
    KT_TRUE(kmem_slab_stat(cp, 0, &slab));
    for (size_t i = 0; i < n; i++)
        KT_TRUE(kmem_slab_used(&slab, i));
    sp->slab_cache = cp;
    test_free(cp, 0, 2);
    test_free(cp, 4, 9);
    test_free(cp, 10, n);
    test_destroy(cp);
}

KTEST(kmem_stat, slab_rows)
{
    struct kmem_cache *cp = kmem_cache_create("t_stat", 600, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;
    struct kmem_slab_stat s;

    test_alloc(cp, 0, n + 2);
    KT_TRUE(kmem_slab_stat(cp, 1, &s));
    KT_EQ(s.stat_slab, KT_PTR(test_slab_of(cp, test_obj[n])));
    KT_EQ(s.stat_base, KT_PTR(test_obj[n]) & ~(uintptr_t)PAGE_MASK);
    KT_EQ(s.stat_bytes, 2 * 4096);
    KT_EQ(s.stat_colour, 8);
    KT_EQ(s.stat_refcnt, 2);
    KT_EQ(s.stat_chunks, n);
    KT_EQ(s.stat_state, KMEM_SLAB_PARTIAL);
    KT_TRUE(s.stat_freelist);
    KT_EQ(test_stat(cp).stat_slab_bytes, 2 * s.stat_bytes);
    KT_TRUE(!kmem_slab_stat(cp, 2, &s));
    KT_TRUE(!kmem_slab_stat(cp, SIZE_MAX, &s));
    test_free(cp, 0, n + 2);
    test_destroy(cp);
}

KTEST(kmem_stat, hash_histogram)
{
    KT_NEEDS(MIB(1));
    struct kmem_cache *cp = kmem_cache_create("t_stat", 4096, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_cache *small = kmem_cache_create("t_small", 64, 0, NULL, NULL);
    size_t h[4];
    size_t wide[40];
    size_t longest;
    size_t entries = 0;
    size_t buckets = 0;

    KT_REQUIRE(small != NULL);
    test_alloc(cp, 0, 120);
    longest = kmem_hash_stat(cp, wide, 40);
    for (size_t i = 0; i < 40; i++) {
        entries += i * wide[i];
        buckets += wide[i];
        KT_TRUE(i <= longest || wide[i] == 0);
    }
    KT_EQ(entries, 120);
    KT_EQ(buckets, 64);
    KT_TRUE(longest < 40 && wide[longest] != 0);
    KT_EQ(kmem_hash_stat(cp, h, 2), longest);
    KT_EQ(h[0], wide[0]);
    KT_EQ(h[1], 64 - wide[0]);
    memset(wide, 0, sizeof(wide));
    KT_EQ(kmem_hash_stat(cp, wide, 0), longest);
    for (size_t i = 0; i < 40; i++)
        KT_EQ(wide[i], 0);
    KT_EQ(kmem_hash_stat(small, h, 4), 0);
    KT_EQ(h[0] + h[1] + h[2] + h[3], 0);
    test_free(cp, 0, 120);
    test_destroy(cp);
    test_destroy(small);
}

/* The place of an address: in an object, a gap, a header, or none. */
static void check_whose(size_t size)
{
    struct kmem_cache *cp = kmem_cache_create("t_whose", size, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;
    struct kmem_slab_stat s = {0};
    size_t index;
    char *base;

    test_alloc(cp, 0, 2 * n); /* the second slab has a colour */
    for (size_t i = 0; i < n; i++) {
        char *obj = test_obj[n + i];

        KT_TRUE(kmem_slab_lookup(obj, &s, &index) == cp);
        KT_EQ(index, i);
        KT_EQ(s.stat_slab, KT_PTR(test_slab_of(cp, obj)));
        KT_TRUE(kmem_slab_lookup(obj + cp->cache_chunk - 1, &s, &index) == cp);
        KT_EQ(index, i);
    }
    base = (char *)s.stat_base;
    KT_TRUE(kmem_slab_lookup(base, &s, &index) == cp);
    KT_EQ(index, SIZE_MAX); /* the colour's gap */
    KT_TRUE(kmem_slab_lookup(base + s.stat_bytes - 1, &s, &index) == cp);
    KT_EQ(index, SIZE_MAX); /* tail or header */
    test_free(cp, 0, 2 * n);
    test_destroy(cp);
    KT_TRUE(kmem_slab_lookup(base, &s, &index) != cp);
}

KTEST(kmem_stat, cache_and_slab_of_an_address)
{
    struct kmem_slab_stat s;
    size_t index;

    check_whose(200);
    check_whose(1500);
    KT_TRUE(kmem_slab_lookup(mm_phys_to_virt(0), &s, &index) == NULL);
    KT_TRUE(kmem_slab_lookup(mm_phys_to_virt(page_count << PAGE_SHIFT), &s,
                             &index) == NULL);
}

/* Snapshots of broken structures end, and report what they can. */
KTEST(kmem_stat, broken_structures_are_survived)
{
    struct kmem_cache *cp = kmem_cache_create("t_broken", 4096, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_bufctl *last;
    struct kmem_slab_stat s;
    size_t h[2];
    size_t index;
    void *lost;

    test_alloc(cp, 0, 3);
    lost = kmem_getpages(1, PAGE_SLAB, cp); /* marked, but no slab of it */
    KT_REQUIRE(lost != NULL);
    cp->cache_slabs = 100; /* the list is shorter than its count */
    KT_TRUE(!kmem_slab_stat(cp, 50, &s));
    KT_TRUE(kmem_slab_lookup(test_obj[2], &s, &index) == cp);
    KT_TRUE(kmem_slab_lookup(lost, &s, &index) == NULL);
    cp->cache_slabs = 3;
    KT_TRUE(kmem_slab_lookup(lost, &s, &index) == NULL);
    kmem_freepages(lost, 1);
    last = *kmem_hash_bucket(cp, test_obj[0]);
    while (last->bufctl_next != NULL) /* the places of the three vary */
        last = last->bufctl_next;
    last->bufctl_next = last;
    KT_EQ(kmem_hash_stat(cp, h, 2), 4); /* one more than there can be */
    last->bufctl_next = NULL;
    TEST_VERIFY(cp);
    test_free(cp, 0, 3);
    test_destroy(cp);
}

KTEST(kmem_stat, sums_equal_the_supplier)
{
    KT_NEEDS(MIB(1));
    struct kmem_cache *cp = kmem_cache_create("t_sum", 4096, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_oversize_stat oversize;
    struct segkmem_stat seg;
    size_t bytes = 0;
    void *buf;

    test_alloc(cp, 0, 200);
    buf = kmem_alloc(50000, KM_SLEEP);
    for (struct kmem_cache *c = kmem_cache_first(); c != NULL;
         c = kmem_cache_next(c))
        bytes += test_stat(c).stat_mem;
    kmem_oversize_stat(&oversize);
    segkmem_stat(&seg);
    KT_EQ(bytes / PAGE_SIZE + oversize.stat_pages, seg.stat_pages);
    KT_EQ(seg.stat_pages, seg.stat_use[PAGE_SLAB] + seg.stat_use[PAGE_HASH] +
                              seg.stat_use[PAGE_OVERSIZE]);
    kmem_free(buf, 50000);
    test_free(cp, 0, 200);
    test_destroy(cp);
}
