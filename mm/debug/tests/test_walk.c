/*
 * Walks over a cache's bufctls and hash chains, and the debugging modes where
 * memory is short or more than one thing is broken.
 *
 * Tests: mm/debug/walk.c, mm/debug/leak.c, mm/kmem_walk.c
 */
#include "mm/debug/tests/debug_test.h"

/* ---- bufctls and hash chains -------------------------------------------- */

/* Every object in use is in the table exactly once; free ones are not. */
static void check_entries(struct kmem_cache *cp, size_t n)
{
    size_t entries = 0;
    bool bad;

    for (size_t bucket = 0; bucket <= cp->cache_hash_mask; bucket++)
        for (size_t i = 0;; i++) {
            const struct kmem_bufctl *bcp =
                kmem_hash_entry(cp, bucket, i, &bad);

            KT_TRUE(!bad);
            if (bcp == NULL)
                break;
            entries++;
        }
    KT_EQ(entries, n);
    KT_TRUE(kmem_hash_entry(cp, cp->cache_hash_mask + 1, 0, &bad) == NULL);
    KT_TRUE(!bad);
}

static void check_bufctls(const char *letters, size_t size)
{
    struct kmem_cache *cp = test_debug(letters, size, 0, false);
    const struct kmem_bufctl *bufctl[64];
    bool hashed = (cp->cache_flags & KMF_HASH) != 0;
    bool bad;
    size_t chunks;
    size_t found = 0;

    test_alloc(cp, 0, 5);
    chunks = kmem_slab_bufctls(cp, 0, bufctl, ARRAY_SIZE(bufctl));
    KT_EQ(chunks, cp->cache_slab_chunks);
    for (size_t i = 0; i < MIN(chunks, ARRAY_SIZE(bufctl)); i++) {
        found += bufctl[i] != NULL;
        if (bufctl[i] != NULL)
            KT_TRUE(kmem_bufctl_buf(cp, bufctl[i]) ==
                    kmem_slab_chunk(test_slab(cp, 0), i));
    }
    KT_EQ(found, MIN(chunks, ARRAY_SIZE(bufctl)) -
                     (hashed ? 0 : MIN((size_t)5, chunks)));
    KT_EQ(kmem_slab_bufctls(cp, cp->cache_slabs, bufctl, 1), 0);
    KT_EQ(kmem_slab_bufctls(cp, 0, bufctl, 1), chunks);
    if (hashed)
        check_entries(cp, 5);
    else
        KT_TRUE(kmem_hash_entry(cp, 0, 0, &bad) == NULL && !bad);
    test_free(cp, 0, 5);
    kmem_slab_bufctls(cp, 0, bufctl, ARRAY_SIZE(bufctl));
    for (size_t i = 0; i < MIN(chunks, ARRAY_SIZE(bufctl)); i++)
        KT_TRUE(bufctl[i] != NULL);
    test_destroy(cp);
}

KTEST(kmem_debug, bufctls_and_hash_entries)
{
    check_bufctls("", 200);
    check_bufctls("", 700);
    check_bufctls("FPZU", 200);
}

/* Broken chains and freelists end a walk, and are reported as bad. */
KTEST(kmem_debug, bufctls_of_broken_lists)
{
    struct kmem_cache *cp = test_debug("F", 300, 0, false);
    const struct kmem_bufctl *bufctl[64];
    struct kmem_bufctl *bcp;
    struct kmem_bufctl *next;
    struct kmem_bufctl *rest;
    struct kmem_buf_stat b;
    struct kmem_slab *sp;
    uint8_t map[8];
    size_t bucket;
    bool bad;

    test_alloc(cp, 0, 3);
    bucket = (size_t)(kmem_hash_bucket(cp, test_obj[0]) - cp->cache_hash);
    bcp = cp->cache_hash[bucket];
    next = bcp->bufctl_next;
    bcp->bufctl_next = bcp;
    KT_TRUE(kmem_hash_entry(cp, bucket, 1000, &bad) == NULL && bad);
    bcp->bufctl_next = (void *)(uintptr_t)0xdeadbeec;
    KT_TRUE(kmem_hash_entry(cp, bucket, 0, &bad) == bcp && !bad);
    KT_TRUE(kmem_hash_entry(cp, bucket, 1, &bad) == NULL && bad);
    KT_TRUE(kmem_hash_entry(cp, bucket, 9, &bad) == NULL && bad);
    bcp->bufctl_next = next;

    sp = cp->cache_freelist;
    next = sp->slab_head;
    rest = next->bufctl_next;
    sp->slab_head = (void *)(uintptr_t)0xbaddcafc;
    KT_EQ(kmem_slab_bufctls(cp, 0, bufctl, 64), cp->cache_slab_chunks);
    sp->slab_head = next;
    next->bufctl_next = next;
    KT_EQ(kmem_slab_bufctls(cp, 0, bufctl, 64), cp->cache_slab_chunks);
    next->bufctl_next = rest;
    sp->slab_cache = NULL;
    KT_EQ(kmem_slab_bufctls(cp, 0, bufctl, 64), cp->cache_slab_chunks);
    KT_TRUE(bufctl[0] == NULL);
    KT_EQ(kmem_slab_map(cp, 0, map, 64), cp->cache_slab_chunks);
    KT_TRUE(kmem_buf_stat(test_obj[0], &b) && b.stat_cache == cp);
    sp->slab_cache = cp;
    test_free(cp, 0, 3);
    test_destroy(cp);
}

