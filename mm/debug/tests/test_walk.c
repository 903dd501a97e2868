/*
 * Walks over a cache's bufctls and hash chains, and the debugging modes where
 * memory is short or more than one thing is broken.
 *
 * Tests: mm/debug/walk.c, mm/inspect/kmem_walk.c
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

/* ---- what a bufctl and the allocator's own objects say ------------------- */

KTEST(kmem_debug, bufctls_follow_each_other)
{
    struct kmem_cache *cp = test_debug("F", 300, 0, false);
    const struct kmem_bufctl *bufctl[64], *bcp;
    struct kmem_slab *sp;
    struct kmem_buf_stat b;
    size_t free = 0;

    KT_REQUIRE(cp != NULL);
    test_alloc(cp, 0, 3);
    sp = test_slab(cp, 0);
    for (bcp = sp->slab_head; bcp != NULL; bcp = kmem_bufctl_next(bcp)) {
        KT_EQ(kmem_bufctl_slab(bcp), (uintptr_t)sp);
        free++;
    }
    KT_EQ(free, sp->slab_chunks - 3);
    kmem_slab_bufctls(cp, 0, bufctl, ARRAY_SIZE(bufctl));
    KT_EQ(kmem_bufctl_slab(bufctl[0]), (uintptr_t)sp);
    KT_TRUE(kmem_buf_stat(test_obj[1], &b));
    KT_EQ(b.stat_chunk, cp->cache_chunk);
    test_free(cp, 0, 3);
    test_destroy(cp);
}

#ifdef MM_HOST
static struct kmem_own_stat own(const struct kmem_cache *cp, const void *obj)
{
    struct kmem_own_stat o;

    kmem_own_stat(cp, obj, &o);
    return o;
}

KTEST(kmem_debug, objects_of_the_allocator)
{
    struct kmem_cache *cp = kmem_cache_create("t_own", 700, 0, NULL, NULL);
    const struct kmem_bufctl *bufctl[1];
    struct kmem_own_stat o;
    uint64_t taken;

    KT_REQUIRE(cp != NULL);
    test_alloc(cp, 0, 1);
    kmem_slab_bufctls(cp, 0, bufctl, 1);
    o = own(kmem_bufctl_cache, bufctl[0]);
    KT_EQ(o.own_kind, KMEM_OWN_BUFCTL);
    KT_EQ(o.own_at, (uintptr_t)kmem_slab_chunk(test_slab(cp, 0), 0));
    KT_TRUE(o.own_cache == NULL);
    o = own(kmem_slab_cache, test_slab(cp, 0));
    KT_EQ(o.own_kind, KMEM_OWN_SLAB);
    KT_TRUE(o.own_cache == cp);
    KT_EQ(o.own_at, (uintptr_t)test_slab(cp, 0)->slab_base);
    taken = host_locks_taken;
    o = own(kmem_hash_cache, cp->cache_hash);
    KT_EQ(host_locks_taken - taken, 1);
    KT_EQ(o.own_kind, KMEM_OWN_HASH);
    KT_TRUE(o.own_cache == cp && o.own_at == 0);
    o = own(kmem_hash_cache, &o);
    KT_EQ(o.own_kind, KMEM_OWN_HASH);
    KT_TRUE(o.own_cache == NULL);
    o = own(&kmem_cache_cache, cp);
    KT_EQ(o.own_kind, KMEM_OWN_CACHE);
    KT_TRUE(o.own_cache == cp && o.own_at == 0);
    o = own(cp, test_obj[0]);
    KT_EQ(o.own_kind, KMEM_OWN_OTHER);
    KT_TRUE(o.own_cache == NULL && o.own_at == 0);
    test_free(cp, 0, 1);
    test_destroy(cp);
}

