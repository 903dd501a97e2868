/*
 * Tests of lab 4: large objects and their hash table (tasks 4.4 to 4.6).
 *
 * Here slab data and bufctls come from caches of the test's own: a bit in the
 * flag word makes their allocations and frees take the slow path (section 6 of
 * the paper), so the front end need not be written yet.
 */
#include "docs/labs/04-caches/tests/common.h"
#include "tools/workshop/stress/fail.h"

#define SIZE    1200 /* 10 in a slab of three pages */
#define PER     10
#define COLOUR  16
#define BUFCTLS 1300
#define BUCKETS 64
#define CHAIN   5

/* ---- caches of the test's own ------------------------------------------- */

/* A cache of small objects with one slab, on a page of its own. */
struct pool {
    struct kmem_cache cache;
    uint8_t page[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
};

static struct pool bufctls, slabs;
static struct kmem_bufctl bufctl[BUFCTLS];
static struct kmem_slab data;

static void *no_pages(size_t pages, void *arg)
{
    (void)pages;
    (void)arg;
    return NULL;
}

static void no_pages_back(void *base, size_t pages, void *arg)
{
    (void)base;
    (void)pages;
    (void)arg;
}

/* KMF_WATCH selects the slow path of the front end. A free buffer's link is its
 * first word, so that what was there is lost. */
static void pool_make(struct pool *pool, const char *name, size_t size)
{
    static const struct kmem_supplier none = {.getpages = no_pages,
                                              .freepages = no_pages_back};
    struct kmem_cache *cp = &pool->cache;
    struct kmem_slab *sp = kmem_slab_of(pool->page);

    kmem_cache_setup(cp, name, size, 0, NULL, NULL, &none);
    cp->cache_flags = KMF_WATCH;
    cp->cache_bufctl = 0;
    *sp = (struct kmem_slab){
        .slab_cache = cp, .slab_base = pool->page, .slab_chunks = PER + 1};
    for (size_t i = PER + 1; i-- > 0;) {
        char *buf = kmem_slab_chunk(sp, i);
        struct kmem_bufctl *link = (void *)(buf + cp->cache_bufctl);

        memset(buf, 0x5a, cp->cache_chunk);
        link->bufctl_next = sp->slab_head;
        sp->slab_head = link;
    }
    list_insert_before(&cp->cache_null.slab_link, &sp->slab_link);
    cp->cache_freelist = sp;
    cp->cache_slabs = cp->cache_free_slabs = 1;
}

/* Whether every buffer is on the freelist exactly once. */
static bool pool_whole(const struct pool *pool)
{
    const struct kmem_slab *sp = kmem_slab_of(pool->page);
    const struct kmem_bufctl *b = sp->slab_head;
    unsigned seen = 0;

    for (size_t n = 0; b != NULL && n <= PER + 1; b = b->bufctl_next, n++)
        seen |=
            1u << ((const uint8_t *)b - pool->page) / pool->cache.cache_chunk;
    return b == NULL && seen == (1u << (PER + 1)) - 1;
}

/* Provides slab data, which is allocated first, and `n` bufctls. */
static void provide(size_t n)
{
    pool_make(&bufctls, "bufctls", sizeof(struct kmem_bufctl));
    pool_make(&slabs, "slabs", sizeof(struct kmem_slab));
    kmem_fail_set(KMEM_FAIL_SLAB, n + 2);
    kmem_bufctl_cache = &bufctls.cache;
    kmem_slab_cache = &slabs.cache;
}

/* ---- 4.4 slab data elsewhere -------------------------------------------- */

static void check_freelist(const struct kmem_slab *sp, const char *base)
{
    const struct kmem_bufctl *b = sp->slab_head;

    for (size_t i = 0; i < PER; i++, b = b->bufctl_next) {
        const char *want = base + COLOUR + i * SIZE;

        if (b == NULL) {
            KT_FAIL("the freelist ends after %zu buffers, want %u", i, PER);
            return;
        }
        if (b->bufctl_addr != want || b->bufctl_slab != sp) {
            KT_FAIL("bufctl %zu of the freelist says buffer 0x%llx, slab "
                    "0x%llx; want 0x%llx, 0x%llx",
                    i, KT_PTR(b->bufctl_addr), KT_PTR(b->bufctl_slab),
                    KT_PTR(want), KT_PTR(sp));
            return;
        }
    }
    if (b != NULL)
        KT_FAIL("the freelist does not end after %u buffers", PER);
}

static void check_untouched(const uint8_t *page, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (page[i] != 0xa5) {
            KT_FAIL("byte %zu of the slab's pages was written: of large "
                    "objects they contain no data of the allocator",
                    i);
            return;
        }
}

LAB_TEST(4, bufctls, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache(SIZE, 8);
    struct kmem_slab *sp;

    provide(PER + 1);
    KT_REQUIRE(cp->cache_slab_chunks == PER);
    sp = kmem_slab_create(cp, COLOUR);
    KT_REQUIRE(sp != NULL);
    KT_EQ(kmem_inuse(&slabs.cache), 1);
    KT_EQ(kmem_inuse(&bufctls.cache), PER);
    check_freelist(sp, sp->slab_base);
    check_untouched(sp->slab_base, 3 * PAGE_SIZE);
    kmem_slab_destroy(cp, sp);
    lab_held("bufctls", kmem_inuse(&bufctls.cache), 0);
    lab_held("slab data", kmem_inuse(&slabs.cache), 0);
    KT_TRUE(pool_whole(&bufctls) && pool_whole(&slabs));
    lab4_pages_left();
}

/* Memory runs out at each possible moment: everything allocated so far must be
 * freed. */
LAB_TEST(4, bufctls_run_out, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache(SIZE, 8);

    for (size_t n = 0; n < PER; n++) {
        provide(n);
        if (kmem_slab_create(cp, COLOUR) != NULL)
            KT_FAIL("there were %zu bufctls for %u buffers, and yet a slab", n,
                    PER);
        if (kmem_inuse(&bufctls.cache) != 0)
            KT_FAIL("after a failure at bufctl %zu, %u were not freed", n,
                    (unsigned)kmem_inuse(&bufctls.cache));
        KT_EQ(kmem_inuse(&slabs.cache), 0);
        KT_TRUE(pool_whole(&bufctls) && pool_whole(&slabs));
        KT_REQUIRE(lab4_pages.out == 0);
    }
}

/* ---- 4.5 from a buffer to its bufctl ------------------------------------ */

/* A cache with a table and one slab, whose buffers all hash to bucket 0. The
 * buffers have no memory. */
static struct kmem_cache *one_chain(void)
{
    static struct kmem_bufctl *table[BUCKETS];
    struct kmem_cache *cp = lab4_cache(SIZE, 8);

