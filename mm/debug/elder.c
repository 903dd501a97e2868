/*
 * Switching debugging modes while a cache is in use.
 *
 * A mode changes what a slab looks like, and objects that are out cannot move.
 * So the cache begins anew, without slabs and with the new geometry, and what
 * it had goes to an elder, a cache of its own with the old geometry:
 *
 *     inode ──cache_elders──> inode~2 ──cache_elders──> inode~1
 *       ^──────cache_heir────────┘                         │
 *       └──────cache_heir──────────────────────────────────┘
 *
 * An elder allocates nothing. It gets the frees of its objects, gives back its
 * slabs as other caches do, and ends when the last object is back; its counts
 * then become its heir's. So one kmem_cache has one geometry for all its life,
 * and whoever looks at caches need not know that modes can change.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "mm/kmem_impl.h"
#include "mm/debug/audit.h"
#include "mm/kmem_stat.h"
#include "mm/segkmem.h"

/* ---- finding ------------------------------------------------------------ */

struct kmem_cache *kmem_cache_heir(const struct kmem_cache *cp)
{
    return cp->cache_heir;
}

/* Whether one of the cache's slabs holds `buf`. Pages of a supplier are not
 * marked: there its slabs are asked. */
static bool holds(struct kmem_cache *cp, const void *buf)
{
    const struct page *p = virt_to_page(buf);
    bool held;

    if (cp->cache_supplier.getpages == NULL)
        return p != NULL && p->page_state == PAGE_SLAB && p->page_owner == cp;
    mm_lock(&cp->cache_lock);
    held = kmem_slab_holding(cp, buf) != NULL;
    mm_unlock(&cp->cache_lock);
    return held;
}

struct kmem_cache *kmem_elder_holding(struct kmem_cache *cp, const void *buf)
{
    mm_lock(&kmem_list_lock);
    while (cp != NULL && !holds(cp, buf))
        cp = cp->cache_elders;
    mm_unlock(&kmem_list_lock);
    return cp;
}

/* ---- handing over ------------------------------------------------------- */

/* The name of the next elder: the heir's, cut if need be, and a number. */
static void name_elder(const struct kmem_cache *heir, struct kmem_cache *elder)
{
    unsigned n = 1;

    if (heir->cache_elders != NULL)
        n = heir->cache_elders->cache_generation + 1;
    elder->cache_generation = n;
    snprintf(elder->cache_name, sizeof(elder->cache_name), "%.*s~%u",
             KMEM_NAME_MAX - 5, heir->cache_name, n);
}

/* Lets slabs and their pages point to the cache that they are in now. */
static void adopt_slabs(struct kmem_cache *cp)
{
    struct kmem_slab *sp = kmem_slab_next(&cp->cache_null);

    for (; sp != &cp->cache_null; sp = kmem_slab_next(sp)) {
        sp->slab_cache = cp;
        if (cp->cache_supplier.getpages == NULL)
            kmem_setuse(sp->slab_base, cp->cache_slab_pages, PAGE_SLAB, cp);
    }
}

/* Makes `elder` what `cp` is, with all its slabs. cp's lock is held. */
static void become(struct kmem_cache *elder, struct kmem_cache *cp)
{
    struct list *head = &elder->cache_null.slab_link;

    *elder = *cp;
    mm_lock_init(&elder->cache_lock, "kmem elder", MM_RANK_CACHE);
    if (list_empty(&cp->cache_null.slab_link)) {
        list_init(head);
    } else {
        head->next->prev = head;
        head->prev->next = head;
    }
    elder->cache_null.slab_cache = elder;
    if (elder->cache_freelist == &cp->cache_null)
        elder->cache_freelist = &elder->cache_null;
    elder->cache_heir = cp;
    elder->cache_flags &= ~KMF_ELDERS;
    kmem_slow_paths(elder);
    name_elder(cp, elder);
    adopt_slabs(elder);
}

/* Makes a cache as new: no slabs, nothing counted, geometry for `modes`. It
 * has no hash table then. Lock held. */
