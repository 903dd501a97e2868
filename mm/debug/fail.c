/*
 * Failing on purpose: the n-th request from now on, or one in so many, out of
 * those that a cache, a task and a caller fit.
 *
 * While a failure of objects is set, every cache that can be met has KMF_FAIL
 * in its flag word and takes the slow path: when none is, this costs nothing.
 */
#include "mm/debug/fail.h"
#include "mm/debug/debug_impl.h"
#include "mm/kmem_stat.h"

#define CALLERS 16 /* frames among which a caller is looked for */

bool kmem_fail_pages;

static struct kmem_fail set;
static uint32_t fitted;
static uint32_t failed;
static uint32_t chance;

static void mark_caches(bool on, const struct kmem_cache *only)
{
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp)) {
        mm_lock(&cp->cache_lock);
        cp->cache_flags &= ~KMF_FAIL;
        if (on && (only == NULL || only == cp))
            cp->cache_flags |= KMF_FAIL;
        mm_unlock(&cp->cache_lock);
    }
}

void kmem_fail(const struct kmem_fail *f)
{
    mark_caches(false, NULL);
    kmem_fail_pages = false;
    set = *f;
    fitted = failed = 0;
    chance = f->fail_seed;
    mark_caches(f->fail_kind == KMEM_FAIL_SLAB, f->fail_cache);
    kmem_fail_pages = f->fail_kind == KMEM_FAIL_PAGE;
}

void kmem_fail_set(enum kmem_fail_kind kind, uint32_t n)
{
    kmem_fail(&(struct kmem_fail){.fail_kind = kind, .fail_nth = n});
}

void kmem_fail_stat(struct kmem_fail *out, uint32_t *fits, uint32_t *fails)
{
    *out = set;
    *fits = fitted;
    *fails = failed;
}

bool kmem_fail_fired(void)
{
    return failed != 0;
}

static bool called_from(uintptr_t from, uintptr_t behind)
{
    uintptr_t pc[CALLERS];
    unsigned n = mm_backtrace(pc, CALLERS);

    for (unsigned i = 0; i < n; i++)
        if (pc[i] >= from && pc[i] < behind)
            return true;
    return false;
}

/* One in `rate`: the high bits of a linear congruential sequence. */
static bool by_chance(uint32_t rate)
{
    chance = chance * 1664525u + 1013904223u;
    return (chance >> 16) % rate == 0;
}

static bool by_whom(void)
{
    if (set.fail_task != 0 && set.fail_task != mm_task_id())
        return false;
    return set.fail_behind == 0 || called_from(set.fail_from, set.fail_behind);
}

/* Whether a request that may fail does so. */
static bool fails(void)
{
    if (MM_DEBUG && !by_whom())
        return false;
    fitted++;
    if (set.fail_nth != 0 ? fitted != set.fail_nth
                          : set.fail_rate == 0 || !by_chance(set.fail_rate))
        return false;
    failed++;
    return true;
}

bool kmem_fail_alloc(const struct kmem_cache *cp, int flags)
{
    return (cp->cache_flags & KMF_FAIL) != 0 && (flags & KM_NOSLEEP) != 0 &&
           fails();
}

bool kmem_fail_page_slow(void)
{
    return fails();
}
