/*
 * Reclaiming memory (paper, section 3.4): the working set, reaping, pressure.
 *
 * A reap destroys only free slabs, and of these only those that have not been
 * needed for a while. The hot path reads no clock for that:
 *
 *     T   free slabs now
 *     m   the minimum of T since the last update: slabs not needed since
 *     L   the m of the interval before, the limit of a reap
 *
 * Every working-set interval (15 seconds) L = m and m = T. A reap destroys
 * min(L, m) slabs from the tail of the list: never a slab used in the last
 * interval, always one unused for two. illumos applies this rule to its depots.
 */
#include "mm/buddy.h"
#include "mm/kmem_impl.h"
#include "mm/kmem_stat.h"

uint32_t kmem_ws_interval = KMEM_WS_DEFAULT_MS;
bool kmem_reaping;

static uint64_t last_update_ms;

/* How many slabs a reap may take now. */
static uint32_t reapable(const struct kmem_cache *cp, enum kmem_reap_mode mode)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (mode == KMEM_REAP_ALL || kmem_ws_interval == 0)
        return cp->cache_free_slabs;
    if (kmem_ws_interval == KMEM_WS_INFINITE)
        return 0;
    return MIN(cp->cache_ws_limit, cp->cache_ws_min);
}

/* Takes one free slab off the tail; NULL if there is none. Its objects will be
 * destroyed. No lock held. */
struct kmem_slab *kmem_slab_pop(struct kmem_cache *cp)
{
    struct kmem_slab *sp;

    mm_lock(&cp->cache_lock);
    sp = kmem_slab_prev(&cp->cache_null);
    if (cp->cache_free_slabs == 0) {
        sp = NULL;
    } else {
        if (cp->cache_freelist == sp)
            cp->cache_freelist = &cp->cache_null;
        list_remove(&sp->slab_link);
        kmem_ws_take(cp);
        if (cp->cache_ws_limit != 0)
            cp->cache_ws_limit--;
        cp->cache_slabs--;
        cp->cache_slab_destroys++;
        if (cp->cache_dtor != NULL && !kmem_per_alloc(cp))
            cp->cache_dtors += sp->slab_chunks;
    }
    mm_unlock(&cp->cache_lock);
    return sp;
}

static void note_reap(struct kmem_cache *cp, uint32_t freed)
{
    mm_lock(&cp->cache_lock);
    cp->cache_busy--;
    cp->cache_reaps++;
    cp->cache_reaped_slabs += freed;
    cp->cache_last_reap_ms = mm_clock_ms();
    cp->cache_last_reap_freed = freed;
    cp->cache_last_reap_kept = cp->cache_free_slabs;
    mm_unlock(&cp->cache_lock);
    if (MM_DEBUG && freed != 0)
        kmem_event(KMEM_RING_REAP, KMEM_WHY_REAP, cp, NULL, freed);
}

void kmem_cache_reap(struct kmem_cache *cp, enum kmem_reap_mode mode,
                     struct kmem_reap_result *out)
{
    uint32_t limit;
    uint32_t freed = 0;
    struct kmem_slab *sp;

    mm_lock(&cp->cache_lock);
    cp->cache_busy += mode != KMEM_REAP_DRY;
    limit = reapable(cp, mode);
    mm_unlock(&cp->cache_lock);
    if (mode == KMEM_REAP_DRY) {
        freed = limit;
    } else {
        kmem_transfer_begin();
        for (; freed < limit && (sp = kmem_slab_pop(cp)) != NULL; freed++)
            kmem_slab_destroy(cp, sp);
        if (freed != 0)
            kmem_hash_rescale(cp);
        kmem_transfer_end();
        note_reap(cp, freed);
    }
    if (out == NULL)
        return;
    *out = (struct kmem_reap_result){
        .reap_slabs = freed,
        .reap_pages = freed * cp->cache_slab_pages,
        .reap_objects =
            cp->cache_dtor == NULL ? 0 : freed * cp->cache_slab_chunks,
        .reap_kept = cp->cache_free_slabs - (mode == KMEM_REAP_DRY ? freed : 0),
    };
}

size_t kmem_reap(enum kmem_reap_mode mode)
{
    struct kmem_reap_result r;
    size_t pages = 0;
    bool nested;

    mm_lock(&kmem_list_lock);
    nested = kmem_reaping;
    kmem_reaping = true;
    mm_unlock(&kmem_list_lock);
    if (nested)
        return 0;
    if (MM_DEBUG && mode == KMEM_REAP_ALL)
        pages = kmem_unmapped_release(NULL);
    for (struct list *l = kmem_caches.prev; l != &kmem_caches; l = l->prev) {
        kmem_cache_reap(list_entry(l, struct kmem_cache, cache_link), mode, &r);
        pages += r.reap_pages;
    }
    mm_lock(&kmem_list_lock);
    kmem_reaping = false;
    mm_unlock(&kmem_list_lock);
    return pages;
}

static kmem_reclaim_t *reclaim;

kmem_reclaim_t *kmem_set_reclaim(kmem_reclaim_t *fn)
{
    kmem_reclaim_t *before = reclaim;

    reclaim = fn;
    return before;
}

/* Buddy has no block left. First the owners of reclaimable objects free some.
 * A failed allocation is worse than a lost working set: if a reap that keeps
 * the working sets releases nothing, one that ignores them follows. */
static size_t pressure(void)
{
    size_t pages;
    size_t objects;

    do {
        objects = reclaim == NULL ? 0 : reclaim(KMEM_RECLAIM_STEP);
        pages = kmem_reap(KMEM_REAP_WS);
        if (pages == 0 && kmem_ws_interval != KMEM_WS_INFINITE)
            pages = kmem_reap(KMEM_REAP_ALL);
    } while (pages == 0 && objects != 0);
    return pages;
}

void kmem_reap_init(void)
{
    last_update_ms = mm_clock_ms();
    buddy_set_pressure(pressure);
}

static void update_cache(struct kmem_cache *cp)
{
    mm_lock(&cp->cache_lock);
    cp->cache_ws_limit = cp->cache_ws_min;
    cp->cache_ws_min = cp->cache_free_slabs;
    kmem_count_fold(cp);
    mm_unlock(&cp->cache_lock);
}

void kmem_update(void)
{
    mm_lock(&kmem_list_lock);
    list_for_each (l, &kmem_caches)
        update_cache(list_entry(l, struct kmem_cache, cache_link));
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
    uint64_t passed = mm_clock_ms() - last_update_ms;
    uint32_t interval = update_interval();

    return passed < interval ? interval - (uint32_t)passed : 0;
}

void kmem_update_poll(void)
{
    uint32_t interval = update_interval();
    uint64_t now = mm_clock_ms();
    uint64_t passed = now - last_update_ms;

    kmem_seconds = (uint16_t)((uint32_t)now / 1000);
    if (passed < interval)
        return;
    last_update_ms = now - (uint32_t)passed % interval;
    kmem_update();
    if (passed >= 2 * (uint64_t)interval)
        kmem_update();
}
