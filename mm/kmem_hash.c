/*
 * The hash table of large-object caches (paper, section 3.2.3): from the
 * address of an allocated buffer to its bufctl, scaling itself.
 *
 * Only allocated buffers are in it. The index is the address without the bits
 * that all buffers of this size share. Whenever a slab has come or gone, the
 * table is compared with the number of buffers and replaced if it is off by
 * more than a factor of two; the rule and its constants are illumos'. The
 * table grows at 170, 682, 2730, … buffers and shrinks at 1363, 339, 83.
 *
 * Finding no memory for a new table is not an error: the old one still works.
 */
#include "kernel/lib/string.h"
#include "mm/kmem_impl.h"
#include "mm/segkmem.h"

static size_t table_bytes(size_t buckets)
{
    return buckets * sizeof(struct kmem_bufctl *);
}

size_t kmem_hash_pages(size_t buckets)
{
    size_t bytes = table_bytes(buckets);

    return bytes < KMEM_HASH_SMALL ? 0 : (bytes + PAGE_MASK) >> PAGE_SHIFT;
}

static struct kmem_bufctl **table_alloc(struct kmem_cache *cp, size_t buckets)
{
    size_t pages = kmem_hash_pages(buckets);
    void *table = pages == 0 ? kmem_cache_alloc(kmem_hash_cache, KM_NOSLEEP)
                             : kmem_getpages(pages, PAGE_HASH, cp);

    if (table != NULL)
        memset(table, 0, table_bytes(buckets));
    return table;
}

static void table_free(struct kmem_bufctl **table, size_t buckets)
{
    size_t pages = kmem_hash_pages(buckets);

    if (pages == 0)
        kmem_cache_free(kmem_hash_cache, table);
    else
        kmem_freepages(table, pages);
}

bool kmem_hash_create(struct kmem_cache *cp)
{
    cp->cache_hash = table_alloc(cp, KMEM_HASH_INITIAL);
    cp->cache_hash_mask = KMEM_HASH_INITIAL - 1;
    cp->cache_hash_shift =
        31u - (unsigned)__builtin_clz((unsigned)cp->cache_chunk);
    return cp->cache_hash != NULL;
}

void kmem_hash_destroy(struct kmem_cache *cp)
{
    table_free(cp->cache_hash, cp->cache_hash_mask + 1);
    cp->cache_hash = NULL;
}

size_t kmem_hash_want(size_t size, size_t buffers)
{
    size_t want;

    if (buffers <= 2 * (size - 1) &&
        (buffers >= (size - 1) / 2 || size < 2 * KMEM_HASH_INITIAL))
        return size;
    /* two bits fewer than 3 * buffers + 4 has */
    want = (size_t)1 << (sizeof(long) * 8 - 2 -
                         (unsigned)__builtin_clzl(3 * buffers + 4));
    want = MAX(want, (size_t)KMEM_HASH_INITIAL);
    return want > 2 * size || 2 * want < size ? want : size;
}

static size_t wanted(const struct kmem_cache *cp)
{
    return kmem_hash_want(cp->cache_hash_mask + 1,
                          cp->cache_slabs * cp->cache_slab_chunks);
}

/* Moves every bufctl over to the new table, which takes the old one's place.
 * Lock held. */
static void rehash(struct kmem_cache *cp, struct kmem_bufctl **table,
                   size_t buckets)
{
    struct kmem_bufctl **old = cp->cache_hash;
    size_t n = cp->cache_hash_mask + 1;

    cp->cache_hash = table;
    cp->cache_hash_mask = buckets - 1;
    cp->cache_hash_rescales++;
    for (size_t i = 0; i < n; i++) {
        struct kmem_bufctl *bcp = old[i];

        while (bcp != NULL) {
            struct kmem_bufctl *next = bcp->bufctl_next;

            kmem_hash_enter(cp, bcp);
            bcp = next;
        }
    }
}

void kmem_hash_rescale(struct kmem_cache *cp)
{
    size_t size = wanted(cp);
    size_t old_size = cp->cache_hash_mask + 1;
    struct kmem_bufctl **table;
    struct kmem_bufctl **old;

    if (size == old_size)
        return;
    kmem_transfer_begin();
    old = table = table_alloc(cp, size);
    old_size = size;
    if (table != NULL) {
        mm_lock(&cp->cache_lock);
        if ((cp->cache_flags & KMF_HASH) != 0 && wanted(cp) == size) {
            old_size = cp->cache_hash_mask + 1;
            old = cp->cache_hash;
            rehash(cp, table, size);
        }
        mm_unlock(&cp->cache_lock);
        table_free(old, old_size);
    }
    kmem_transfer_end();
}
