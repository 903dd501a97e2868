/*
 * Freelist management (paper, section 3.3): the slab list, the freelist pointer
 * and the counts, for those few files of mm/ that take and give buffers. The
 * cache's lock is held in all of this.
 *
 * mm/kmem_impl.h has the picture. A slab's place on the list follows from its
 * reference count, slab_refcnt, the buffers that are out:
 *
 *     full                partial             complete
 *     refcnt == chunks    in between          refcnt == 0
 *                         ^ cache_freelist
 *
 * A buffer that comes or goes moves at most one slab by one part.
 */
#pragma once

#include "mm/kmem_impl.h"

/* A slab left the complete ones: the working set may have grown. */
static inline void kmem_ws_take(struct kmem_cache *cp)
{
    cp->cache_free_slabs--;
    if (cp->cache_ws_min > cp->cache_free_slabs)
        cp->cache_ws_min = cp->cache_free_slabs;
}

/* Takes the first buffer, `bcp`, of the slab at the head of the freelist. */
static inline void kmem_slab_take(struct kmem_cache *cp, struct kmem_slab *sp,
                                  const struct kmem_bufctl *bcp)
{
    struct kmem_bufctl *next = bcp->bufctl_next;

    sp->slab_head = next;
    if (unlikely(next == NULL)) {
        cp->cache_freelist = kmem_slab_next(sp);
        cp->cache_full_slabs++;
    }
    cp->cache_allocs++;
    sp->slab_refcnt++;
    mm_barrier(); /* in memory, adding and testing are an instruction each */
    if (unlikely(sp->slab_refcnt == 1))
        kmem_ws_take(cp);
}

/* A full slab got a buffer back: it leads those with something to give. */
static inline void kmem_slab_to_front(struct kmem_cache *cp,
                                      struct kmem_slab *sp)
{
    list_remove(&sp->slab_link);
    list_insert_before(&cp->cache_freelist->slab_link, &sp->slab_link);
    cp->cache_full_slabs--;
    cp->cache_freelist = sp;
}

/* The same where the slab is at the boundary already, as it is after its last
 * buffer was taken. False if it is not. */
static inline bool kmem_slab_refilled_here(struct kmem_cache *cp,
                                           struct kmem_slab *sp)
{
    if (sp->slab_link.next != &cp->cache_freelist->slab_link)
        return false;
    cp->cache_full_slabs--;
    cp->cache_freelist = sp;
    return true;
}

/* A slab got its last buffer back: it goes to the tail. */
static inline void kmem_slab_to_tail(struct kmem_cache *cp,
                                     struct kmem_slab *sp)
{
    cp->cache_free_slabs++;
    sp->slab_since = kmem_seconds;
    if (sp->slab_link.next == &cp->cache_null.slab_link)
        return;
    if (cp->cache_freelist == sp)
        cp->cache_freelist = kmem_slab_next(sp);
    list_remove(&sp->slab_link);
    list_insert_before(&cp->cache_null.slab_link, &sp->slab_link);
}

/* The rest of a free that moves the slab to another part of the list, in
 * kmem_cache.c. Lock held; releases it. */
void kmem_slab_relink(struct kmem_cache *cp, struct kmem_slab *sp);

/* Puts a buffer back on its slab. Releases the lock. `few` (a constant) says
 * that slabs have few buffers, so that they are often full: worth a look, which
 * would cost small objects a register. */
static inline void kmem_slab_give(struct kmem_cache *cp, struct kmem_slab *sp,
                                  struct kmem_bufctl *bcp, bool few)
{
    struct kmem_bufctl *head = sp->slab_head;

    bcp->bufctl_next = head;
    sp->slab_head = bcp;
    cp->cache_frees++;
    sp->slab_refcnt--;
    if (unlikely(sp->slab_refcnt == 0))
        kmem_slab_relink(cp, sp);
    else if (unlikely(head == NULL) &&
             !(few && kmem_slab_refilled_here(cp, sp)))
        kmem_slab_relink(cp, sp);
    else
        mm_unlock(&cp->cache_lock);
}