/* All slabs begin alike, in the plain layout and in that of section 6. */
KTEST(kmem_debug, a_cache_without_colours)
{
    static const char *const letters[] = {"", "Z"};

    for (size_t i = 0; i < ARRAY_SIZE(letters); i++) {
        struct kmem_cache *cp = test_debug(letters[i], 200, 0, false);
        uint64_t taken = host_locks_taken;
        struct kmem_cache_stat st;
        struct kmem_slab_stat slab;
        size_t n;

        KT_REQUIRE(cp != NULL);
        kmem_debug_uncolour(cp);
        KT_EQ(host_locks_taken - taken, 1);
        n = 3 * cp->cache_slab_chunks;
        test_alloc(cp, 0, n);
        kmem_cache_stat(cp, &st);
        KT_EQ(st.stat_slabs, 3);
        KT_EQ(st.stat_redzone_end, cp->cache_redzone_end);
        KT_EQ(st.stat_redzone_end != 0, i == 1);
        for (size_t k = 0; k < 3; k++)
            KT_TRUE(kmem_slab_stat(cp, k, &slab) &&
                    slab.stat_colour == st.stat_colour_min);
        test_free(cp, 0, n);
        test_destroy(cp);
    }
}

#endif

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
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, tail));
    kmem_cache_free(cp, obj);
    KT_TRUE(kmem_unmapped_stat(tail, &b));
    KT_EQ(b.stat_buf, 0);
    KT_TRUE(b.stat_cache == cp);
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, tail));
    TEST_SAYS(host_printed, "it is elsewhere\n");
    test_destroy(cp);
}

