/*
 * Slabs emptied on purpose: see defrag.h.
 */
#include "tools/workshop/defrag/defrag.h"
#include "kernel/fs/inode.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "mm/inspect/kmem_walk.h"
#include "mm/kmem_impl.h"

#define CHUNKS 512 /* of a slab whose objects can be found */

/* ---- owners ------------------------------------------------------------- */

static bool evict_inode(const void *obj)
{
    return inode_make_oldest(obj) && inode_reclaim(1) == 1;
}

evict_t *defrag_evict_of(const struct kmem_cache *cp)
{
    return strcmp(cp->cache_name, "inode") == 0 ? evict_inode : NULL;
}

/* ---- the order of slabs ------------------------------------------------- */

/* The first partial slab after `sp` with so many objects in use; NULL: none.
 * Full slabs are before the freelist pointer, free ones at the end. */
static struct kmem_slab *partial_after(struct kmem_cache *cp,
                                       struct kmem_slab *sp, uint32_t used)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    while (sp != &cp->cache_null && sp->slab_refcnt != used)
        sp = kmem_slab_next(sp);
    return sp == &cp->cache_null ? NULL : sp;
}

void defrag_sort(struct kmem_cache *cp)
{
    mm_lock(&cp->cache_lock);
    for (uint32_t used = 1; used < cp->cache_slab_chunks; used++) {
        struct kmem_slab *first = cp->cache_freelist;
        struct kmem_slab *sp = partial_after(cp, first, used);

        while (sp != NULL) {
            struct kmem_slab *next =
                partial_after(cp, kmem_slab_next(sp), used);

            if (sp != first) {
                list_remove(&sp->slab_link);
                list_insert_before(&first->slab_link, &sp->slab_link);
                if (cp->cache_freelist == first)
                    cp->cache_freelist = sp;
            }
            sp = next;
        }
    }
    mm_unlock(&cp->cache_lock);
}

bool defrag_sort_named(const char *name)
{
    bool found = false;

    mm_lock(&kmem_list_lock);
    list_for_each (l, &kmem_caches) {
        struct kmem_cache *cp = list_entry(l, struct kmem_cache, cache_link);

        if (strcmp(cp->cache_name, name) != 0)
            continue;
        defrag_sort(cp);
        found = true;
    }
    mm_unlock(&kmem_list_lock);
    return found;
}

/* ---- the order, measured ------------------------------------------------ */

#define CHURN_SIZE   200
#define CHURN_ROUNDS 40
#define CHURN_FREED  200 /* in a round; then fewer are allocated */
#define CHURN_AGAIN  120

static bool churn_round(struct kmem_cache *cp, void **object, size_t *n,
                        uint32_t *random)
{
    for (size_t i = 0; i < CHURN_FREED; i++) {
        size_t victim = heap_random(random) % *n;

        kmem_cache_free(cp, object[victim]);
        object[victim] = object[--*n];
    }
    for (size_t i = 0; i < CHURN_AGAIN; i++, ++*n) {
        object[*n] = kmem_cache_alloc(cp, KM_NOSLEEP);
        if (object[*n] == NULL)
            return false;
    }
    return true;
}

bool defrag_churn(bool sorted, void **object, struct kmem_cache_stat *left)
{
    struct kmem_cache *cp =
        kmem_cache_create("churn", CHURN_SIZE, 0, NULL, NULL);
    uint32_t random = 1994;
    size_t n = 0;
    bool done = cp != NULL;

    for (; done && n < DEFRAG_OBJECTS; n += done) {
        object[n] = kmem_cache_alloc(cp, KM_NOSLEEP);
        done = object[n] != NULL;
    }
    for (int round = 0; done && round < CHURN_ROUNDS; round++) {
        done = churn_round(cp, object, &n, &random);
        if (sorted)
            defrag_sort(cp);
    }
    if (done)
        kmem_cache_stat(cp, left);
    while (n > 0)
        kmem_cache_free(cp, object[--n]);
    if (cp != NULL)
        kmem_cache_destroy(cp);
    return done;
}

/* ---- eviction ----------------------------------------------------------- */

/* Adds the allocated objects of a slab to the list, if it has room for all. */
static size_t note_objects(const struct kmem_slab *sp, const void **object,
                           size_t n, size_t room)
{
    uint8_t map[CHUNKS / 8];

    if (sp->slab_chunks > CHUNKS || n + sp->slab_refcnt > room ||
        !kmem_slab_bitmap(sp, map, CHUNKS))
        return n;
    for (size_t i = 0; i < sp->slab_chunks; i++)
        if (map[i / 8] >> (i % 8) & 1)
            object[n++] = kmem_slab_chunk(sp, i);
    return n;
}

/* Those of slabs with at most `limit` objects in use, the fewest first. */
static size_t find_objects(struct kmem_cache *cp, uint32_t limit,
                           const void **object, size_t room)
{
    struct kmem_slab *null = &cp->cache_null;
    size_t n = 0;

    mm_lock(&cp->cache_lock);
    for (uint32_t used = 1; used <= limit; used++)
        for (struct kmem_slab *sp =
                 partial_after(cp, kmem_slab_next(null), used);
             sp != NULL; sp = partial_after(cp, kmem_slab_next(sp), used))
            n = note_objects(sp, object, n, room);
    mm_unlock(&cp->cache_lock);
    return n;
}

size_t defrag(struct kmem_cache *cp, evict_t *evict, bool any, size_t most,
              const void **object, size_t room, size_t *used)
{
    uint32_t chunks = (uint32_t)cp->cache_slab_chunks;
    size_t n = find_objects(cp, any ? chunks : chunks / 2, object, room);
    size_t evicted = 0;

    *used = 0;
    for (size_t i = 0; i < n && evicted < most; i++) {
        bool done = evict(object[i]);

        evicted += done;
        *used += !done;
    }
    return evicted;
}
