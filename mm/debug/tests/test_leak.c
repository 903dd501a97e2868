/*
 * Leaks (6.7): buffers that no pointer leads to, and the pointers to one.
 */
#include "mm/debug/tests/debug_test.h"

#ifdef MM_HOST

#define LEAKS_MAX 64

static const void *leaked[LEAKS_MAX];
static size_t leak_count;

static bool note_leak(const struct kmem_buf_stat *b, void *arg)
{
    (void)arg;
    KT_TRUE(host_others_stopped);
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

static bool count_refs(uintptr_t at, const char *root,
                       const struct kmem_buf_stat *in, void *arg)
{
    (void)at;
    (void)root;
    (void)in;
    ++*(size_t *)arg;
    return true;
}

/* A scan; it changes nothing. Returns the number of suspects. */
static size_t scan(struct kmem_leak_stat *stat)
{
    size_t free_pages = buddy_free_pages();
    const char *where;

    leak_count = 0;
    KT_TRUE(kmem_leak_scan(note_leak, NULL, stat));
    KT_TRUE(!host_others_stopped);
    KT_EQ(leak_count, stat->stat_suspects);
    KT_EQ(buddy_free_pages(), free_pages);
    KT_TRUE(kmem_verify(&where) == NULL);
    KT_EQ(stat->stat_buffers, stat->stat_reached + stat->stat_suspects);
    return leak_count;
}

/* The first n of test_obj, without a word that could be a pointer. */
static void alloc_cleared(struct kmem_cache *cp, size_t n, size_t size)
{
    test_alloc(cp, 0, n);
    for (size_t i = 0; i < n; i++)
        memset(test_obj[i], 0, size);
}

#define ROOTS 4
static void *root[ROOTS + 2]; /* the last two are beyond its end */

/* Precedes the allocator's records, which are not initialized. */
static void *before[2] = {before};

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
    alloc_cleared(cp, 9, size);
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
    root[ROOTS] = obj[6];                         /* just past the root */
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
    leaks_of("", 3000);
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
    TEST_ERROR(KMERR_BADBASE, kmem_cache_free(cp, obj + 4));
    KT_TRUE(kmem_last_error.error_base == obj);
    KT_EQ(scan(&stat), 1);
    large[1000] = obj;
    KT_EQ(scan(&stat), 0);
    host_root_from[0] = NULL;
    kmem_free(large, 20000);
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

/* Marks of more slabs than fit in a page, and of slabs with several words of
 * them. */
KTEST(kmem_debug, leaks_in_many_slabs)
{
    static const struct {
        const char *modes;
        size_t size;
    } kinds[] = {{"", 64}, {"", 1300}, {"F", 64}}; /* F: 64 in a slab */

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct kmem_cache *cp =
            test_debug(kinds[i].modes, kinds[i].size, 0, false);
        struct kmem_leak_stat stat;
        size_t n = 1000;

        set_root();
        alloc_cleared(cp, n, kinds[i].size);
        KT_EQ(scan(&stat), n);
        for (size_t k = 0; k < ROOTS; k++)
            root[k] = test_obj[k * 300];
        KT_EQ(scan(&stat), n - ROOTS);
        host_root_from[0] = NULL;
        test_free(cp, 0, n);
        test_destroy(cp);
    }
}

/* A slab of more buffers than a word has bits. */
KTEST(kmem_debug, leaks_among_many)
{
    struct kmem_cache *cp = test_debug("", 64, 0, false);
    struct kmem_leak_stat stat;
    size_t n = 50;

    set_root();
    alloc_cleared(cp, n, 64);
    for (size_t i = 0; i < n; i++) {
        root[0] = test_obj[i];
        KT_EQ(scan(&stat), n - 1);
        KT_TRUE(!is_leaked(test_obj[i]));
    }
    host_root_from[0] = NULL;
    test_free(cp, 0, n);
    test_destroy(cp);
}

/* A pointer to it in one word, and none in those that an earlier scan wrote. */
static size_t scan_with(void **word, void *obj)
{
    struct kmem_leak_stat stat;
    size_t suspects;

    memset(leaked, 0, sizeof(leaked));
    *word = obj;
    suspects = scan(&stat);
    *word = NULL;
    return suspects;
}

/* Words before and after the last error in a root are read. The allocator's own
 * copy of the address, for which it looks, is no pointer. */
