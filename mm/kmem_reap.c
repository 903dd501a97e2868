/*
 * Reclaiming memory (paper, section 3.4): the working set, reaping, pressure.
 *
 * A reap destroys only free slabs, and only as many as were not needed for a
 * while. The hot path reads no clock for that:
 *
 *     T   free slabs now
 *     m   the minimum of T since the last update: slabs not needed since
 *     L   the m of the interval before, the limit of a reap
 *
 *     every interval (15 seconds)   L = m, then m = T
 *     a reap destroys               min(L, m) slabs
 *     each from the tail, and       L, m and T fall by one
 *
 * So as many stay as the last interval needed at some moment, and a slab too
 * many for two intervals does not. Which slabs these are makes no difference:
 * the free slabs of a cache are alike.
 */
#include "mm/buddy.h"
#include "mm/kmem_impl.h"

uint32_t kmem_ws_interval = KMEM_WS_DEFAULT_MS;
uint32_t kmem_updates;

static bool kmem_reaping; /* all caches; changes by atomic instructions */

static uint32_t last_update_ms; /* modulo 2^32 */

uint32_t kmem_reapable(const struct kmem_cache *cp, enum kmem_reap_mode mode)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (mode == KMEM_REAP_ALL || kmem_ws_interval == 0)
        return cp->cache_free_slabs;
    if (kmem_ws_interval == KMEM_WS_INFINITE)
        return 0;
    return MIN(cp->cache_ws_limit, cp->cache_ws_min);
}

/* Takes one free slab off the tail; NULL if a reap may take none. Each slab
 * lowers m and L, so that a second reap keeps as many slabs as the first. The
 * caller destroys its objects. No lock held. */
struct kmem_slab *kmem_slab_pop(struct kmem_cache *cp, enum kmem_reap_mode mode)
{
    struct kmem_slab *sp = NULL;

    mm_lock(&cp->cache_lock);
    if (kmem_reapable(cp, mode) != 0) {
        sp = kmem_slab_prev(&cp->cache_null);
        if (cp->cache_freelist == sp)
            cp->cache_freelist = &cp->cache_null;
        list_remove(&sp->slab_link);
        cp->cache_free_slabs--;
        cp->cache_ws_min -= cp->cache_ws_min != 0;
        cp->cache_ws_limit -= cp->cache_ws_limit != 0;
        cp->cache_slabs--;
        cp->cache_slab_destroys++;
        if (cp->cache_dtor != NULL && !kmem_per_alloc(cp))
            cp->cache_dtors += sp->slab_chunks;
    }
    mm_unlock(&cp->cache_lock);
    return sp;
}

size_t kmem_cache_reap(struct kmem_cache *cp, enum kmem_reap_mode mode)
{
    struct kmem_slab *sp;
    size_t slabs = 0;

    kmem_hold(cp);
    kmem_transfer_begin();
    if (MM_MAGAZINES)
        kmem_mag_reap(cp, mode);
    for (; (sp = kmem_slab_pop(cp, mode)) != NULL; slabs++)
        kmem_slab_destroy(cp, sp);
    if (slabs != 0)
        kmem_hash_rescale(cp);
    kmem_transfer_end();
    mm_lock(&cp->cache_lock);
    cp->cache_reaps++;
    cp->cache_last_reap_ms = mm_clock_ms();
    cp->cache_last_reap_freed = (uint32_t)slabs;
    cp->cache_last_reap_kept = cp->cache_free_slabs;
    mm_unlock(&cp->cache_lock);
    kmem_release(cp);
    return slabs;
}

/* The cache before `cp` on the list, the last one if that is NULL; NULL: there
 * is none. Holds it, and releases `cp`. */
struct kmem_cache *kmem_hold_previous(struct kmem_cache *cp)
{
    struct kmem_cache *previous = NULL;
    struct list *l;

    mm_lock(&kmem_list_lock);
    l = cp == NULL ? kmem_caches.prev : cp->cache_link.prev;
    if (l != &kmem_caches) {
        previous = list_entry(l, struct kmem_cache, cache_link);
        kmem_hold(previous);
    }
    mm_unlock(&kmem_list_lock);
    if (cp != NULL)
        kmem_release(cp);
    return previous;
}

