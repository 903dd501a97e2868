/*
 * kmem_alloc: any size (paper, 3.1). After the cases of the SPLAT kmem tests
 * (kmem_alloc, kmem_zalloc, vmem_alloc, vmem_zalloc) and libumem's.
 */
#include "mm/tests/kmem_test.h"

#define LIVE 64

static void *buf[LIVE];
static size_t buf_size[LIVE];

static void free_all(void *unused)
{
    (void)unused;
    for (size_t k = 0; k < LIVE; k++) {
        if (buf[k] != NULL)
            kmem_free(buf[k], buf_size[k]);
        buf[k] = NULL;
    }
}

static void get(size_t k, size_t size, bool zero)
{
    buf[k] =
        zero ? kmem_zalloc(size, KM_NOSLEEP) : kmem_alloc(size, KM_NOSLEEP);
    KT_REQUIRE(buf[k] != NULL);
    buf_size[k] = size;
}

static bool filled(const void *p, size_t size, uint8_t with)
{
    const uint8_t *b = p;

    for (size_t i = 0; i < size; i++)
        if (b[i] != with)
            return false;
    return true;
}

/* Ten of each size, doubling; `check` zero says that they must be zero. */
static void check_doubling(size_t from, size_t to, bool zero)
{
    for (size_t size = from; size <= to; size *= 2) {
        for (size_t i = 0; i < 10; i++) {
            get(i, size, zero);
            if (zero)
                KT_TRUE(filled(buf[i], size, 0));
            memset(buf[i], (int)(i + 1), size);
        }
        for (size_t i = 0; i < 10; i++)
            KT_TRUE(filled(buf[i], size, (uint8_t)(i + 1)));
        free_all(NULL);
    }
}

KTEST(kmem_alloc, splat_1_doubling_sizes)
{
    KT_NEEDS(MIB(1));
    ktest_undo(free_all, NULL);
    check_doubling(PAGE_SIZE, KIB(64), false);
    check_doubling(1, PAGE_SIZE, false);
}

KTEST(kmem_alloc, splat_2_zeroed)
{
    ktest_undo(free_all, NULL);
    check_doubling(1, PAGE_SIZE, true);
    check_doubling(1, PAGE_SIZE, true); /* now that memory is dirty */
}

/* In the second round the memory is dirty. */
KTEST(kmem_alloc, splat_3_and_4_across_both_paths)
{
    for (size_t size = 1000; size <= 4 * KMEM_MAXBUF; size += 777) {
        for (unsigned round = 0; round < 2; round++) {
            void *p = kmem_zalloc(size, KM_NOSLEEP);

            KT_REQUIRE(p != NULL);
            KT_TRUE(filled(p, size, 0));
            KT_EQ((uintptr_t)p % (size > KMEM_MAXBUF ? PAGE_SIZE : 8), 0);
            memset(p, 0xee, size);
            kmem_free(p, size);
        }
    }
}

KTEST(kmem_alloc, libumem_boundaries_of_every_class)
{
    for (size_t size = 1; size <= KMEM_MAXBUF; size++) {
        struct kmem_cache *cp = kmem_size_class(size);
        void *p;

        if (size + 1 < cp->cache_size && size % 61 != 0)
            continue;
        p = kmem_alloc(size, KM_NOSLEEP);
        KT_REQUIRE(p != NULL);
        KT_TRUE(test_slab_of(cp, p)->slab_cache == cp);
        memset(p, 0x5c, cp->cache_chunk); /* all of the chunk may be used */
        kmem_free(p, size);
    }
}

KTEST(kmem_alloc, libumem_near_powers_of_two)
{
    KT_NEEDS(MIB(1));
    ktest_undo(free_all, NULL);
    for (size_t power = 8; power <= KIB(128); power *= 2) {
        for (size_t i = 0; i < 3; i++) {
            get(i, power - 1 + i, false);
            memset(buf[i], (int)(i + 1), buf_size[i]);
        }
        for (size_t i = 0; i < 3; i++)
            KT_TRUE(filled(buf[i], buf_size[i], (uint8_t)(i + 1)));
        free_all(NULL);
    }
}

