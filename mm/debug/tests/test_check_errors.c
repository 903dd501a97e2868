/*
 * The errors that the debugging modes catch: each class (S-49, S-51, S-57) is
 * provoked and must be reported with its kind and place; once it is repaired,
 * every invariant holds. With the cases of Linux's and Solaris' suites (10.1 to
 * 10.3) that apply.
 *
 * Tests: mm/debug/check.c, mm/debug/pattern.c, mm/debug/handles.c
 */
#include "mm/debug/tests/debug_test.h"

#ifdef MM_HOST

/* The last error's place: the buffer, and the first wrong byte or word. */
static void expect_place(struct kmem_cache *cp, const void *buf, long offset)
{
    const struct kmem_error_record *e = &kmem_last_error;

    KT_TRUE(e->error_cache == cp);
    KT_TRUE(e->error_base == buf);
    KT_EQ((long)e->error_offset, offset);
    KT_TRUE(e->error_bufctl == test_bufctl(cp, buf));
    KT_TRUE(e->error_slab != NULL &&
            virt_to_page(e->error_slab)->page_owner == kmem_slab_cache);
}

/* ---- 6.2: freed addresses ----------------------------------------------- */

static void check_untouched(struct kmem_cache *cp, uint32_t inuse)
{
    KT_EQ(kmem_inuse(cp), inuse);
    TEST_VERIFY(cp);
}

static void freed_addresses(const char *letters)
{
    struct kmem_cache *cp = test_debug(letters, 48, 0, false);
    struct kmem_cache *other = kmem_cache_create("t_other", 48, 0, NULL, NULL);
    KT_REQUIRE(other != NULL);
    char *foreign = kmem_cache_alloc(other, KM_SLEEP);
    char *obj = kmem_cache_alloc(cp, KM_SLEEP);
    uintptr_t on_stack = 5;

    TEST_ERROR(KMERR_BADADDR,
               kmem_cache_free(cp, (void *)(uintptr_t)0xbaddcafe));
    KT_TRUE(kmem_last_error.error_owner == NULL);
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, NULL));
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, &on_stack));
    TEST_SAYS(host_printed, "it is on the stack");
    TEST_ERROR(KMERR_BADBASE, kmem_cache_free(cp, obj + 4));
    TEST_SAYS(host_printed, "it is 4 bytes into a buffer of cache t_debug");
    expect_place(cp, obj, 4);
    TEST_ERROR(KMERR_BADBASE, kmem_cache_free(cp, obj + 1));
    TEST_ERROR(KMERR_BADCACHE, kmem_cache_free(cp, foreign));
    TEST_SAYS(host_printed, "it belongs to cache t_other, not t_debug");
    KT_TRUE(kmem_last_error.error_owner == other);
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, obj + cp->cache_chunk));
    KT_TRUE(kmem_last_error.error_base == obj + cp->cache_chunk);
    check_untouched(cp, 1);
    TEST_NO_ERROR(kmem_cache_free(cp, obj));
    TEST_ERROR(KMERR_DUPFREE, kmem_cache_free(cp, obj));
    expect_place(cp, obj, 0);
    check_untouched(cp, 0);
    TEST_VERIFY(other);
    kmem_cache_free(other, foreign);
    test_destroy(other);
    test_destroy(cp);
}

KTEST(kmem_debug, S49_freed_addresses_are_verified)
{
    freed_addresses("F");
    freed_addresses("U");
    freed_addresses("Z");
    freed_addresses("FPZU");
}

/* Addresses in pages without an owner, of oversize requests, of the allocator
 * itself, and of another debugged cache. */