static void begin_anew(struct kmem_cache *cp, unsigned modes)
{
    list_init(&cp->cache_null.slab_link);
    cp->cache_freelist = &cp->cache_null;
    cp->cache_allocs = cp->cache_frees = cp->cache_isolated = 0;
    cp->cache_allocs_seen = cp->cache_frees_seen = 0;
    cp->cache_allocs_total = cp->cache_frees_total = 0;
    cp->cache_fails = 0;
    cp->cache_slab_creates = cp->cache_slab_destroys = 0;
    cp->cache_hash_rescales = cp->cache_hash_depth = 0;
    cp->cache_reaps = cp->cache_reaped_slabs = 0;
    cp->cache_free_slabs = cp->cache_ws_min = cp->cache_ws_limit = 0;
    cp->cache_full_slabs = cp->cache_slabs = cp->cache_max_slabs = 0;
    cp->cache_flags &= ~(KMF_MODES | KMF_HASH | KMF_DEBUG);
    cp->cache_flags |= KMF_MODE(modes);
    cp->cache_hash = NULL;
    cp->cache_bufctl = cp->cache_colour_min = cp->cache_redzone_end = 0;
    cp->cache_colour = 0;
    kmem_geometry(cp);
}

/* What an elder that ends has counted is its heir's. Both locks are free, the
 * elder is on no list. */
static void inherit(struct kmem_cache *cp, struct kmem_cache *elder)
{
    kmem_count_fold(elder);
    mm_lock(&cp->cache_lock);
    cp->cache_allocs_total += elder->cache_allocs_total;
    cp->cache_frees_total += elder->cache_frees_total;
    cp->cache_fails += elder->cache_fails;
    cp->cache_slab_creates += elder->cache_slab_creates;
    cp->cache_slab_destroys += elder->cache_slab_destroys;
    cp->cache_hash_rescales += elder->cache_hash_rescales;
    cp->cache_hash_depth += elder->cache_hash_depth;
    cp->cache_reaps += elder->cache_reaps;
    cp->cache_reaped_slabs += elder->cache_reaped_slabs;
    cp->cache_max_slabs = MAX(cp->cache_max_slabs, elder->cache_max_slabs);
    cp->cache_busy--;
    mm_unlock(&cp->cache_lock);
}

/* ---- the end of elders -------------------------------------------------- */

/* Takes an elder off the chain of its heir, who stays until it has inherited:
 * a busy cache does not end. The list's lock is held. */
static void leave_chain(struct kmem_cache *elder)
{
    struct kmem_cache *heir = elder->cache_heir;
    struct kmem_cache **link = &heir->cache_elders;

    while (*link != elder)
        link = &(*link)->cache_elders;
    *link = elder->cache_elders;
    mm_lock(&heir->cache_lock);
    heir->cache_busy++;
    if (heir->cache_elders == NULL) {
        heir->cache_flags &= ~KMF_ELDERS;
        kmem_slow_paths(heir);
    }
    mm_unlock(&heir->cache_lock);
}

/* Takes an elder that is empty off both lists, one of `heir` or, NULL, of any;
 * NULL if there is none. */
static struct kmem_cache *retire_elder(const struct kmem_cache *heir)
{
    struct kmem_cache *elder = NULL;

    mm_lock(&kmem_list_lock);
    for (struct list *l = kmem_caches.next;
         l != &kmem_caches && elder == NULL && !kmem_reaping; l = l->next) {
        struct kmem_cache *cp = list_entry(l, struct kmem_cache, cache_link);

        if (cp->cache_heir != NULL && kmem_inuse(cp) == 0 &&
            cp->cache_busy == 0 && (heir == NULL || cp->cache_heir == heir))
            elder = cp;
    }
    if (elder != NULL) {
        leave_chain(elder);
        list_remove(&elder->cache_link);
        elder->cache_flags |= KMF_DESTROYED;
    }
    mm_unlock(&kmem_list_lock);
    return elder;
}

static void collect(const struct kmem_cache *heir)
{
    struct kmem_cache *elder;
    struct kmem_slab *sp;

    kmem_transfer_begin();
    while ((elder = retire_elder(heir)) != NULL) {
        kmem_unmapped_release(elder);
        while ((sp = kmem_slab_pop(elder)) != NULL)
            kmem_slab_destroy(elder, sp);
        if (elder->cache_flags & KMF_HASH)
            kmem_hash_destroy(elder);
        inherit(elder->cache_heir, elder);
        kmem_cache_free(&kmem_cache_cache, elder);
    }
    kmem_transfer_end();
}

