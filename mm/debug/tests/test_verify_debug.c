/*
 * The verifier and the debugging modes: each invariant of section 11 that they
 * add is broken and must be found by name; and no walk follows a cycle for
 * ever.
 *
 * Tests: mm/inspect/kmem_verify.c
 */
#include "mm/debug/tests/debug_test.h"

#define REDZONE      "buffer written outside its bounds"
#define MODIFIED     "buffer modified after being freed"
#define WRONG_LAYOUT "hash table does not follow from size and modes"
#define WRONG_STATE  "buffer's state is not that of its list"

static void check_buffers(const char *letters, size_t size)
{
    struct kmem_cache *cp = test_debug(letters, size, 0, false);
    uint8_t *used = kmem_cache_alloc(cp, KM_SLEEP);
    uint8_t *freed = kmem_cache_alloc(cp, KM_SLEEP);
    struct kmem_bufctl_debug *bdp = test_bufctl(cp, used);
    bool guarded = (kmem_debug_modes(cp) & KMF_REDZONE) != 0;
    bool poisoned = (kmem_debug_modes(cp) & KMF_POISON) != 0;

    kmem_cache_free(cp, freed);
    TEST_VERIFY(NULL);
    TEST_POKE(cp, bdp->bufctl_state, KMEM_BUF_FREE, WRONG_STATE);
    TEST_POKE(cp, bdp->bufctl_state, 77, WRONG_STATE);
    TEST_POKE(cp, test_bufctl(cp, freed)->bufctl_state, KMEM_BUF_USED,
              WRONG_STATE);
    TEST_POKE(cp, test_bufctl(cp, freed)->bufctl_state, KMEM_BUF_BUSY,
              WRONG_STATE);
    for (size_t i = 0; guarded && i < 8; i++) {
        TEST_POKE(cp, used[size + i], 0, REDZONE);
        TEST_POKE(cp, freed[size + i], 0, REDZONE);
        TEST_POKE(cp, used[-1 - (long)i], 0, REDZONE);
    }
    for (size_t i = 0; poisoned && i < size; i += 1 + size / 20)
        TEST_POKE(cp, freed[i], 0x11, MODIFIED);
    used[0] = used[size - 1] = 1;
    TEST_VERIFY(NULL);
    bdp->bufctl_state = KMEM_BUF_BUSY; /* its task is at work on it */
    used[size - 1 + guarded] = 0;
    TEST_VERIFY(NULL);
    bdp->bufctl_state = KMEM_BUF_USED;
    used[size - 1 + guarded] = KMEM_GUARD;
    kmem_cache_free(cp, used);
    test_destroy(cp);
}

KTEST(kmem_verify, buffers_of_the_debug_layout)
{
    check_buffers("F", 48);
    check_buffers("Z", 48);
    check_buffers("P", 45);
    check_buffers("FPZU", 61);
    check_buffers("FPZU", 1500);
}

/* The cache, and the byte that is wrong. */
KTEST(kmem_verify, where_a_buffer_is_damaged)
{
    struct kmem_cache *cp = test_debug("Z", 48, 0, false);
    uint8_t *obj = kmem_cache_alloc(cp, KM_SLEEP);

    obj[50] = 1;
    TEST_VERIFY_AT(cp, "buffer %p of t_debug, at %p", (void *)obj,
                   (void *)(obj + 50));
    obj[50] = KMEM_GUARD;
    test_bufctl(cp, obj)->bufctl_state = 77;
    TEST_VERIFY_AT(cp, "bufctl %p", (void *)test_bufctl(cp, obj));
    test_bufctl(cp, obj)->bufctl_state = KMEM_BUF_USED;
    kmem_cache_free(cp, obj);
    cp->cache_full_slabs++;
    TEST_VERIFY_AT(cp, "cache t_debug (%p)", (void *)cp);
    cp->cache_full_slabs--;
    test_destroy(cp);
}

/* No byte is wrong where the state is. */
KTEST(kmem_verify, a_wrong_state_has_no_place)
{
    struct kmem_cache *cp = test_debug("Z", 48, 0, false);
    const void *at = cp;
    struct kmem_bufctl_debug *bdp;

    test_alloc(cp, 0, 1);
    bdp = test_bufctl(cp, test_obj[0]);
    KT_TRUE(kmem_debug_verify(cp, &bdp->bufctl, true, &at) != NULL);
    KT_TRUE(at == NULL);
    test_free(cp, 0, 1);
    test_destroy(cp);
}

