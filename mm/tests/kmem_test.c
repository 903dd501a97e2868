/*
 * What the tests of mm/ share; kmem_test.h says what for.
 */
#include "mm/tests/kmem_test.h"

void *test_obj[TEST_OBJS];

/* ---- a page supplier of one's own --------------------------------------- */

static void *supply_get(size_t pages, void *arg)
{
    struct test_supply *s = arg;
    struct page *p = NULL;

    if (s->held + pages <= s->limit)
        p = buddy_alloc_run(pages);
    if (p == NULL) {
        s->fails++;
        return NULL;
    }
    s->held += pages;
    s->gets++;
    memset(page_to_virt(p), 0xa5, pages * PAGE_SIZE);
    return page_to_virt(p);
}

static void supply_free(void *addr, size_t pages, void *arg)
{
    struct test_supply *s = arg;

    s->held -= pages;
    s->frees++;
    memset(addr, 0x5a, pages * PAGE_SIZE);
    buddy_free_run(virt_to_page(addr), pages);
}

void test_supply_init(struct test_supply *s, size_t limit)
{
    *s = (struct test_supply){
        .supply = {supply_get, supply_free, s},
        .limit = limit,
    };
}

struct kmem_cache *test_supply_cache(struct test_supply *s, size_t limit,
                                     size_t size)
{
    struct kmem_cache *cp;

    test_supply_init(s, limit);
    cp = kmem_cache_create_from("t_supply", size, 0, NULL, NULL, &s->supply);
    KT_REQUIRE(cp != NULL);
    return cp;
}

/* ---- all of memory ------------------------------------------------------ */

/* Blocks taken from buddy, chained through their own first words. */
struct flood {
    struct flood *flood_next;
    unsigned flood_order;
};

static struct flood *flood;
static struct flood *flood_pages; /* those of a single page */

static void flood_push(struct page *p, unsigned order)
{
    struct flood *f = page_to_virt(p);
    struct flood **list = order == 0 ? &flood_pages : &flood;

    f->flood_order = order;
    f->flood_next = *list;
    *list = f;
}

static struct page *flood_pop(struct flood **list)
{
    struct flood *f = *list;

    *list = f->flood_next;
    return virt_to_page(f);
}

static void drain(void *unused)
{
    (void)unused;
    test_flood_end();
}

void test_flood(void)
{
    ktest_undo(drain, NULL);
    kmem_reap(KMEM_REAP_ALL);
    for (unsigned order = BUDDY_ORDERS; order-- > 0;) {
        struct page *p;

        while ((p = buddy_alloc(order)) != NULL)
            flood_push(p, order);
    }
}

/* A single page of the flood, NULL if there is none. If necessary, breaks a
 * larger block up. Blocks released before may be among those taken. */
static struct page *flood_page(void)
{
    if (flood_pages == NULL && flood != NULL) {
        unsigned order = flood->flood_order;

        buddy_free(flood_pop(&flood), order);
        for (size_t i = 0; i < (size_t)1 << order; i++)
            flood_push(buddy_alloc(0), 0);
    }
    return flood_pages == NULL ? NULL : flood_pop(&flood_pages);
}

void test_flood_release(size_t pages)
{
    for (; pages != 0; pages--) {
        struct page *p = flood_page();

        if (p == NULL) {
            KT_FAIL("all of memory has %zu pages too few", pages);
            return;
        }
        buddy_free(p, 0);
    }
}

void test_flood_end(void)
{
    while (flood_pages != NULL)
        buddy_free(flood_pop(&flood_pages), 0);
    while (flood != NULL) {
        unsigned order = flood->flood_order;

        buddy_free(flood_pop(&flood), order);
    }
}

/* Objects taken from the allocator's own caches, chained likewise. */
struct starved {
    struct starved *starved_next;
};

#define STARVED_CACHES 4
static struct starved *starved[STARVED_CACHES];

