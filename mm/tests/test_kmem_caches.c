/*
 * Statements S-1, S-2, S-8 and S-9: creating and destroying caches (paper,
 * 2.3).
 *
 * Tests: mm/kmem_cache.c
 */
#include "mm/tests/kmem_test.h"

/* ---- create ------------------------------------------------------------- */

static size_t seen_ctor[2];
static size_t seen_dtor[2];

static void note_ctor(void *obj, size_t size)
{
    (void)obj;
    seen_ctor[size == 100]++;
    test_bad += size != 100 && size != 24;
}

static void note_dtor(void *obj, size_t size)
{
    (void)obj;
    seen_dtor[size == 100]++;
    test_bad += size != 100 && size != 24;
}

KTEST(kmem, S1_constructors_get_object_and_size)
{
    struct kmem_cache *a =
        kmem_cache_create("t_a", 24, 0, note_ctor, note_dtor);
    struct kmem_cache *b =
        kmem_cache_create("t_b", 100, 0, note_ctor, note_dtor);

    KT_REQUIRE(a != NULL && b != NULL && a != b);
    test_constructed_reset();
    memset(seen_ctor, 0, sizeof(seen_ctor));
    memset(seen_dtor, 0, sizeof(seen_dtor));
    test_obj[0] = kmem_cache_alloc(a, KM_SLEEP);
    test_obj[1] = kmem_cache_alloc(b, KM_SLEEP);
    KT_EQ(seen_ctor[0], a->cache_slab_chunks);
    KT_EQ(seen_ctor[1], b->cache_slab_chunks);
    test_free(a, 0, 1);
    test_free(b, 1, 2);
    test_destroy(a);
    KT_EQ(seen_dtor[0], seen_ctor[0]);
    KT_EQ(seen_dtor[1], 0);
    test_destroy(b);
    KT_EQ(seen_dtor[1], seen_ctor[1]);
    KT_EQ(test_bad, 0);
}

#ifdef MM_HOST
/* Of two faults of the arguments, the first is named. */
KTEST(kmem, S1_a_refusal_says_what_and_why)
{
    static const struct kmem_supplier none;

    host_print_clear();
    KT_TRUE(kmem_cache_create("kmem_slab", 8, 0, NULL, NULL) == NULL);
    KT_TRUE(kmem_cache_create(NULL, 8, 0, NULL, NULL) == NULL);
    KT_TRUE(kmem_cache_create_from("", 8, 0, NULL, NULL, &none) == NULL);
    KT_EQ(strcmp(host_printed,
                 "kmem_cache_create: kmem_slab: there is a cache of that name\n"
                 "kmem_cache_create: ?: the name is NULL\n"
                 "kmem_cache_create: : the name is empty\n"),
          0);
}

static bool one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

