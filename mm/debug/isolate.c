/*
 * Damaged slabs (paper, section 6.2): finding errors in slab data and
 * freelists of the debug layout, and isolating a slab that cannot be trusted,
 * so that the cache works on without it.
 */
#include "mm/debug/debug_impl.h"

/* Whether a slab's neighbours are slabs that link back to it. */
static bool linked(const struct kmem_cache *cp, const struct kmem_slab *sp)
{
    const struct list *l = &sp->slab_link;

    return kmem_slab_link_plausible(cp, l->next) && l->next->prev == l &&
           kmem_slab_link_plausible(cp, l->prev) && l->prev->next == l;
}

/* The error in a slab's data, or NULL. */
const char *kmem_slab_error(const struct kmem_cache *cp,
                            const struct kmem_slab *sp)
{
    if (sp->slab_cache != cp)
        return "it does not point to its cache";
    if (sp->slab_chunks != cp->cache_slab_chunks ||
        sp->slab_refcnt > sp->slab_chunks)
        return "its counts are invalid";
    if (((uintptr_t)sp->slab_base & PAGE_MASK) != 0 ||
        sp->slab_colour > cp->cache_colour_max)
        return "its base or its colour is invalid";
    if (!linked(cp, sp))
        return "its links are invalid";
    return NULL;
}

/* The error in the head of a slab's freelist, or NULL. */
const char *kmem_head_error(const struct kmem_cache *cp,
                            const struct kmem_slab *sp,
                            const struct kmem_bufctl *bcp,
                            enum kmem_error *kind)
{
    const char *why = kmem_slab_error(cp, sp);

    *kind = why != NULL ? KMEM_ERROR_SLAB : KMEM_ERROR_FREELIST;
    if (why != NULL)
        return why;
    if (!kmem_bufctl_plausible(cp, bcp))
        return "it points to no bufctl of the cache";
    if (bcp->bufctl_slab != sp)
        return "it points to a buffer of another slab";
    if (((const struct kmem_bufctl_debug *)bcp)->bufctl_state != KMEM_BUF_FREE)
        return "it points to an allocated buffer";
    return NULL;
}

/* Allocated buffers of all slabs but this one. */
static uint32_t allocated_elsewhere(struct kmem_cache *cp,
                                    const struct kmem_slab *sp)
{
    uint32_t sum = 0;

    for (size_t n = 0; n < cp->cache_slabs; n++) {
        const struct kmem_slab *other = kmem_slab_number(cp, n);

        sum += other == NULL || other == sp ? 0 : other->slab_refcnt;
    }
    return sum;
}

/* Corrects a slab's links by those of its neighbours, which are found from both
 * ends of the list; false if they are not found. */
static bool repair_links(struct kmem_cache *cp, struct kmem_slab *sp)
{
    struct list *before = &cp->cache_null.slab_link;
    struct list *after = before;
    size_t n = cp->cache_slabs;

    for (; n-- != 0 && before->next != &sp->slab_link &&
           kmem_slab_link_plausible(cp, before->next);)
        before = before->next;
    for (n = cp->cache_slabs; n-- != 0 && after->prev != &sp->slab_link &&
                              kmem_slab_link_plausible(cp, after->prev);)
        after = after->prev;
    if (before->next != &sp->slab_link || after->prev != &sp->slab_link)
        return false;
    sp->slab_link.next = after;
    sp->slab_link.prev = before;
    return true;
}

/* Nothing is allocated any more from a slab whose freelist cannot be trusted:
 * it counts as full, and its free buffers as isolated. */
void kmem_slab_isolate(struct kmem_cache *cp, struct kmem_slab *sp)
{
    uint32_t lost;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (!repair_links(cp, sp)) {
        cp->cache_freelist = &cp->cache_null;
        return;
    }
    sp->slab_cache = cp;
    sp->slab_chunks = (uint16_t)cp->cache_slab_chunks;
    sp->slab_refcnt =
        MIN(kmem_inuse(cp) - allocated_elsewhere(cp, sp), sp->slab_chunks);
    lost = sp->slab_chunks - sp->slab_refcnt;
    if (sp->slab_refcnt == 0)
        kmem_ws_take(cp);
    cp->cache_allocs += lost;
    cp->cache_isolated += lost;
    sp->slab_refcnt = sp->slab_chunks;
    sp->slab_head = NULL;
    cp->cache_full_slabs++;
    cp->cache_freelist = kmem_slab_next(sp);
}