KTEST(kmem_debug, caches_by_number)
{
    struct kmem_cache_stat stat;
    size_t n = 0;

    while (kmem_cache_stat_number(n, &stat))
        n++;
    KT_TRUE(n > 42 && !kmem_cache_stat_number(n + 1, &stat));
    KT_TRUE(kmem_cache_stat_number(0, &stat));
    KT_EQ(strcmp(stat.stat_name, kmem_cache_first()->cache_name), 0);
}

/* ---- little memory ------------------------------------------------------ */

KTEST(kmem_debug, allocations_fail_where_memory_is_short)
{
    struct kmem_cache *cp = test_debug("FPZ", 40, 0, false);
    size_t n;

    test_flood();
    test_starve();
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    KT_EQ(test_stat(cp).stat_fails, 1);
    test_starve_end();
    test_flood_end();
    for (n = 1;; n++) {
        void *obj;

        kmem_fail_set(KMEM_FAIL_PAGE, (uint32_t)n);
        obj = kmem_cache_alloc(cp, KM_NOSLEEP);
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        TEST_VERIFY(cp);
        if (obj != NULL) {
            kmem_cache_free(cp, obj);
            break;
        }
    }
    KT_TRUE(n >= 2 && n <= 5);
    test_destroy(cp);
}

#ifdef MM_HOST

/* There is no log before the first U, and none without memory. */
KTEST(kmem_debug, S48_no_memory_for_the_log)
{
    struct kmem_cache *cp = test_debug("F", 40, 0, false);
    void *obj;

    KT_EQ(kmem_log_kept(), 0);
    KT_TRUE(kmem_log_at(1) == NULL);
    test_flood();
    KT_EQ(kmem_debug_set(cp, KMF_AUDIT), -KMEM_ENOMEM);
    KT_EQ(kmem_debug_modes(cp), KMF_CHECK);
    test_flood_end();
    KT_EQ(kmem_debug_set(cp, KMF_AUDIT), 0);
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    KT_EQ(kmem_log_kept(), 1);
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

/* T does not change the layout, so the allocator's own caches can have it. */
KTEST(kmem_debug, T_of_the_allocators_own_caches)
{
    KT_EQ(kmem_debug_set(kmem_hash_cache, KMF_TRACE), 0);
    host_print_clear();
    kmem_cache_free(kmem_hash_cache,
                    kmem_cache_alloc(kmem_hash_cache, KM_SLEEP));
    TEST_SAYS(host_printed, "trace: alloc kmem_hash ");
    KT_EQ(kmem_debug_set(kmem_hash_cache, 0), 0);
    KT_EQ(kmem_hash_cache->cache_flags, 0);
}

/* Two slabs whose links are broken: neither is found from its neighbours, so
 * the cache begins after them. */
KTEST(kmem_debug, S57_two_slabs_damaged)
{
    struct kmem_cache *cp = test_debug("F", 300, 0, false);
    struct kmem_slab *a;
    struct kmem_slab *b;
    void *obj = NULL;

    test_alloc(cp, 0, cp->cache_slab_chunks + 1);
    test_free(cp, 1, cp->cache_slab_chunks + 1);
    a = test_slab(cp, 0);
    b = test_slab(cp, 1);
    KT_TRUE(cp->cache_freelist == a && test_slab(cp, 2) == NULL);
    a->slab_link.next = NULL;
    b->slab_link.prev = NULL;
    TEST_ERROR(KMEM_ERROR_SLAB, obj = kmem_cache_alloc(cp, KM_SLEEP));
    KT_TRUE(obj != NULL && kmem_inuse(cp) == 2);
    a->slab_link.next = &b->slab_link;
    b->slab_link.prev = &a->slab_link;
    kmem_cache_free(cp, obj);
    cp->cache_freelist = a;
    TEST_VERIFY(cp);
    test_free(cp, 0, 1);
    test_destroy(cp);
}

/* In a slab of S, but outside all buffers; then the page may have no owner. */
KTEST(kmem_debug, S53_between_buffers)
{
    struct kmem_cache *cp = test_debug("S", 600, 0, false);
    struct kmem_buf_stat b;
    struct kmem_slab *sp;
    char *tail;
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    sp = test_slab(cp, 0);
    tail = (char *)sp->slab_base + cp->cache_slab_pages * PAGE_SIZE - 1;
    KT_TRUE(!kmem_buf_stat(tail, &b));
    TEST_ERROR(KMEM_ERROR_NOT_ALLOCATED, kmem_cache_free(cp, tail));
    kmem_cache_free(cp, obj);
    KT_TRUE(kmem_unmapped_stat(tail, &b));
    KT_EQ(b.stat_buf, 0);
    KT_TRUE(b.stat_cache == cp);
    TEST_ERROR(KMEM_ERROR_NOT_ALLOCATED, kmem_cache_free(cp, tail));
    test_destroy(cp);
}

static bool count_refs(uintptr_t at, const char *root,
                       const struct kmem_buf_stat *in, void *arg)
{
    (void)at;
    (void)root;
    (void)in;
    ++*(size_t *)arg;
    return true;
}

/* ---- bounds ------------------------------------------------------------- */

/* A walk believes the counts, not the list or what lies after the table. */
KTEST(kmem_debug, walks_end_where_the_counts_say)
{
    struct kmem_cache *cp = kmem_cache_create("t_walk", 600, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = 3 * cp->cache_slab_chunks;
    struct kmem_slab_stat slab;
    bool bad;
    size_t bucket = 0;

    test_alloc(cp, 0, n);
    KT_TRUE(kmem_slab_stat(cp, 2, &slab));
    cp->cache_slabs -= 1;
    KT_TRUE(kmem_slab_stat(cp, 1, &slab));
    KT_TRUE(!kmem_slab_stat(cp, 2, &slab));
    cp->cache_slabs += 1;
    while (bucket == 0 || cp->cache_hash[bucket] == NULL)
        bucket++;
    KT_TRUE(kmem_hash_entry(cp, bucket, 0, &bad) == cp->cache_hash[bucket]);
    cp->cache_hash_mask = bucket - 1;
    KT_TRUE(kmem_hash_entry(cp, bucket, 0, &bad) == NULL && !bad);
    cp->cache_hash_mask = KMEM_HASH_INITIAL - 1;
    test_free(cp, 0, n);
    test_destroy(cp);
}

/* ---- leaks, once more --------------------------------------------------- */

/* Objects of a cache of roots are reached, but not read: their live part has
 * been. */
KTEST(kmem_debug, leaks_and_objects_that_are_roots)
{
    struct kmem_cache *cp = kmem_cache_create("t_stack", 64, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_leak_stat stat;
    void ***obj = (void ***)test_obj;
    void *root[1];
    size_t refs = 0;

    test_alloc(cp, 0, 2);
    memset(obj[0], 0, 64);
    memset(obj[1], 0, 64);
    obj[0][3] = obj[1];
    root[0] = obj[0];
    host_root_from[0] = root;
    host_root_end[0] = root + 1;
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat) && stat.stat_suspects == 0);
    kmem_leak_refs(obj[1], count_refs, &refs);
    KT_EQ(refs, 1);
    host_root_cache = cp;
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat) && stat.stat_suspects == 1);
    kmem_leak_refs(obj[1], count_refs, &refs);
    KT_EQ(refs, 1);
    host_root_from[1] = test_slab(cp, 0)->slab_base;
    host_root_end[1] = (char *)host_root_from[1] + PAGE_SIZE;
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat) && stat.stat_suspects == 0);
    host_root_cache = NULL;
    host_root_from[0] = host_root_from[1] = NULL;
    test_free(cp, 0, 2);
    test_destroy(cp);
}

