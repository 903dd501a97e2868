/*
 * Setting the debugging modes of a cache: only while no object is allocated,
 * in place, and nothing is lost.
 */
#include "mm/debug/tests/debug_test.h"

/* Every sequence of modes, with traffic between; the counts go on. */
static void sequence(size_t size, bool constructed, const char *const *modes,
                     size_t count)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_switch", size, 0, constructed ? test_ctor : NULL,
                          constructed ? test_dtor : NULL);
    size_t n = 20;
    struct kmem_cache_stat stat;

    KT_REQUIRE(cp != NULL);
    test_constructed_reset();
    for (size_t i = 0; i < count; i++) {
        test_switch(cp, modes[i]);
        KT_EQ(kmem_debug_modes(cp), test_modes(modes[i]));
        KT_EQ(cp->cache_slabs, 0);
        TEST_VERIFY(NULL);
        test_alloc(cp, 0, n);
        for (size_t k = 0; k < n; k++)
            if (!constructed)
                memset(test_obj[k], 1, size);
            else
                KT_TRUE(test_is_constructed(test_obj[k], size));
        TEST_VERIFY(NULL);
        test_free(cp, 0, n);
        TEST_VERIFY(NULL);
    }
    test_switch(cp, "");
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    stat = test_stat(cp);
    KT_EQ(stat.stat_allocs, count * n);
    KT_EQ(stat.stat_frees, count * n);
    KT_EQ(stat.stat_slab_creates, stat.stat_slab_destroys);
    KT_EQ(stat.stat_ctors, test_ctors);
    KT_EQ(stat.stat_dtors, test_dtors);
    KT_EQ(test_ctors, test_dtors);
    KT_EQ(test_bad, 0);
    test_destroy(cp);
}

KTEST(kmem_debug, switching_with_traffic_between)
{
    static const char *const one[] = {"FPZU", "", "Z", "U", ""};
    static const char *const other[] = {"P", "FPZU", "", "G", "S", "F", ""};

    sequence(40, false, one, ARRAY_SIZE(one));
    sequence(40, true, other, ARRAY_SIZE(other));
    sequence(700, true, one, ARRAY_SIZE(one));
    sequence(700, false, other, ARRAY_SIZE(other));
    sequence(9000, false, one, 3);
}

/* Allocated objects cannot move: the switch is refused, nothing changes, and
 * the message says how many there are and how to boot with the mode. */
KTEST(kmem_debug, switching_with_allocated_objects_is_refused)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    unsigned modes = test_modes("FPZU");
    char text[128];
    struct kmem_slab *sp;

    test_alloc(cp, 0, 3);
    sp = test_slab(cp, 0);
    KT_EQ(kmem_debug_set(cp, modes), -KMEM_EBUSY);
    KT_EQ(kmem_debug_modes(cp), 0);
    KT_TRUE(test_slab(cp, 0) == sp);
    TEST_VERIFY(NULL);
    KT_TRUE(
        strcmp(kmem_debug_set_error(cp, modes, -KMEM_EBUSY, text, sizeof(text)),
               "3 objects are allocated; free them first, or boot with "
               "kmem.debug=FPZU,t_switch") == 0);
    test_free(cp, 1, 3);
    KT_TRUE(
        strcmp(kmem_debug_set_error(cp, modes, -KMEM_EBUSY, text, sizeof(text)),
               "1 object is allocated; free it first, or boot with "
               "kmem.debug=FPZU,t_switch") == 0);
    KT_EQ(kmem_debug_set(cp, modes), -KMEM_EBUSY);
    test_free(cp, 0, 1);
    KT_EQ(kmem_debug_set(cp, modes), 0);
    test_alloc(cp, 0, 1);
    KT_EQ(kmem_debug_set(cp, 0), -KMEM_EBUSY);
    KT_EQ(kmem_debug_modes(cp), modes);
    TEST_VERIFY(NULL);
    test_free(cp, 0, 1);
    test_destroy(cp);
}

