/*
 * What the magazines of a cache hold: as data, for an address, and whether the
 * depot is right.
 */
#include "mm/inspect/kmem_stat.h"
#include "mm/kmem_impl.h"

#if MM_MAGAZINES

static bool holds(const struct kmem_magazine *m, uint32_t rounds,
                  const void *buf)
{
    for (uint32_t i = 0; m != NULL && i < MIN(rounds, KMEM_ROUNDS + 0u); i++)
        if (MM_UNLOCKED(m->mag_round[i]) == buf)
            return true;
    return false;
}

/* Whether an allocated object of the slabs is a round. Exact only if the other
 * processors do not use the cache meanwhile. */
bool kmem_mag_holds(const struct kmem_cache *cp, const void *buf)
{
    const struct kmem_magazine *m = cp->cache_depot[KMEM_FULL].depot_list;

    for (size_t i = 0; i < MM_CPUS_MAX; i++) {
        const volatile struct kmem_cpu_cache *cc = kmem_cpu_cache(cp, i);

        if (holds(MM_UNLOCKED(cc->cc_loaded), MM_UNLOCKED(cc->cc_rounds),
                  buf) ||
            holds(MM_UNLOCKED(cc->cc_previous),
                  MM_UNLOCKED(cc->cc_previous_rounds), buf))
            return true;
    }
    for (; m != NULL; m = m->mag_next)
        if (holds(m, kmem_mag_capacity(cp), buf))
            return true;
    return false;
}

static struct kmem_depot_stat depot_stat(const struct kmem_depot *d)
{
    return (struct kmem_depot_stat){d->depot_total, d->depot_min,
                                    d->depot_limit};
}

void kmem_mag_stat(struct kmem_cache *cp, struct kmem_mag_stat *out)
{
    *out = (struct kmem_mag_stat){0};
    mm_lock(&cp->cache_lock);
    kmem_count_fold(cp);
    out->stat_rounds = cp->cache_rounds;
    out->stat_served = cp->cache_served_total;
    for (size_t i = 0; i < MM_CPUS_MAX; i++)
        out->stat_cpus += kmem_cpu_cache(cp, i) != &kmem_cpu_none;
    out->stat_full = depot_stat(&cp->cache_depot[KMEM_FULL]);
    out->stat_empty = depot_stat(&cp->cache_depot[KMEM_EMPTY]);
    mm_unlock(&cp->cache_lock);
}

/* NULL, or what is wrong with the depot. */
const char *kmem_mag_verify(const struct kmem_cache *cp)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    for (unsigned i = 0; i < KMEM_DEPOTS; i++) {
        const struct kmem_depot *d = &cp->cache_depot[i];
        const struct kmem_magazine *m = d->depot_list;
        uint32_t n = 0;

        for (; m != NULL && n <= d->depot_total; m = m->mag_next)
            n++;
        if (n != d->depot_total)
            return "the depot has another number of magazines than it counts";
        if (d->depot_min > n)
            return "working set of the depot: m exceeds T";
    }
    return NULL;
}

#endif
