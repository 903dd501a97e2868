/*
 * Errors in the allocator's own data (S-57): overwritten bufctls, freelists,
 * slabs. Each is reported with its kind; afterwards the allocator continues and
 * every invariant holds.
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
        bdp->bufctl_state = KMEM_BUF_USED;                                     \
        kmem_cache_free(cp, obj);                                              \
        test_destroy(cp);                                                      \
    } while (0)

KTEST(kmem_debug, S57_bufctl_damaged)
{
    int local;

    BROKEN("F", bufctl_state, KMEM_BUF_FREE, KMEM_ERROR_BUFCTL);
    BROKEN("F", bufctl_state, 0xdeadbeef, KMEM_ERROR_BUFCTL);
    BROKEN("F", bufctl.bufctl_slab, (void *)&local, KMEM_ERROR_BUFCTL);
    BROKEN("F", bufctl.bufctl_slab, NULL, KMEM_ERROR_BUFCTL);
    BROKEN("F", bufctl.bufctl_addr, NULL, KMEM_ERROR_BUFCTL);
    BROKEN("F", bufctl.bufctl_slab->slab_cache, NULL, KMEM_ERROR_SLAB);
    BROKEN("F", bufctl.bufctl_slab->slab_refcnt, 0xffffff, KMEM_ERROR_SLAB);
    BROKEN("F", bufctl.bufctl_slab->slab_chunks, 1, KMEM_ERROR_SLAB);
    BROKEN("F", bufctl.bufctl_slab->slab_link.next, NULL, KMEM_ERROR_SLAB);
    BROKEN("F", bufctl.bufctl_slab->slab_base,
           (char *)bdp->bufctl.bufctl_slab->slab_base + 1, KMEM_ERROR_SLAB);
}

/* The record says where the damage is, and the buffer is set aside. */
KTEST(kmem_debug, S57_place_of_the_damage)
{
    const struct kmem_error_record *e = &kmem_last_error;
    struct kmem_cache *cp = test_debug("F", 40, 0, false);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    struct kmem_bufctl_debug *bdp = test_bufctl(cp, obj);
    struct kmem_slab *sp = test_slab(cp, 0);

    sp->slab_chunks--;
    TEST_ERROR(KMEM_ERROR_SLAB, kmem_cache_free(cp, obj));
    sp->slab_chunks++;
    KT_TRUE(e->error_owner == cp && e->error_at == sp && e->error_slab == sp);
    KT_EQ(bdp->bufctl_state, KMEM_BUF_BAD);
    TEST_ERROR(KMEM_ERROR_BUFCTL, kmem_cache_free(cp, obj));
    TEST_SAYS(host_printed, "its buffer was set aside after an error");
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
    TEST_ERROR(KMEM_ERROR_BUFCTL, kmem_cache_free(cp, obj));
    TEST_SAYS(host_printed, "the hash chain");
    KT_TRUE(kmem_last_error.error_at == bucket);
    *bucket = bcp;
    bcp->bufctl_next = bcp;
    TEST_ERROR(KMEM_ERROR_BUFCTL,
               kmem_cache_free(cp, (char *)obj + 1)); /* the same bucket */
    bcp->bufctl_next = next;
    TEST_NO_ERROR(kmem_cache_free(cp, obj));
    test_destroy(cp);
}

/* Free slabs after the broken one. */
static size_t others;

/* Breaks a member of the slab that the next buffer comes from. The slab is not
 * used any more, other slabs are, and the counts are right. Repairs
 * everything. */
static void broken_slab(size_t live, void *field, size_t size,
                        const void *value, struct kmem_cache *cp,
                        enum kmem_error kind)
{
    struct kmem_slab *sp = cp->cache_freelist;
    struct kmem_bufctl *head = sp->slab_head;
    size_t slabs = cp->cache_slabs;
    const void *broken_head;
    uint8_t saved[16];
    uint32_t lost;
    void *obj = NULL;

