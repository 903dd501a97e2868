/*
 * The arena of the tests, and random operations. Each block is filled with a
 * pattern of its own, so that two that overlap are noticed.
 */
#include "mm/others/tests/ops.h"
#include "kernel/lib/string.h"

#include <stdlib.h>

struct supply test_pages;
size_t test_align = 8;

static const struct other_allocator *test_allocator;
static void *(*arena_get)(struct supply *s, size_t pages, size_t align);
static void (*meanwhile)(void);
static char *arena;
static uintptr_t info[TEST_PAGES][SUPPLY_INFO_WORDS];
static uint8_t used[TEST_PAGES];

void other_test_start(const struct other_allocator *a)
{
    test_allocator = a;
    if (arena == NULL)
        arena = aligned_alloc(MIB(4), TEST_PAGES * PAGE_SIZE);
    supply_arena(&test_pages, arena, TEST_PAGES, info, used);
    arena_get = test_pages.supply_get;
    a->op_init(&test_pages);
}

void other_test_check(void)
{
    const char *wrong = test_allocator->op_check();

    if (wrong != NULL)
        KT_FAIL("%s: %s", test_allocator->op_name, wrong);
    KT_EQ(test_held(), test_pages.supply_held);
}

size_t test_offset(const void *p)
{
    return (size_t)((const char *)p - arena);
}

struct other_stat test_counts(void)
{
    struct other_stat st;

    test_allocator->op_stat(&st);
    KT_EQ(st.stat_held, st.stat_requested + st.stat_internal +
                            st.stat_external + st.stat_metadata);
    return st;
}

size_t test_held(void)
{
    return test_counts().stat_held >> PAGE_SHIFT;
}

unsigned test_waste(void)
{
    struct other_stat st = test_counts();

    return (
        unsigned)(((st.stat_held - st.stat_requested) * 200 + st.stat_held) /
                  (2 * st.stat_held));
}

static void *get_meanwhile(struct supply *s, size_t pages, size_t align)
{
    s->supply_get = arena_get;
    meanwhile();
    return s->supply_get(s, pages, align);
}

void other_test_meanwhile(void (*fn)(void))
{
    meanwhile = fn;
    test_pages.supply_get = get_meanwhile;
}

void *other_test_no_pages(struct supply *s UNUSED, size_t pages UNUSED,
                          size_t align UNUSED)
{
    return NULL;
}

/* ---- the operations ----------------------------------------------------- */

void *get(size_t size)
{
    void *p = test_allocator->op_alloc(size);

    KT_REQUIRE(p != NULL);
    return p;
}

void put(void *p, size_t size)
{
    test_allocator->op_free(p, size);
}

void *get_object(struct other_cache *c)
{
    void *obj = test_allocator->op_cache_alloc(c);

    KT_REQUIRE(obj != NULL);
    return obj;
}

void put_object(struct other_cache *c, void *obj)
{
    test_allocator->op_cache_free(c, obj);
}

void expect_wrong(const char *text)
{
    const char *wrong = test_allocator->op_check();

    if (wrong == NULL || strstr(wrong, text) == NULL)
        KT_FAIL("check() says %s, not %s", wrong ?: "nothing", text);
}

/* ---- random operations -------------------------------------------------- */

#define BLOCKS 4000

static struct block {
    unsigned char *block_at;
    size_t block_size;
    struct other_cache *block_cache; /* NULL: of alloc() */
} block[BLOCKS];

static uint32_t state;

static uint32_t random_below(uint32_t n)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % n;
}

/* Objects that are constructed. An allocated one stays so in these tests. */
static unsigned constructed;

static bool filled(const unsigned char *p, size_t size, unsigned char is)
{
    for (size_t i = 0; i < size; i++)
        if (p[i] != is)
            return false;
    return true;
}

static void construct(void *obj, size_t size)
{
    memset(obj, 0x55, size);
    constructed++;
}

static void destroy(void *obj, size_t size)
{
    KT_REQUIRE(filled(obj, size, 0x55));
    memset(obj, 0xaa, size);
    constructed--;
}

/* One that has them constructed; alignments; one of whole pages. */
static struct other_cache cache[] = {
    {.other_size = 40, .other_ctor = construct, .other_dtor = destroy},
    {.other_size = 333},
    {.other_size = 100, .other_align = 64},
    {.other_size = 4096, .other_align = 4096},
    {.other_size = 5000, .other_align = 16},
};

static bool add_block(struct block *b, size_t most)
{
    uint32_t kind = random_below(2 * ARRAY_SIZE(cache));
    size_t align = test_align;

    *b = (struct block){0};
    if (kind < ARRAY_SIZE(cache)) {
        b->block_cache = &cache[kind];
        b->block_size = cache[kind].other_size;
        align = MAX(align, cache[kind].other_align);
        b->block_at = test_allocator->op_cache_alloc(b->block_cache);
    } else {
        b->block_size = random_below((uint32_t)most) + 1;
        b->block_at = test_allocator->op_alloc(b->block_size);
    }
    if (b->block_at == NULL)
        return false;
    KT_EQ((uintptr_t)b->block_at % align, 0);
    if (b->block_cache != NULL && b->block_cache->other_ctor != NULL)
        KT_REQUIRE(filled(b->block_at, b->block_size, 0x55));
    else
        memset(b->block_at, (int)(uintptr_t)b->block_at >> 3 & 0xff,
               b->block_size);
    return true;
}

