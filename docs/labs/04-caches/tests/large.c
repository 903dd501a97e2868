/*
 * Tests of lab 4: large objects and their hash table (tasks 4.4 to 4.6).
 *
 * The caches that slab data and bufctls come from are the test's own here: a
 * bit in the flag word sends every allocation and every free to functions below
 * (section 6 of the paper), so that the front end need not be there yet.
 */
#include "docs/labs/04-caches/tests/common.h"
#include "mm/debug/debug.h"

#define SIZE    1200 /* 10 to a slab of three pages */
#define PER     10
#define COLOUR  16
#define BUFCTLS 1300
#define BUCKETS 64
#define CHAIN   5

/* ---- caches of the test's own ------------------------------------------- */

static struct kmem_bufctl bufctl[BUFCTLS];
static bool bufctl_out[PER + 1];
static size_t bufctl_limit;
static size_t bufctl_wrong; /* frees of what is not out */
static bool bufctl_sleepy;  /* one was asked for with KM_SLEEP */

static struct kmem_slab data;
static bool data_out;

static void *bufctl_alloc(struct kmem_cache *cp, int flags)
{
    void *found = NULL;

    bufctl_sleepy |= flags != KM_NOSLEEP;
    for (size_t i = 0; i < bufctl_limit && found == NULL; i++)
        if (!bufctl_out[i]) {
            bufctl_out[i] = true;
            found = memset(&bufctl[i], 0x5a, sizeof(bufctl[i]));
        }
    mm_unlock(&cp->cache_lock);
    return found;
}

static void bufctl_free(struct kmem_cache *cp, void *buf)
{
    size_t i = (size_t)((struct kmem_bufctl *)buf - bufctl);

    if (i >= bufctl_limit || !bufctl_out[i])
        bufctl_wrong++;
    else
        bufctl_out[i] = false;
    mm_unlock(&cp->cache_lock);
}

static void *data_alloc(struct kmem_cache *cp, int flags)
{
    (void)flags;
    mm_unlock(&cp->cache_lock);
    if (data_out)
        return NULL;
    data_out = true;
    return &data;
}

static void data_free(struct kmem_cache *cp, void *buf)
{
    mm_unlock(&cp->cache_lock);
    if (buf == &data && data_out)
        data_out = false;
    else
        KT_FAIL("0x%llx was freed as slab data, which it is not", KT_PTR(buf));
}

/* There are `n` bufctls, and slab data for one slab. */
static void provide(size_t n)
{
    static struct kmem_cache bufctls = {.cache_flags = KMF_VERIFY,
                                        .cache_alloc_slow = bufctl_alloc,
                                        .cache_free_slow = bufctl_free};
    static struct kmem_cache slabs = {.cache_flags = KMF_VERIFY,
                                      .cache_alloc_slow = data_alloc,
                                      .cache_free_slow = data_free};

    memset(bufctl_out, 0, sizeof(bufctl_out));
    bufctl_limit = n;
    bufctl_wrong = 0;
    bufctl_sleepy = false;
    kmem_bufctl_cache = &bufctls;
    kmem_slab_cache = &slabs;
}

static size_t bufctls_out(void)
{
    size_t n = 0;

    for (size_t i = 0; i < bufctl_limit; i++)
        n += bufctl_out[i];
    return n;
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
        KT_FAIL("the freelist goes on after %u buffers", PER);
}

