/*
 * Memory that is unmapped (6.5, 6.6): free slabs of mode S, free buffers of
 * mode G; the report of a fault there; and leaks (6.7).
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
    TEST_ERROR(KMEM_ERROR_DOUBLE, kmem_cache_free(cp, obj));
    KT_TRUE(kmem_last_error.error_base == obj);
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
    kmem_reap(KMEM_REAP_DRY);
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
    kmem_cache_reap(cp, KMEM_REAP_ALL, NULL);
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

/* ---- faults ------------------------------------------------------------- */

static enum kmem_error fault(const void *addr)
{
    uint32_t before = kmem_error_count;
    bool known;

    host_print_clear();
    kmem_error_panics = false;
    known = kmem_fault(addr);
    kmem_error_panics = true;
    KT_EQ(kmem_error_count - before, known ? 1 : 0);
    return known ? kmem_last_error.error_kind : KMEM_ERROR_NONE;
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
    KT_EQ(fault(gone + 20), KMEM_ERROR_UNMAPPED);
    KT_TRUE(kmem_last_error.error_base == gone);
    KT_EQ(kmem_last_error.error_offset, 20);
    TEST_SAYS(TEST_SAYS(host_printed, "cache: t_debug"), "free\n");
    KT_EQ(strncmp(TEST_SAYS(host_printed, "at offset 0x14, "),
                  "after it was freed\nbuffer=", 26),
          0);
    KT_EQ(fault(freed + 4), KMEM_ERROR_UNMAPPED);
    KT_TRUE(kmem_last_error.error_base == freed);
    KT_TRUE(kmem_last_error.error_cache == g);
    TEST_SAYS(host_printed, "cache: t_g");
    KT_EQ(fault(freed + 40), KMEM_ERROR_UNMAPPED); /* past its end */
    KT_EQ(kmem_last_error.error_offset, 40);
    KT_EQ(strncmp(TEST_SAYS(host_printed, "at offset 0x28, "),
                  "past its end\nbuffer=", 20),
          0);
    for (long off = -40; off <= 40; off += 20) {
        KT_EQ(fault((void *)(uintptr_t)(0xbaddcafe + off)), KMEM_ERROR_UNINIT);
        KT_EQ(fault((void *)(uintptr_t)(0xdeadbeef + off)), KMEM_ERROR_STALE);
    }
    KT_EQ(fault((void *)(uintptr_t)0xbaddcafe), KMEM_ERROR_UNINIT);
    TEST_SAYS(host_printed, "0xbaddcafe");
    KT_EQ(fault((void *)(uintptr_t)(0xbaddcafe + 5000)), KMEM_ERROR_NONE);
    KT_EQ(fault((void *)(uintptr_t)(0xdeadbeef - 5000)), KMEM_ERROR_NONE);
    KT_EQ(fault(NULL), KMEM_ERROR_NONE);
    KT_EQ(fault(&gone), KMEM_ERROR_NONE);
    test_destroy(g);
    test_destroy(s);
}

/* ---- 6.7: leaks --------------------------------------------------------- */

#define LEAKS_MAX 64

static const void *leaked[LEAKS_MAX];
static size_t leak_count;

static bool note_leak(const struct kmem_buf_stat *b, void *arg)
{
    (void)arg;
    if (leak_count < LEAKS_MAX)
        leaked[leak_count] = (const void *)b->stat_buf;
    leak_count++;
    return true;
}

static bool is_leaked(const void *buf)
{
    for (size_t i = 0; i < leak_count; i++)
        if (leaked[i] == buf)
            return true;
    return false;
}

/* A scan; it changes nothing. Returns the number of suspects. */
static size_t scan(struct kmem_leak_stat *stat)
{
    size_t free_pages = buddy_free_pages();
    const char *where;

    leak_count = 0;
    KT_TRUE(kmem_leak_scan(note_leak, NULL, stat));
    KT_EQ(leak_count, stat->stat_suspects);
    KT_EQ(buddy_free_pages(), free_pages);
    KT_TRUE(kmem_verify(&where) == NULL);
    KT_EQ(stat->stat_buffers, stat->stat_reached + stat->stat_suspects);
    return leak_count;
}

#define ROOTS 4
static void *root[ROOTS + 2]; /* the last two are beyond its end */