KTEST(kmem_verify, flags_and_what_follows_from_them)
{
    struct kmem_cache *cp = test_debug("FZ", 48, 0, false);

    TEST_POKE(cp, cp->cache_flags, cp->cache_flags & ~KMF_MODES, WRONG_LAYOUT);
    TEST_POKE(cp, cp->cache_flags, cp->cache_flags & ~KMF_HASH, WRONG_LAYOUT);
    test_destroy(cp);
    cp = kmem_cache_create("t_verify", 48, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    TEST_POKE(cp, cp->cache_flags, KMF_POISON, WRONG_LAYOUT);
    TEST_POKE(cp, cp->cache_flags, KMF_HASH, WRONG_LAYOUT);
    test_destroy(cp);
    cp = kmem_cache_create("t_verify", 700, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    TEST_POKE(cp, cp->cache_flags, 0, WRONG_LAYOUT);
    test_destroy(cp);
}

/* Also those of the last bucket, and those that precede others in a chain: each
 * of the 64 buckets has one of every page. */
KTEST(kmem_verify, every_allocated_buffer)
{
    struct kmem_cache *cp = test_debug("P", 64, 0, false);

    test_alloc(cp, 0, 128);
    KT_TRUE(cp->cache_hash[cp->cache_hash_mask]->bufctl_next != NULL);
    for (size_t i = 0; i < 128; i++)
        TEST_POKE(cp, test_bufctl(cp, test_obj[i])->bufctl_state, KMEM_BUF_FREE,
                  WRONG_STATE);
    test_free(cp, 0, 128);
    test_destroy(cp);
}

KTEST(kmem_verify, geometry_of_the_debug_layout)
{
    struct kmem_cache *cp = test_debug("Z", 48, 0, false);
    struct kmem_slab *sp;

    test_alloc(cp, 0, 1);
    sp = test_slab(cp, 0);
    TEST_POKE(cp, cp->cache_colour, 0, "next colour is out of range");
    TEST_POKE(cp, sp->slab_colour, 0, "slab colour is out of range");
    TEST_POKE(cp, cp->cache_colour_max,
              cp->cache_slab_pages * PAGE_SIZE -
                  cp->cache_slab_chunks * cp->cache_chunk + 8,
              "chunks and colour do not fit the slab");
    TEST_POKE(cp, cp->cache_colour_min, cp->cache_colour_max + 8,
              "next colour is out of range");
    test_free(cp, 0, 1);
    test_destroy(cp);
}

/* Two slabs that say they have the same pages. */
KTEST(kmem_verify, slabs_that_overlap)
{
    struct kmem_cache *cp = kmem_cache_create("t_verify", 700, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;

    test_alloc(cp, 0, 2 * n + 1);
    TEST_POKE(cp, test_slab(cp, 0)->slab_base, test_slab(cp, 1)->slab_base,
              "bufctl's address is no chunk of its slab");
    TEST_POKE(cp, test_slab(cp, 2)->slab_base, test_slab(cp, 1)->slab_base,
              "freelist does not match the reference count");
    test_free(cp, 0, 2 * n + 1);
    test_destroy(cp);
}

#ifdef MM_HOST
KTEST(kmem_verify, unmapped_pages)
{
    void *lost = kmem_getpages(1, PAGE_UNMAPPED, NULL);

    KT_REQUIRE(lost != NULL);
    TEST_VERIFY_SAYS(NULL, "unmapped pages are not segkmem's");
    kmem_transfer_begin();
    TEST_VERIFY(NULL); /* another task may be moving it */
    kmem_transfer_end();
    kmem_freepages(lost, 1);
    TEST_VERIFY(NULL);
}
#endif

/* ---- circles ------------------------------------------------------------ */

static bool count_walk(const struct kmem_buf_stat *b, void *arg)
{
    (void)b;
    ++*(size_t *)arg;
    return true;
}

/* Every walk over the cache ends, within the cache's counts. */
static void walk_all(struct kmem_cache *cp)
{
    size_t total = cp->cache_slabs * cp->cache_slab_chunks;
    size_t histogram[4];
    struct kmem_buf_stat b;
    struct kmem_slab_stat slab;
    size_t seen = 0;
    const char *where;

    KT_TRUE(kmem_cache_verify(cp, &where) != NULL);
    kmem_buf_walk(cp, count_walk, &seen);
    KT_LE(seen, total);
    for (size_t n = 0; n <= cp->cache_slabs; n++)
        kmem_slab_stat(cp, n, &slab);
    KT_LE(kmem_hash_stat(cp, histogram, 4), kmem_inuse(cp) + 1);
    kmem_buf_stat(test_obj[0], &b);
    kmem_buf_stat((char *)test_obj[0] + PAGE_SIZE, &b);
    mm_lock(&cp->cache_lock);
    KT_TRUE(kmem_slab_holding(cp, &b) == NULL);
    mm_unlock(&cp->cache_lock);
    KT_TRUE(kmem_cache_verify(cp, &where) != NULL);
}

#define CIRCLE(cp, field, value)                                               \
    do {                                                                       \
        __typeof__(field) circle_saved = (field);                              \
        (field) = (value);                                                     \
        walk_all(cp);                                                          \
        (field) = circle_saved;                                                \
        TEST_VERIFY(cp);                                                       \
    } while (0)

static void circles(const char *letters, size_t size)
{
    struct kmem_cache *cp = test_debug(letters, size, 0, false);
    size_t n = 0;
    struct kmem_slab *sp;
    struct kmem_bufctl *bcp;

    test_alloc(cp, 0, 1);
    n = 2 * cp->cache_slab_chunks + 2;
    test_alloc(cp, 1, n);
    sp = cp->cache_freelist;
    bcp = sp->slab_head;
    CIRCLE(cp, bcp->bufctl_next, bcp);
    CIRCLE(cp, bcp->bufctl_next->bufctl_next, bcp);
    CIRCLE(cp, bcp->bufctl_next, (void *)(uintptr_t)0xdeadbeec);
    CIRCLE(cp, sp->slab_head, (void *)(uintptr_t)0xbaddcafc);
    CIRCLE(cp, sp->slab_link.next, &sp->slab_link);
    CIRCLE(cp, test_slab(cp, 1)->slab_link.next, cp->cache_null.slab_link.next);
    CIRCLE(cp, sp->slab_link.next, (void *)(uintptr_t)0xdeadbeec);
    CIRCLE(cp, test_slab(cp, 0)->slab_link.next, (void *)(uintptr_t)0xdeadbeec);
    if (cp->cache_flags & KMF_HASH) {
        struct kmem_bufctl *out = *kmem_hash_bucket(cp, test_obj[0]);

        CIRCLE(cp, out->bufctl_next, out);
        CIRCLE(cp, out->bufctl_next, (void *)(uintptr_t)0xdeadbeec);
    }
    test_free(cp, 0, n);
    test_destroy(cp);
}

KTEST(kmem_verify, walks_end_on_circles)
{
    circles("", 300);
    circles("", 700);
    circles("FPZU", 300);
}
