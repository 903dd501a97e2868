/*
 * Snapshots: what the shell and the tools see of the slab allocator (paper,
 * section 3.1, on per-cache statistics).
 */
#include "kernel/lib/string.h"
#include "mm/inspect/kmem_walk.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/page.h"
#include "mm/segkmem.h"

/* The cache after this place of the list. */
static struct kmem_cache *after(const struct list *place)
{
    struct list *l;

    mm_lock(&kmem_list_lock);
    l = place->next;
    mm_unlock(&kmem_list_lock);
    return l == &kmem_caches ? NULL
                             : list_entry(l, struct kmem_cache, cache_link);
}

struct kmem_cache *kmem_cache_first(void)
{
    return after(&kmem_caches);
}

struct kmem_cache *kmem_cache_next(struct kmem_cache *cp)
{
    return after(&cp->cache_link);
}

/* ---- a cache ------------------------------------------------------------ */

static void stat_geometry(const struct kmem_cache *cp,
                          struct kmem_cache_stat *out)
{
    bool hashed = (cp->cache_flags & KMF_HASH) != 0;
    size_t space = cp->cache_slab_pages * PAGE_SIZE -
                   (hashed ? 0 : sizeof(struct kmem_slab));

    memcpy(out->stat_name, cp->cache_name, sizeof(out->stat_name));
    out->stat_kind = cp->cache_kind;
    out->stat_flags = (hashed ? KMEM_STAT_LARGE : 0) |
                      (cp->cache_ctor ? KMEM_STAT_CTOR : 0) |
                      (cp->cache_dtor ? KMEM_STAT_DTOR : 0) |
                      (cp->cache_supplier.getpages ? KMEM_STAT_SUPPLY : 0);
    out->stat_modes = cp->cache_flags & KMF_MODES;
    out->stat_size = cp->cache_size;
    out->stat_align = cp->cache_align;
    out->stat_chunk = cp->cache_chunk;
    out->stat_slab_pages = cp->cache_slab_pages;
    out->stat_slab_objects = cp->cache_slab_chunks;
    out->stat_slab_left = space - cp->cache_slab_chunks * cp->cache_chunk;
    out->stat_colour_min = cp->cache_colour_min;
    out->stat_colour_max = cp->cache_colour_max;
    out->stat_ctor = (uintptr_t)cp->cache_ctor;
    out->stat_dtor = (uintptr_t)cp->cache_dtor;
}

static void stat_now(const struct kmem_cache *cp, struct kmem_cache_stat *out)
{
    uint32_t inuse = (uint32_t)(out->stat_allocs - out->stat_frees);

    out->stat_colour_next = cp->cache_colour;
    out->stat_redzone_end = cp->cache_redzone_end;
    out->stat_inuse = inuse;
    out->stat_trapped = kmem_inuse(cp) - inuse;
    out->stat_slabs = cp->cache_slabs;
    out->stat_total = out->stat_slabs * cp->cache_slab_chunks;
    out->stat_full_slabs = cp->cache_full_slabs;
    out->stat_free_slabs = cp->cache_free_slabs;
    out->stat_partial_slabs =
        cp->cache_slabs - cp->cache_full_slabs - cp->cache_free_slabs;
    out->stat_max_slabs = cp->cache_max_slabs;
    out->stat_slab_bytes = out->stat_slabs * cp->cache_slab_pages * PAGE_SIZE;
    if (cp->cache_flags & KMF_HASH) {
        out->stat_hash_size = cp->cache_hash_mask + 1;
        out->stat_hash_bytes = kmem_hash_pages(out->stat_hash_size) * PAGE_SIZE;
    }
    out->stat_mem = out->stat_slab_bytes + out->stat_hash_bytes;
    out->stat_ws_min = cp->cache_ws_min;
    out->stat_ws_limit = cp->cache_ws_limit;
    out->stat_reapable = kmem_reapable(cp, KMEM_REAP_WS);
}

static void stat_traffic(struct kmem_cache *cp, struct kmem_cache_stat *out)
{
    kmem_count_fold(cp);
    out->stat_allocs = cp->cache_allocs_total;
    out->stat_frees = cp->cache_frees_total;
    out->stat_fails = cp->cache_fails;
    out->stat_slab_creates = cp->cache_slab_creates;
    out->stat_slab_destroys = cp->cache_slab_destroys;
    out->stat_ctors = cp->cache_ctors;
    out->stat_dtors = cp->cache_dtors;
    out->stat_hash_rescales = cp->cache_hash_rescales;
    out->stat_hash_depth = cp->cache_hash_depth;
    out->stat_reaps = cp->cache_reaps;
    out->stat_last_reap_ms = cp->cache_last_reap_ms;
    out->stat_last_reap_freed = cp->cache_last_reap_freed;
    out->stat_last_reap_kept = cp->cache_last_reap_kept;
}

void kmem_cache_stat(struct kmem_cache *cp, struct kmem_cache_stat *out)
{
    memset(out, 0, sizeof(*out));
    mm_lock(&cp->cache_lock);
    stat_geometry(cp, out);
    stat_traffic(cp, out);
    stat_now(cp, out);
    mm_unlock(&cp->cache_lock);
}

bool kmem_cache_stat_number(size_t n, struct kmem_cache_stat *out)
{
    struct list *l;

    mm_lock(&kmem_list_lock);
    l = kmem_caches.next;
    while (n-- != 0 && l != &kmem_caches)
        l = l->next;
    if (l != &kmem_caches)
        kmem_cache_stat(list_entry(l, struct kmem_cache, cache_link), out);
    mm_unlock(&kmem_list_lock);
    return l != &kmem_caches;
}