    memcpy(saved, field, size);
    memcpy(field, value, size);
    broken_head = sp->slab_head;
    TEST_ERROR(kind, obj = kmem_cache_alloc(cp, KM_SLEEP));
    KT_TRUE(obj != NULL && test_slab_of(cp, obj) != sp);
    KT_EQ(cp->cache_slabs, slabs + (others == 0));
    KT_TRUE(kmem_last_error.error_slab == sp);
    KT_TRUE(kmem_last_error.error_buf ==
            (kind == KMEM_ERROR_SLAB ? (void *)sp : broken_head));
    lost = cp->cache_isolated;
    KT_EQ(lost, cp->cache_slab_chunks - live % cp->cache_slab_chunks);
    KT_EQ(kmem_inuse(cp), live + lost + 1);
    KT_EQ(sp->slab_refcnt, cp->cache_slab_chunks);
    if (memcmp(field, value, size) == 0)
        memcpy(field, saved, size); /* members that isolation did not repair */
    TEST_VERIFY(cp);
    kmem_cache_free(cp, obj);
    test_free(cp, 0, live);
    TEST_VERIFY(cp);
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
    /* free the lost buffers: the freelist's rest, before later ones */
    while (head != NULL) {
        struct kmem_bufctl *next = head->bufctl_next;

        if (((struct kmem_bufctl_debug *)head)->bufctl_size == 0) {
            mm_lock(&cp->cache_lock);
            kmem_slab_give(cp, sp, head);
            mm_unlock(&cp->cache_lock);
            lost--;
        }
        head = next;
    }
    KT_EQ(lost, 0);
    cp->cache_isolated = 0;
    TEST_VERIFY(cp);
    test_destroy(cp);
}

#define BROKEN_SLAB(live, expr, val, kind)                                     \
    do {                                                                       \
        struct kmem_cache *cp = test_debug("F", 300, 0, false);                \
        struct kmem_slab *sp;                                                  \
        __typeof__(expr) broken;                                               \
                                                                               \
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));                   \
        kmem_cache_reap(cp, KMEM_REAP_ALL, NULL);                              \
        KT_TRUE(kmem_cache_grow(cp));                                          \
        test_alloc(cp, 0, live);                                               \
        for (size_t more = others; more != 0; more--)                          \
            KT_TRUE(kmem_cache_grow(cp));                                      \
        sp = cp->cache_freelist;                                               \
        broken = (val);                                                        \
        broken_slab(live, &(expr), sizeof(broken), &broken, cp, kind);         \
        (void)sp;                                                              \
    } while (0)

KTEST(kmem_debug, S57_freelist_damaged)
{
    int local;

    for (size_t live = 0; live <= 3; live += 3) {
        BROKEN_SLAB(live, sp->slab_head, (void *)&local, KMEM_ERROR_FREELIST);
        BROKEN_SLAB(live, sp->slab_head, (void *)(uintptr_t)0xdeadbeef,
                    KMEM_ERROR_FREELIST);
        BROKEN_SLAB(live, sp->slab_head->bufctl_slab, NULL,
                    KMEM_ERROR_FREELIST);
    }
    BROKEN_SLAB(1, sp->slab_head, (void *)test_bufctl(cp, test_obj[0]),
                KMEM_ERROR_FREELIST);
}

KTEST(kmem_debug, S57_slab_damaged)
{
    for (size_t live = 0; live <= 3; live += 3) {
        BROKEN_SLAB(live, sp->slab_cache, NULL, KMEM_ERROR_SLAB);
        BROKEN_SLAB(live, sp->slab_chunks, 0xcafe, KMEM_ERROR_SLAB);
        BROKEN_SLAB(live, sp->slab_refcnt, 0xdeadbeef, KMEM_ERROR_SLAB);
        BROKEN_SLAB(live, sp->slab_link.next, NULL, KMEM_ERROR_SLAB);
        BROKEN_SLAB(live, sp->slab_link.prev, &sp->slab_link, KMEM_ERROR_SLAB);
        BROKEN_SLAB(live, sp->slab_base, (char *)sp->slab_base + 8,
                    KMEM_ERROR_SLAB);
        BROKEN_SLAB(live, sp->slab_colour, (uint16_t)0xffff, KMEM_ERROR_SLAB);
    }
}