/* The other errors have no numbers. */
KTEST(kmem_debug, refused_modes_have_a_reason)
{
    static const struct {
        int error;
        const char *why;
    } reasons[] = {
        {-KMEM_EPERM, "one of the allocator's own caches: it has no modes"},
        {-KMEM_EINVAL, "its pages cannot be unmapped: no S and no G"},
        {-KMEM_EAGAIN, "it is growing or being reaped; try again"},
        {-KMEM_ENOMEM, "there is no memory"},
    };
    char text[128];

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        KT_EQ(strcmp(kmem_debug_set_error(kmem_slab_cache, KMF_CHECK,
                                          reasons[i].error, text, sizeof(text)),
                     reasons[i].why),
              0);
}

/* Modes that are set already change nothing: slabs stay, objects may be
 * allocated. */
KTEST(kmem_debug, switching_to_the_same_modes_keeps_the_slabs)
{
    struct kmem_cache *cp = test_debug("FZ", 40, 0, false);
    struct kmem_slab *sp;
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    sp = test_slab(cp, 0);
    test_switch(cp, "ZF");
    KT_EQ(kmem_debug_modes(cp), test_modes("FZ"));
    KT_TRUE(test_slab(cp, 0) == sp);
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

/* As it was before: the same flags, geometry and hot path. */
KTEST(kmem_debug, S59_modes_that_end_leave_no_trace)
{
    static const size_t sizes[] = {40, 700};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct kmem_cache *cp =
            kmem_cache_create("t_switch", sizes[i], 0, NULL, NULL);
        KT_REQUIRE(cp != NULL);
        struct kmem_cache before = *cp;

        test_switch(cp, "FPZU");
        KT_NE(cp->cache_chunk, before.cache_chunk);
        test_alloc(cp, 0, 3);
        test_free(cp, 0, 3);
        test_switch(cp, "");
        KT_EQ(cp->cache_flags, before.cache_flags);
        KT_EQ(cp->cache_chunk, before.cache_chunk);
        KT_EQ(cp->cache_bufctl, before.cache_bufctl);
        KT_EQ(cp->cache_colour_min, 0);
        KT_EQ(cp->cache_colour, 0);
        KT_EQ(cp->cache_redzone_end, 0);
        KT_EQ(cp->cache_colour_max, before.cache_colour_max);
        KT_EQ(cp->cache_slab_pages, before.cache_slab_pages);
        KT_EQ(cp->cache_slab_chunks, before.cache_slab_chunks);
        KT_EQ(cp->cache_hash == NULL, before.cache_hash == NULL);
        test_destroy(cp);
    }
    KT_EQ(kmem_direct_max, KMEM_MAXBUF);
}

/* Objects are large only because of the word that those with a constructor, or
 * with a destructor, need, or because of their alignment. */