static bool only_one(const struct kmem_buf_stat *b, void *arg)
{
    KT_EQ(b->stat_state, KMEM_BUF_USED);
    ++*(size_t *)arg;
    return false;
}

/* Caches with a supplier are not scanned; buffers set aside are no suspects;
 * the callback can end the scan; a root may be partly unmapped. */
KTEST(kmem_debug, leaks_that_are_not_reported)
{
    struct kmem_cache *cp = test_debug("Z", 64, 0, false);
    struct kmem_cache *supplied;
    struct kmem_leak_stat stat;
    struct test_supply s;
    size_t told = 0;
    char *page = kmem_zalloc(20000, KM_SLEEP);
    char *bad = kmem_cache_alloc(cp, KM_SLEEP);
    void *obj;

    supplied = test_supply_cache(&s, 10, 64);
    obj = kmem_cache_alloc(supplied, KM_SLEEP);
    test_alloc(cp, 0, 3);
    bad[64] = 0;
    TEST_ERROR(KMEM_ERROR_END, kmem_cache_free(cp, bad));
    host_root_from[0] = page;
    host_root_end[0] = page + 2 * PAGE_SIZE;
    *(void **)(page + PAGE_SIZE) = test_obj[0];
    mm_page_map(page + PAGE_SIZE, false);
    KT_TRUE(kmem_leak_scan(only_one, &told, &stat));
    KT_EQ(told, 1);
    KT_EQ(stat.stat_suspects, 3);
    mm_page_map(page + PAGE_SIZE, true);
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat));
    KT_EQ(stat.stat_suspects, 2);
    test_slab(cp, 0)->slab_refcnt++; /* a broken slab is left out */
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat));
    KT_EQ(stat.stat_buffers, 0);
    test_slab(cp, 0)->slab_refcnt--;
    host_root_from[0] = NULL;
    kmem_free(page, 20000);
    test_accept_damage(cp, bad);
    test_free(cp, 0, 3);
    test_destroy(cp);
    kmem_cache_free(supplied, obj);
    test_destroy(supplied);
}

#endif
