/*
 * Memory that is unmapped (6.5, 6.6): free slabs of mode S, free buffers of
 * mode G; and the report of a fault there.
 */
#include "mm/debug/tests/debug_test.h"

#ifdef MM_HOST

/* ---- 6.5: synchronous unmapping ----------------------------------------- */

KTEST(kmem_debug, S53_free_slabs_are_unmapped_at_once)
{
    struct kmem_cache *cp = test_debug("SU", 500, 0, true);
    size_t n;
    struct kmem_buf_stat b;
    struct segkmem_stat seg;
    char *obj;

    obj = kmem_cache_alloc(cp, KM_SLEEP);
    n = cp->cache_slab_chunks;
    test_alloc(cp, 0, n); /* one in a second slab */
    kmem_cache_free(cp, test_obj[n - 1]);
    KT_EQ(test_dtors, n);
    KT_EQ(kmem_unmapped_pages(), cp->cache_slab_pages);
    KT_TRUE(!mm_readable(test_obj[n - 1]) && mm_readable(obj));
    KT_EQ(virt_to_page(test_obj[n - 1])->page_state, PAGE_UNMAPPED);
    segkmem_stat(&seg);
    KT_EQ(seg.stat_use[PAGE_UNMAPPED], cp->cache_slab_pages);
    KT_TRUE(kmem_unmapped_stat((char *)test_obj[n - 1] + 7, &b));
    KT_TRUE(b.stat_cache == cp && b.stat_buf == (uintptr_t)test_obj[n - 1]);
    KT_TRUE(b.stat_audited && b.stat_free.trans_depth > 0);
    KT_TRUE(!kmem_unmapped_stat(obj, &b) && !kmem_unmapped_stat(&b, &b));
    TEST_VERIFY(cp);
    test_free(cp, 0, n - 1);
    kmem_cache_free(cp, obj);
    KT_EQ(cp->cache_slabs, 0);
    KT_EQ(kmem_unmapped_pages(), 2 * cp->cache_slab_pages);
    KT_EQ(test_ctors, test_dtors);
    KT_EQ(test_bad, 0);
    test_destroy(cp);
    KT_EQ(kmem_unmapped_pages(), 0);
    KT_TRUE(mm_readable(obj));
}

/* Freed a second time after the slab was destroyed. */
KTEST(kmem_debug, S53_double_free_of_an_unmapped_object)
{
    struct kmem_cache *cp = test_debug("S", 500, 0, false);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    kmem_cache_free(cp, obj);
    TEST_ERROR(KMERR_DUPFREE, kmem_cache_free(cp, obj));
    KT_TRUE(kmem_last_error.error_base == obj);
    test_destroy(cp);
}

/* All pages of a slab are unmapped, and mapped again. */
KTEST(kmem_debug, S53_every_page_of_a_slab)
{
    struct kmem_cache *cp = test_debug("S", 20000, 0, false);
    size_t bytes = cp->cache_slab_pages * PAGE_SIZE;
    char *obj = kmem_cache_alloc(cp, KM_SLEEP);
    char *base = test_slab(cp, 0)->slab_base;
    uint64_t taken;

    kmem_cache_free(cp, obj);
    for (size_t at = 0; at < bytes; at += PAGE_SIZE)
        KT_TRUE(!mm_readable(base + at));
    taken = host_locks_taken;
    KT_EQ(kmem_unmapped_pages(), cp->cache_slab_pages);
    KT_EQ(host_locks_taken - taken, 1);
    KT_EQ(kmem_unmapped_release(cp), cp->cache_slab_pages);
    for (size_t at = 0; at < bytes; at += PAGE_SIZE)
        KT_TRUE(mm_readable(base + at));
    test_destroy(cp);
}

/* The queue may have exactly its share of memory. */
KTEST(kmem_debug, S53_the_queue_can_be_full)
{
    struct kmem_cache *cp = test_debug("S", PAGE_SIZE, 0, false);

    KT_EQ(cp->cache_slab_pages, 1);
    for (size_t i = 0; i < page_count / 16 + 10; i++)
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    KT_EQ(kmem_unmapped_pages(), page_count / 16);
    test_destroy(cp);
}

