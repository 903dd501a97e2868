/*
 * Walks over slabs and freelists that may be damaged: each is bounded by a
 * count, and follows no link that it has not checked. Snapshots, kmem_verify
 * and the debugging modes use them.
 */
#include "mm/inspect/kmem_walk.h"
#include "kernel/lib/string.h"
#include "mm/page.h"

/* ---- links -------------------------------------------------------------- */

/* Whether `addr` is an object's place in a slab of one of the allocator's own
 * caches. */
static bool on_page_of(const void *addr, const struct kmem_cache *cp)
{
    const struct page *p = virt_to_page(addr);

    return ((uintptr_t)addr & (sizeof(void *) - 1)) == 0 && p != NULL &&
           p->page_state == PAGE_SLAB && p->page_owner == cp;
}

bool kmem_bufctl_plausible(const struct kmem_cache *cp,
                           const struct kmem_bufctl *bcp)
{
    if (KMEM_FLAGS(cp) & KMF_HASH)
        return on_page_of(bcp, kmem_bufctls_of(cp));
    if (cp->cache_supplier.getpages != NULL) /* its pages are not marked */
        return ((uintptr_t)bcp & (sizeof(void *) - 1)) == 0 &&
               (!MM_DEBUG || mm_readable(bcp));
    return on_page_of(bcp, cp);
}

/* Whether `sp` is the slab data of a slab of large objects. */
bool kmem_slab_plausible(const struct kmem_slab *sp)
{
    return on_page_of(sp, kmem_slab_cache);
}

/* Whether `l` may be a link of the cache's slab list. The pages of foreign
 * suppliers are not known here. */
bool kmem_slab_link_plausible(const struct kmem_cache *cp, const struct list *l)
{
    const struct page *p = virt_to_page(l);

    if (l == &cp->cache_null.slab_link)
        return true;
    if (KMEM_FLAGS(cp) & KMF_HASH)
        return kmem_slab_plausible(list_entry(l, struct kmem_slab, slab_link));
    return l != NULL && ((uintptr_t)l & (sizeof(void *) - 1)) == 0 &&
           (cp->cache_supplier.getpages != NULL ||
            (p != NULL && p->page_state >= PAGE_ALLOC));
}

/* ---- the slabs of a cache ----------------------------------------------- */

struct kmem_slab *kmem_slab_after(struct kmem_cache *cp,
                                  const struct kmem_slab *sp)
{
    const struct list *l = sp->slab_link.next;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (l == &cp->cache_null.slab_link || !kmem_slab_link_plausible(cp, l))
        return NULL;
    return kmem_slab_next(sp);
}

struct kmem_slab *kmem_slab_number(struct kmem_cache *cp, size_t n)
{
    struct kmem_slab *sp = kmem_slab_after(cp, &cp->cache_null);

    if (n >= cp->cache_slabs)
        return NULL;
    while (n-- != 0 && sp != NULL)
        sp = kmem_slab_after(cp, sp);
    return sp;
}

struct kmem_slab *kmem_slab_holding(struct kmem_cache *cp, const void *addr)
{
    struct kmem_slab *sp = kmem_slab_after(cp, &cp->cache_null);

    for (size_t n = 0; n < cp->cache_slabs && sp != NULL; n++) {
        uintptr_t off = (uintptr_t)addr - (uintptr_t)sp->slab_base;

        if (off < cp->cache_slab_pages * PAGE_SIZE)
            return sp;
        sp = kmem_slab_after(cp, sp);
    }
    return NULL;
}

/* ---- the buffers of a slab ---------------------------------------------- */

/* The index of the chunk that holds `addr`, and the address's offset there;
 * SIZE_MAX: no chunk of the slab does. */
size_t kmem_chunk_index(const struct kmem_cache *cp, const struct kmem_slab *sp,
                        const void *addr, size_t *offset)
{
    size_t chunk =
        MAX(cp->cache_chunk, (size_t)1); /* if damaged, it may be 0 */
    size_t off = (uintptr_t)addr - (uintptr_t)sp->slab_base - sp->slab_colour;

    *offset = off % chunk;
    return off / chunk < cp->cache_slab_chunks ? off / chunk : SIZE_MAX;
}

/* The buffer of a bufctl on a freelist. `bcp` may be any number, since links
 * may be damaged. */
void *kmem_bufctl_buf(const struct kmem_cache *cp,
                      const struct kmem_bufctl *bcp)
{
    return (KMEM_FLAGS(cp) & KMF_HASH) != 0
               ? bcp->bufctl_addr
               : (void *)((uintptr_t)bcp - cp->cache_bufctl);
}

/* The index of a bufctl's buffer; SIZE_MAX: the bufctl is damaged. */
size_t kmem_bufctl_chunk(const struct kmem_slab *sp,
                         const struct kmem_bufctl *bcp)
{
    const struct kmem_cache *cp = sp->slab_cache;
    size_t i, offset;

    if (!kmem_bufctl_plausible(cp, bcp))
        return SIZE_MAX;
    i = kmem_chunk_index(cp, sp, kmem_bufctl_buf(cp, bcp), &offset);
    return offset == 0 ? i : SIZE_MAX;
}

bool kmem_slab_bitmap(const struct kmem_slab *sp, uint8_t *map, size_t bits)
{
    const struct kmem_bufctl *bcp = sp->slab_head;
    size_t left = sp->slab_chunks - sp->slab_refcnt;

    MM_ASSERT(mm_lock_held(&sp->slab_cache->cache_lock));
    memset(map, 0xff, (bits + 7) / 8);
    for (; bcp != NULL; bcp = bcp->bufctl_next) {
        size_t i;

        if (left-- == 0)
            return false;
        i = kmem_bufctl_chunk(sp, bcp);
        if (i == SIZE_MAX)
            return false;
        if (i >= bits)
            continue;
        if ((map[i / 8] >> (i % 8) & 1) == 0)
            return false;
        map[i / 8] &= (uint8_t) ~(1u << (i % 8));
    }
    return left == 0;
}