KTEST(kmem_debug, S59_only_large_objects_have_a_hash_table)
{
    static const struct {
        size_t size;
        size_t align;
        kmem_ctor_t *ctor;
        kmem_dtor_t *dtor;
        bool large;
    } kinds[] = {
        {KMEM_LARGE_MIN - 8, 0, test_ctor, NULL, true},
        {KMEM_LARGE_MIN - 8, 0, NULL, test_ctor, true},
        {100, KMEM_LARGE_MIN, NULL, NULL, true},
        {KMEM_LARGE_MIN - 8, 0, NULL, NULL, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct kmem_cache *cp =
            kmem_cache_create("t_switch", kinds[i].size, kinds[i].align,
                              kinds[i].ctor, kinds[i].dtor);

        KT_REQUIRE(cp != NULL);
        test_switch(cp, "F");
        test_switch(cp, "");
        KT_EQ(cp->cache_hash != NULL, kinds[i].large);
        TEST_VERIFY(cp);
        test_destroy(cp);
    }
}

KTEST(kmem_debug, modes_and_least_colour_in_a_snapshot)
{
    struct kmem_cache *cp = test_debug("FZ", 48, 0, false);

    KT_EQ(test_stat(cp).stat_modes, test_modes("FZ"));
    KT_EQ(test_stat(cp).stat_colour_min, cp->cache_colour_min);
    KT_NE(cp->cache_colour_min, 0);
    test_destroy(cp);
}

KTEST(kmem_debug, caches_whose_modes_cannot_change)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct test_supply s;
    struct kmem_cache *supplied;

    supplied = test_supply_cache(&s, 10, 40);
    KT_EQ(kmem_debug_set(kmem_slab_cache, KMF_CHECK), -KMEM_EPERM);
    KT_EQ(kmem_debug_set(kmem_bufctl_debug_cache, KMF_OWN_PAGES), -KMEM_EPERM);
    KT_EQ(kmem_debug_set(&kmem_cache_cache, KMF_REDZONE), -KMEM_EPERM);
    KT_EQ(kmem_debug_set(supplied, KMF_UNMAP), -KMEM_EINVAL);
    KT_EQ(kmem_debug_set(supplied, KMF_OWN_PAGES | KMF_CHECK), -KMEM_EINVAL);
    KT_EQ(kmem_debug_modes(supplied), 0);
    TEST_VERIFY(NULL);
    test_destroy(supplied);
    test_destroy(cp);
}

#ifdef MM_HOST
KTEST(kmem_debug, modes_of_a_platform_that_unmaps_no_pages)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    host_unmaps = false;
    KT_EQ(kmem_debug_set(cp, KMF_UNMAP), -KMEM_EINVAL);
    KT_EQ(kmem_debug_set(cp, KMF_OWN_PAGES), -KMEM_EINVAL);
    KT_EQ(kmem_debug_set(cp, KMF_CHECK), 0);
    test_destroy(cp);
    kmem_debug_boot(test_modes("FS"), NULL);
    cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    KT_EQ(kmem_debug_modes(cp), test_modes("F"));
    kmem_state = KMEM_PARTIAL; /* its own caches are in no mode */
    KT_EQ(kmem_debug_flags(cp), 0);
    kmem_state = KMEM_UP;
    kmem_debug_boot(0, NULL);
    host_unmaps = true;
    test_destroy(cp);
}

/* Without memory for the smaller table that its free slabs ask for, a cache
 * still has its large table when its layout changes. */
KTEST(kmem_debug, switching_frees_a_large_hash_table)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 600, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    test_alloc(cp, 0, 400);
    KT_EQ(cp->cache_hash_mask + 1, 256);
    test_alloc(cp, 400, 800);
    KT_EQ(cp->cache_hash_mask + 1, 1024);
    test_free(cp, 0, 800);
    kmem_fail_set(KMEM_FAIL_PAGE, 2);
    KT_EQ(kmem_debug_set(cp, KMF_CHECK), 0);
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    KT_EQ(cp->cache_hash_mask + 1, KMEM_HASH_INITIAL);
    TEST_VERIFY(NULL);
    test_destroy(cp);
}

/* The first audited cache gets the log's pages, no other does, and none that is
 * in other modes; what they contained before is no transaction. The log has
 * four pages or more. */
KTEST(kmem_debug, S48_the_log_is_made_once_and_empty)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct page *p = buddy_alloc(BUDDY_MAX_ORDER);
    size_t pages;

    KT_REQUIRE(p != NULL);
    memset(page_to_virt(p), 1, PAGE_SIZE << BUDDY_MAX_ORDER);
    buddy_free(p, BUDDY_MAX_ORDER);
    pages = buddy_free_pages();
    kmem_debug_init();
    KT_EQ(kmem_log_kept(), 0);
    KT_EQ(buddy_free_pages(), pages);
    test_switch(cp, "FPZ");
    test_switch(cp, "F");
    KT_GE(buddy_free_pages(), pages - 10);
    pages = buddy_free_pages();
    host_set_keep(pages - 3);
    KT_EQ(kmem_debug_set(cp, KMF_AUDIT), -KMEM_ENOMEM);
    KT_EQ(kmem_debug_modes(cp), KMF_CHECK);
    KT_EQ(buddy_free_pages(), pages);
    host_set_keep(0);
    test_switch(cp, "U");
    KT_LE(buddy_free_pages(), pages - 100);
    KT_TRUE(kmem_log_at(0x01010101) == NULL);
    pages = buddy_free_pages();
    test_switch(cp, "");
    test_switch(cp, "U");
    KT_EQ(buddy_free_pages(), pages);
    test_destroy(cp);
}
#endif

