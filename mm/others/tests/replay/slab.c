/*
 * Slate's own allocator as one of the others, so that it has a row in their
 * tables.
 *
 * Its pages come from segkmem, not from the supply. Those of struct kmem_cache
 * and those that it has before the first request, for tables, do not count as
 * held, as the other allocators' descriptors of fixed size do not. The slab
 * data in a slab, bufctls and further hash tables are metadata; a slab's rest,
 * with its colour, is external like a free buffer.
 */
#include "mm/others/tests/replay/slab.h"
#include "mm/kmem_impl.h"
#include "mm/segkmem.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/tests/host/host.h"

#include <stdio.h>

static struct other_stat counts; /* of all its members the clients' */
static unsigned caches;
static size_t fixed; /* bytes of tables before the first request */

static size_t held(void)
{
    struct kmem_cache_stat descriptors;
    struct segkmem_stat pages;

    segkmem_stat(&pages);
    kmem_cache_stat(&kmem_cache_cache, &descriptors);
    return (pages.stat_pages << PAGE_SHIFT) - descriptors.stat_mem - fixed;
}

/* Once in a process: there is one such allocator. */
static void init(struct supply *s UNUSED)
{
    host_start_pages(HOST_FRAMES);
    kmem_init();
    fixed = held();
}

static void *count_alloc(void *p, size_t size)
{
    if (p == NULL) {
        counts.stat_fails++;
        return NULL;
    }
    counts.stat_allocs++;
    counts.stat_requested += size;
    counts.stat_peak = MAX(counts.stat_peak, held());
    return p;
}

static void count_free(size_t size)
{
    counts.stat_frees++;
    counts.stat_requested -= size;
}

static bool cache_create(struct other_cache *c)
{
    char name[KMEM_NAME_MAX + 1];

    snprintf(name, sizeof(name), "cache_%u", ++caches);
    c->other_own = kmem_cache_create(name, c->other_size, c->other_align,
                                     c->other_ctor, c->other_dtor);
    return c->other_own != NULL;
}

static void *cache_alloc(struct other_cache *c)
{
    return count_alloc(kmem_cache_alloc(c->other_own, KM_NOSLEEP),
                       c->other_size);
}

static void cache_free(struct other_cache *c, void *obj)
{
    kmem_cache_free(c->other_own, obj);
    count_free(c->other_size);
}

static void *alloc(size_t size)
{
    void *p = size == 0 ? OTHER_NOTHING : kmem_alloc(size, KM_NOSLEEP);

    return count_alloc(p, size);
}

static void release(void *p, size_t size)
{
    if (p != OTHER_NOTHING)
        kmem_free(p, size);
    count_free(size);
}

static void tick(uint64_t now_ms)
{
    host_clock_ms = now_ms;
    kmem_update_poll();
}

static void pressure(void)
{
    kmem_reap(KMEM_REAP_ALL);
}

/* Adds what one cache has, but for the bytes that were requested. */
static void add_cache(const struct kmem_cache_stat *cache,
                      struct other_stat *out)
{
    bool large = (cache->stat_flags & KMEM_STAT_LARGE) != 0;
    size_t unused = cache->stat_total - cache->stat_inuse;

    if (cache->stat_kind == KMEM_KIND_INTERNAL) {
        out->stat_metadata += cache->stat_mem;
        return;
    }
    out->stat_internal += cache->stat_inuse * cache->stat_chunk;
    out->stat_external +=
        unused * cache->stat_chunk + cache->stat_slabs * cache->stat_slab_left;
    out->stat_metadata +=
        cache->stat_hash_bytes +
        (large ? 0 : cache->stat_slabs * sizeof(struct kmem_slab));
}

static void stat(struct other_stat *out)
{
    struct kmem_oversize_stat oversize;
    struct kmem_cache_stat cache;

    *out = counts;
    out->stat_held = held();
    kmem_oversize_stat(&oversize);
    out->stat_internal = oversize.stat_pages << PAGE_SHIFT;
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp)) {
        kmem_cache_stat(cp, &cache);
        if (cp != &kmem_cache_cache)
            add_cache(&cache, out);
    }
    out->stat_internal -= out->stat_requested;
    out->stat_metadata -= fixed;
}

static const char *check(void)
{
    const char *where;

    return kmem_verify(&where);
}

const struct other_allocator slab_allocator = {
    .op_name = "slab",
    .op_init = init,
    .op_cache_create = cache_create,
    .op_cache_alloc = cache_alloc,
    .op_cache_free = cache_free,
    .op_alloc = alloc,
    .op_free = release,
    .op_tick = tick,
    .op_pressure = pressure,
    .op_stat = stat,
    .op_check = check,
};