/* Its slab has lost the freelist. */
KTEST(kmem_debug, S53_an_unmapped_buffer_is_free)
{
    struct kmem_cache *cp = test_debug("S", 600, 0, false);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    struct kmem_slab *sp = test_slab(cp, 0);
    struct kmem_buf_stat b;
    struct kmem_bufctl *head;

    kmem_cache_free(cp, obj);
    head = sp->slab_head;
    sp->slab_head = NULL;
    KT_TRUE(kmem_unmapped_stat(obj, &b));
    KT_EQ(b.stat_buf, (uintptr_t)obj);
    KT_EQ(b.stat_state, KMEM_BUF_FREE);
    sp->slab_head = head;
    test_destroy(cp);
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
    mm_lock(&cp->cache_lock);
    KT_TRUE(kmem_slab_holding(cp, test_slab(cp, 2)->slab_base) == NULL);
    mm_unlock(&cp->cache_lock);
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

/* ---- damaged bufctls and chains ------------------------------------------ */

/* All three objects in use in the chain of the last bucket, which becomes a
 * circle. */
KTEST(kmem_debug, entries_of_one_chain)
{
    struct kmem_cache *cp = test_debug("F", 300, 0, false);
    struct kmem_bufctl *table[KMEM_HASH_INITIAL];
    struct kmem_bufctl *bcp[3], *next[3];
    size_t last = cp->cache_hash_mask;
    bool bad = true;
    uint64_t taken;

    test_alloc(cp, 0, 3);
    KT_REQUIRE(last + 1 == ARRAY_SIZE(table));
    memcpy(table, cp->cache_hash, sizeof(table));
    for (size_t i = 0; i < 3; i++) {
        bcp[i] = &test_bufctl(cp, test_obj[i])->bufctl;
        next[i] = bcp[i]->bufctl_next;
    }
    for (size_t i = 0; i < 3; i++)
        bcp[i]->bufctl_next = i < 2 ? bcp[i + 1] : NULL;
    cp->cache_hash[last] = bcp[0];
    for (size_t i = 0; i < 3; i++)
        KT_TRUE(kmem_hash_entry(cp, last, i, &bad) == bcp[i] && !bad);
    KT_TRUE(kmem_hash_entry(cp, last, 3, &bad) == NULL && !bad);
    bcp[2]->bufctl_next = bcp[0];
    KT_TRUE(kmem_hash_entry(cp, last, 3, &bad) == NULL && bad);
    KT_TRUE(kmem_hash_entry(cp, last + 1, 0, &bad) == NULL && !bad);
    taken = cp->cache_lock.lock_taken;
    kmem_hash_entry(cp, last, 0, &bad);
    KT_EQ(cp->cache_lock.lock_taken - taken, 1);
    memcpy(cp->cache_hash, table, sizeof(table));
    for (size_t i = 0; i < 3; i++)
        bcp[i]->bufctl_next = next[i];
    test_free(cp, 0, 3);
    test_destroy(cp);
}

/* An address that is not in a chain which leads nowhere. */
KTEST(kmem_debug, buffers_not_found_in_a_broken_chain)
{
    struct kmem_cache *cp = test_debug("F", 300, 0, false);
    struct kmem_bufctl *bcp, *next;
    bool damaged = false;

    test_alloc(cp, 0, 2);
    bcp = &test_bufctl(cp, test_obj[0])->bufctl;
    next = bcp->bufctl_next;
    bcp->bufctl_next = (void *)(uintptr_t)0xdeadbeec;
    KT_TRUE(kmem_hash_find(cp, (char *)test_obj[0] + 1, &damaged) == NULL);
    KT_TRUE(damaged);
    bcp->bufctl_next = next;
    test_free(cp, 0, 2);
    test_destroy(cp);
}

/* A chain of an allocated buffer and a free one is longer than the one in use
 * allows. */
KTEST(kmem_debug, free_buffers_not_found_in_a_chain)
{
    struct kmem_cache *cp = test_debug("F", 300, 0, false);
    struct kmem_bufctl *bcp, *free, *next, *head, **bucket;
    bool damaged = false;

    test_alloc(cp, 0, 1);
    bcp = &test_bufctl(cp, test_obj[0])->bufctl;
    free = test_slab(cp, 0)->slab_head;
    bucket = kmem_hash_bucket(cp, free->bufctl_addr);
    head = *bucket;
    next = bcp->bufctl_next;
    *bucket = bcp;
    bcp->bufctl_next = free;
    KT_TRUE(kmem_hash_find(cp, free->bufctl_addr, &damaged) == NULL);
    KT_TRUE(damaged);
    bcp->bufctl_next = next;
    *bucket = head;
    test_free(cp, 0, 1);
    test_destroy(cp);
}

/* Room for fewer bufctls than a slab has, and for more: nothing is written
 * after the last. */
static void check_room(const char *letters)
{
    struct kmem_cache *cp = test_debug(letters, 300, 0, false);
    const struct kmem_bufctl *end = (const void *)cp;
    const struct kmem_bufctl *bufctl[64] = {NULL};
    size_t chunks = cp->cache_slab_chunks;

    KT_REQUIRE(chunks > 4 && chunks < ARRAY_SIZE(bufctl));
    test_alloc(cp, 0, 2 * chunks); /* two slabs: one after the other */
    bufctl[1] = NULL;
    KT_EQ(kmem_slab_bufctls(cp, 0, bufctl, 1), chunks);
    KT_TRUE(bufctl[1] == NULL);
    test_free(cp, 3, 4);
    for (size_t n = 0; n < 2; n++) {
        KT_EQ(kmem_slab_bufctls(cp, n, bufctl, 3), chunks);
        KT_TRUE(bufctl[3] == NULL);
        bufctl[chunks] = end;
        KT_EQ(kmem_slab_bufctls(cp, n, bufctl, ARRAY_SIZE(bufctl)), chunks);
        KT_TRUE(bufctl[chunks] == end);
        bufctl[3] = NULL;
    }
    test_alloc(cp, 3, 4);
    test_free(cp, 0, 2 * chunks);
    test_destroy(cp);
}

KTEST(kmem_debug, room_for_bufctls)
{
    check_room("");
    check_room("F");
}

/* Values of a damaged bufctl are brought into range, and values that no mode
 * keeps are not shown. */
KTEST(kmem_debug, buffers_with_a_damaged_bufctl)
{
    static const char *const modes[] = {"FU", "F"};

    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        struct kmem_cache *cp = test_debug(modes[i], 300, 0, false);
        struct kmem_bufctl_debug *bdp;
        struct kmem_buf_stat b;

        test_alloc(cp, 0, 1);
        bdp = test_bufctl(cp, test_obj[0]);
        bdp->bufctl_state = 77;
        bdp->bufctl_alloc.trans_depth = bdp->bufctl_free.trans_depth = 77;
        KT_TRUE(kmem_buf_stat(test_obj[0], &b));
        KT_EQ(b.stat_state, KMEM_BUF_USED);
        KT_EQ(b.stat_alloc.trans_depth, i == 0 ? KMEM_STACK_DEPTH : 0);
        KT_EQ(b.stat_free.trans_depth, i == 0 ? KMEM_STACK_DEPTH : 0);
        bdp->bufctl_alloc.trans_depth = bdp->bufctl_free.trans_depth = 0;
        bdp->bufctl_state = KMEM_BUF_USED;
        test_free(cp, 0, 1);
        test_destroy(cp);
    }
}