/* While another task creates or destroys a slab, the geometry stays. */
KTEST(kmem_debug, switching_while_the_cache_is_held)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    kmem_hold(cp);
    KT_EQ(kmem_debug_set(cp, KMF_CHECK), -KMEM_EAGAIN);
    kmem_release(cp);
    KT_EQ(kmem_debug_modes(cp), 0);
    KT_EQ(kmem_debug_set(cp, KMF_CHECK), 0);
    TEST_VERIFY(NULL);
    test_destroy(cp);
}

/* A constructor of the slab that is being created requests another layout. */
static struct kmem_cache *growing;
static int growing_error;

static void switching_ctor(void *obj, size_t size)
{
    (void)obj;
    (void)size;
    if (growing != NULL)
        growing_error = kmem_debug_set(growing, KMF_REDZONE);
}

KTEST(kmem_debug, switching_while_the_cache_grows)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_switch", 40, 0, switching_ctor, NULL);
    KT_REQUIRE(cp != NULL);
    size_t chunk = cp->cache_chunk;
    void *obj;

    growing = cp;
    growing_error = 0;
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    growing = NULL;
    KT_EQ(growing_error, -KMEM_EAGAIN);
    KT_EQ(cp->cache_chunk, chunk);
    KT_EQ(cp->cache_flags, 0);
    TEST_VERIFY(NULL);
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

/* The n-th allocation that switching needs fails, for each n: nothing changes,
 * nothing leaks. */
