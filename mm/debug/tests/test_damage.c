/*
 * Errors in the allocator's own data (S-57): overwritten bufctls, freelists,
 * slabs. Each is reported with its kind, and nothing is changed before: once it
 * is repaired, every invariant holds.
 *
 * Tests: mm/debug/check.c
 */
#include "mm/debug/tests/debug_test.h"

#ifdef MM_HOST

/* Breaks a member of the bufctl of an allocated object, frees the object, and
 * repairs the member. */
#define BROKEN(letters, field, value, kind)                                    \
    do {                                                                       \
        struct kmem_cache *cp = test_debug(letters, 40, 0, false);             \
        void *obj = kmem_cache_alloc(cp, KM_SLEEP);                            \
        struct kmem_bufctl_debug *bdp = test_bufctl(cp, obj);                  \
        __typeof__(bdp->field) saved = bdp->field;                             \
                                                                               \
        bdp->field = (value);                                                  \
        TEST_ERROR(kind, kmem_cache_free(cp, obj));                            \
        bdp->field = saved;                                                    \
        TEST_VERIFY(cp);                                                       \
        KT_EQ(kmem_inuse(cp), 1);                                              \
        kmem_cache_free(cp, obj);                                              \
        test_destroy(cp);                                                      \
    } while (0)

KTEST(kmem_debug, S57_bufctl_damaged)
{
    int local;

    BROKEN("F", bufctl_state, KMEM_BUF_FREE, KMERR_BADBUFCTL);
    BROKEN("F", bufctl_state, 0xdeadbeef, KMERR_BADBUFCTL);
    BROKEN("F", bufctl.bufctl_slab, (void *)&local, KMERR_BADBUFCTL);
    BROKEN("F", bufctl.bufctl_slab, NULL, KMERR_BADBUFCTL);
    BROKEN("F", bufctl.bufctl_addr, NULL, KMERR_BADBUFCTL);
    BROKEN("F", bufctl.bufctl_slab->slab_cache, NULL, KMERR_BADSLAB);
    BROKEN("F", bufctl.bufctl_slab->slab_refcnt, 0xffffff, KMERR_BADSLAB);
    BROKEN("F", bufctl.bufctl_slab->slab_chunks, 1, KMERR_BADSLAB);
    BROKEN("F", bufctl.bufctl_slab->slab_link.next, NULL, KMERR_BADSLAB);
    BROKEN("F", bufctl.bufctl_slab->slab_base,
           (char *)bdp->bufctl.bufctl_slab->slab_base + 1, KMERR_BADSLAB);
}

/* The record says where the damage is. */
KTEST(kmem_debug, S57_place_of_the_damage)
{
    const struct kmem_error_record *e = &kmem_last_error;
    struct kmem_cache *cp = test_debug("F", 40, 0, false);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    struct kmem_bufctl_debug *bdp = test_bufctl(cp, obj);
    struct kmem_slab *sp = test_slab(cp, 0);

    sp->slab_chunks--;
    TEST_ERROR(KMERR_BADSLAB, kmem_cache_free(cp, obj));
    sp->slab_chunks++;
    KT_TRUE(e->error_owner == cp && e->error_at == sp && e->error_slab == sp);
    bdp->bufctl_state = KMEM_BUF_BUSY;
    TEST_ERROR(KMERR_DUPFREE, kmem_cache_free(cp, obj));
    TEST_SAYS(host_printed, "it is being freed, or allocated");
    KT_TRUE(e->error_owner == cp && e->error_at == bdp &&
            e->error_slab == NULL);
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

KTEST(kmem_debug, S57_hash_chain_damaged)
{
    struct kmem_cache *cp = test_debug("F", 40, 0, false);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    struct kmem_bufctl **bucket = kmem_hash_bucket(cp, obj);
    struct kmem_bufctl *bcp = *bucket;
    struct kmem_bufctl *next = bcp->bufctl_next;

    *bucket = (void *)&cp;
    TEST_ERROR(KMERR_BADBUFCTL, kmem_cache_free(cp, obj));
    TEST_SAYS(host_printed, "the hash chain");
    KT_TRUE(kmem_last_error.error_at == bucket);
    *bucket = bcp;
    bcp->bufctl_next = bcp;
    TEST_ERROR(KMERR_BADBUFCTL,
               kmem_cache_free(cp, (char *)obj + 1)); /* the same bucket */
    bcp->bufctl_next = next;
    TEST_NO_ERROR(kmem_cache_free(cp, obj));
    test_destroy(cp);
}

/* Free slabs after the broken one. */
static size_t others;

/* Breaks a member of the slab that the next buffer comes from, and repairs
 * it. */
static void broken_slab(size_t live, void *field, size_t size,
                        const void *value, struct kmem_cache *cp)
{
    struct kmem_slab *sp = cp->cache_freelist;
    size_t slabs = cp->cache_slabs;
    uint8_t saved[16];

    memcpy(saved, field, size);
    memcpy(field, value, size);
    TEST_ERROR(KMERR_BADSLAB, kmem_cache_alloc(cp, KM_SLEEP));
    KT_TRUE(kmem_last_error.error_slab == sp);
    KT_TRUE(kmem_last_error.error_buf == sp);
    KT_EQ(memcmp(field, value, size), 0);
    memcpy(field, saved, size);
    TEST_VERIFY(cp);
    KT_EQ(cp->cache_slabs, slabs);
    KT_EQ(kmem_inuse(cp), live);
    TEST_NO_ERROR(kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP)));
    test_free(cp, 0, live);
    test_destroy(cp);
}