KTEST(kmem_debug, leaks_and_records_amid_a_root)
{
    struct kmem_cache *cp = test_debug("", 64, 0, false);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    size_t refs = 0;

    set_root();
    KT_REQUIRE((void *)before < (void *)&kmem_last_error &&
               (void *)root > (void *)&kmem_last_error);
    host_root_from[0] = before;
    host_root_end[0] = root + ROOTS;
    host_root_over(host_root_from[0], host_root_end[0]);
    KT_EQ(scan_with((void **)&kmem_last_error.error_buf, obj), 1);
    KT_EQ(scan_with(&root[ROOTS - 1], obj), 0);
    KT_EQ(scan_with(&before[0], obj), 0);
    host_root_end[0] = &before[1]; /* the last error follows */
    KT_EQ(scan_with(&before[1], obj), 1);
    host_root_end[0] = root + ROOTS;
    memset(leaked, 0, sizeof(leaked));
    kmem_leak_refs(obj, count_refs, &refs);
    KT_EQ(refs, 0);
    before[0] = obj;
    kmem_leak_refs(obj, count_refs, &refs);
    KT_EQ(refs, 1);
    before[0] = NULL;
    host_root_from[0] = NULL;
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

/* Two of three slabs are found, and then none, or the first again. */
KTEST(kmem_debug, leaks_in_a_broken_list)
{
    struct kmem_cache *cp = test_debug("", 1300, 0, false);
    size_t n = 3 * cp->cache_slab_chunks;
    struct kmem_leak_stat stat;
    struct list *next;
    struct kmem_slab *sp;

    test_alloc(cp, 0, n);
    sp = test_slab(cp, 1);
    next = sp->slab_link.next;
    sp->slab_link.next = (void *)(uintptr_t)0xdeadbeec;
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat));
    KT_EQ(stat.stat_buffers, 2 * cp->cache_slab_chunks);
    sp->slab_link.next = cp->cache_null.slab_link.next;
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat));
    KT_EQ(stat.stat_buffers, n);
    sp->slab_link.next = next;
    test_free(cp, 0, n);
    test_destroy(cp);
}

/* Pointers that a cache has in its own form: all bits inverted. */
KTEST(kmem_debug, leaks_and_pointers_of_another_form)
{
    struct kmem_cache *cp = test_debug("", 64, 0, false);
    struct kmem_leak_stat stat;
    uintptr_t **obj = (uintptr_t **)test_obj;
    size_t refs = 0;

    set_root();
    alloc_cleared(cp, 2, 64);
    root[0] = obj[0];
    obj[0][3] = ~(uintptr_t)obj[1];
    KT_EQ(scan(&stat), 1);
    host_inverted_cache = cp;
    KT_EQ(scan(&stat), 0);
    kmem_leak_refs(obj[1], count_refs, &refs);
    KT_EQ(refs, 1);
    kmem_leak_refs(obj[0], count_refs, &refs); /* in the root */
    KT_EQ(scan(&stat), 0);                     /* which wants no pointers */
    KT_EQ(refs, 2);
    host_inverted_cache = NULL;
    host_root_from[0] = NULL;
    test_free(cp, 0, 2);
    test_destroy(cp);
}

/* Without a page for its marks the scan reports that; with broken lists it
 * ends. */