static void set_root(void)
{
    memset(root, 0, sizeof(root));
    host_root_from[0] = root;
    host_root_end[0] = root + ROOTS;
}

/* A chain from a root by starts and interior pointers, a cycle to which nothing
 * points, and a single object; in a cache without and with modes. */
static void leaks_of(const char *letters, size_t size)
{
    struct kmem_cache *cp = test_debug(letters, size, 0, false);
    struct kmem_leak_stat stat;
    void ***obj = (void ***)test_obj;

    set_root();
    test_alloc(cp, 0, 9);
    for (size_t i = 0; i < 9; i++)
        memset(obj[i], 0, size);
    root[1] = obj[0];
    obj[0][1] = (char *)obj[1] + size - 1;
    obj[1][size / sizeof(void *) - 1] = obj[2];
    obj[2][0] = obj[0];
    obj[3][0] = obj[4]; /* a circle */
    obj[4][1] = obj[5];
    obj[5][0] = obj[3];
    obj[6][0] = obj[0]; /* points, but is not pointed to */
    kmem_cache_free(cp, obj[8]);
    root[2] = (void *)((uintptr_t)obj[7] + size); /* just past it */
    KT_EQ(scan(&stat), 5);
    for (size_t i = 3; i <= 7; i++)
        KT_TRUE(is_leaked(obj[i]));
    KT_EQ(stat.stat_buffers, 8);
    KT_EQ(stat.stat_reached, 3);
    KT_EQ(stat.stat_suspect_bytes, 5 * size);
    KT_EQ(stat.stat_roots, ROOTS * sizeof(root[0]));
    root[3] = (char *)obj[5] + 1;
    KT_EQ(scan(&stat), 2);
    test_free(cp, 0, 8);
    host_root_from[0] = NULL;
    KT_EQ(scan(&stat), 0);
    test_destroy(cp);
}

KTEST(kmem_debug, leaks_are_buffers_without_a_pointer)
{
    leaks_of("", 64);
    leaks_of("", 1000);
    leaks_of("FPZU", 64);
    leaks_of("U", 1000);
    leaks_of("G", 64);
}

/* Neither pages of kmem_alloc nor the last error hide a leak; the first are
 * read, the second is not. */