#define BROKEN_SLAB(live, expr, val)                                           \
    do {                                                                       \
        struct kmem_cache *cp = test_debug("F", 300, 0, false);                \
        struct kmem_slab *sp;                                                  \
        __typeof__(expr) broken;                                               \
                                                                               \
        KT_TRUE(kmem_cache_grow(cp));                                          \
        test_alloc(cp, 0, live);                                               \
        for (size_t more = others; more != 0; more--)                          \
            KT_TRUE(kmem_cache_grow(cp));                                      \
        sp = cp->cache_freelist;                                               \
        broken = (val);                                                        \
        broken_slab(live, &(expr), sizeof(broken), &broken, cp);               \
        (void)sp;                                                              \
    } while (0)

KTEST(kmem_debug, S57_freelist_damaged)
{
    int local;

    for (size_t live = 0; live <= 3; live += 3) {
        BROKEN_SLAB(live, sp->slab_head, (void *)&local);
        BROKEN_SLAB(live, sp->slab_head, (void *)(uintptr_t)0xdeadbeef);
        BROKEN_SLAB(live, sp->slab_head->bufctl_slab, NULL);
    }
    BROKEN_SLAB(1, sp->slab_head, (void *)test_bufctl(cp, test_obj[0]));
}

KTEST(kmem_debug, S57_slab_damaged)
{
    for (size_t live = 0; live <= 3; live += 3) {
        BROKEN_SLAB(live, sp->slab_cache, NULL);
        BROKEN_SLAB(live, sp->slab_chunks, 0xcafe);
        BROKEN_SLAB(live, sp->slab_refcnt, 0xdeadbeef);
        BROKEN_SLAB(live, sp->slab_link.next, NULL);
        BROKEN_SLAB(live, sp->slab_link.prev, &sp->slab_link);
        BROKEN_SLAB(live, sp->slab_base, (char *)sp->slab_base + 8);
        BROKEN_SLAB(live, sp->slab_colour, (uint16_t)0xffff);
    }
}

/* After a full slab, and with both links at once. */
KTEST(kmem_debug, S57_slab_damaged_with_both_links)
{
    others = 2;
    BROKEN_SLAB(cp->cache_slab_chunks + 3, sp->slab_link,
                ((struct list){NULL, NULL}));
    BROKEN_SLAB(2 * cp->cache_slab_chunks + 3, sp->slab_refcnt, 0xdeadbeef);
}

/* Links that lead to a slab, but one that does not lead back. */
KTEST(kmem_debug, S57_slab_damaged_among_others)
{
    others = 2;
    for (size_t live = 0; live <= 3; live += 3) {
        BROKEN_SLAB(live, sp->slab_link.next, &cp->cache_null.slab_link);
        BROKEN_SLAB(live, sp->slab_link.next, sp->slab_link.next->next);
        BROKEN_SLAB(live, sp->slab_link.prev, sp->slab_link.next);
        BROKEN_SLAB(live, sp->slab_link.prev, NULL);
    }
}

#endif
