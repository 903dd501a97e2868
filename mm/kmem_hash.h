/*
 * From the address of an allocated large buffer to its bufctl (paper, section
 * 3.2.3). Inline, since each allocation and each free of a large object comes
 * by here; kmem_hash.c makes the table and keeps it at the right size. The
 * cache's lock is held.
 */
#pragma once

#include "mm/kmem_impl.h"

static inline struct kmem_bufctl **kmem_hash_bucket(const struct kmem_cache *cp,
                                                    const void *buf)
{
    return &cp->cache_hash[(uintptr_t)buf >> cp->cache_hash_shift &
                           cp->cache_hash_mask];
}

/* Puts the bufctl of a buffer that is handed out into the table. */
static inline void kmem_hash_enter(struct kmem_cache *cp,
                                   struct kmem_bufctl *bcp)
{
    struct kmem_bufctl **bucket = kmem_hash_bucket(cp, bcp->bufctl_addr);

    bcp->bufctl_next = *bucket;
    *bucket = bcp;
}

/* Takes a buffer's bufctl out of the table; NULL: no such buffer is allocated
 * (section 6.2). */
static inline struct kmem_bufctl *kmem_hash_remove(struct kmem_cache *cp,
                                                   const void *buf)
{
    struct kmem_bufctl **link = kmem_hash_bucket(cp, buf);
    struct kmem_bufctl *bcp;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    for (; (bcp = *link) != NULL; link = &bcp->bufctl_next) {
        if (likely(bcp->bufctl_addr == buf)) {
            *link = bcp->bufctl_next;
            return bcp;
        }
        cp->cache_hash_depth++;
    }
    return NULL;
}