    memset(table, 0, sizeof(table));
    cp->cache_hash = table;
    cp->cache_hash_mask = BUCKETS - 1;
    cp->cache_hash_shift = 10;
    data = (struct kmem_slab){
        .slab_cache = cp, .slab_head = bufctl, .slab_chunks = CHAIN};
    for (size_t i = 0; i < CHAIN; i++)
        bufctl[i] = (struct kmem_bufctl){
            .bufctl_next = i + 1 < CHAIN ? &bufctl[i + 1] : NULL,
            .bufctl_addr = (void *)(0xd0000000u + (BUCKETS << 10) * i),
            .bufctl_slab = &data,
        };
    data.slab_link.next = data.slab_link.prev = &cp->cache_null.slab_link;
    cp->cache_null.slab_link = (struct list){&data.slab_link, &data.slab_link};
    cp->cache_freelist = &data;
    cp->cache_slabs = cp->cache_free_slabs = 1;
    lab4_irq_on();
    return cp;
}

/* Whether bucket 0 has exactly the bufctls of that bit mask. */
static bool chained(const struct kmem_cache *cp, unsigned mask)
{
    const struct kmem_bufctl *b = cp->cache_hash[0];

    for (size_t n = 0; b != NULL && n <= CHAIN; n++, b = b->bufctl_next) {
        size_t i = (size_t)(b - bufctl);

        if (i >= CHAIN || (mask & 1u << i) == 0)
            return false;
        mask &= ~(1u << i);
    }
    return b == NULL && mask == 0;
}

LAB_TEST(4, hash_in, LAB_PAGES)
{
    struct kmem_cache *cp = one_chain();

    lab_guard("the bucket", &cp->cache_hash[0], lab_spin_held);
    lab_guard("slab_head", &data.slab_head, lab_spin_held);
    for (size_t i = 0; i < CHAIN; i++) {
        void *buf;

        buf = kmem_cache_alloc(cp, KM_NOSLEEP);
        LAB4_UNLOCKED("alloc_large");
        if (buf != bufctl[i].bufctl_addr)
            KT_FAIL("alloc_large gave 0x%llx, want 0x%llx, the address in "
                    "the first bufctl",
                    KT_PTR(buf), KT_PTR(bufctl[i].bufctl_addr));
        KT_EQ(data.slab_refcnt, i + 1);
        if (!chained(cp, (2u << i) - 1))
            KT_FAIL("after %zu allocations the bucket does not have exactly "
                    "their bufctls",
                    i + 1);
    }
    KT_TRUE(data.slab_head == NULL);
    KT_TRUE(cp->cache_freelist == &cp->cache_null);
    for (size_t i = 1; i < BUCKETS; i++)
        KT_TRUE(cp->cache_hash[i] == NULL);
}

/* All buffers allocated; the chain has the last one first. */
static struct kmem_cache *all_out(void)
{
    struct kmem_cache *cp = one_chain();