KTEST(kmem_debug, switching_without_memory)
{
    struct kmem_cache *cp = kmem_cache_create("t_switch", 40, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    uint32_t n = 1;
    int error;

    for (;; n++) {
        kmem_fail_set(TEST_WORD == 4 ? KMEM_FAIL_SLAB : KMEM_FAIL_PAGE, n);
        error = kmem_debug_set(cp, test_modes("FPZ"));
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        TEST_VERIFY(NULL);
        if (error == 0)
            break;
        KT_EQ(error, -KMEM_ENOMEM);
        KT_EQ(kmem_debug_modes(cp), 0);
    }
    KT_EQ(n, 2); /* the hash table */
    KT_EQ(kmem_debug_modes(cp), test_modes("FPZ"));
    test_destroy(cp);
}

KTEST(kmem_debug, switching_with_a_supplier)
{
    struct test_supply s;
    struct kmem_cache *cp;

    cp = test_supply_cache(&s, 200, 100);
    for (size_t i = 0; i < 4; i++) {
        test_switch(cp, i % 2 == 0 ? "FPZU" : "");
        KT_EQ(s.held, 0);
        test_alloc(cp, 0, 50);
        TEST_VERIFY(NULL);
        test_free(cp, 0, 50);
    }
    test_destroy(cp);
    KT_EQ(s.held, 0);
}

#ifdef MM_HOST
/* kmem_free checks sizes while any class is in a mode. */
KTEST(kmem_debug, sizes_while_a_class_is_switched)
{
    struct kmem_cache *cp = kmem_size_class(100);
    void *obj, *other, *wrong, *last;

    KT_EQ(kmem_direct_max, KMEM_MAXBUF);
    test_switch(cp, "FZ");
    KT_EQ(kmem_direct_max, 0);
    obj = kmem_alloc(98, KM_SLEEP);
    other = kmem_alloc(200, KM_SLEEP);
    wrong = kmem_alloc(97, KM_SLEEP);
    last = kmem_alloc(KMEM_MAXBUF, KM_SLEEP);
    KT_TRUE(test_slab_of(kmem_size_class(KMEM_MAXBUF), last) != NULL);
    TEST_NO_ERROR(kmem_free(obj, 98));
    TEST_NO_ERROR(kmem_free(other, 200));
    TEST_NO_ERROR(kmem_free(last, KMEM_MAXBUF));
    TEST_ERROR(KMERR_BADSIZE, kmem_free(wrong, 98));
    test_accept_damage(cp, wrong);
    test_switch(cp, "");
    KT_EQ(kmem_direct_max, KMEM_MAXBUF);
}

/* ---- at boot ------------------------------------------------------------ */

/* The size classes in modes when the allocator starts: kmem_free checks sizes,
 * and the log exists. */
static void start_in_modes(void)
{
    kmem_debug_boot(test_modes("FU"), "kmem_alloc_8");
    kmem_init();
    KT_EQ(kmem_debug_modes(kmem_size_class(8)), test_modes("FU"));
    KT_EQ(kmem_direct_max, 0);
    kmem_free(kmem_alloc(8, KM_SLEEP), 8);
    KT_EQ(kmem_log_kept(), 2);
}

KTEST(kmem_debug, classes_in_modes_at_boot)
{
    host_before_init(HOST_FRAMES, start_in_modes);
}

KTEST(kmem_debug, modes_at_boot)
{
    struct test_supply s;
    struct kmem_cache *cp[5];

    test_supply_init(&s, 10);
    kmem_debug_boot(test_modes("FZSG"), "t_ab,t_b,t_c,t_s");
    cp[0] = kmem_cache_create("t_a", 40, 0, NULL, NULL);
    cp[1] = kmem_cache_create("t_b", 40, 0, NULL, NULL);
    cp[2] = kmem_cache_create("t_c", 40, 0, NULL, NULL);
    cp[3] = kmem_cache_create("t_bc", 40, 0, NULL, NULL);
    cp[4] = kmem_cache_create_from("t_s", 40, 0, NULL, NULL, &s.supply);
    KT_EQ(kmem_debug_modes(cp[0]), 0);
    KT_EQ(kmem_debug_modes(cp[1]), test_modes("FZSG"));
    KT_EQ(kmem_debug_modes(cp[2]), test_modes("FZSG"));
    KT_EQ(kmem_debug_modes(cp[3]), 0);
    KT_EQ(kmem_debug_modes(cp[4]), test_modes("FZ"));
    kmem_debug_boot(test_modes("P"), NULL);
    for (size_t i = 0; i < 5; i++) {
        kmem_cache_free(cp[i], kmem_cache_alloc(cp[i], KM_SLEEP));
        test_destroy(cp[i]);
    }
    cp[0] = kmem_cache_create("t_a", 40, 0, NULL, NULL);
    KT_EQ(kmem_debug_modes(cp[0]), test_modes("P"));
    test_destroy(cp[0]);
    kmem_debug_boot(test_modes("P"), "");
    cp[0] = kmem_cache_create("t_a", 40, 0, NULL, NULL);
    KT_EQ(kmem_debug_modes(cp[0]), 0);
    test_destroy(cp[0]);
    kmem_debug_boot(test_modes("U"), "t_a");
    KT_TRUE(kmem_log_kept() == 0);
    kmem_debug_init();
    cp[0] = kmem_cache_create("t_a", 40, 0, NULL, NULL);
    kmem_cache_free(cp[0], kmem_cache_alloc(cp[0], KM_SLEEP));
    KT_EQ(kmem_log_kept(), 2);
    test_destroy(cp[0]);
    kmem_debug_boot(0, NULL);
}
#endif