KTEST(kmem_debug, leaks_under_adverse_conditions)
{
    struct kmem_cache *cp = test_debug("", 64, 0, false);
    struct kmem_leak_stat stat;
    struct kmem_slab *sp;
    void *saved;

    host_root_from[0] = NULL;
    test_alloc(cp, 0, 5);
    test_flood();
    KT_TRUE(!kmem_leak_scan(note_leak, NULL, &stat));
    KT_TRUE(!kmem_leak_refs(test_obj[0], count_refs, &stat));
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

static size_t found;
static uintptr_t ref_at[8];

static bool note_ref(uintptr_t at, const char *name,
                     const struct kmem_buf_stat *in, void *arg)
{
    bool in_root = at >= (uintptr_t)root && at < (uintptr_t)(root + ROOTS);

    KT_EQ(name != NULL, in_root);
    KT_TRUE(in == NULL || at - in->stat_buf < in->stat_size);
    KT_EQ(in == NULL, in_root);
    KT_TRUE(name == NULL || strcmp(name, "root") == 0);
    if (found < ARRAY_SIZE(ref_at))
        ref_at[found] = at;
    found++;
    return found != *(size_t *)arg;
}

KTEST(kmem_debug, words_that_point_to_a_buffer)
{
    struct kmem_cache *cp = test_debug("FZ", 64, 0, false);
    void ***obj = (void ***)test_obj;
    size_t most = 0;

    set_root();
    alloc_cleared(cp, 4, 64);
    root[ROOTS - 1] = obj[0] + 3;
    root[4] = root[5] = obj[0];
    obj[1][64 / sizeof(void *) - 1] = obj[0];
    obj[2][0] = (char *)obj[0] + 64; /* not in it */
    obj[3][0] = obj[0];              /* free */
    kmem_cache_free(cp, obj[3]);
    found = 0;
    kmem_leak_refs((char *)obj[0] + 8, note_ref, &most);
    KT_EQ(found, 2);
    KT_EQ(ref_at[0], (uintptr_t)&root[ROOTS - 1]);
    KT_EQ(ref_at[1], (uintptr_t)&obj[1][64 / sizeof(void *) - 1]);
    found = 0;
    most = 1;
    kmem_leak_refs(obj[0], note_ref, &most);
    KT_EQ(found, 1);
    found = 0;
    KT_TRUE(kmem_leak_refs(&found, note_ref, &most)); /* no buffer */
    KT_EQ(found, 0);
    kmem_last_error.error_buf = obj[0]; /* a record, no pointer of a client */
    host_root_from[0] = &kmem_last_error;
    host_root_end[0] = &kmem_last_error + 1;
    most = 0;
    kmem_leak_refs(obj[0], note_ref, &most);
    KT_EQ(found, 1);
    KT_EQ(ref_at[0], (uintptr_t)&obj[1][64 / sizeof(void *) - 1]);
    kmem_last_error.error_buf = NULL;
    host_root_from[0] = NULL;
    test_free(cp, 0, 3);
    test_destroy(cp);
}

/* ---- caches and callbacks ----------------------------------------------- */

/* Objects of a cache of roots are reached, but not read: their live part has
 * been. */
KTEST(kmem_debug, leaks_and_objects_that_are_roots)
{
    struct kmem_cache *cp = kmem_cache_create("t_stack", 64, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_leak_stat stat;
    void ***obj = (void ***)test_obj;
    void *live[1];
    size_t refs = 0;

    alloc_cleared(cp, 2, 64);
    obj[0][3] = obj[1];
    live[0] = obj[0];
    host_root_from[0] = live;
    host_root_end[0] = live + 1;
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat) && stat.stat_suspects == 0);
    kmem_leak_refs(obj[1], count_refs, &refs);
    KT_EQ(refs, 1);
    host_root_cache = cp;
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat) && stat.stat_suspects == 1);
    kmem_leak_refs(obj[1], count_refs, &refs);
    KT_EQ(refs, 1);
    host_root_from[1] = test_slab(cp, 0)->slab_base;
    host_root_end[1] = (char *)host_root_from[1] + PAGE_SIZE;
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat) && stat.stat_suspects == 0);
    host_root_cache = NULL;
    host_root_from[0] = host_root_from[1] = NULL;
    test_free(cp, 0, 2);
    test_destroy(cp);
}

static bool only_one(const struct kmem_buf_stat *b, void *arg)
{
    KT_EQ(b->stat_state, KMEM_BUF_USED);
    ++*(size_t *)arg;
    return false;
}

/* Caches with a supplier are not scanned; the callback can end the scan; a root
 * may be partly unmapped. */
KTEST(kmem_debug, leaks_that_are_not_reported)
{
    struct kmem_cache *cp = test_debug("Z", 64, 0, false);
    struct kmem_cache *supplied;
    struct kmem_leak_stat stat;
    struct test_supply s;
    size_t told = 0;
    size_t refs = 0;
    char *page = kmem_zalloc(20000, KM_SLEEP);
    void *obj;

    supplied = test_supply_cache(&s, 10, 64);
    obj = kmem_cache_alloc(supplied, KM_SLEEP);
    test_alloc(cp, 0, 3);
    host_root_from[0] = page;
    host_root_end[0] = page + 2 * PAGE_SIZE;
    *(void **)(page + PAGE_SIZE) = test_obj[0];
    mm_page_map(page + PAGE_SIZE, false);
    kmem_leak_refs(test_obj[0], count_refs, &refs);
    KT_EQ(refs, 0);
    KT_TRUE(kmem_leak_scan(only_one, &told, &stat));
    KT_EQ(told, 1);
    KT_EQ(stat.stat_suspects, 3);
    mm_page_map(page + PAGE_SIZE, true);
    KT_TRUE(kmem_leak_refs(test_obj[0], count_refs, &refs));
    KT_EQ(refs, 2); /* in the root, and in pages of kmem_alloc */
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat));
    KT_EQ(stat.stat_suspects, 2);
    test_slab(cp, 0)->slab_refcnt++; /* a broken slab is left out */
    KT_TRUE(kmem_leak_scan(NULL, NULL, &stat));
    KT_EQ(stat.stat_buffers, 0);
    test_slab(cp, 0)->slab_refcnt--;
    host_root_from[0] = NULL;
    kmem_free(page, 20000);
    test_free(cp, 0, 3);
    test_destroy(cp);
    kmem_cache_free(supplied, obj);
    test_destroy(supplied);
}

#endif