KTEST(kmem_alloc, libumem_live_buffers_never_overlap)
{
    uint32_t seed = 7;

    KT_NEEDS(MIB(1));
    ktest_undo(free_all, NULL);
    for (size_t i = 0; i < TEST_MANY(5000u, 50000u); i++) {
        size_t k = test_random(&seed) % LIVE;

        if (buf[k] != NULL) {
            KT_TRUE(filled(buf[k], buf_size[k], (uint8_t)k));
            kmem_free(buf[k], buf_size[k]);
        }
        get(k, 1 + test_random(&seed) % (i % 8 == 0 ? 20000 : 700), false);
        memset(buf[k], (int)k, buf_size[k]);
    }
    free_all(NULL);
}

KTEST(kmem_alloc, more_than_the_largest_block_is_null)
{
    struct kmem_oversize_stat before;
    struct kmem_oversize_stat after;

    kmem_oversize_stat(&before);
    KT_TRUE(kmem_alloc(BUDDY_MAX_PAGES * PAGE_SIZE + 1, KM_NOSLEEP) == NULL);
    KT_TRUE(kmem_alloc(SIZE_MAX, KM_NOSLEEP) == NULL);
    KT_TRUE(kmem_alloc(SIZE_MAX - PAGE_MASK, KM_NOSLEEP) == NULL);
    KT_TRUE(kmem_zalloc(SIZE_MAX / 2, KM_NOSLEEP) == NULL);
    kmem_oversize_stat(&after);
    KT_EQ(after.stat_fails - before.stat_fails, 4);
    KT_EQ(after.stat_inuse, before.stat_inuse);
    KT_EQ(after.stat_allocs, before.stat_allocs);
}

/* The size is recorded in the first page alone: the others lead back to it. */
KTEST(kmem_alloc, oversize_pages_forget_their_last_owner)
{
    char *p = kmem_alloc(4 * PAGE_SIZE, KM_SLEEP);

    for (size_t i = 0; i < 4; i++)
        virt_to_page(p)[i].page_bytes = 4 * PAGE_SIZE;
    kmem_free(p, 4 * PAGE_SIZE);
    KT_TRUE(kmem_alloc(4 * PAGE_SIZE - 1, KM_SLEEP) == p);
    KT_EQ(virt_to_page(p)->page_bytes, 4 * PAGE_SIZE - 1);
    for (size_t i = 1; i < 4; i++)
        KT_EQ(virt_to_page(p)[i].page_bytes, 0);
    kmem_free(p, 4 * PAGE_SIZE - 1);
}

KTEST(kmem_alloc, out_of_memory_is_null_and_counted)
{
    struct kmem_oversize_stat before;
    struct kmem_oversize_stat after;
    void *large;

    kmem_oversize_stat(&before);
    test_flood();
    large = kmem_alloc(3 * PAGE_SIZE, KM_NOSLEEP);
    test_flood_end();
    kmem_oversize_stat(&after);
    KT_TRUE(large == NULL);
    KT_EQ(after.stat_fails - before.stat_fails, 1);
}

#ifdef MM_HOST
static bool wait_for_flood_end(void)
{
    test_flood_end();
    return true;
}

KTEST(kmem_alloc, large_sleeper_waits_and_completes)
{
    static const size_t pages[] = {5, BUDDY_MAX_PAGES};

    host_wait = wait_for_flood_end;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        void *p;

        test_flood();
        p = kmem_alloc(pages[i] * PAGE_SIZE, KM_SLEEP);
        KT_TRUE(p != NULL);
        kmem_free(p, pages[i] * PAGE_SIZE);
    }
}

KTEST(kmem_alloc, sleep_for_the_impossible_panics)
{
    host_wait = wait_for_flood_end;
    KT_PANICS(kmem_alloc(BUDDY_MAX_PAGES * PAGE_SIZE + 1, KM_SLEEP),
              "out of memory: KM_SLEEP for 4194305 bytes");
    host_wait = NULL;
    test_flood();
    KT_PANICS(kmem_alloc(3 * PAGE_SIZE, KM_SLEEP), "out of memory");
    test_flood_end();
}

