/*
 * The debugging modes (section 7 of the statements): letters, the geometry of
 * the debug layout, poison, redzones, and the order in which an allocation and
 * a free do things.
 *
 * Tests: mm/debug/check.c, mm/debug/audit.c, mm/debug/pattern.c
 */
#include "mm/debug/tests/debug_test.h"

/* ---- letters ------------------------------------------------------------ */

KTEST(kmem_debug, letters_and_back)
{
    unsigned modes = 77;
    char bad = 0;
    char text[8];

    KT_TRUE(kmem_debug_letters("FPZUTSG", NULL, &modes, &bad));
    KT_EQ(modes, KMF_MODES);
    KT_EQ(strcmp(kmem_debug_text(modes, text), "FPZUTSG"), 0);
    KT_TRUE(kmem_debug_letters("zfZ", NULL, &modes, &bad));
    KT_EQ(modes, KMF_CHECK | KMF_REDZONE);
    KT_EQ(strcmp(kmem_debug_text(modes, text), "FZ"), 0);
    KT_TRUE(kmem_debug_letters("", NULL, &modes, &bad));
    KT_EQ(modes, 0);
    KT_EQ(strcmp(kmem_debug_text(0, text), "-"), 0);
    modes = 77;
    KT_TRUE(!kmem_debug_letters("FXZ", NULL, &modes, &bad));
    KT_EQ(bad, 'X');
    KT_TRUE(!kmem_debug_letters("Fx", NULL, &modes, &bad));
    KT_EQ(bad, 'x');
    KT_TRUE(!kmem_debug_letters("F{", NULL, &modes, &bad));
    KT_TRUE(!kmem_debug_letters("F1", NULL, &modes, &bad));
    KT_EQ(modes, 77);
}

KTEST(kmem_debug, letters_up_to_an_end)
{
    const char *text = "PU,inode";
    unsigned modes;
    char bad;

    KT_TRUE(kmem_debug_letters(text, text + 2, &modes, &bad));
    KT_EQ(modes, KMF_POISON | KMF_AUDIT);
    KT_TRUE(!kmem_debug_letters(text, NULL, &modes, &bad));
    KT_EQ(bad, ',');
}

/* ---- geometry ----------------------------------------------------------- */

/* All buffers of a slab, with their redzones, are in the slab, disjoint and
 * aligned; the unused rest is bounded as in the paper. */
static void check_layout(const char *letters, size_t size, size_t align)
{
    struct kmem_cache *cp = test_debug(letters, size, align, false);
    size_t bytes = cp->cache_slab_pages * PAGE_SIZE;
    size_t guard = kmem_debug_modes(cp) & KMF_REDZONE ? 8 : 0;
    bool pages = kmem_debug_modes(cp) & KMF_OWN_PAGES;
    struct kmem_slab *sp;
    size_t left;

    test_obj[0] = kmem_cache_alloc(cp, KM_SLEEP);
    sp = test_slab(cp, 0);
    left = bytes - sp->slab_chunks * cp->cache_chunk;
    KT_TRUE(sp->slab_chunks >= 1 && cp->cache_flags & KMF_HASH);
    KT_EQ((uintptr_t)sp->slab_base % PAGE_SIZE, 0);
    for (size_t colour = sp->slab_colour; colour <= cp->cache_colour_max;
         colour += cp->cache_align) {
        size_t last = colour + (sp->slab_chunks - 1) * cp->cache_chunk;

        KT_TRUE(colour % MAX(align, (size_t)8) == 0 || pages);
        KT_TRUE(colour >= (pages ? 0 : guard));
        KT_TRUE(last + size + guard <= bytes);
    }
    KT_EQ((uintptr_t)test_obj[0] % MAX(align, (size_t)8), 0);
    KT_TRUE(cp->cache_chunk >= size + 2 * guard || sp->slab_chunks == 1);
    if (!pages)
        KT_EQ(cp->cache_chunk,
              ROUND_UP(size + 2 * guard, MAX(align, (size_t)8)));
    if (pages)
        KT_EQ(((uintptr_t)test_obj[0] + ROUND_UP(size, MAX(align, (size_t)8))) %
                  PAGE_SIZE,
              0);
    else
        KT_TRUE(left <= bytes / 8 + cp->cache_colour_min);
    TEST_VERIFY(cp);
    kmem_cache_free(cp, test_obj[0]);
    TEST_VERIFY(cp);
    test_destroy(cp);
}

static const char *const layouts[] = {"F",    "P", "Z", "U",
                                      "FPZU", "S", "G", "GZP"};

KTEST(kmem_debug, S52_geometry_of_many_sizes)
{
    static const size_t aligns[] = {0, 16, 64, 512, 4096};
    uint32_t random = 1;

    for (size_t size = 1; size <= 9300; size += 1 + size / TEST_MANY(3, 20))
        check_layout(layouts[test_random(&random) % ARRAY_SIZE(layouts)], size,
                     aligns[test_random(&random) % ARRAY_SIZE(aligns)]);
}