    for (size_t i = 0; i < CHAIN; i++) {
        mm_lock(&cp->cache_lock);
        KT_TRUE(kmem_slab_take(cp) == &bufctl[i]);
        kmem_hash_enter(cp, &bufctl[i]);
        mm_unlock(&cp->cache_lock);
    }
    return cp;
}

LAB_TEST(4, hash_out, LAB_PAGES)
{
    static const uint8_t order[CHAIN] = {2, 4, 0, 3, 1};
    struct kmem_cache *cp = all_out();
    unsigned left = (1u << CHAIN) - 1;

    lab_guard("the bucket", &cp->cache_hash[0], lab_spin_held);
    lab_guard("slab_head", &data.slab_head, lab_spin_held);
    for (size_t k = 0; k < CHAIN; k++) {
        size_t i = order[k];

        kmem_cache_free(cp, bufctl[i].bufctl_addr);
        LAB4_UNLOCKED("free_large");
        left &= ~(1u << i);
        if (!chained(cp, left)) {
            KT_FAIL("after buffer %zu was freed, its bucket's chain is not the "
                    "old one without it",
                    i);
            return;
        }
        if (data.slab_head != &bufctl[i])
            KT_FAIL("the bufctl of buffer %zu is not the head of its slab's "
                    "freelist",
                    i);
        KT_EQ(data.slab_refcnt, CHAIN - 1 - k);
    }
    /* buffer 2 of the chain 4 3 2 1 0 has two before it, 4 none, 0 of 3 1 0
     * two, 3 none, 1 none */
    KT_EQ(cp->cache_hash_depth, 4);
}

LAB_TEST_PANICS(4, hash_unknown, LAB_PAGES, "freed address is not")
{
    struct kmem_cache *cp = all_out();
    char *inside = (char *)bufctl[1].bufctl_addr + 8;
    bool found;

    mm_lock(&cp->cache_lock);
    found = kmem_hash_remove(cp, inside) != NULL;
    mm_unlock(&cp->cache_lock);
    if (found)
        KT_FAIL("kmem_hash_remove has found a bufctl for an address that is no "
                "buffer's");
    if (!chained(cp, (1u << CHAIN) - 1))
        KT_FAIL("an address that is no buffer's was freed, and the bucket's "
                "chain has changed");
    KT_EQ(data.slab_refcnt, CHAIN);
    KT_EQ(cp->cache_frees, 0);
    lab_must_panic();
    kmem_cache_free(cp, inside);
    KT_FAIL("kmem_cache_free has accepted an address that is no buffer's");
}

/* ---- 4.6 a table that scales itself ------------------------------------- */

/* The least or the greatest number of buffers for which a table of `size` must
 * be replaced, and by which size. */
static void check_step(size_t size, size_t buffers, size_t want)
{
    size_t got = kmem_hash_want(size, buffers);

    if (got != want)
        KT_FAIL("a table of %zu with %zu buffers wants %zu buckets, not %zu",
                size, buffers, want, got);
}

LAB_TEST(4, hash_want, LAB_PAGES)
{
    static const struct {
        uint16_t size, last, first, becomes;
    } steps[] = {
        {64, 169, 170, 256},      {256, 681, 682, 1024},
        {1024, 2729, 2730, 4096}, {16384, 5460, 5459, 4096},
        {4096, 1364, 1363, 1024}, {1024, 340, 339, 256},
        {256, 84, 83, 64},
    };

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        check_step(steps[i].size, steps[i].last, steps[i].size);
        check_step(steps[i].size, steps[i].first, steps[i].becomes);
    }
    check_step(64, 0, 64);
    check_step(128, 0, 128); /* 64 is not less than half */
    check_step(64, 1000, 1024);
    check_step(4096, 0, 64);
}