KTEST(kmem_alloc, wrong_large_frees_are_caught)
{
    char *p = kmem_alloc(10000, KM_SLEEP);
    char local[8];

    KT_PANICS(kmem_free(p, 0), "was allocated with 10000 bytes, freed with 0");
    KT_PANICS(kmem_free(NULL, 10000),
              "is not a kmem_alloc buffer of 10000 bytes");
    KT_PANICS(kmem_free(local, 10000), "is not a kmem_alloc buffer of");
    KT_PANICS(kmem_free(kmem_alloc(9216, KM_SLEEP), 9217),
              "is not a kmem_alloc buffer of 9217 bytes: its page is slab");
    kmem_free(p, 10000);
    KT_PANICS(kmem_free(p, 10000), "is not a kmem_alloc buffer of 10000");
    kmem_reap(KMEM_REAP_ALL);
    kmem_free((void *)kmem_slab_chunk(test_slab(kmem_size_class(9216), 0), 0),
              9216);
}

/* The search for the start of a buffer ends at the first of its pages. */
KTEST(kmem_alloc, a_damaged_size_is_reported)
{
    char *p = kmem_alloc(10000, KM_SLEEP);

    virt_to_page(p)->page_bytes = 0;
    KT_PANICS(kmem_free(p, 10000), "was allocated with 0 bytes, freed with");
    virt_to_page(p)->page_bytes = 10000;
    kmem_free(p, 10000);
}

/* A free of oversize buffer `base` that panics and changes nothing. */
static void check_refused(char *base, size_t size, size_t offset, size_t as)
{
    size_t pages = buddy_free_pages();
    struct kmem_oversize_stat before;
    struct kmem_oversize_stat after;
    char text[128];

    if (offset == 0)
        snprintf(text, sizeof(text),
                 "kmem_free: %p was allocated with %zu bytes, freed with %zu",
                 (void *)base, size, as);
    else
        snprintf(text, sizeof(text),
                 "kmem_free: %p, freed with %zu bytes, is inside %p of %zu",
                 (void *)(base + offset), as, (void *)base, size);
    kmem_oversize_stat(&before);
    KT_PANICS(kmem_free(base + offset, as), text);
    kmem_oversize_stat(&after);
    KT_EQ(memcmp(&before, &after, sizeof(before)), 0);
    KT_EQ(buddy_free_pages(), pages);
    for (size_t i = 0; i < PAGES_FOR(size); i++)
        KT_EQ(virt_to_page(base)[i].page_state, PAGE_OVERSIZE);
}

KTEST(kmem_alloc, oversize_frees_of_a_wrong_size_free_nothing)
{
    size_t size = 5 * PAGE_SIZE - 100;
    size_t pages = buddy_free_pages();
    char *p = kmem_alloc(size, KM_SLEEP);
    char *next = kmem_alloc(4 * PAGE_SIZE, KM_SLEEP);

    check_refused(p, size, 0, 0);
    check_refused(p, size, 0, size - 1);
    check_refused(p, size, 0, size + 1);
    check_refused(p, size, 0, 4 * PAGE_SIZE);
    check_refused(p, size, 0, 6 * PAGE_SIZE);
    check_refused(next, 4 * PAGE_SIZE, 0, 6 * PAGE_SIZE);
    kmem_free(next, 4 * PAGE_SIZE);
    kmem_free(p, size);
    KT_EQ(buddy_free_pages(), pages);
}

KTEST(kmem_alloc, oversize_frees_of_an_address_inside_free_nothing)
{
    size_t pages = buddy_free_pages();
    char *p = kmem_alloc(5 * PAGE_SIZE, KM_SLEEP);

    check_refused(p, 5 * PAGE_SIZE, 8, 5 * PAGE_SIZE);
    check_refused(p, 5 * PAGE_SIZE, PAGE_SIZE, 4 * PAGE_SIZE);
    check_refused(p, 5 * PAGE_SIZE, PAGE_SIZE, 0);
    check_refused(p, 5 * PAGE_SIZE, 4 * PAGE_SIZE + 1, 9217);
    kmem_free(p, 5 * PAGE_SIZE);
    KT_PANICS(kmem_free(p, 5 * PAGE_SIZE), "is not a kmem_alloc buffer of");
    KT_EQ(buddy_free_pages(), pages);
}
#endif
