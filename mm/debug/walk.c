/*
 * From an address to its slab, its bufctl and its history, and from a cache to
 * all its buffers (paper, section 6.1). For tools that inspect the heap: they
 * change nothing, and follow no link before checking it.
 */
#include "kernel/lib/string.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/page.h"

/* The bufctl of an allocated buffer, NULL if the hash table has none. Sets
 * *damaged if the chain is damaged. */
struct kmem_bufctl *kmem_hash_find(struct kmem_cache *cp, const void *buf,
                                   bool *damaged)
{
    struct kmem_bufctl *bcp = *kmem_hash_bucket(cp, buf);
    uint32_t left = kmem_inuse(cp);

    for (*damaged = false; bcp != NULL; bcp = bcp->bufctl_next) {
        *damaged = left-- == 0 || !kmem_bufctl_plausible(cp, bcp);
        if (*damaged)
            return NULL;
        if (bcp->bufctl_addr == buf)
            return bcp;
    }
    return NULL;
}

static struct kmem_bufctl *on_freelist(const struct kmem_cache *cp,
                                       const struct kmem_slab *sp,
                                       const void *buf)
{
    struct kmem_bufctl *bcp = sp->slab_cache == cp ? sp->slab_head : NULL;

    for (size_t left = cp->cache_slab_chunks; bcp != NULL && left != 0;
         left--) {
        if (kmem_bufctl_chunk(sp, bcp) == SIZE_MAX)
            return NULL;
        if (kmem_bufctl_buf(cp, bcp) == buf)
            return bcp;
        bcp = bcp->bufctl_next;
    }
    return NULL;
}

/* With at most as many callers as there is room for, even if damaged. */
static struct kmem_transaction sane(struct kmem_transaction t)
{
    t.trans_depth = MIN(t.trans_depth, KMEM_STACK_DEPTH + 0u);
    return t;
}

/* Copies the record of a bufctl of the debug layout, which may be damaged. */
static void debug_stat(const struct kmem_cache *cp,
                       const struct kmem_bufctl_debug *bdp,
                       struct kmem_buf_stat *out)
{
    if (bdp->bufctl_state != KMEM_BUF_FREE)
        out->stat_size = MIN(bdp->bufctl_size, cp->cache_size);
    out->stat_audited = (cp->cache_flags & KMF_AUDIT) != 0;
    if (!out->stat_audited)
        return;
    out->stat_alloc = sane(bdp->bufctl_alloc);
    out->stat_free = sane(bdp->bufctl_free);
}

/* Chunk `i` of a slab whose slab_cache may be damaged. */
static void *chunk_at(const struct kmem_cache *cp, const struct kmem_slab *sp,
                      size_t i)
{
    return (char *)sp->slab_base + sp->slab_colour + i * cp->cache_chunk;
}

/* Fills in buffer `i` of a slab. `bcp` is its bufctl; NULL: the buffer is small
 * and allocated. */
static void buf_stat(struct kmem_cache *cp, const struct kmem_slab *sp,
                     size_t i, const struct kmem_bufctl *bcp, bool used,
                     struct kmem_buf_stat *out)
{
    *out = (struct kmem_buf_stat){
        .stat_cache = cp,
        .stat_slab = (uintptr_t)sp,
        .stat_bufctl = (uintptr_t)bcp,
        .stat_buf = (uintptr_t)chunk_at(cp, sp, i),
        .stat_index = i,
        .stat_next = SIZE_MAX,
        .stat_chunk = cp->cache_chunk,
        .stat_size = cp->cache_size,
        .stat_state = used ? KMEM_BUF_USED : KMEM_BUF_FREE,
    };
    if (bcp != NULL && !used) {
        out->stat_last = bcp->bufctl_next == NULL;
        if (!out->stat_last)
            out->stat_next = kmem_bufctl_chunk(sp, bcp->bufctl_next);
    }
    if ((cp->cache_flags & KMF_MODES) != 0 && bcp != NULL)
        debug_stat(cp, (const struct kmem_bufctl_debug *)bcp, out);
}

void kmem_bufctl_stat(const struct kmem_bufctl_debug *bdp,
                      struct kmem_buf_stat *out)
{
    const struct kmem_slab *sp = bdp->bufctl.bufctl_slab;
    struct kmem_cache *cp = sp->slab_cache;
    size_t offset;

    buf_stat(cp, sp, kmem_chunk_index(cp, sp, bdp->bufctl.bufctl_addr, &offset),
             &bdp->bufctl, bdp->bufctl_state != KMEM_BUF_FREE, out);
}

/* The buffer at index `i`, found from its address. */
static void find_stat(struct kmem_cache *cp, const struct kmem_slab *sp,
                      size_t i, struct kmem_buf_stat *out)
{
    const void *buf = chunk_at(cp, sp, i);
    const struct kmem_bufctl *bcp = NULL;
    bool used = true;
    bool damaged;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (cp->cache_flags & KMF_HASH)
        bcp = kmem_hash_find(cp, buf, &damaged);
    if (bcp == NULL) {
        bcp = on_freelist(cp, sp, buf);
        used = bcp == NULL;
    }
    buf_stat(cp, sp, i, bcp, used, out);
    if (MM_MAGAZINES && used && kmem_mag_holds(cp, buf)) {
        out->stat_state = KMEM_BUF_FREE;
        out->stat_in_magazine = true;
    }
}

bool kmem_buf_stat(const void *addr, struct kmem_buf_stat *out)
{
    struct kmem_cache *cp = kmem_page_owner(addr, PAGE_SLAB);
    const struct kmem_slab *sp;
    size_t i = SIZE_MAX, offset;

    if (cp == NULL)
        return false;
    mm_lock(&cp->cache_lock);
    sp = kmem_slab_holding(cp, addr);
    if (sp != NULL)
        i = kmem_chunk_index(cp, sp, addr, &offset);
    if (i != SIZE_MAX)
        find_stat(cp, sp, i, out);
    mm_unlock(&cp->cache_lock);
    return i != SIZE_MAX;
}

void kmem_buf_walk(struct kmem_cache *cp, kmem_buf_fn_t *fn, void *arg)
{
    struct kmem_buf_stat stat;
    size_t chunks = cp->cache_slab_chunks;

    for (size_t n = 0; chunks != 0; n++) { /* 0: damaged */
        for (size_t i = 0; i < chunks; i++) {
            const struct kmem_slab *sp;

            mm_lock(&cp->cache_lock);
            sp = kmem_slab_number(cp, n);
            if (sp != NULL)
                find_stat(cp, sp, i, &stat);
            mm_unlock(&cp->cache_lock);
            if (sp == NULL || !fn(&stat, arg))
                return;
        }
    }
}

bool kmem_unmapped_stat(const void *addr, struct kmem_buf_stat *out)
{
    const struct kmem_slab *sp = kmem_page_owner(addr, PAGE_UNMAPPED);
    struct kmem_cache *cp;
    size_t i, offset;

    if (sp == NULL)
        return false;
    cp = sp->slab_cache;
    i = kmem_chunk_index(cp, sp, addr, &offset);
    *out = (struct kmem_buf_stat){.stat_cache = cp};
    if (i != SIZE_MAX)
        buf_stat(cp, sp, i, on_freelist(cp, sp, kmem_slab_chunk(sp, i)), false,
                 out);
    return true;
}