/* A table of `pages` pages, a power of two, with the first `n` bufctls in it,
 * two in each bucket that is used. The page after it is the test's: its first
 * word is as another bucket, which the table does not have. */
static struct kmem_cache *filled(size_t pages, size_t n)
{
    static struct kmem_bufctl beyond;
    struct kmem_cache *cp = lab4_cache(SIZE, 8);
    size_t bytes = pages * PAGE_SIZE;
    void *table = kmem_getpages(pages + 1, PAGE_HASH, cp);

    KT_TRUE(table != NULL);
    if (table == NULL)
        return NULL;
    cp->cache_hash = memset(table, 0, bytes);
    cp->cache_hash_mask = bytes / sizeof(void *) - 1;
    cp->cache_hash_shift = 10;
    cp->cache_hash[cp->cache_hash_mask + 1] = &beyond;
    cp->cache_slabs = n / PER;
    for (size_t i = 0; i < n; i++) {
        size_t far = (cp->cache_hash_mask + 1) << 10;

        bufctl[i].bufctl_addr =
            (void *)(0xd0000000u + SIZE * (i / 2) + i % 2 * far);
        kmem_hash_enter(cp, &bufctl[i]);
    }
    return cp;
}

/* How many bufctls the table has, each in its own bucket. */
static size_t hashed(struct kmem_cache *cp, size_t most)
{
    size_t n = 0;

    for (size_t i = 0; i <= cp->cache_hash_mask; i++)
        for (struct kmem_bufctl *b = cp->cache_hash[i]; b != NULL;
             b = b->bufctl_next) {
            if (kmem_hash_bucket(cp, b->bufctl_addr) != &cp->cache_hash[i]) {
                KT_FAIL("bucket %zu has the bufctl of buffer 0x%llx, which "
                        "belongs in another",
                        i, KT_PTR(b->bufctl_addr));
                return n;
            }
            if (++n > most)
                return n;
        }
    return n;
}

static void check_rescale(size_t pages, size_t n, size_t becomes)
{
    struct segkmem_stat before, after;
    struct kmem_cache *cp;
    void *old;

    segkmem_stat(&before);
    cp = filled(pages, n);
    if (cp == NULL)
        return;
    old = cp->cache_hash;
    kmem_hash_rescale(cp);
    if (cp->cache_hash_mask + 1 != becomes)
        KT_FAIL("%zu buffers in %zu buckets: the table has now %zu, want %zu",
                n, pages * PAGE_SIZE / sizeof(void *), cp->cache_hash_mask + 1,
                becomes);
    if (hashed(cp, n) != n)
        KT_FAIL("of %zu bufctls %zu are in the new table", n, hashed(cp, n));
    KT_EQ(cp->cache_hash_rescales, 1);
    kmem_freepages(cp->cache_hash, kmem_hash_pages(becomes));
    kmem_freepages((char *)old + pages * PAGE_SIZE, 1);
    segkmem_stat(&after);
    lab_held("pages of tables", after.stat_use[PAGE_HASH],
             before.stat_use[PAGE_HASH]);
}

/* Growing from 1,024 to 4,096 would take more bufctls than shrinking does. */
LAB_TEST(4, rehash, LAB_PAGES)
{
    check_rescale(4, BUFCTLS, 1024);
}
