/*
 * Failing on purpose: the n-th request from now on, or one in so many, of those
 * that fit a cache, a task and a caller. watch.c asks here about each request.
 */
#include "tools/workshop/stress/fail.h"
#include "mm/debug/debug_impl.h"
#include "tools/workshop/stress/watch.h"

#define CALLERS 16 /* frames among which a caller is looked for */

/* Guards all of these: a request is counted and decided on in one hold. */
static mm_lock_t fail_lock = MM_LOCK_INIT("fail", LOCK_RANK_WATCH);
static struct kmem_fail set;
static uint32_t fitted;
static uint32_t failed;
static uint32_t chance;
static size_t most; /* mm_keep_most, while no page fails */

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

static bool request_fails(enum kmem_fail_kind kind)
{
    bool result;

    mm_lock(&fail_lock);
    result = set.fail_kind == kind && fails();
    mm_unlock(&fail_lock);
    return result;
}

bool kmem_fail_watches(const struct kmem_cache *cp)
{
    return set.fail_kind == KMEM_FAIL_SLAB &&
           (set.fail_cache == NULL || set.fail_cache == cp);
}

bool kmem_fail_object(const struct kmem_cache *cp, int flags)
{
    return kmem_fail_watches(cp) && (flags & KM_NOSLEEP) != 0 &&
           request_fails(KMEM_FAIL_SLAB);
}

bool kmem_fail_page(void)
{
    return set.fail_kind == KMEM_FAIL_PAGE && request_fails(KMEM_FAIL_PAGE);
}

/* A page that fails is one that mm_keep refuses, so it must be asked. */
void kmem_fail(const struct kmem_fail *f)
{
    mm_lock(&fail_lock);
    if (set.fail_kind != KMEM_FAIL_PAGE)
        most = mm_keep_most;
    set = *f;
    mm_keep_most = set.fail_kind == KMEM_FAIL_PAGE ? SIZE_MAX / 2 : most;
    fitted = failed = 0;
    chance = f->fail_seed;
    mm_unlock(&fail_lock);
    kmem_watch();
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