static void remove_block(struct block *b)
{
    unsigned char is = (uintptr_t)b->block_at >> 3 & 0xff;

    if (b->block_cache != NULL && b->block_cache->other_ctor != NULL)
        is = 0x55;
    KT_REQUIRE(filled(b->block_at, b->block_size, is));
    if (b->block_cache != NULL)
        test_allocator->op_cache_free(b->block_cache, b->block_at);
    else
        test_allocator->op_free(b->block_at, b->block_size);
}

void other_test_random(unsigned seed, unsigned ops, size_t most)
{
    unsigned n = 0;
    struct other_stat st;

    state = seed;
    for (size_t i = 0; i < ARRAY_SIZE(cache); i++)
        KT_REQUIRE(other_cache_create(test_allocator, &cache[i]));
    for (unsigned i = 0; i < ops; i++) {
        other_cpu = random_below(other_cpus);
        if (n < BLOCKS && random_below(100) < 52) {
            n += add_block(&block[n], most);
        } else if (n > 0) {
            unsigned k = random_below(n);

            remove_block(&block[k]);
            block[k] = block[--n];
        }
        if (i % 50 == 0)
            other_test_check();
    }
    while (n > 0)
        remove_block(&block[--n]);
    for (size_t i = 0; i < ARRAY_SIZE(cache); i++) {
        other_cache_destroy(test_allocator, &cache[i]);
        KT_EQ(cache[i].other_allocs, cache[i].other_frees);
    }
    KT_EQ(constructed, 0);
    KT_EQ(test_counts().stat_requested, 0);
    KT_EQ(test_counts().stat_internal, 0);
    if (test_allocator->op_cache_create == NULL) /* a slab keeps its index */
        KT_EQ(test_counts().stat_metadata % 512, 0); /* of pages, not blocks */
    st = test_counts();
    KT_TRUE(get(0) == OTHER_NOTHING);
    put(OTHER_NOTHING, 0);
    KT_EQ(test_counts().stat_allocs, st.stat_allocs);
    KT_EQ(test_counts().stat_frees, st.stat_frees);
    other_test_check();
}

/* ---- objects that stay constructed --------------------------------------- */

#define IN_A_SLAB 13

static unsigned destroyed;

void other_test_constructed(void)
{
    struct other_cache c = {
        .other_size = 300, .other_ctor = construct, .other_dtor = destroy};
    void *obj;

    constructed = 0;
    KT_REQUIRE(test_allocator->op_cache_create(&c));
    KT_EQ(constructed, 0);
    obj = get_object(&c);
    KT_EQ(constructed, IN_A_SLAB);
    put_object(&c, obj);
    KT_TRUE(get_object(&c) == obj);
    KT_EQ(constructed, IN_A_SLAB);
    put_object(&c, obj);
    test_allocator->op_pressure();
    KT_EQ(constructed, 0);
    put_object(&c, get_object(&c));
    test_allocator->op_cache_destroy(&c);
    KT_EQ(constructed, 0);
    KT_EQ(test_held(), 0);
    other_test_check();
}

/* A destructor runs without a lock, and while other slabs wait for theirs. */
static void check_meanwhile(void *obj UNUSED, size_t size UNUSED)
{
    KT_TRUE(test_allocator->op_check() == NULL);
    destroyed++;
}

void other_test_going_back(void)
{
    struct other_cache c = {.other_size = 300,
                            .other_ctor = construct,
                            .other_dtor = check_meanwhile};
    void *obj[3 * IN_A_SLAB];

    destroyed = 0;
    KT_REQUIRE(test_allocator->op_cache_create(&c));
    for (size_t i = 0; i < ARRAY_SIZE(obj); i++)
        obj[i] = get_object(&c);
    for (size_t i = 0; i < ARRAY_SIZE(obj); i++)
        put_object(&c, obj[i]);
    test_allocator->op_pressure();
    KT_EQ(destroyed, ARRAY_SIZE(obj));
    KT_EQ(test_held(), 0);
    other_test_check();
}

/* ---- mistakes of clients ------------------------------------------------- */

void other_test_mistakes(struct other_cache *c, char *last)
{
    char *p = get(100);
    char *whole = get(3 * PAGE_SIZE);

    KT_PANICS(put(p, 300), "is not an object of 512 bytes");
    KT_PANICS(put(p + 8, 100), "is not an object of 128 bytes");
    KT_PANICS(put(whole, 100), "is not an object of 128 bytes");
    KT_PANICS(put(whole, 5 * PAGE_SIZE), "is not a block of 20480 bytes");
    KT_PANICS(put(p, 3 * PAGE_SIZE), "is not a block of 12288 bytes");
    KT_PANICS(put_object(c, p), "is not an object of 300 bytes");
    KT_PANICS(put_object(c, last + 300), "is not an object of 300 bytes");
    KT_PANICS(put(&p, 100), "is not memory");
}