/* ---- its slabs ---------------------------------------------------------- */

static void stat_slab(const struct kmem_cache *cp, const struct kmem_slab *sp,
                      struct kmem_slab_stat *out)
{
    *out = (struct kmem_slab_stat){
        .stat_slab = (uintptr_t)sp,
        .stat_base = (uintptr_t)sp->slab_base,
        .stat_bytes = cp->cache_slab_pages * PAGE_SIZE,
        .stat_colour = sp->slab_colour,
        .stat_refcnt = sp->slab_refcnt,
        .stat_chunks = sp->slab_chunks,
        .stat_state = sp->slab_refcnt == 0    ? KMEM_SLAB_FREE
                      : sp->slab_head == NULL ? KMEM_SLAB_FULL
                                              : KMEM_SLAB_PARTIAL,
        .stat_freelist = cp->cache_freelist == sp,
        .stat_bad = kmem_slab_verify(cp, sp) != NULL,
    };
    if (sp->slab_refcnt == 0)
        out->stat_idle_updates = MM_UNLOCKED(kmem_updates) - sp->slab_since;
    memset(out->stat_map, 0xff, sizeof(out->stat_map));
    if (sp->slab_cache == cp)
        kmem_slab_bitmap(sp, out->stat_map, KMEM_CHUNKS_MAX);
}

bool kmem_slab_stat(struct kmem_cache *cp, size_t n, struct kmem_slab_stat *out)
{
    struct kmem_slab *sp;

    mm_lock(&cp->cache_lock);
    sp = kmem_slab_number(cp, n);
    if (sp != NULL)
        stat_slab(cp, sp, out);
    mm_unlock(&cp->cache_lock);
    return sp != NULL;
}

/* ---- its hash table ----------------------------------------------------- */

/* As far as the chain can be followed. */
static size_t chain_length(const struct kmem_cache *cp,
                           const struct kmem_bufctl *bcp)
{
    size_t n = 0;

    while (bcp != NULL && n <= kmem_inuse(cp) &&
           kmem_bufctl_plausible(cp, bcp)) {
        bcp = bcp->bufctl_next;
        n++;
    }
    return n;
}

size_t kmem_hash_stat(struct kmem_cache *cp, size_t *histogram, size_t len)
{
    size_t longest = 0;

    memset(histogram, 0, len * sizeof(*histogram));
    mm_lock(&cp->cache_lock);
    if (cp->cache_flags & KMF_HASH) {
        for (size_t i = 0; i <= cp->cache_hash_mask; i++) {
            size_t n = chain_length(cp, cp->cache_hash[i]);

            longest = MAX(longest, n);
            if (len != 0)
                histogram[MIN(n, len - 1)]++;
        }
    }
    mm_unlock(&cp->cache_lock);
    return longest;
}

static const struct kmem_cache *cache_of_hash(const void *table)
{
    const struct kmem_cache *found = NULL;

    mm_lock(&kmem_list_lock);
    list_for_each (l, &kmem_caches) {
        const struct kmem_cache *cp =
            list_entry(l, struct kmem_cache, cache_link);

        if (cp->cache_hash == table)
            found = cp;
    }
    mm_unlock(&kmem_list_lock);
    return found;
}

void kmem_own_stat(const struct kmem_cache *cp, const void *obj,
                   struct kmem_own_stat *out)
{
    const struct kmem_bufctl *bcp = obj;
    const struct kmem_slab *sp = obj;

    if (cp == kmem_bufctl_cache || (MM_DEBUG && cp == kmem_bufctl_debug_cache))
        *out = (struct kmem_own_stat){KMEM_OWN_BUFCTL, NULL,
                                      (uintptr_t)bcp->bufctl_addr};
    else if (cp == kmem_slab_cache)
        *out = (struct kmem_own_stat){KMEM_OWN_SLAB, sp->slab_cache,
                                      (uintptr_t)sp->slab_base};
    else if (cp == kmem_hash_cache)
        *out = (struct kmem_own_stat){KMEM_OWN_HASH, cache_of_hash(obj), 0};
    else if (cp == &kmem_cache_cache)
        *out = (struct kmem_own_stat){KMEM_OWN_CACHE, obj, 0};
    else
        *out = (struct kmem_own_stat){KMEM_OWN_OTHER, NULL, 0};
}

void kmem_oversize_stat(struct kmem_oversize_stat *out)
{
    const struct kmem_oversize *o = &kmem_oversize;

    mm_lock(&kmem_oversize.oversize_lock);
    out->stat_inuse = (size_t)(o->oversize_allocs - o->oversize_frees);
    out->stat_pages = o->oversize_pages;
    out->stat_allocs = o->oversize_allocs;
    out->stat_frees = o->oversize_frees;
    out->stat_fails = o->oversize_fails;
    mm_unlock(&kmem_oversize.oversize_lock);
}

/* ---- from an address ---------------------------------------------------- */

struct kmem_cache *kmem_slab_lookup(const void *addr,
                                    struct kmem_slab_stat *slab, size_t *index)
{
    struct kmem_cache *cp = kmem_page_owner(addr, PAGE_SLAB);
    struct kmem_slab *sp;
    size_t offset;

    if (cp == NULL)
        return NULL;
    mm_lock(&cp->cache_lock);
    sp = kmem_slab_holding(cp, addr);
    if (sp != NULL) {
        stat_slab(cp, sp, slab);
        *index = kmem_chunk_index(cp, sp, addr, &offset);
    }
    mm_unlock(&cp->cache_lock);
    return sp == NULL ? NULL : cp;
}