/* A free buffer has the size of its objects, not that of its last request. */
KTEST(kmem_debug, size_of_a_free_buffer)
{
    struct kmem_cache *cp = kmem_size_class(13);
    struct kmem_buf_stat b;
    void *obj;

    test_switch(cp, "F");
    obj = kmem_alloc(13, KM_SLEEP);
    KT_TRUE(kmem_buf_stat(obj, &b));
    KT_EQ(b.stat_size, 13);
    kmem_free(obj, 13);
    KT_TRUE(kmem_buf_stat(obj, &b));
    KT_EQ(b.stat_size, cp->cache_size);
    test_switch(cp, "");
}

/* ---- links -------------------------------------------------------------- */

static void misaligned(struct kmem_cache *cp)
{
    char *link;

    KT_REQUIRE(cp != NULL);
    test_alloc(cp, 0, 1);
    link = (char *)test_slab(cp, 0)->slab_head;
    KT_TRUE(kmem_bufctl_plausible(cp, (void *)link));
    for (size_t i = 1; i < TEST_WORD; i++)
        KT_TRUE(!kmem_bufctl_plausible(cp, (void *)(link + i)));
    test_free(cp, 0, 1);
    test_destroy(cp);
}

/* The pages of a supplier are not marked, so that only these are refused. */
KTEST(kmem_verify, bufctls_that_are_misaligned)
{
    struct test_supply s;

    misaligned(test_supply_cache(&s, 1, 200));
    misaligned(kmem_cache_create("t_walk", 200, 0, NULL, NULL));
    misaligned(kmem_cache_create("t_walk", 700, 0, NULL, NULL));
}

/* A small slab's data is on an allocated page, that of a supplier anywhere. */
KTEST(kmem_verify, links_of_small_slabs)
{
    static struct list elsewhere;
    struct kmem_cache *cp = kmem_cache_create("t_walk", 200, 0, NULL, NULL);
    struct test_supply s;
    struct kmem_cache *supplied = test_supply_cache(&s, 1, 200);
    struct page *page = buddy_alloc(0);

    KT_REQUIRE(cp != NULL && page != NULL);
    KT_TRUE(kmem_slab_link_plausible(cp, page_to_virt(page)));
    KT_TRUE(!kmem_slab_link_plausible(cp, &elsewhere));
    KT_TRUE(!kmem_slab_link_plausible(cp, NULL));
    KT_TRUE(kmem_slab_link_plausible(supplied, &elsewhere));
    KT_TRUE(!kmem_slab_link_plausible(supplied, NULL));
    KT_TRUE(!kmem_slab_link_plausible(supplied,
                                      (void *)((uintptr_t)&elsewhere + 1)));
    mm_page_map(page_to_virt(page), false);
    KT_TRUE(!kmem_bufctl_plausible(supplied, page_to_virt(page)));
    mm_page_map(page_to_virt(page), true);
    buddy_free(page, 0);
    test_destroy(supplied);
    test_destroy(cp);
}

static bool bitmap(struct kmem_cache *cp, uint8_t *map, size_t bits)
{
    bool sound;

    mm_lock(&cp->cache_lock);
    sound = kmem_slab_bitmap(test_slab(cp, 0), map, bits);
    mm_unlock(&cp->cache_lock);
    return sound;
}

/* A map for fewer buffers than a slab has: nothing is written after it, and a
 * circle of the others ends. */
KTEST(kmem_verify, bitmap_of_the_first_buffers)
{
    struct kmem_cache *cp = kmem_cache_create("t_walk", 200, 0, NULL, NULL);
    uint8_t map[2] = {0, 0x55};
    struct kmem_bufctl *bcp, *next;

    KT_REQUIRE(cp != NULL && cp->cache_slab_chunks > 10);
    test_alloc(cp, 0, 8);
    KT_TRUE(bitmap(cp, map, 8));
    KT_TRUE(map[0] == 0xff && map[1] == 0x55);
    bcp = test_slab(cp, 0)->slab_head;
    next = bcp->bufctl_next;
    bcp->bufctl_next = bcp;
    KT_TRUE(!bitmap(cp, map, 8));
    bcp->bufctl_next = next;
    test_free(cp, 0, 8);
    test_destroy(cp);
}

#endif
