/*
 * Failing on purpose: the n-th request from now on, or one in so many, of those
 * that fit a cache, a task and a caller.
 *
 * While failures of objects are set, the caches concerned have KMF_FAIL in
 * their flag word and take the slow path, which calls the hook; a request for
 * pages tests the hook alone. When nothing is set, objects cost nothing.
 */
#include "tools/workshop/stress/fail.h"
#include "mm/debug/debug_impl.h"
#include "mm/kmem_stat.h"

#define CALLERS 16 /* frames among which a caller is looked for */

/* Guards all of these: a request is counted and decided on in one hold. */
static mm_lock_t fail_lock = MM_LOCK_INIT("fail", 34);
static struct kmem_fail set;
static uint32_t fitted;
static uint32_t failed;
static uint32_t chance;

static bool called_from(uintptr_t from, uintptr_t to)
{
    uintptr_t pc[CALLERS];
    unsigned n = mm_backtrace(pc, CALLERS);

    for (unsigned i = 0; i < n; i++)
        if (pc[i] >= from && pc[i] < to)
            return true;
    return false;
}

/* One in `rate`: the high bits of a linear congruential sequence. */
static bool fails_by_chance(uint32_t rate)
{
    chance = chance * 1664525u + 1013904223u;
    return (chance >> 16) % rate == 0;
}

static bool is_caller_selected(void)
{
    if (set.fail_task != 0 && set.fail_task != mm_task_id())
        return false;
    return set.fail_to == 0 || called_from(set.fail_from, set.fail_to);
}

/* Whether a request that may fail does so. */
static bool fails(void)
{
    MM_ASSERT(mm_lock_held(&fail_lock));
    if (!is_caller_selected())
        return false;
    fitted++;
    if (set.fail_nth != 0
            ? fitted != set.fail_nth
            : set.fail_rate == 0 || !fails_by_chance(set.fail_rate))
        return false;
    failed++;
    return true;
}

static bool request_fails(const struct kmem_cache *cp, int flags)
{
    bool result;

    if ((flags & KM_NOSLEEP) == 0)
        return false;
    mm_lock(&fail_lock);
    result = (cp == NULL) == (set.fail_kind == KMEM_FAIL_PAGE) && fails();
    mm_unlock(&fail_lock);
    return result;
}

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
    if (MM_MAGAZINES)
        kmem_mag_decide_all();
}

void kmem_fail(const struct kmem_fail *f)
{
    mark_caches(false, NULL);
    kmem_fail_hook = NULL;
    mm_lock(&fail_lock);
    set = *f;
    fitted = failed = 0;
    chance = f->fail_seed;
    mm_unlock(&fail_lock);
    mark_caches(f->fail_kind == KMEM_FAIL_SLAB, f->fail_cache);
    kmem_fail_hook = f->fail_kind == KMEM_FAIL_NONE ? NULL : request_fails;
}

void kmem_fail_set(enum kmem_fail_kind kind, uint32_t n)
{
    kmem_fail(&(struct kmem_fail){.fail_kind = kind, .fail_nth = n});
}

void kmem_fail_stat(struct kmem_fail *out, uint32_t *fits, uint32_t *fails)
{
    mm_lock(&fail_lock);
    *out = set;
    *fits = fitted;
    *fails = failed;
    mm_unlock(&fail_lock);
}

bool kmem_fail_fired(void)
{
    return failed != 0;
}