size_t kmem_reap(enum kmem_reap_mode mode)
{
    struct kmem_cache *cp = NULL;
    size_t pages = 0, slabs;

    if (__atomic_exchange_n(&kmem_reaping, true, __ATOMIC_ACQUIRE))
        return 0;
    if (MM_DEBUG && mode == KMEM_REAP_ALL)
        pages = kmem_unmapped_release(NULL);
    while ((cp = kmem_hold_previous(cp)) != NULL) {
        slabs = kmem_cache_reap(cp, mode);
        if (cp->cache_supplier.getpages == NULL)
            pages += slabs * cp->cache_slab_pages;
    }
    __atomic_store_n(&kmem_reaping, false, __ATOMIC_RELEASE);
    return pages;
}

static kmem_reclaim_t *reclaim;

kmem_reclaim_t *kmem_set_reclaim(kmem_reclaim_t *fn)
{
    return __atomic_exchange_n(&reclaim, fn, __ATOMIC_ACQ_REL);
}

/* Buddy has no block left. First the owners of reclaimable objects free some.
 * A failed allocation is worse than a lost working set: if a reap that keeps
 * the working sets releases nothing, one that ignores them follows. While
 * another reap runs, which this one may have interrupted, it releases nothing:
 * the objects that owners free would not become pages. */
static size_t pressure(void)
{
    kmem_reclaim_t *fn = __atomic_load_n(&reclaim, __ATOMIC_ACQUIRE);
    size_t pages = 0, objects = 1;

    if (kmem_ws_interval == KMEM_WS_INFINITE) /* no slab may be freed */
        return MM_DEBUG ? kmem_unmapped_release(NULL) : 0;
    while (pages == 0 && objects != 0 && !MM_UNLOCKED(kmem_reaping)) {
        objects = fn == NULL ? 0 : fn(KMEM_RECLAIM_STEP);
        pages = kmem_reap(KMEM_REAP_WS);
        if (pages == 0)
            pages = kmem_reap(KMEM_REAP_ALL);
    }
    return pages;
}

void kmem_reap_init(void)
{
    last_update_ms = (uint32_t)mm_clock_ms();
    buddy_set_pressure(pressure);
}

/* Brings the 64-bit totals of clients' operations up to date: each is a 32-bit
 * count, and how often it has passed 2^32. Often enough: an update comes every
 * working-set interval, and 2^32 operations take longer. */
void kmem_count_fold(struct kmem_cache *cp)
{
    uint32_t allocs = cp->cache_allocs, frees = cp->cache_frees;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (MM_MAGAZINES)
        kmem_mag_fold(cp, &allocs, &frees);
    cp->cache_allocs_total += allocs - (uint32_t)cp->cache_allocs_total;
    cp->cache_frees_total += frees - (uint32_t)cp->cache_frees_total;
}

void kmem_update(void)
{
    mm_lock(&kmem_list_lock);
    kmem_updates++;
    list_for_each (l, &kmem_caches) {
        struct kmem_cache *cp = list_entry(l, struct kmem_cache, cache_link);

        mm_lock(&cp->cache_lock);
        cp->cache_ws_limit = cp->cache_ws_min;
        cp->cache_ws_min = cp->cache_free_slabs;
        if (MM_MAGAZINES)
            kmem_mag_update(cp);
        kmem_count_fold(cp);
        mm_unlock(&cp->cache_lock);
    }
    mm_unlock(&kmem_list_lock);
}

/* The working set is kept up to date even while reaps ignore it. */
static uint32_t update_interval(void)
{
    uint32_t interval = kmem_ws_interval;

    return interval == 0 || interval == KMEM_WS_INFINITE ? KMEM_WS_DEFAULT_MS
                                                         : interval;
}

uint32_t kmem_update_due(void)
{
    uint32_t passed = (uint32_t)mm_clock_ms() - MM_UNLOCKED(last_update_ms);
    uint32_t interval = update_interval();

    return passed < interval ? interval - passed : 0;
}

void kmem_update_poll(void)
{
    uint32_t interval = update_interval();
    uint32_t passed;

    mm_lock(&kmem_list_lock);
    passed = (uint32_t)mm_clock_ms() - last_update_ms;
    if (passed >= interval)
        last_update_ms += passed - passed % interval;
    mm_unlock(&kmem_list_lock);
    if (passed >= interval)
        kmem_update();
    if (passed / 2 >= interval)
        kmem_update();
}