static struct kmem_cache *own_cache(unsigned i)
{
    static const char *const names[STARVED_CACHES] = {
        "kmem_cache", "kmem_slab", "kmem_bufctl", "kmem_hash"};

    return kmem_cache_find(names[i]);
}

static void feed(void *unused)
{
    (void)unused;
    test_starve_end();
}

void test_starve(void)
{
    ktest_undo(feed, NULL);
    for (unsigned i = 0; i < STARVED_CACHES; i++) {
        struct starved *s;

        while ((s = kmem_cache_alloc(own_cache(i), KM_NOSLEEP)) != NULL) {
            s->starved_next = starved[i];
            starved[i] = s;
        }
    }
}

void test_starve_end(void)
{
    for (unsigned i = 0; i < STARVED_CACHES; i++) {
        while (starved[i] != NULL) {
            struct starved *s = starved[i];

            starved[i] = s->starved_next;
            kmem_cache_free(own_cache(i), s);
        }
    }
}

/* ---- constructed objects ------------------------------------------------ */

size_t test_ctors;
size_t test_dtors;
size_t test_bad;

void test_constructed_reset(void)
{
    test_ctors = 0;
    test_dtors = 0;
    test_bad = 0;
}

static uint8_t pattern(const void *obj, size_t i)
{
    return (uint8_t)(((uintptr_t)obj >> 3) + i * 7 + 1);
}

bool test_is_constructed(const void *obj, size_t size)
{
    const uint8_t *b = obj;

    for (size_t i = 0; i < size; i++)
        if (b[i] != pattern(obj, i))
            return false;
    return true;
}

void test_ctor(void *obj, size_t size)
{
    uint8_t *b = obj;

    test_ctors++;
    for (size_t i = 0; i < size; i++)
        b[i] = pattern(obj, i);
}

void test_dtor(void *obj, size_t size)
{
    test_dtors++;
    if (!test_is_constructed(obj, size))
        test_bad++;
    memset(obj, 0, size);
}

/* ---- objects by number -------------------------------------------------- */

void test_alloc(struct kmem_cache *cp, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        test_obj[i] = kmem_cache_alloc(cp, KM_NOSLEEP);
        KT_REQUIRE(test_obj[i] != NULL);
    }
}

void test_free(struct kmem_cache *cp, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        kmem_cache_free(cp, test_obj[i]);
}

void test_destroy(struct kmem_cache *cp)
{
    KT_EQ(kmem_cache_destroy(cp), 0);
}

/* ---- looking inside ----------------------------------------------------- */

struct kmem_slab *test_slab_of(struct kmem_cache *cp, const void *buf)
{
    struct kmem_bufctl *bcp;

    if ((cp->cache_flags & KMF_HASH) == 0)
        return (struct kmem_slab *)(((uintptr_t)buf & ~(uintptr_t)PAGE_MASK) +
                                    PAGE_SIZE - TEST_H);
    for (bcp = *kmem_hash_bucket(cp, buf); bcp != NULL; bcp = bcp->bufctl_next)
        if (bcp->bufctl_addr == buf)
            return bcp->bufctl_slab;
    return NULL;
}

struct kmem_slab *test_slab(struct kmem_cache *cp, size_t n)
{
    struct kmem_slab *sp = kmem_slab_next(&cp->cache_null);

    while (n-- != 0 && sp != &cp->cache_null)
        sp = kmem_slab_next(sp);
    return sp == &cp->cache_null ? NULL : sp;
}

/* The pages of a slab of large objects: the smallest number up to 8 that wastes
 * at most a sixteenth, or else the smallest of any that wastes at most an
 * eighth. */
static size_t rule_pages(size_t chunk)
{
    for (size_t n = 1; n <= 8; n++) {
        size_t bytes = n * 4096;

        if (bytes >= chunk && 16 * (bytes % chunk) <= bytes)
            return n;
    }
    for (size_t n = 1;; n++) {
        size_t bytes = n * 4096;

        if (bytes >= chunk && 8 * (bytes % chunk) <= bytes)
            return n;
    }
}