/* The buffers of a full slab are not the broken one's. */
KTEST(kmem_debug, S57_slab_damaged_after_a_full_one)
{
    BROKEN_SLAB(cp->cache_slab_chunks + 3, sp->slab_refcnt, 0xdeadbeef,
                KMEM_ERROR_SLAB);
}

/* Its neighbours are found from both ends of the list, past other slabs. */
KTEST(kmem_debug, S57_slab_damaged_with_both_links)
{
    others = 2;
    BROKEN_SLAB(cp->cache_slab_chunks + 3, sp->slab_link,
                ((struct list){NULL, NULL}), KMEM_ERROR_SLAB);
    BROKEN_SLAB(2 * cp->cache_slab_chunks + 3, sp->slab_refcnt, 0xdeadbeef,
                KMEM_ERROR_SLAB);
}

/* Links that lead to a slab, but one that does not lead back. */
KTEST(kmem_debug, S57_slab_damaged_among_others)
{
    others = 2;
    for (size_t live = 0; live <= 3; live += 3) {
        BROKEN_SLAB(live, sp->slab_link.next, &cp->cache_null.slab_link,
                    KMEM_ERROR_SLAB);
        BROKEN_SLAB(live, sp->slab_link.next, sp->slab_link.next->next,
                    KMEM_ERROR_SLAB);
        BROKEN_SLAB(live, sp->slab_link.prev, sp->slab_link.next,
                    KMEM_ERROR_SLAB);
        BROKEN_SLAB(live, sp->slab_link.prev, NULL, KMEM_ERROR_SLAB);
    }
}

/* Isolates a slab alone, and undoes it. Its neighbours are `found` or not; then
 * so many buffers are lost. */
static void isolate(struct kmem_cache *cp, struct kmem_slab *sp, bool found,
                    uint32_t lost)
{
    const struct kmem_cache cache = *cp;
    const struct kmem_slab slab = *sp;
    const struct kmem_slab *next = kmem_slab_next(sp);

    mm_lock(&cp->cache_lock);
    kmem_slab_isolate(cp, sp);
    mm_unlock(&cp->cache_lock);
    KT_EQ(cp->cache_isolated, found ? lost : 0);
    KT_TRUE(!found || sp->slab_cache == cp);
    KT_TRUE(cp->cache_freelist == (found ? next : &cp->cache_null));
    KT_TRUE(sp->slab_link.next == slab.slab_link.next &&
            sp->slab_link.prev == slab.slab_link.prev);
    *cp = cache;
    *sp = slab;
}

#define WITH(link, value, found)                                               \
    do {                                                                       \
        struct list *saved = (link);                                           \
                                                                               \
        (link) = (value);                                                      \
        isolate(cp, sp, found, (uint32_t)n - 2);                               \
        (link) = saved;                                                        \
        TEST_VERIFY(cp);                                                       \
    } while (0)

/* Other slabs' links are broken too: circles and links that lead nowhere end
 * the search from one end, and links that it need not follow are not read. */
KTEST(kmem_debug, S57_slab_isolated_amid_broken_links)
{
    struct kmem_cache *cp = test_debug("F", 300, 0, false);
    struct list *nowhere = (void *)(uintptr_t)0xdeadbee8;
    struct kmem_slab *full, *sp, *after, *last;
    size_t n;

    test_alloc(cp, 0, 1);
    n = cp->cache_slab_chunks;
    test_alloc(cp, 1, n + 2);
    KT_TRUE(kmem_cache_grow(cp) && kmem_cache_grow(cp));
    full = test_slab(cp, 0);
    sp = test_slab(cp, 1);
    after = test_slab(cp, 2);
    last = test_slab(cp, 3);
    sp->slab_cache = NULL;
    isolate(cp, sp, true, (uint32_t)n - 2);
    sp->slab_cache = cp;
    WITH(full->slab_link.next, &full->slab_link, false);
    WITH(full->slab_link.next, nowhere, false);
    WITH(last->slab_link.prev, &last->slab_link, false);
    WITH(last->slab_link.prev, nowhere, false);
    WITH(after->slab_link.next, nowhere, true);
    test_free(cp, 0, n + 2);
    test_destroy(cp);
}

#endif
