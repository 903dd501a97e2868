/*
 * The hash table of large-object caches (paper, section 3.2.3): from the
 * address of an allocated buffer to its bufctl, scaling itself.
 *
 * Only allocated buffers are in it. The index is the address without its low
 * bits: two buffers are at least a chunk apart, so the rest still differs. When
 * the cache has grown or was reaped, the table is compared with the number of
 * buffers, and replaced if it is wrong by more than a factor of two. The rule
 * and its constants are illumos': the table grows at 170, 682, 2730, … buffers
 * and shrinks at 1363, 339, 83. If there is no memory for a new table, the old
 * one stays.
 */
#include "kernel/lib/string.h"
#include "mm/kmem_impl.h"

/* Pages that the table takes; 0: it is an object of kmem_hash_cache. */
size_t kmem_hash_pages(size_t buckets)
{
    size_t bytes = buckets * sizeof(struct kmem_bufctl *);

    return bytes < KMEM_HASH_SMALL ? 0 : PAGES_FOR(bytes);
}

/* An empty table for the cache, or NULL. */
struct kmem_bufctl **kmem_hash_table(struct kmem_cache *cp, size_t buckets)
{
    size_t pages = kmem_hash_pages(buckets);
    void *table = pages == 0 ? kmem_cache_alloc(kmem_hash_cache, KM_NOSLEEP)
                             : kmem_getpages(pages, PAGE_HASH, cp);

    if (table != NULL)
        memset(table, 0, buckets * sizeof(struct kmem_bufctl *));
    return table;
}

void kmem_hash_table_free(struct kmem_bufctl **table, size_t buckets)
{
    size_t pages = kmem_hash_pages(buckets);

    if (pages == 0)
        kmem_cache_free(kmem_hash_cache, table);
    else
        kmem_freepages(table, pages);
}

/* Gives a cache without allocated buffers a table of KMEM_HASH_INITIAL. */
void kmem_hash_install(struct kmem_cache *cp, struct kmem_bufctl **table)
{
    cp->cache_hash = table;
    cp->cache_hash_mask = KMEM_HASH_INITIAL - 1;
    cp->cache_hash_shift =
        31u - (unsigned)__builtin_clz((unsigned)cp->cache_chunk);
}

/* The number of buckets for `buffers` buffers; `size` unless it is off by more
 * than a factor of two. */
size_t kmem_hash_want(size_t size, size_t buffers)
{
    /* two bits fewer than 3 * buffers + 4 has: 3/4 to 3/2 of the buffers */
    size_t want = (size_t)1 << (sizeof(long) * 8 - 2 -
                                (unsigned)__builtin_clzl(3 * buffers + 4));
    want = MAX(want, (size_t)KMEM_HASH_INITIAL);
    return want > 2 * size || 2 * want < size ? want : size;
}

static size_t wanted(const struct kmem_cache *cp)
{
    return kmem_hash_want(MM_UNLOCKED(cp->cache_hash_mask) + 1,
                          MM_UNLOCKED(cp->cache_slabs) * cp->cache_slab_chunks);
}

/* Moves every bufctl to the new table, and returns the old one. */
static struct kmem_bufctl **rehash(struct kmem_cache *cp,
                                   struct kmem_bufctl **table, size_t buckets)
{
    struct kmem_bufctl **old = cp->cache_hash;
    size_t n = cp->cache_hash_mask + 1;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    cp->cache_hash = table;
    cp->cache_hash_mask = buckets - 1;
    cp->cache_hash_rescales++;
    for (size_t i = 0; i < n; i++)
        while (old[i] != NULL) {
            struct kmem_bufctl *bcp = old[i];

            old[i] = bcp->bufctl_next;
            kmem_hash_enter(cp, bcp);
        }
    return old;
}

/* Gives a large cache the table that suits the number of its buffers, if there
 * is memory for it. The cache keeps its layout meanwhile: one of its buffers is
 * allocated, or it is held. No lock held. */
void kmem_hash_rescale(struct kmem_cache *cp)
{
    struct kmem_bufctl **table;
    size_t size;

    if ((KMEM_FLAGS(cp) & KMF_HASH) == 0)
        return;
    size = wanted(cp);
    if (size == MM_UNLOCKED(cp->cache_hash_mask) + 1)
        return;
    kmem_transfer_begin();
    table = kmem_hash_table(cp, size);
    if (table != NULL) {
        size_t buckets = size; /* of the table that is not needed */

        mm_lock(&cp->cache_lock);
        if (wanted(cp) == size) {
            buckets = cp->cache_hash_mask + 1;
            table = rehash(cp, table, size);
        }
        mm_unlock(&cp->cache_lock);
        kmem_hash_table_free(table, buckets);
    }
    kmem_transfer_end();
}
