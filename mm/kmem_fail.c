/*
 * Failing on purpose: the n-th allocation from now on gets NULL, so that what
 * its caller does then can be tested, for every n.
 *
 * Objects and pages are counted separately. Only requests that may fail are
 * counted (KM_NOSLEEP; pages of any kind, since a KM_SLEEP caller just tries
 * again). While a failure is set, every cache has KMF_FAIL in its flag word
 * and takes the slow path: when none is, this costs nothing.
 */
#include "mm/kmem_fail.h"
#include "mm/kmem_impl.h"
#include "mm/kmem_stat.h"

uint32_t kmem_fail_page_left;

static uint32_t alloc_left;
static bool fired;

static void mark_caches(bool on)
{
    mm_lock(&kmem_list_lock);
    list_for_each (l, &kmem_caches) {
        struct kmem_cache *cp = list_entry(l, struct kmem_cache, cache_link);

        mm_lock(&cp->cache_lock);
        if (on)
            cp->cache_flags |= KMF_FAIL;
        else
            cp->cache_flags &= ~KMF_FAIL;
        cp->cache_alloc_slow = on ? kmem_alloc_debug : kmem_alloc_large;
        mm_unlock(&cp->cache_lock);
    }
    mm_unlock(&kmem_list_lock);
}

void kmem_fail_set(enum kmem_fail_kind kind, uint32_t n)
{
    fired = false;
    alloc_left = kind == KMEM_FAIL_SLAB ? n : 0;
    kmem_fail_page_left = kind == KMEM_FAIL_PAGE ? n : 0;
    mark_caches(alloc_left != 0);
}

bool kmem_fail_fired(void)
{
    return fired;
}

bool kmem_fail_alloc(int flags)
{
    if ((flags & KM_NOSLEEP) == 0 || alloc_left == 0 || --alloc_left != 0)
        return false;
    fired = true;
    return true;
}

bool kmem_fail_page_slow(void)
{
    if (--kmem_fail_page_left != 0)
        return false;
    fired = true;
    return true;
}