void kmem_elders_collect(void)
{
    collect(NULL);
}

/* ---- the switch --------------------------------------------------------- */

/* 0, or why the cache cannot be in these modes. */
static int modes_error(const struct kmem_cache *cp, unsigned modes)
{
    if (cp->cache_heir != NULL)
        return -KMEM_EPERM;
    if (cp->cache_kind == KMEM_KIND_INTERNAL && (modes & KMF_LAYOUT) != 0)
        return -KMEM_EPERM;
    if ((modes & KMF_UNMAPPING) != 0 && !kmem_debug_can_unmap(cp))
        return -KMEM_EINVAL;
    if ((modes & KMF_AUDIT) != 0 && !kmem_log_create())
        return -KMEM_ENOMEM;
    return 0;
}

/* Only T changes: that is a bit. */
static void set_trace(struct kmem_cache *cp, unsigned modes)
{
    mm_lock(&cp->cache_lock);
    cp->cache_flags &= ~KMF_MODE(KMF_TRACE);
    cp->cache_flags |= KMF_MODE(modes & KMF_TRACE);
    kmem_slow_paths(cp);
    mm_unlock(&cp->cache_lock);
}

/* Gives the cache's place on the list of elders, and the list of caches, to
 * one. Both locks are held. */
static void enter_elder(struct kmem_cache *cp, struct kmem_cache *elder)
{
    list_insert_before(cp->cache_link.next, &elder->cache_link);
    cp->cache_elders = elder;
    cp->cache_flags |= KMF_ELDERS;
}

/* The switch itself: false if the cache is busy. `fresh` brings the hash table
 * of the new geometry, and becomes the elder. */
static bool switch_modes(struct kmem_cache *cp, struct kmem_cache *fresh,
                         unsigned modes)
{
    struct kmem_bufctl **table = fresh->cache_hash;
    size_t mask = fresh->cache_hash_mask;
    uint32_t shift = fresh->cache_hash_shift;
    bool idle;

    mm_lock(&kmem_list_lock);
    mm_lock(&cp->cache_lock);
    idle = cp->cache_busy == 0 && !kmem_reaping &&
           (cp->cache_flags & KMF_DESTROYED) == 0;
    if (idle) {
        become(fresh, cp);
        begin_anew(cp, modes);
        cp->cache_hash = table;
        cp->cache_hash_mask = mask;
        cp->cache_hash_shift = shift;
        enter_elder(cp, fresh);
        kmem_slow_paths(cp);
    }
    mm_unlock(&cp->cache_lock);
    mm_unlock(&kmem_list_lock);
    return idle;
}

/* A cache as it will be, for its hash table. */
static bool prepare(struct kmem_cache *fresh, const struct kmem_cache *cp,
                    unsigned modes)
{
    *fresh = *cp;
    begin_anew(fresh, modes);
    return (fresh->cache_flags & KMF_HASH) == 0 || kmem_hash_create(fresh);
}

static void discard(struct kmem_cache *fresh)
{
    if (fresh->cache_hash != NULL)
        kmem_hash_destroy(fresh);
    fresh->cache_flags |= KMF_DESTROYED;
    kmem_cache_free(&kmem_cache_cache, fresh);
}

int kmem_debug_set(struct kmem_cache *cp, unsigned modes)
{
    int error = modes_error(cp, modes);
    struct kmem_cache *fresh;

    if (error != 0)
        return error;
    if (((kmem_debug_modes(cp) ^ modes) & KMF_LAYOUT) == 0) {
        set_trace(cp, modes);
        return 0;
    }
    fresh = kmem_cache_alloc(&kmem_cache_cache, KM_NOSLEEP);
    if (fresh == NULL)
        return -KMEM_ENOMEM;
    kmem_transfer_begin();
    kmem_unmapped_release(cp);
    if (!prepare(fresh, cp, modes))
        error = -KMEM_ENOMEM;
    else if (!switch_modes(cp, fresh, modes))
        error = -KMEM_EAGAIN;
    if (error == 0)
        collect(cp);
    else
        discard(fresh);
    kmem_transfer_end();
    return error;
}