struct test_geometry test_geometry(size_t size, size_t align, bool constructed)
{
    struct test_geometry g = {.pages = 1};
    size_t space = 4096 - TEST_H;

    if (align < 8)
        align = 8;
    g.chunk = size + (constructed ? TEST_WORD : 0);
    g.chunk = (g.chunk + align - 1) / align * align;
    if (g.chunk >= 512) {
        g.large = true;
        g.chunk = (size + align - 1) / align * align;
        g.pages = rule_pages(g.chunk);
        space = g.pages * 4096;
    }
    g.objects = space / g.chunk;
    g.left = space - g.objects * g.chunk;
    g.colour_max = (g.left < 4096 ? g.left : 4095) / align * align;
    return g;
}

struct kmem_cache *test_setup(size_t size, size_t align, bool constructed)
{
    static struct kmem_cache cache;

    kmem_cache_setup(&cache, "t_setup", size, align,
                     constructed ? test_ctor : NULL, NULL, NULL);
    return &cache;
}

struct kmem_cache_stat test_stat(struct kmem_cache *cp)
{
    struct kmem_cache_stat stat;

    kmem_cache_stat(cp, &stat);
    return stat;
}

void test_verify(const char *file, int line, struct kmem_cache *cp,
                 const char *what)
{
    const char *where = NULL;
    const char *why =
        cp == NULL ? kmem_verify(&where) : kmem_cache_verify(cp, &where);

    if (strcmp(why == NULL ? "nothing" : why, what == NULL ? "nothing" : what))
        ktest_fail(file, line, "verify says \"%s\" (%s), expected \"%s\"",
                   why == NULL ? "nothing" : why, why == NULL ? "" : where,
                   what == NULL ? "nothing" : what);
    else if (why != NULL && (where == NULL || *where == '\0'))
        ktest_fail(file, line, "\"%s\", but not where", what);
}

void test_verify_at(const char *file, int line, struct kmem_cache *cp,
                    const char *fmt, ...)
{
    const char *where = NULL;
    char text[96];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (kmem_cache_verify(cp, &where) == NULL)
        ktest_fail(file, line, "verify says nothing, expected %s", text);
    else if (where == NULL || strcmp(where, text) != 0)
        ktest_fail(file, line, "verify says %s, expected %s",
                   where == NULL ? "no place" : where, text);
}

static uint32_t saved_interval;

static void start_again(void *unused)
{
    (void)unused;
    test_clock_start();
}

void test_clock_stop(void)
{
    saved_interval = kmem_ws_interval;
    kmem_ws_interval = KMEM_WS_INFINITE - 1;
    ktest_undo(start_again, NULL);
}

void test_clock_start(void)
{
    kmem_ws_interval = saved_interval;
}

struct kmem_cache *test_ws_make(size_t slabs)
{
    struct kmem_cache *cp = kmem_cache_create("t_ws", 500, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL && cp->cache_slab_chunks == TEST_WS_PER);
    test_clock_stop();
    test_alloc(cp, 0, slabs * TEST_WS_PER);
    return cp;
}

void test_ws_end(struct kmem_cache *cp)
{
    TEST_VERIFY(cp);
    test_clock_start();
    test_destroy(cp);
}

void test_ws_expect(struct kmem_cache *cp, size_t t, size_t m, size_t l)
{
    if (cp->cache_free_slabs != t || cp->cache_ws_min != m ||
        cp->cache_ws_limit != l)
        KT_FAIL("T %zu, m %zu, L %zu; want %zu, %zu, %zu",
                (size_t)cp->cache_free_slabs, (size_t)cp->cache_ws_min,
                (size_t)cp->cache_ws_limit, t, m, l);
}

uint32_t test_random(uint32_t *state)
{
    uint32_t x = *state;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}
