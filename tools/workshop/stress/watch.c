/*
 * Watching the allocator, which knows nothing of it: the linker redirects here
 * (--wrap) its calls of the functions that debugging modes take; `__real_f` is
 * the `f` of the product. A watched cache has KMF_WATCH in its flag word, so
 * all its operations take that path. One that is not watched costs nothing.
 */
#include "tools/workshop/stress/watch.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "tools/workshop/stress/fail.h"

/* Backtraces skip the frames of these functions, as those of the allocator. */
#define HEAP __attribute__((section(".text.heap")))

HEAP void *__wrap_kmem_alloc_debug(struct kmem_cache *cp, size_t size,
                                   int flags);
void *__real_kmem_alloc_debug(struct kmem_cache *cp, size_t size, int flags);
HEAP void __wrap_kmem_free_debug(struct kmem_cache *cp, void *buf, size_t size);
void __real_kmem_free_debug(struct kmem_cache *cp, void *buf, size_t size);
uint32_t __wrap_kmem_debug_flags(const struct kmem_cache *cp);
uint32_t __real_kmem_debug_flags(const struct kmem_cache *cp);
size_t __wrap_mm_keep(void);
size_t __real_mm_keep(void);

/* ---- kmem_verify at every N-th operation -------------------------------- */

static struct {
    mm_lock_t lock;
    uint32_t interval;
    uint32_t left;
} verify = {.lock = MM_LOCK_INIT("watch", LOCK_RANK_WATCH)};

uint32_t kmem_verify_interval(void)
{
    return MM_UNLOCKED(verify.interval); /* one word */
}

void kmem_verify_boot(uint32_t n)
{
    mm_lock(&verify.lock);
    verify.interval = verify.left = n;
    mm_unlock(&verify.lock);
}

void kmem_verify_every(uint32_t n)
{
    kmem_verify_boot(n);
    kmem_watch();
}

static bool is_due(void)
{
    bool due;

    mm_lock(&verify.lock);
    due = verify.left != 0 && --verify.left == 0;
    if (due)
        verify.left = verify.interval;
    mm_unlock(&verify.lock);
    return due;
}

/* Counts an operation. A verification allocates nothing, so it is not counted
 * itself. */
static void count(void)
{
    const char *where;
    const char *why;

    if (kmem_verify_interval() == 0 || kmem_state != KMEM_UP || !is_due() ||
        (why = kmem_verify(&where)) == NULL)
        return;
    mm_panic("kmem_verify: %s: %s", where, why);
}

/* ---- watching ----------------------------------------------------------- */

void kmem_watch(void)
{
    mm_lock(&kmem_list_lock);
    list_for_each (l, &kmem_caches) {
        struct kmem_cache *cp = list_entry(l, struct kmem_cache, cache_link);
        bool on = kmem_verify_interval() != 0 || kmem_fail_watches(cp);

        mm_lock(&cp->cache_lock);
        cp->cache_flags &= ~KMF_WATCH;
        cp->cache_flags |= on ? KMF_WATCH : 0;
        mm_unlock(&cp->cache_lock);
    }
    mm_unlock(&kmem_list_lock);
    if (MM_MAGAZINES)
        kmem_mag_decide_all();
}

uint32_t __wrap_kmem_debug_flags(const struct kmem_cache *cp)
{
    return __real_kmem_debug_flags(cp) |
           (kmem_verify_interval() != 0 ? KMF_WATCH : 0);
}

static bool is_watched(const struct kmem_cache *cp)
{
    return (KMEM_FLAGS(cp) & KMF_WATCH) != 0;
}

static bool fails(struct kmem_cache *cp, int flags)
{
    bool result = is_watched(cp) && kmem_fail_object(cp, flags);

    if (result) {
        mm_lock(&cp->cache_lock);
        cp->cache_fails++;
        mm_unlock(&cp->cache_lock);
    }
    return result;
}

void *__wrap_kmem_alloc_debug(struct kmem_cache *cp, size_t size, int flags)
{
    void *buf =
        fails(cp, flags) ? NULL : __real_kmem_alloc_debug(cp, size, flags);

    if (buf != NULL && is_watched(cp))
        count();
    return buf;
}

void __wrap_kmem_free_debug(struct kmem_cache *cp, void *buf, size_t size)
{
    bool watched = is_watched(cp);

    __real_kmem_free_debug(cp, buf, size);
    if (watched)
        count();
}

/* More than there is: the request fails at once. */
size_t __wrap_mm_keep(void)
{
    return kmem_fail_page() ? SIZE_MAX / 2 : __real_mm_keep();
}