KTEST(kmem_debug, S49_freed_addresses_of_other_kinds)
{
    struct kmem_cache *cp = test_debug("F", 48, 0, false);
    struct kmem_cache *other = kmem_cache_create("t_other", 48, 0, NULL, NULL);
    KT_REQUIRE(other != NULL);
    void *large = kmem_alloc(20000, KM_SLEEP);
    struct page *page = buddy_alloc(0);
    void *obj;

    test_switch(other, "FPZU");
    obj = kmem_cache_alloc(other, KM_SLEEP);
    TEST_ERROR(KMERR_BADCACHE, kmem_cache_free(cp, obj));
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, large));
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, page_to_virt(page)));
    TEST_ERROR(KMERR_BADCACHE, kmem_cache_free(cp, test_slab_of(other, obj)));
    TEST_ERROR(KMERR_BADBASE,
               kmem_cache_free(cp, (char *)test_slab_of(other, obj) + 8));
    TEST_NO_ERROR(kmem_cache_free(other, obj));
    kmem_free(large, 20000);
    buddy_free(page, 0);
    test_destroy(other);
    test_destroy(cp);
}

/* Large objects are verified without any mode: they have a hash table. */
KTEST(kmem_debug, S49_large_objects_are_always_verified)
{
    struct kmem_cache *cp = kmem_cache_create("t_debug", 1000, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    char *obj = kmem_cache_alloc(cp, KM_SLEEP);
    struct kmem_cache *other =
        kmem_cache_create("t_other", 1000, 0, NULL, NULL);
    char local;

    KT_REQUIRE(other != NULL);
    TEST_ERROR(KMERR_BADBASE, kmem_cache_free(cp, obj + 1));
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, &local));
    TEST_ERROR(KMERR_BADCACHE, kmem_cache_free(other, obj));
    kmem_cache_free(cp, obj);
    TEST_ERROR(KMERR_DUPFREE, kmem_cache_free(cp, obj));
    check_untouched(cp, 0);
    test_destroy(other);
    test_destroy(cp);
}

/* ---- 6.3: poison -------------------------------------------------------- */

/* Writes `value` at `offset` of a freed object: found at the next allocation,
 * and at once by kmem_verify. */