/* The queue holds its share of memory and no more; a reap of everything, the
 * last step of pressure, frees it. */
KTEST(kmem_debug, S53_the_queue_is_bounded)
{
    struct kmem_cache *cp = test_debug("S", 20000, 0, false);
    size_t pages = cp->cache_slab_pages;

    for (size_t i = 0; i < page_count / 16 / pages + 50; i++)
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    KT_TRUE(kmem_unmapped_pages() <= page_count / 16);
    KT_TRUE(kmem_unmapped_pages() + 2 * pages > page_count / 16);
    kmem_reap(KMEM_REAP_WS);
    KT_TRUE(kmem_unmapped_pages() + 2 * pages > page_count / 16);
    KT_TRUE(kmem_reap(KMEM_REAP_ALL) >= page_count / 16 - 2 * pages);
    KT_EQ(kmem_unmapped_pages(), 0);
    kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    KT_EQ(kmem_unmapped_pages(), pages);
    test_flood();
    KT_EQ(kmem_unmapped_pages(), 0);
    test_flood_end();
    test_destroy(cp);
}

/* Pressure frees the queued pages even while no slab may be reaped. */
KTEST(kmem_debug, S53_the_queue_does_not_depend_on_the_interval)
{
    struct kmem_cache *cp = test_debug("S", 20000, 0, false);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    struct page *p;

    test_clock_stop();
    test_flood();
    kmem_cache_free(cp, obj);
    KT_EQ(kmem_unmapped_pages(), cp->cache_slab_pages);
    kmem_ws_interval = KMEM_WS_INFINITE;
    p = buddy_alloc(0);
    KT_TRUE(p != NULL);
    KT_EQ(kmem_unmapped_pages(), 0);
    if (p != NULL)
        buddy_free(p, 0);
    test_flood_end();
    test_clock_start();
    test_destroy(cp);
}

/* Switching S off frees the pages kept for the cache, and no others. */
KTEST(kmem_debug, S53_switching_it_off)
{
    struct kmem_cache *cp = test_debug("S", 500, 0, false);
    struct kmem_cache *other = kmem_cache_create("t_other", 500, 0, NULL, NULL);

    KT_REQUIRE(other != NULL);
    test_switch(other, "S");
    kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    kmem_cache_free(other, kmem_cache_alloc(other, KM_SLEEP));
    KT_EQ(kmem_unmapped_pages(), 2 * other->cache_slab_pages);
    test_switch(cp, "");
    KT_EQ(kmem_unmapped_pages(), other->cache_slab_pages);
    test_destroy(cp);
    test_destroy(other);
    KT_EQ(kmem_unmapped_pages(), 0);
}

/* ---- 6.6: a page per buffer --------------------------------------------- */

static void page_per_buffer(size_t size, size_t align)
{
    struct kmem_cache *cp = test_debug("GP", size, align, false);
    char *obj = kmem_cache_alloc(cp, KM_SLEEP);
    char *end = (char *)ROUND_UP((uintptr_t)obj + size, PAGE_SIZE);
    struct kmem_buf_stat b;

    KT_EQ(cp->cache_slab_chunks, 1);
    memset(obj, 5, size);
    KT_TRUE((size_t)(end - obj) - size < MAX(align, (size_t)8));
    KT_TRUE(!mm_readable(end));
    KT_TRUE(mm_readable(end - 1));
    kmem_cache_free(cp, obj);
    for (char *p = obj; p < end; p++)
        KT_TRUE(!mm_readable(p));
    KT_TRUE(kmem_buf_stat(obj + size - 1, &b));
    KT_EQ(b.stat_buf, (uintptr_t)obj);
    TEST_VERIFY(cp);
    KT_TRUE(kmem_cache_alloc(cp, KM_SLEEP) == obj);
    KT_TRUE(kmem_pattern_mismatch(obj, size, KMEM_UNINIT) == NULL);
    kmem_cache_free(cp, obj);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    KT_TRUE(mm_readable(obj) && mm_readable(end));
    test_destroy(cp);
}