KTEST(kmem, S1_every_character_of_a_name)
{
    static const char first[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

    for (int c = 0; c < 256; c++) {
        char name[] = {(char)c, (char)c, '\0'};
        struct kmem_cache *cp = kmem_cache_create(name, 8, 0, NULL, NULL);

        KT_EQ(cp != NULL, one_of(name[0], first));
        if (cp != NULL)
            test_destroy(cp);
        name[0] = '_';
        cp = kmem_cache_create(name, 8, 0, NULL, NULL);
        KT_EQ(cp != NULL, name[1] == '\0' || one_of(name[1], first) ||
                              one_of(name[1], "0123456789"));
        if (cp != NULL)
            test_destroy(cp);
    }
}

/* kmem_init makes the first cache. Before the allocator's own caches exist, the
 * chunk decides: it has a word more if the objects are constructed. */
KTEST(kmem, no_large_objects_before_their_caches)
{
    struct kmem_cache *cp;

    kmem_state = KMEM_DOWN;
    KT_TRUE(kmem_cache_create("t_down", 8, 0, NULL, NULL) == NULL);
    kmem_state = KMEM_PARTIAL;
    cp = kmem_cache_create("t_early", KMEM_LARGE_MIN - 8, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    KT_TRUE(kmem_cache_create("t_c", KMEM_LARGE_MIN - 8, 0, test_ctor, NULL) ==
            NULL);
    KT_TRUE(kmem_cache_create("t_d", KMEM_LARGE_MIN - 8, 0, NULL, test_dtor) ==
            NULL);
    KT_TRUE(kmem_cache_create("t_l", KMEM_LARGE_MIN, 0, NULL, NULL) == NULL);
    kmem_state = KMEM_UP;
    cp->cache_kind = KMEM_KIND_NAMED; /* else it cannot be destroyed */
    test_destroy(cp);
}

static void start_without_memory(void)
{
    for (unsigned order = 0; order < BUDDY_ORDERS; order++)
        while (buddy_alloc(order) != NULL)
            ;
    KT_PANICS(kmem_init(), "kmem_init: no memory for kmem_slab");
}

KTEST(kmem, no_memory_at_the_start)
{
    host_before_init(MIB(2) >> PAGE_SHIFT, start_without_memory);
}
#endif

KTEST(kmem, S1_create_refuses_bad_names)
{
    static const char *const bad[] = {
        "",
        "7up",
        "a b",
        "a-b",
        "tab\t",
        "t.x",
        "t_32_characters_are_one_too_many",
    };
    struct kmem_cache *cp;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (kmem_cache_create(bad[i], 8, 0, NULL, NULL) != NULL)
            KT_FAIL("accepted \"%s\"", bad[i]);
    KT_TRUE(kmem_cache_create(NULL, 8, 0, NULL, NULL) == NULL);
    KT_TRUE(kmem_cache_create("kmem_slab", 8, 0, NULL, NULL) == NULL);
    cp = kmem_cache_create("_t31_characters_are_just_enough", 8, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    KT_TRUE(kmem_cache_find("_t31_characters_are_just_enough") == cp);
    KT_TRUE(kmem_cache_create("_t31_characters_are_just_enough", 8, 0, NULL,
                              NULL) == NULL);
    test_destroy(cp);
    KT_TRUE(kmem_cache_find("_t31_characters_are_just_enough") == NULL);
}

KTEST(kmem, S1_name_is_copied)
{
    char name[] = "t_copied";
    struct kmem_cache *cp = kmem_cache_create(name, 8, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    memset(name, 'x', sizeof(name) - 1);
    KT_TRUE(kmem_cache_find("t_copied") == cp);
    test_destroy(cp);
}

KTEST(kmem, S1_create_refuses_bad_sizes)
{
    struct kmem_cache *cp;

    KT_TRUE(kmem_cache_create("t_zero", 0, 0, NULL, NULL) == NULL);
    KT_TRUE(kmem_cache_create("t_huge", KMEM_SIZE_MAX + 1, 0, NULL, NULL) ==
            NULL);
    KT_TRUE(kmem_cache_create("t_huge", SIZE_MAX, 0, NULL, NULL) == NULL);
    cp = kmem_cache_create("t_largest", KMEM_SIZE_MAX, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    test_destroy(cp);
    cp = kmem_cache_create("t_smallest", 1, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    KT_EQ(cp->cache_chunk, 8);
    test_destroy(cp);
}

KTEST(kmem, S1_create_refuses_half_a_supplier)
{
    struct test_supply s;
    struct kmem_supplier half;

    test_supply_init(&s, 1);
    half = s.supply;
    half.freepages = NULL;
    KT_TRUE(kmem_cache_create_from("t_half", 8, 0, NULL, NULL, &half) == NULL);
    half = s.supply;
    half.getpages = NULL;
    KT_TRUE(kmem_cache_create_from("t_half", 8, 0, NULL, NULL, &half) == NULL);
}

KTEST(kmem, S2_alignment_zero_means_eight)
{
    for (size_t align = 0; align < 8; align = align == 0 ? 1 : 2 * align) {
        struct kmem_cache *cp =
            kmem_cache_create("t_align", 20, align, NULL, NULL);

        KT_REQUIRE(cp != NULL);
        KT_EQ(cp->cache_align, 8);
        KT_EQ(cp->cache_chunk, 24);
        test_destroy(cp);
    }
}

static void check_aligned(size_t size, size_t align)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_align", size, align, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = 2 * MIN(cp->cache_slab_chunks, (size_t)20) + 1;

    test_alloc(cp, 0, n);
    for (size_t i = 0; i < n; i++)
        KT_EQ((uintptr_t)test_obj[i] % MAX(align, (size_t)8), 0);
    test_free(cp, 0, n);
    test_destroy(cp);
}

KTEST(kmem, S2_every_address_is_aligned)
{
    for (size_t align = 1; align <= PAGE_SIZE; align *= 2) {
        check_aligned(24, align);
        check_aligned(200, align);
        check_aligned(700, align);
        check_aligned(5000, align);
    }
}

KTEST(kmem, S2_bad_alignments_are_refused)
{
    static const size_t bad[] = {3, 5, 12, 24, 100, 4095, 8192, 1u << 31};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (kmem_cache_create("t_align", 24, bad[i], NULL, NULL) != NULL)
            KT_FAIL("accepted alignment %zu", bad[i]);
}

/* ---- destroy ------------------------------------------------------------ */

KTEST(kmem, S8_destroy_frees_every_page)
{
    static const size_t sizes[] = {8, 200, 512, 700, 9000};

    for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
        struct test_supply s;
        struct kmem_cache *cp;
        size_t n;

        cp = test_supply_cache(&s, 1000, sizes[k]);
        n = 4 * cp->cache_slab_chunks + 1;
        test_alloc(cp, 0, n);
        KT_EQ(s.held, 5 * cp->cache_slab_pages);
        test_free(cp, 0, n);
        KT_EQ(s.held, 5 * cp->cache_slab_pages);
        test_destroy(cp);
        KT_EQ(s.held, 0);
        KT_EQ(s.gets, s.frees);
    }
}

/* One live object, in a slab at each position of the list. */
static void check_refusal(struct kmem_cache *cp, size_t live)
{
    struct kmem_cache_stat before;
    struct kmem_cache_stat after;

    before = test_stat(cp);
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
    after = test_stat(cp);
    KT_EQ(memcmp(&before, &after, sizeof(before)), 0);
    KT_EQ(after.stat_inuse, live);
    KT_TRUE(kmem_cache_find(cp->cache_name) == cp);
    TEST_VERIFY(cp);
}

static void check_refusals(size_t size)
{
    struct kmem_cache *cp = kmem_cache_create("t_live", size, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    size_t n = cp->cache_slab_chunks;

    test_alloc(cp, 0, 3 * n);
    check_refusal(cp, 3 * n);
    test_free(cp, n, 3 * n);
    check_refusal(cp, n);
    test_free(cp, 1, n);
    check_refusal(cp, 1);
    test_free(cp, 0, 1);
    test_destroy(cp);
}

KTEST(kmem, S8_destroy_with_live_objects_is_refused)
{
    check_refusals(200);
    check_refusals(700);
}

#ifdef MM_HOST
KTEST(kmem, S8_refusal_names_the_live_objects)
{
    struct kmem_cache *cp = kmem_cache_create("t_named", 100, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    char text[40];

    test_alloc(cp, 0, 12);
    test_free(cp, 0, 1);
    test_free(cp, 2, 3);
    host_print_clear();
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
    KT_TRUE(strstr(host_printed, "t_named: refused, 10 objects are") != NULL);
    for (size_t i = 0; i < 12; i++) {
        snprintf(text, sizeof(text), "allocated: %p\n", test_obj[i]);
        if ((strstr(host_printed, text) != NULL) !=
            (i == 1 || (i > 2 && i < 10)))
            KT_FAIL("object %zu: %s", i, host_printed);
    }
    KT_TRUE(strstr(host_printed, "  and 2 more: `cache -o alloc "
                                 "t_named` lists all\n") != NULL);
    kmem_cache_free(cp, test_obj[1]);
    test_free(cp, 3, 12);
    test_destroy(cp);
}

KTEST(kmem, S8_each_refusal_says_why)
{
    struct kmem_cache *cp = kmem_cache_create("t_named", 100, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    char text[400];

    host_print_clear();
    KT_EQ(kmem_cache_destroy((struct kmem_cache *)text), -KMEM_EINVAL);
    KT_EQ(kmem_cache_destroy(kmem_slab_cache), -KMEM_EPERM);
    kmem_hold(cp);
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EAGAIN);
    kmem_release(cp);
    test_alloc(cp, 0, 1);
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
    snprintf(text, sizeof(text),
             "kmem_cache_destroy: %p is not a cache\n"
             "kmem_cache_destroy: kmem_slab: belongs to the allocator itself\n"
             "kmem_cache_destroy: t_named: its caller grows or reaps it\n"
             "kmem_cache_destroy: t_named: refused, 1 object is allocated\n"
             "  allocated: %p\n",
             (void *)text, test_obj[0]);
    KT_EQ(strcmp(host_printed, text), 0);
    test_free(cp, 0, 1);
    test_destroy(cp);
}
#endif

KTEST(kmem, S9_second_destroy_is_reported)
{
    struct kmem_cache *cp = kmem_cache_create("t_twice", 100, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_cache not_one;

    test_destroy(cp);
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EINVAL);
    memset(&not_one, 0, sizeof(not_one));
    KT_EQ(kmem_cache_destroy(&not_one), -KMEM_EINVAL);
    KT_EQ(kmem_cache_destroy(NULL), -KMEM_EINVAL);
}

KTEST(kmem, S9_the_allocators_own_caches_stay)
{
    KT_EQ(kmem_cache_destroy(kmem_cache_find("kmem_cache")), -KMEM_EPERM);
    KT_EQ(kmem_cache_destroy(kmem_slab_cache), -KMEM_EPERM);
    KT_EQ(kmem_cache_destroy(kmem_bufctl_cache), -KMEM_EPERM);
    KT_EQ(kmem_cache_destroy(kmem_hash_cache), -KMEM_EPERM);
    KT_EQ(kmem_cache_destroy(kmem_size_class(64)), -KMEM_EPERM);
}

#ifdef MM_HOST
KTEST(kmem, S9_use_after_destroy_stops_at_once)
{
    struct kmem_cache *small = kmem_cache_create("t_gone_s", 64, 0, NULL, NULL);
    KT_REQUIRE(small != NULL);
    struct kmem_cache *large =
        kmem_cache_create("t_gone_l", 640, 0, NULL, NULL);

    KT_REQUIRE(large != NULL);
    test_alloc(small, 0, 1);
    test_free(small, 0, 1);
    test_alloc(large, 1, 2);
    test_free(large, 1, 2);
    test_destroy(small);
    test_destroy(large);
    KT_PANICS(kmem_cache_alloc(small, KM_NOSLEEP), "cache destroyed: t_gone_s");
    KT_PANICS(kmem_cache_free(small, test_obj[0]), "cache destroyed: t_gone_s");
    KT_PANICS(kmem_cache_alloc(large, KM_SLEEP), "cache destroyed: t_gone_l");
    KT_PANICS(kmem_cache_free(large, test_obj[1]), "cache destroyed: t_gone_l");
}
#endif