static void modified(const char *letters, size_t size, size_t offset,
                     uint8_t value)
{
    struct kmem_cache *cp = test_debug(letters, size, 0, false);
    size_t word = MIN(size - (offset & ~3ul), (size_t)4);
    const char *where;
    uint8_t *obj = kmem_cache_alloc(cp, KM_SLEEP);
    uint32_t found = 0;
    uint8_t saved;

    kmem_cache_free(cp, obj);
    saved = obj[offset];
    obj[offset] = value;
    KT_TRUE(kmem_cache_verify(cp, &where) != NULL);
    KT_TRUE(strcmp(kmem_cache_verify(cp, &where),
                   "buffer modified after being freed") == 0);
    obj[offset] = saved;
    TEST_VERIFY(cp);
    obj[offset] = value;
    TEST_ERROR(KMERR_MODIFIED, kmem_cache_alloc(cp, KM_SLEEP));
    expect_place(cp, obj, (long)(offset & ~3ul));
    KT_TRUE(kmem_last_error.error_at == obj + offset);
    KT_EQ(kmem_last_error.error_expected, KMEM_FREED);
    memcpy(&found, obj + (offset & ~3ul), word);
    KT_EQ(kmem_last_error.error_found, found);
    KT_EQ(cp->cache_slabs, 1);
    KT_EQ(obj[offset], value);
    TEST_VERIFY(cp);
    KT_EQ(cp->cache_holds, 0);
    KT_EQ(kmem_inuse(cp), 1);
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

KTEST(kmem_debug, S57_modified_after_being_freed)
{
    modified("P", 64, 0, 0x78);
    modified("P", 64, 50, 0x9a);
    modified("FPZU", 64, 63, 0);
    modified("P", 65, 64, 0);
    modified("P", 67, 66, 0xff);
    modified("PU", 128, 0, 0);
    modified("PZ", 256, 50, 1);
    modified("P", 5000, 4999, 7);
}

/* Also found when the slab is destroyed, without another allocation. */
KTEST(kmem_debug, S57_modified_is_found_by_a_reap)
{
    struct kmem_cache *cp = test_debug("FPU", 64, 0, false);
    uint32_t *obj = kmem_cache_alloc(cp, KM_SLEEP);
    struct kmem_slab *sp = test_slab(cp, 0);

    kmem_cache_free(cp, obj);
    obj[2] = 77;
    TEST_ERROR(KMERR_MODIFIED, kmem_cache_reap(cp, KMEM_REAP_ALL));
    KT_EQ(kmem_last_error.error_offset, 8);
    KT_EQ(kmem_last_error.error_found, 77);
    obj[2] = KMEM_FREED;
    kmem_slab_destroy(cp, sp); /* it is on no list any more */
    kmem_release(cp);
    test_destroy(cp);
}

/* ---- 6.4: redzones ------------------------------------------------------ */

/* Writes one byte at `offset` of an object: found when it is freed. */
static void overrun(const char *letters, size_t size, long offset,
                    enum kmem_error kind)
{
    struct kmem_cache *cp = test_debug(letters, size, 0, false);
    struct kmem_cache *other = kmem_cache_create("t_other", 600, 0, NULL, NULL);
    uint8_t *obj = kmem_cache_alloc(cp, KM_SLEEP);

    KT_REQUIRE(other != NULL);
    obj[offset] ^= 0x10;
    if (kind == KMERR_NONE) {
        TEST_NO_ERROR(kmem_cache_free(cp, obj));
    } else {
        TEST_ERROR(kind, kmem_cache_free(cp, obj));
        expect_place(cp, obj, offset);
        KT_EQ(kmem_last_error.error_expected, KMEM_GUARD);
        KT_EQ(kmem_last_error.error_found, KMEM_GUARD ^ 0x10);
        KT_EQ(kmem_inuse(cp), 1);
        TEST_VERIFY(cp);
        KT_EQ(cp->cache_holds, 0);
        TEST_ERROR(KMERR_DUPFREE, kmem_cache_free(cp, obj));
        TEST_SAYS(host_printed, "it is being freed, or allocated");
        TEST_ERROR(KMERR_BADCACHE, kmem_cache_free(other, obj));
        test_accept_damage(cp, obj);
    }
    test_destroy(other);
    test_destroy(cp);
}

KTEST(kmem_debug, S57_written_past_its_end)
{
    overrun("Z", 64, 64, KMERR_REDZONE);
    overrun("Z", 64, 71, KMERR_REDZONE);
    overrun("FPZU", 61, 61, KMERR_REDZONE);
    overrun("ZG", 61, 63, KMERR_REDZONE);
    overrun("Z", 73, 73, KMERR_REDZONE);
    overrun("Z", 5000, 5007, KMERR_REDZONE);
    overrun("Z", 64, 63, KMERR_NONE);
    overrun("FPU", 61, 61, KMERR_NONE);
}

KTEST(kmem_debug, S57_written_before_its_start)
{
    overrun("Z", 64, -1, KMERR_REDZONE);
    overrun("FPZU", 64, -8, KMERR_REDZONE);
    overrun("ZG", 64, -1, KMERR_REDZONE);
    overrun("Z", 64, 0, KMERR_NONE);
}

/* One byte of a request of 13 bytes in class 16: to the last byte of the
 * redzone, each is found. */
static void class_overrun(size_t offset, bool found)
{
    struct kmem_cache *cp = kmem_size_class(16);
    uint8_t *obj;

    test_switch(cp, "Z");
    obj = kmem_alloc(13, KM_SLEEP);
    obj[offset] ^= 1;
    if (!found) {
        TEST_NO_ERROR(kmem_free(obj, 13));
    } else {
        TEST_ERROR(KMERR_REDZONE, kmem_free(obj, 13));
        KT_EQ(kmem_last_error.error_offset, offset);
        test_accept_damage(cp, obj);
    }
    test_switch(cp, "");
}

KTEST(kmem_debug, S51_each_byte_after_a_request)
{
    static const uint8_t found[] = {13, 14, 15, 16, 19, 20, 23};

    for (size_t i = 0; i < ARRAY_SIZE(found); i++)
        class_overrun(found[i], true);
    for (size_t i = 0; i <= 12; i++)
        class_overrun(i, false);
    KT_EQ(kmem_direct_max, KMEM_MAXBUF);
}

/* kmalloc_redzone_access: 18 bytes of class 32 (here: 24), bytes 18 and 19. */
KTEST(kmem_debug, S51_slack_of_a_size_class)
{
    struct kmem_cache *cp = kmem_size_class(18);
    const char *where;
    uint8_t *obj;

    test_switch(cp, "FZ");
    obj = kmem_alloc(18, KM_SLEEP);
    obj[18] = obj[19] = 0xab;
    KT_TRUE(kmem_cache_verify(cp, &where) != NULL);
    TEST_ERROR(KMERR_REDZONE, kmem_free(obj, 18));
    KT_EQ(kmem_last_error.error_offset, 18);
    test_accept_damage(cp, obj);
    test_switch(cp, "");
}

/* clobber_redzone_free: the redzone of a free object. */
KTEST(kmem_debug, S51_redzone_of_a_free_object)
{
    struct kmem_cache *cp = test_debug("Z", 64, 0, false);
    uint8_t *obj = kmem_cache_alloc(cp, KM_SLEEP);
    const char *where;

    kmem_cache_free(cp, obj);
    obj[64] = 0xab;
    KT_TRUE(kmem_cache_verify(cp, &where) != NULL);
    TEST_ERROR(KMERR_REDZONE, kmem_cache_alloc(cp, KM_SLEEP));
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

/* Constructors and destructors that write too far. */
static void long_ctor(void *obj, size_t size)
{
    ((uint8_t *)obj)[size] = 1;
}

/* A cache with patterns and redzones, whose objects these write beyond. */
static struct kmem_cache *overrunning(kmem_ctor_t *ctor, kmem_dtor_t *dtor)
{
    struct kmem_cache *cp = kmem_cache_create("t_debug", 40, 0, ctor, dtor);

    test_switch(cp, "PZ");
    return cp;
}

static void end_overrunning(struct kmem_cache *cp, void *obj)
{
    KT_TRUE(kmem_last_error.error_base == obj);
    cp->cache_ctor = cp->cache_dtor = NULL;
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

KTEST(kmem_debug, S51_a_constructor_may_not_overrun)
{
    struct kmem_cache *cp = overrunning(long_ctor, NULL);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    TEST_ERROR(KMERR_REDZONE, kmem_cache_free(cp, obj));
    end_overrunning(cp, obj);
}

/* It is found by the next allocation. */
KTEST(kmem_debug, S51_a_destructor_may_not_overrun)
{
    struct kmem_cache *cp = overrunning(NULL, long_ctor);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    TEST_NO_ERROR(kmem_cache_free(cp, obj));
    TEST_ERROR(KMERR_REDZONE, kmem_cache_alloc(cp, KM_SLEEP));
    end_overrunning(cp, obj);
}

/* ---- sizes -------------------------------------------------------------- */

KTEST(kmem_debug, S57_freed_with_the_wrong_size)
{
    struct kmem_cache *cp = kmem_size_class(100);
    struct kmem_cache *other = test_debug("F", 48, 0, false);
    void *obj;
    void *named = kmem_cache_alloc(other, KM_SLEEP);
    void *plain = kmem_alloc(200, KM_SLEEP);

    test_switch(cp, "F");
    obj = kmem_alloc(100, KM_SLEEP);
    TEST_ERROR(KMERR_BADSIZE, kmem_free(obj, 99));
    TEST_SAYS(host_printed, "allocated with 100 bytes, freed with 99");
    KT_EQ(kmem_last_error.error_size, 100);
    KT_EQ(kmem_last_error.error_size_free, 99);
    expect_place(cp, obj, 0);
    test_accept_damage(cp, obj);

    obj = kmem_alloc(100, KM_SLEEP);
    TEST_ERROR(KMERR_BADSIZE, kmem_free(obj, 500));
    KT_EQ(kmem_last_error.error_size, 100);
    KT_EQ(kmem_last_error.error_size_free, 500);
    TEST_ERROR(KMERR_BADSIZE, kmem_free(plain, 100));
    TEST_ERROR(KMERR_BADCACHE, kmem_free(named, 100));
    TEST_ERROR(KMERR_BADCACHE, kmem_cache_free(other, plain));
    TEST_ERROR(KMERR_BADSIZE, kmem_free(plain, 5000));
    TEST_ERROR(KMERR_BADSIZE, kmem_free(plain, 1));
    TEST_ERROR(KMERR_BADCACHE, kmem_cache_free(cp, plain));
    TEST_ERROR(KMERR_BADBASE, kmem_free((char *)obj + 8, 100));
    TEST_NO_ERROR(kmem_free(plain, 200));
    TEST_NO_ERROR(kmem_free(obj, 100));
    TEST_ERROR(KMERR_DUPFREE, kmem_free(obj, 100));
    KT_TRUE(kmem_alloc(0, KM_SLEEP) == NULL);
    TEST_NO_ERROR(kmem_free(NULL, 0));
    kmem_cache_free(other, named);
    test_destroy(other);
    test_switch(cp, "");
}

/* While another class is in a mode, addresses that are no buffers: outside of
 * memory, and the hash table of the class itself. */
KTEST(kmem_debug, S57_freed_addresses_while_a_class_is_debugged)
{
    struct kmem_cache *cp = kmem_size_class(1000);
    void *obj = kmem_alloc(1000, KM_SLEEP);
    int local;

    test_switch(kmem_size_class(100), "F");
    KT_TRUE(virt_to_page(cp->cache_hash)->page_owner == cp);
    TEST_ERROR(KMERR_BADADDR, kmem_free(&local, 1000));
    TEST_ERROR(KMERR_BADADDR, kmem_free(cp->cache_hash, 1000));
    KT_EQ(kmem_last_error.error_size_free, 1000);
    kmem_free(obj, 1000);
    test_switch(kmem_size_class(100), "");
}

/* kmem_alloc and kmem_free of all sizes while some classes are debugged. */
KTEST(kmem_debug, sizes_of_all_classes)
{
    size_t n = 0;

    for (size_t size = 1; size <= KMEM_MAXBUF + 9; size += 1 + size / 16)
        if (size % 3 == 0 && kmem_size_class(size) != NULL)
            test_switch(kmem_size_class(size), "FPZU");
    for (size_t size = 1; size <= KMEM_MAXBUF + 9; size += 1 + size / 100) {
        test_obj[n] = kmem_alloc(size, KM_SLEEP);
        memset(test_obj[n++], 3, size);
    }
    n = 0;
    for (size_t size = 1; size <= KMEM_MAXBUF + 9; size += 1 + size / 100)
        kmem_free(test_obj[n++], size);
    for (size_t size = 1; size <= KMEM_MAXBUF; size += 1 + size / 16)
        test_switch(kmem_size_class(size), "");
    KT_EQ(kmem_last_error.error_kind, KMERR_NONE);
    KT_EQ(kmem_direct_max, KMEM_MAXBUF);
}

/* ---- destroyed caches --------------------------------------------------- */

KTEST(kmem_debug, S57_use_of_a_destroyed_cache)
{
    struct kmem_cache *cp = test_debug("FPZU", 40, 0, false);
    struct kmem_cache *other = kmem_cache_create("t_other", 600, 0, NULL, NULL);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    kmem_cache_free(cp, obj);
    test_destroy(cp);
    KT_PANICS(kmem_cache_alloc(cp, KM_SLEEP), "kmem: cache destroyed");
    obj = kmem_cache_alloc(other, KM_SLEEP); /* in cp's slab data */
    kmem_cache_free(other, obj);
    KT_PANICS(kmem_cache_alloc(cp, KM_SLEEP), "kmem: cache destroyed");
    test_destroy(other);
    KT_PANICS(kmem_cache_free(cp, obj), "kmem: cache destroyed");
    host_print_clear();
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EINVAL);
}

/* New caches get other memory, until enough of them were destroyed. */
KTEST(kmem_debug, S57_a_handle_is_kept_from_new_caches)
{
    struct kmem_cache *cp, *other;

    kmem_handles_keep(true);
    kmem_handles_keep(true);
    cp = kmem_cache_create("t_old", 40, 0, NULL, NULL);
    test_destroy(cp);
    for (unsigned i = 0; i < HANDLES_KEPT; i++) {
        other = kmem_cache_create("t_new", 40, 0, NULL, NULL);
        KT_TRUE(other != cp);
        KT_PANICS(kmem_cache_alloc(cp, KM_SLEEP), "kmem: cache destroyed");
        test_destroy(other);
    }
    other = kmem_cache_create("t_new", 40, 0, NULL, NULL);
    KT_TRUE(other == cp);
    test_destroy(other);
    kmem_handles_keep(false);
    cp = kmem_cache_create("t_old", 40, 0, NULL, NULL);
    test_destroy(cp);
    other = kmem_cache_create("t_new", 40, 0, NULL, NULL);
    KT_TRUE(other == cp); /* nothing is kept */
    test_destroy(other);
}

/* leak_destroy: each object with its last owner, and nothing else changes. */
KTEST(kmem_debug, S8_destroy_names_allocated_objects)
{
    static const uintptr_t stack[] = {0x1234};
    struct kmem_cache *cp = test_debug("U", 40, 0, false);
    struct kmem_buf_stat b;
    char text[64];
    size_t shown = 0;

    test_alloc(cp, 0, 10);
    host_print_clear();
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
    kmem_buf_stat(test_obj[0], &b);
    snprintf(text, sizeof(text), "allocated: %p, by %lx, task 1 (one)",
             test_obj[0], (unsigned long)b.stat_alloc.trans_stack[0]);
    TEST_SAYS(TEST_SAYS(host_printed, "10 objects are allocated"), text);
    for (const char *at = host_printed; (at = strstr(at, "allocated: ")); at++)
        shown++;
    KT_EQ(shown, 8);
    TEST_SAYS(host_printed,
              "  and 2 more: `cache -o alloc t_debug` lists all\n");
    KT_EQ(kmem_inuse(cp), 10);
    test_free(cp, 8, 10);
    host_print_clear();
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
    TEST_SAYS(host_printed, "8 objects are allocated");
    KT_TRUE(strstr(host_printed, "more") == NULL);
    test_free(cp, 0, 8);
    for (host_stack_depth = 0; host_stack_depth <= 1; host_stack_depth++) {
        host_stack = stack;
        test_alloc(cp, 0, 1);
        host_stack = NULL;
        host_print_clear();
        KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
        snprintf(text, sizeof(text), "allocated: %p%s\n", test_obj[0],
                 host_stack_depth == 0 ? "" : ", by 1234, task 1 (one)");
        TEST_SAYS(host_printed, text);
        test_free(cp, 0, 1);
    }
    test_destroy(cp);
    cp = test_debug("F", 40, 0, false);
    test_alloc(cp, 0, 1);
    host_print_clear();
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
    snprintf(text, sizeof(text), "allocated: %p\n", test_obj[0]);
    TEST_SAYS(TEST_SAYS(host_printed, "1 object is allocated"), text);
    test_free(cp, 0, 1);
    test_destroy(cp);
}

/* ---- a free within a free ----------------------------------------------- */

/* A destructor frees its object, which is being freed. */
static struct kmem_cache *again;

static void freeing_dtor(void *obj, size_t size)
{
    struct kmem_cache *cp = again;

    (void)size;
    again = NULL;
    if (cp != NULL)
        kmem_cache_free(cp, obj);
}

KTEST(kmem_debug, S50_freed_again_while_it_is_freed)
{
    struct kmem_cache *cp =
        kmem_cache_create("t_again", 48, 0, NULL, freeing_dtor);
    KT_REQUIRE(cp != NULL);
    void *obj;

    test_switch(cp, "P");
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    again = cp;
    TEST_ERROR(KMERR_DUPFREE, kmem_cache_free(cp, obj));
    TEST_SAYS(host_printed, "it is being freed, or allocated");
    KT_EQ(kmem_inuse(cp), 1);
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

#endif