KTEST(kmem_debug, S54_each_buffer_has_pages_of_its_own)
{
    page_per_buffer(8, 0);
    page_per_buffer(13, 0);
    page_per_buffer(100, 64);
    page_per_buffer(2048, 0);
    page_per_buffer(4096, 0);
    page_per_buffer(4097, 0);
    page_per_buffer(5000, 512);
    page_per_buffer(300, 4096);
    page_per_buffer(20000, 0);
}

KTEST(kmem_debug, S54_buffers_of_a_new_slab_are_unmapped)
{
    struct kmem_cache *cp = test_debug("G", 5000, 0, false);
    char *obj;

    KT_TRUE(kmem_cache_grow(cp));
    obj = kmem_slab_chunk(test_slab(cp, 0), 0);
    KT_TRUE(!mm_readable(obj) && !mm_readable(obj + 4999));
    test_destroy(cp);
}

/* ---- faults ------------------------------------------------------------- */

static enum kmem_error fault(const void *addr)
{
    bool known;

    test_error_begin();
    known = kmem_fault(addr);
    KT_EQ(kmem_log_stopped, known);
    kmem_log_stopped = false;
    KT_EQ(kmem_last_error.error_kind != KMERR_NONE, known);
    return kmem_last_error.error_kind;
}

KTEST(kmem_debug, faults_in_the_heap)
{
    struct kmem_cache *s = test_debug("SU", 500, 0, false);
    struct kmem_cache *g = kmem_cache_create("t_g", 40, 0, NULL, NULL);
    KT_REQUIRE(g != NULL);
    char *gone = kmem_cache_alloc(s, KM_SLEEP);
    char *freed;

    test_switch(g, "GU");
    freed = kmem_cache_alloc(g, KM_SLEEP);
    kmem_cache_free(s, gone);
    kmem_cache_free(g, freed);
    KT_EQ(fault(gone + 20), KMERR_FAULT);
    KT_TRUE(kmem_last_error.error_base == gone);
    KT_EQ(kmem_last_error.error_offset, 20);
    TEST_SAYS(TEST_SAYS(host_printed, "cache: t_debug"), "free\n");
    TEST_SAYS(host_printed, "\noffset 0x14 of the buffer, after it was freed: "
                            "its page is unmapped\nbuffer=");
    KT_EQ(fault(freed + 4), KMERR_FAULT);
    KT_TRUE(kmem_last_error.error_base == freed);
    KT_TRUE(kmem_last_error.error_cache == g);
    TEST_SAYS(host_printed, "cache: t_g");
    KT_EQ(fault(freed + 40), KMERR_FAULT); /* past its end */
    KT_EQ(kmem_last_error.error_offset, 40);
    TEST_SAYS(host_printed, "\noffset 0x28 of the buffer, past its end: "
                            "its page is unmapped\nbuffer=");
    for (long off = -40; off <= 40; off += 20) {
        KT_EQ(fault((void *)(uintptr_t)(0xbaddcafe + off)), KMERR_FAULT);
        KT_EQ(fault((void *)(uintptr_t)(0xdeadbeef + off)), KMERR_FAULT);
    }
    KT_EQ(fault((void *)(uintptr_t)0xbaddcafe), KMERR_FAULT);
    TEST_SAYS(host_printed, "0xbaddcafe");
    KT_EQ(fault((void *)(uintptr_t)(0xbaddcafe + 5000)), KMERR_NONE);
    KT_EQ(fault((void *)(uintptr_t)(0xdeadbeef - 5000)), KMERR_NONE);
    KT_EQ(fault(NULL), KMERR_NONE);
    KT_EQ(fault(&gone), KMERR_NONE);
    test_destroy(g);
    test_destroy(s);
}

#endif