#ifdef MM_HOST
KTEST(kmem_debug, S52_geometry_in_all_modes)
{
    static const size_t sizes[] = {1,   7,    8,    13,   64,    504,   511,
                                   512, 1024, 4088, 4096, 12345, 100000};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        for (size_t l = 0; l < ARRAY_SIZE(layouts); l++)
            for (size_t align = 8; align <= 4096; align *= 8)
                check_layout(layouts[l], sizes[i], align);
    check_layout("FPZUTSG", KMEM_SIZE_MAX, 0);
    check_layout("FPZUS", KMEM_SIZE_MAX, 4096);
}
#endif

/* Every buffer of several slabs of all colours can be filled to its last byte
 * without harm to any other. */
static void fill_all(const char *letters, size_t size, bool constructed)
{
    struct kmem_cache *cp = test_debug(letters, size, 0, constructed);
    size_t n = MIN(6 * cp->cache_slab_chunks, (size_t)300);

    test_alloc(cp, 0, n);
    for (size_t i = 0; i < n; i++)
        if (!constructed)
            memset(test_obj[i], (int)i, size);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < size && !constructed; k++)
            if (((uint8_t *)test_obj[i])[k] != (uint8_t)i)
                KT_FAIL("byte %zu of %zu bytes", k, size);
    for (size_t i = 0; i < n && constructed; i++)
        KT_TRUE(test_is_constructed(test_obj[i], size));
    TEST_VERIFY(cp);
    test_free(cp, 0, n);
    TEST_VERIFY(cp);
    test_destroy(cp);
    KT_EQ(test_ctors, test_dtors);
    KT_EQ(test_bad, 0);
}

KTEST(kmem_debug, no_false_alarm)
{
    static const size_t sizes[] = {1, 5, 8, 40, 200, 504, 600, 5000};

    for (size_t l = 0; l < ARRAY_SIZE(layouts); l++)
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
            fill_all(layouts[l], sizes[i], false);
            fill_all(layouts[l], sizes[i], true);
        }
    KT_EQ(kmem_last_error.error_kind, KMERR_NONE);
}

/* ---- 6.3: poison -------------------------------------------------------- */

static size_t seen_uninit;

static bool all_words(const void *buf, size_t size, uint32_t word)
{
    return kmem_pattern_mismatch(buf, size, word) == NULL;
}

static void watching_ctor(void *obj, size_t size)
{
    seen_uninit += all_words(obj, size, KMEM_UNINIT);
    test_ctor(obj, size);
}

KTEST(kmem_debug, S50_order_of_poison_and_constructor)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_debug", 45, 0, watching_ctor, test_dtor);
    KT_REQUIRE(cp != NULL);
    void *obj;

    seen_uninit = 0;
    test_constructed_reset();
    test_switch(cp, "FP");
    for (size_t i = 1; i <= 5; i++) {
        obj = kmem_cache_alloc(cp, KM_SLEEP);
        KT_EQ(seen_uninit, i);
        KT_EQ(test_ctors, i);
        KT_TRUE(test_is_constructed(obj, 45));
        kmem_cache_free(cp, obj);
        KT_EQ(test_dtors, i);
        KT_EQ(test_bad, 0);
        KT_TRUE(all_words(obj, 45, KMEM_FREED));
    }
    KT_EQ(test_stat(cp).stat_ctors, 5);
    KT_EQ(test_stat(cp).stat_dtors, 5);
    test_destroy(cp);
    KT_EQ(test_dtors, 5);
}

KTEST(kmem_debug, S50_poison_without_a_constructor)
{
    struct kmem_cache *cp = test_debug("P", 61, 0, false);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    KT_TRUE(all_words(obj, 61, KMEM_UNINIT));
    kmem_cache_free(cp, obj);
    KT_TRUE(all_words(obj, 61, KMEM_FREED));
    test_destroy(cp);
}

/* The rest of a class's buffer is poison, too, if it is no redzone. */
KTEST(kmem_debug, S50_poison_after_a_request)
{
    struct kmem_cache *cp = kmem_size_class(13);
    void *obj;

    test_switch(cp, "P");
    obj = kmem_alloc(13, KM_SLEEP);
    KT_TRUE(all_words(obj, cp->cache_size, KMEM_UNINIT));
    kmem_free(obj, 13);
    test_switch(cp, "");
}

/* Without poison objects stay constructed between uses, as without modes. */
KTEST(kmem_debug, S5_redzones_leave_objects_constructed)
{
    struct kmem_cache *cp = test_debug("FZU", 100, 0, true);
    size_t n = cp->cache_slab_chunks;
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    KT_EQ(test_ctors, n);
    for (size_t i = 0; i < 100; i++) {
        KT_TRUE(test_is_constructed(obj, 100));
        kmem_cache_free(cp, obj);
        KT_TRUE(test_is_constructed(obj, 100));
        KT_TRUE(kmem_cache_alloc(cp, KM_SLEEP) == obj);
    }
    KT_EQ(test_ctors, n);
    KT_EQ(test_dtors, 0);
    kmem_cache_free(cp, obj);
    test_destroy(cp);
    KT_EQ(test_dtors, n);
    KT_EQ(test_bad, 0);
}