KTEST(kmem_debug, leaks_and_other_memory)
{
    struct kmem_cache *cp = test_debug("F", 64, 0, false);
    struct kmem_leak_stat stat;
    void **large = kmem_zalloc(20000, KM_SLEEP);
    char *obj = kmem_cache_alloc(cp, KM_SLEEP);

    host_root_from[0] = &kmem_last_error;
    host_root_end[0] = &kmem_last_error + 1;
    TEST_ERROR(KMEM_ERROR_INTERIOR, kmem_cache_free(cp, obj + 4));
    KT_TRUE(kmem_last_error.error_base == obj);
    KT_EQ(scan(&stat), 1);
    large[1000] = obj;
    KT_EQ(scan(&stat), 0);
    host_root_from[0] = NULL;
    kmem_free(large, 20000);
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

/* A slab of more buffers than a word has bits. */
KTEST(kmem_debug, leaks_among_many)
{
    struct kmem_cache *cp = kmem_cache_create("t_leak", 64, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_leak_stat stat;
    size_t n = 50;

    set_root();
    test_alloc(cp, 0, n);
    for (size_t i = 0; i < n; i++)
        memset(test_obj[i], 0, 64);
    for (size_t i = 0; i < n; i++) {
        root[0] = test_obj[i];
        KT_EQ(scan(&stat), n - 1);
        KT_TRUE(!is_leaked(test_obj[i]));
    }
    host_root_from[0] = NULL;
    test_free(cp, 0, n);
    test_destroy(cp);
}

/* The rings of events keep first pages of slabs, which are first buffers. */
KTEST(kmem_debug, leaks_are_not_hidden_by_events)
{
    struct kmem_cache *cp = kmem_cache_create("t_leak", 64, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_leak_stat stat;
    const void *events_end;
    const void *events = kmem_event_memory(&events_end);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    KT_TRUE(obj == test_slab(cp, 0)->slab_base);
    host_root_from[0] = events;
    host_root_end[0] = events_end;
    KT_EQ(scan(&stat), 1);
    host_root_from[0] = NULL;
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

/* What precedes and follows the records in a root is read. */
KTEST(kmem_debug, leaks_and_records_amid_a_root)
{
    struct kmem_cache *cp = kmem_cache_create("t_leak", 64, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_leak_stat stat;
    const void *rings_end;
    const void *from = kmem_event_memory(&rings_end);
    const void *end = MAX(rings_end, (const void *)(&kmem_last_error + 1));
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    set_root();
    from = MIN(from, (const void *)&kmem_last_error);
    host_root_from[0] = MIN(from, (const void *)root);
    host_root_end[0] = MAX(end, (const void *)(root + ROOTS));
    host_root_over(host_root_from[0], host_root_end[0]);
    kmem_last_error.error_buf = obj;
    KT_EQ(scan(&stat), 1);
    root[ROOTS - 1] = obj;
    KT_EQ(scan(&stat), 0);
    kmem_last_error.error_buf = NULL;
    host_root_from[0] = NULL;
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

/* Without a page for its marks the scan reports that; with broken lists it
 * ends. */
KTEST(kmem_debug, leaks_under_adverse_conditions)
{
    struct kmem_cache *cp = kmem_cache_create("t_leak", 64, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_leak_stat stat;
    struct kmem_slab *sp;
    void *saved;

    host_root_from[0] = NULL;
    test_alloc(cp, 0, 5);
    test_flood();
    KT_TRUE(!kmem_leak_scan(note_leak, NULL, &stat));
    KT_EQ(stat.stat_suspects, 0);
    test_flood_end();
    sp = test_slab(cp, 0);
    saved = sp->slab_head->bufctl_next;
    sp->slab_head->bufctl_next = sp->slab_head;
    KT_TRUE(kmem_leak_scan(note_leak, NULL, &stat));
    sp->slab_head->bufctl_next = (void *)(uintptr_t)0xdeadbeec;
    KT_TRUE(kmem_leak_scan(note_leak, NULL, &stat));
    sp->slab_head->bufctl_next = saved;
    leak_count = 0;
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat));
    KT_EQ(stat.stat_suspects, 5);
    test_free(cp, 0, 5);
    test_destroy(cp);
}

static size_t refs;
static uintptr_t ref_at[8];

static bool note_ref(uintptr_t at, const char *name,
                     const struct kmem_buf_stat *in, void *arg)
{
    bool in_root = at >= (uintptr_t)root && at < (uintptr_t)(root + ROOTS);

    KT_EQ(name != NULL, in_root);
    KT_EQ(in == NULL, in_root);
    KT_TRUE(name == NULL || strcmp(name, "root") == 0);
    if (refs < ARRAY_SIZE(ref_at))
        ref_at[refs] = at;
    refs++;
    return refs != *(size_t *)arg;
}

KTEST(kmem_debug, words_that_point_to_a_buffer)
{
    struct kmem_cache *cp = test_debug("FZ", 64, 0, false);
    void ***obj = (void ***)test_obj;
    size_t most = 0;

    set_root();
    test_alloc(cp, 0, 3);
    for (size_t i = 0; i < 3; i++)
        memset(obj[i], 0, 64);
    root[2] = obj[0] + 3;
    root[4] = root[5] = obj[0];
    obj[1][4] = obj[0];
    obj[2][0] = (char *)obj[0] + 64; /* not in it */
    refs = 0;
    kmem_leak_refs((char *)obj[0] + 8, note_ref, &most);
    KT_EQ(refs, 2);
    KT_EQ(ref_at[0], (uintptr_t)&root[2]);
    KT_EQ(ref_at[1], (uintptr_t)&obj[1][4]);
    refs = 0;
    most = 1;
    kmem_leak_refs(obj[0], note_ref, &most);
    KT_EQ(refs, 1);
    refs = 0;
    kmem_leak_refs(&refs, note_ref, &most);
    KT_EQ(refs, 0);
    kmem_last_error.error_buf = obj[0]; /* a record, no pointer of a client */
    host_root_from[0] = &kmem_last_error;
    host_root_end[0] = &kmem_last_error + 1;
    most = 0;
    kmem_leak_refs(obj[0], note_ref, &most);
    KT_EQ(refs, 1);
    KT_EQ(ref_at[0], (uintptr_t)&obj[1][4]);
    kmem_last_error.error_buf = NULL;
    host_root_from[0] = NULL;
    test_free(cp, 0, 3);
    test_destroy(cp);
}

#endif
