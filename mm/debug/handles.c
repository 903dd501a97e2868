/*
 * Handles of destroyed caches (paper, section 2.3).
 *
 * A handle is an address. Once a new cache is at the address of a destroyed
 * one, an old handle works on the new cache, and nothing can tell. So in
 * debugging, the structure of a destroyed cache is kept until HANDLES_KEPT
 * other caches were destroyed, and every use of its handle until then panics.
 *
 *     destroyed ──> kept ─ ─ kept ─ ─ … ─ ─ kept ──> free, for a new cache
 *
 * The structures that wait are allocated beforehand and exchanged, so that
 * destroying a cache needs no memory.
 */
#include "mm/debug/debug_impl.h"

static struct {
    struct kmem_cache *cache[HANDLES_KEPT]; /* by kmem_list_lock */
    unsigned oldest;
} kept;

static bool keeps(void)
{
    return kept.cache[0] != NULL;
}

void kmem_handles_keep(bool keep)
{
    if (keep == keeps())
        return;
    for (unsigned i = 0; i < HANDLES_KEPT; i++) {
        if (keep) {
            kept.cache[i] = kmem_cache_alloc(&kmem_cache_cache, KM_SLEEP);
        } else {
            kmem_cache_free(&kmem_cache_cache, kept.cache[i]);
            kept.cache[i] = NULL;
        }
    }
}

struct kmem_cache *kmem_handles_exchange(struct kmem_cache *cp)
{
    struct kmem_cache *oldest = cp;

    mm_lock(&kmem_list_lock);
    if (keeps()) {
        oldest = kept.cache[kept.oldest];
        kept.cache[kept.oldest] = cp;
        kept.oldest = (kept.oldest + 1) % HANDLES_KEPT;
    }
    mm_unlock(&kmem_list_lock);
    return oldest;
}