/* ---- growing, failing --------------------------------------------------- */

#ifdef MM_HOST
KTEST(kmem_debug, a_debugged_cache_resizes_its_hash_table)
{
    struct kmem_cache *cp = test_debug("F", 600, 0, false);

    for (size_t i = 0; i < 4 * KMEM_HASH_INITIAL; i++) {
        test_alloc(cp, i, i + 1);
        KT_EQ(cp->cache_hash_mask + 1,
              kmem_hash_want(cp->cache_hash_mask + 1,
                             cp->cache_slabs * cp->cache_slab_chunks));
    }
    KT_GE(cp->cache_hash_mask + 1, 2 * KMEM_HASH_INITIAL);
    TEST_VERIFY(cp);
    test_free(cp, 0, 4 * KMEM_HASH_INITIAL);
    test_destroy(cp);
}
#endif

/* ---- patterns ----------------------------------------------------------- */

KTEST(kmem_debug, patterns_find_each_wrong_byte)
{
    static uint8_t memory[40];

    for (size_t size = 0; size <= 35; size++) {
        memory[size] = 0x11;
        kmem_pattern_fill(memory, size, KMEM_FREED);
        KT_EQ(memory[size], 0x11);
        KT_TRUE(kmem_pattern_mismatch(memory, size, KMEM_FREED) == NULL);
        for (size_t i = 0; i < size; i++) {
            memory[i] ^= 1;
            KT_TRUE(kmem_pattern_mismatch(memory, size, KMEM_FREED) ==
                    &memory[i]);
            memory[i] ^= 1;
        }
    }
    kmem_pattern_fill(memory, 4, KMEM_FREED);
    KT_EQ(memory[0], 0xef);
    KT_EQ(memory[3], 0xde);
}

/* ---- the state of a buffer ---------------------------------------------- */

static bool count_buffer(const struct kmem_buf_stat *b, void *arg)
{
    size_t *count = arg;

    count[b->stat_state]++;
    count[3] += b->stat_audited;
    return count[0] + count[1] < 40;
}

static void check_walk(const char *letters, size_t size)
{
    struct kmem_cache *cp = test_debug(letters, size, 0, false);
    size_t count[4] = {0};

    test_alloc(cp, 0, 5);
    kmem_buf_walk(cp, count_buffer, count);
    KT_EQ(count[KMEM_BUF_USED], 5);
    KT_EQ(count[KMEM_BUF_BUSY], 0);
    KT_EQ(count[KMEM_BUF_USED] + count[KMEM_BUF_FREE],
          MIN((size_t)40, cp->cache_slabs * cp->cache_slab_chunks));
    KT_EQ(count[3] != 0, (kmem_debug_modes(cp) & KMF_AUDIT) != 0);
    for (size_t i = 0; i < 5; i++) {
        struct kmem_buf_stat b;

        KT_TRUE(kmem_buf_stat((char *)test_obj[i] + size - 1, &b));
        KT_EQ(b.stat_buf, (uintptr_t)test_obj[i]);
        KT_TRUE(b.stat_cache == cp && b.stat_state == KMEM_BUF_USED);
        KT_EQ(b.stat_size, size);
        KT_EQ((uintptr_t)kmem_slab_chunk((struct kmem_slab *)b.stat_slab,
                                         b.stat_index),
              b.stat_buf);
        kmem_cache_free(cp, test_obj[i]);
        if (kmem_debug_modes(cp) & KMF_UNMAP)
            continue;
        KT_TRUE(kmem_buf_stat(test_obj[i], &b));
        KT_EQ(b.stat_state, KMEM_BUF_FREE);
        KT_EQ(b.stat_buf, (uintptr_t)test_obj[i]);
    }
    test_destroy(cp);
}

KTEST(kmem_debug, buffers_and_their_state)
{
    struct kmem_buf_stat b;

    check_walk("", 40);
    check_walk("", 700);
    check_walk("T", 40);
    check_walk("U", 40);
    check_walk("FPZU", 700);
    check_walk("G", 100);
    check_walk("S", 100);
    KT_TRUE(!kmem_buf_stat(&b, &b));
    KT_TRUE(!kmem_buf_stat(NULL, &b));
}

KTEST(kmem_debug, S48_transactions_of_a_buffer)
{
    struct kmem_cache *cp = test_debug("U", 40, 0, false);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    struct kmem_buf_stat b;
    uint64_t when;

    KT_TRUE(kmem_buf_stat(obj, &b));
    KT_TRUE(b.stat_audited && b.stat_alloc.trans_depth > 0);
    KT_TRUE(b.stat_alloc.trans_stack[0] != 0);
    KT_EQ(b.stat_alloc.trans_task, mm_task_id());
    KT_EQ(b.stat_free.trans_depth, 0);
    when = b.stat_alloc.trans_us;
    kmem_cache_free(cp, obj);
    KT_TRUE(kmem_buf_stat(obj, &b));
    KT_EQ(b.stat_alloc.trans_us, when);
    KT_TRUE(b.stat_free.trans_depth > 0 && b.stat_free.trans_us >= when);
    test_destroy(cp);
}