static void check_untouched(const uint8_t *page, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (page[i] != 0xa5) {
            KT_FAIL("byte %zu of the slab's pages was written: of large "
                    "objects nothing of the allocator's lies there",
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
    KT_REQUIRE(sp == &data);
    KT_EQ(bufctls_out(), PER);
    check_freelist(sp, sp->slab_base);
    check_untouched(sp->slab_base, 3 * PAGE_SIZE);
    kmem_slab_destroy(cp, sp);
    KT_EQ(bufctl_wrong, 0);
    lab_held("bufctls", bufctls_out(), 0);
    lab_held("slab data", data_out, 0);
    lab4_pages_left();
}

/* Memory ends at each possible moment: what was got goes back. */
LAB_TEST(4, bufctls_run_out, LAB_PAGES)
{
    struct kmem_cache *cp = lab4_cache(SIZE, 8);

    for (size_t n = 0; n < PER; n++) {
        provide(n);
        if (kmem_slab_create(cp, COLOUR) != NULL)
            KT_FAIL("there were %zu bufctls for %u buffers, and yet a slab", n,
                    PER);
        if (bufctls_out() != 0)
            KT_FAIL("after a failure at bufctl %zu, %zu are not back", n,
                    bufctls_out());
        if (bufctl_sleepy)
            KT_FAIL("a bufctl was asked for without KM_NOSLEEP: whoever makes "
                    "a slab may be the one that others wait for");
        KT_EQ(bufctl_wrong, 0);
        KT_TRUE(!data_out);
        KT_REQUIRE(lab4_pages.out == 0);
    }
}

/* ---- 4.5 from a buffer to its bufctl ------------------------------------ */

/* A cache with a table and one slab, whose buffers all fall into one bucket:
 * the first into that of number 0. No memory is behind them. */
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

    for (size_t i = 0; i < CHAIN; i++) {
        void *buf;

        mm_lock(&cp->cache_lock);
        buf = kmem_alloc_large(cp, KM_NOSLEEP);
        LAB4_UNLOCKED("kmem_alloc_large");
        if (buf != bufctl[i].bufctl_addr)
            KT_FAIL("kmem_alloc_large gave 0x%llx, want 0x%llx, the address in "
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

/* All out; the chain has the last one first. */
static struct kmem_cache *all_out(void)
{
    struct kmem_cache *cp = one_chain();

    for (size_t i = 0; i < CHAIN; i++) {
        kmem_slab_take(cp, &data, &bufctl[i]);
        kmem_hash_enter(cp, &bufctl[i]);
    }
    return cp;
}

LAB_TEST(4, hash_out, LAB_PAGES)
{
    static const uint8_t order[CHAIN] = {2, 4, 0, 3, 1};
    struct kmem_cache *cp = all_out();
    unsigned left = (1u << CHAIN) - 1;

    for (size_t k = 0; k < CHAIN; k++) {
        size_t i = order[k];

        mm_lock(&cp->cache_lock);
        kmem_free_large(cp, bufctl[i].bufctl_addr);
        LAB4_UNLOCKED("kmem_free_large");
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
    /* 2 of 4 3 2 1 0 passes two others, 4 none, 0 of 3 1 0 two, 3 none, 1
     * none */
    KT_EQ(cp->cache_hash_depth, 4);
}

LAB_TEST(4, hash_unknown, LAB_PAGES)
{
    struct kmem_cache *cp = all_out();
    char *inside = (char *)bufctl[1].bufctl_addr + 8;

    kmem_error_panics = false;
    mm_lock(&cp->cache_lock);
    kmem_free_large(cp, inside);
    LAB4_UNLOCKED("kmem_free_large of an address that is no buffer");
    KT_EQ(kmem_error_count, 1);
    if (!chained(cp, (1u << CHAIN) - 1))
        KT_FAIL("an address that is no buffer's was freed, and the bucket's "
                "chain has changed");
    KT_EQ(data.slab_refcnt, CHAIN);
    KT_EQ(cp->cache_frees, 0);
}

/* ---- 4.6 a table that scales itself ------------------------------------- */

/* The least number of buffers, or the most, for which a table of `size` is to
 * be replaced, and by which. */
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
    check_step(64, 1000, 1024);
    check_step(4096, 0, 64);
}

/* A table of `pages` pages with the first `n` bufctls in it. */
static struct kmem_cache *filled(size_t pages, size_t n)
{
    struct kmem_cache *cp = lab4_cache(SIZE, 8);
    size_t bytes = pages * PAGE_SIZE;
    void *table = kmem_getpages(pages, PAGE_HASH, cp);

    KT_TRUE(table != NULL);
    if (table == NULL)
        return NULL;
    cp->cache_hash = memset(table, 0, bytes);
    cp->cache_hash_mask = bytes / sizeof(void *) - 1;
    cp->cache_hash_shift = 10;
    cp->cache_slabs = n / PER;
    for (size_t i = 0; i < n; i++) {
        bufctl[i].bufctl_addr = (void *)(0xd0000000u + SIZE * i);
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
                        "belongs into another",
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

    segkmem_stat(&before);
    cp = filled(pages, n);
    if (cp == NULL)
        return;
    kmem_hash_rescale(cp);
    if (cp->cache_hash_mask + 1 != becomes)
        KT_FAIL("%zu buffers in %zu buckets: the table has now %zu, want %zu",
                n, pages * PAGE_SIZE / sizeof(void *), cp->cache_hash_mask + 1,
                becomes);
    if (hashed(cp, n) != n)
        KT_FAIL("of %zu bufctls %zu are in the new table", n, hashed(cp, n));
    KT_EQ(cp->cache_hash_rescales, 1);
    kmem_freepages(cp->cache_hash, kmem_hash_pages(becomes));
    segkmem_stat(&after);
    lab_held("pages of tables", after.stat_use[PAGE_HASH],
             before.stat_use[PAGE_HASH]);
}

/* Growing from 1,024 to 4,096 would take more bufctls than shrinking does. */
LAB_TEST(4, rehash, LAB_PAGES)
{
    check_rescale(4, BUFCTLS, 1024);
}
