/*
 * Walks over a cache's bufctls and hash chains, and the debugging modes where
 * memory is short or more than one thing is broken.
 *
 * Tests: mm/debug/walk.c, mm/inspect/kmem_walk.c
 */
#include "mm/debug/tests/debug_test.h"

/* ---- the bufctls of buffers --------------------------------------------- */

static struct {
    struct kmem_cache *cache;
    size_t buffers, bufctls;
} found;

/* A kmem_buf_fn_t. */
static bool count_bufctl(const struct kmem_buf_stat *b, void *arg)
{
    const struct kmem_bufctl *bcp = (const struct kmem_bufctl *)b->stat_bufctl;

    (void)arg;
    found.buffers++;
    found.bufctls += bcp != NULL;
    if (bcp != NULL)
        KT_EQ((uintptr_t)kmem_bufctl_buf(found.cache, bcp), b->stat_buf);
    return true;
}

/* Counts the buffers of a cache that have a bufctl. */
static size_t count_bufctls(struct kmem_cache *cp)
{
    found.cache = cp;
    found.buffers = found.bufctls = 0;
    kmem_buf_walk(cp, count_bufctl, NULL);
    KT_EQ(found.buffers, cp->cache_slabs * cp->cache_slab_chunks);
    return found.bufctls;
}

/* Each buffer has one, but a small buffer in use, whose link is data now. */
static void check_bufctls(const char *letters, size_t size)
{
    struct kmem_cache *cp = test_debug(letters, size, 0, false);
    bool hashed = (cp->cache_flags & KMF_HASH) != 0;

    test_alloc(cp, 0, 5);
    KT_EQ(count_bufctls(cp), found.buffers - (hashed ? 0 : 5));
    test_free(cp, 0, 5);
    KT_EQ(count_bufctls(cp), found.buffers);
    test_destroy(cp);
}

KTEST(kmem_debug, bufctls_of_buffers)
{
    check_bufctls("", 200);
    check_bufctls("", 700);
    check_bufctls("FPZU", 200);
}

/* Broken chains and freelists end a walk. */
KTEST(kmem_debug, bufctls_of_broken_lists)
{
    struct kmem_cache *cp = test_debug("F", 300, 0, false);
    struct kmem_bufctl *bcp, *next, *rest;
    struct kmem_buf_stat b;
    struct kmem_slab *sp;
    size_t all, chunks = cp->cache_slab_chunks;

    test_alloc(cp, 0, 3);
    all = count_bufctls(cp);
    cp->cache_slab_chunks = 0;
    KT_EQ(count_bufctls(cp), 0);
    cp->cache_slab_chunks = chunks;
    bcp = *kmem_hash_bucket(cp, test_obj[0]);
    next = bcp->bufctl_next;
    bcp->bufctl_next = bcp;
    KT_TRUE(count_bufctls(cp) <= all); /* others may be behind it */
    bcp->bufctl_next = next;

    sp = cp->cache_freelist;
    next = sp->slab_head;
    rest = next->bufctl_next;
    sp->slab_head = (void *)(uintptr_t)0xbaddcafc;
    KT_EQ(count_bufctls(cp), 3);
    sp->slab_head = next;
    next->bufctl_next = next;
    KT_EQ(count_bufctls(cp), 4);
    next->bufctl_next = rest;
    sp->slab_cache = NULL;
    KT_EQ(count_bufctls(cp), 3);
    KT_TRUE(kmem_buf_stat(test_obj[0], &b) && b.stat_cache == cp);
    sp->slab_cache = cp;
    test_free(cp, 0, 3);
    test_destroy(cp);
}

/* ---- what a bufctl and the allocator's own objects say ------------------- */

/* From the freelist's head on, by the index of the next. */
KTEST(kmem_debug, free_buffers_follow_each_other)
{
    static const char *const letters[] = {"", "F"};

    for (size_t k = 0; k < ARRAY_SIZE(letters); k++) {
        struct kmem_cache *cp = test_debug(letters[k], 300, 0, false);
        struct kmem_bufctl *head, *next;
        struct kmem_slab *sp;
        struct kmem_buf_stat b;
        size_t free = 1;

        test_alloc(cp, 0, 3);
        KT_TRUE(kmem_buf_stat(test_obj[1], &b));
        KT_TRUE(b.stat_chunk == cp->cache_chunk && b.stat_next == SIZE_MAX &&
                !b.stat_last);
        sp = test_slab(cp, 0);
        head = sp->slab_head;
        KT_TRUE(kmem_buf_stat(kmem_bufctl_buf(cp, head), &b));
        for (; !b.stat_last && free < 99; free++)
            KT_TRUE(kmem_buf_stat(kmem_slab_chunk(sp, b.stat_next), &b));
        KT_EQ(free, cp->cache_slab_chunks - 3);
        KT_EQ(b.stat_next, SIZE_MAX);
        next = head->bufctl_next;
        head->bufctl_next = (void *)(uintptr_t)0xdeadbeec;
        KT_TRUE(kmem_buf_stat(kmem_bufctl_buf(cp, head), &b));
        KT_TRUE(b.stat_next == SIZE_MAX && !b.stat_last);
        head->bufctl_next = next;
        test_free(cp, 0, 3);
        test_destroy(cp);
    }
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
    struct kmem_own_stat o;
    struct kmem_buf_stat b;
    uint64_t taken;

    KT_REQUIRE(cp != NULL);
    test_alloc(cp, 0, 1);
    KT_TRUE(kmem_buf_stat(test_obj[0], &b));
    o = own(kmem_bufctl_cache, (const void *)b.stat_bufctl);
    KT_EQ(o.own_kind, KMEM_OWN_BUFCTL);
    KT_EQ(o.own_at, (uintptr_t)kmem_slab_chunk(test_slab(cp, 0), 0));
    KT_TRUE(o.own_cache == NULL);
    o = own(kmem_bufctl_debug_cache, (const void *)b.stat_bufctl);
    KT_EQ(o.own_kind, KMEM_OWN_BUFCTL);
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

/* A walk believes the counts, not the list. */
KTEST(kmem_debug, walks_end_where_the_counts_say)
{
    struct kmem_cache *cp = kmem_cache_create("t_walk", 600, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = 3 * cp->cache_slab_chunks;
    struct kmem_slab_stat slab;

    test_alloc(cp, 0, n);
    KT_TRUE(kmem_slab_stat(cp, 2, &slab));
    cp->cache_slabs -= 1;
    KT_TRUE(kmem_slab_stat(cp, 1, &slab));
    KT_TRUE(!kmem_slab_stat(cp, 2, &slab));
    mm_lock(&cp->cache_lock);
    KT_TRUE(kmem_slab_holding(cp, test_slab(cp, 2)->slab_base) == NULL);
    mm_unlock(&cp->cache_lock);
    cp->cache_slabs += 1;
    test_free(cp, 0, n);
    test_destroy(cp);
}

/* ---- damaged bufctls and chains ------------------------------------------ */

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
