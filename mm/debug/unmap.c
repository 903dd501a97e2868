/*
 * Synchronous unmapping (paper, section 6.5): a slab that becomes free is
 * destroyed at once and its pages are unmapped, so that a use of a stale
 * pointer into it faults.
 *
 * If the pages were released at once, buddy might allocate them again, and the
 * stale pointer would work. They wait in a queue, with slab and bufctls, so
 * that the report of a fault can name the buffer. The oldest are released when
 * the queue exceeds its share of memory, all of them under pressure.
 */
#include "mm/debug/debug_impl.h"
#include "mm/segkmem.h"

#define QUEUE_SHARE 16 /* 1/16 of all pages */

static struct {
    mm_lock_t lock;
    struct list slabs; /* oldest first */
    size_t pages;
} unmapped = {
    .lock = MM_LOCK_INIT("kmem unmapped", LOCK_RANK_CACHE),
    .slabs = LIST_INIT(unmapped.slabs),
};

/* Adds to the pages of the queue, or removes some. */
static void count_unmapped(ptrdiff_t pages)
{
    MM_ASSERT(mm_lock_held(&unmapped.lock));
    unmapped.pages += (size_t)pages;
}

static void map_slab(const struct kmem_slab *sp, size_t pages, bool present)
{
    for (size_t i = 0; i < pages; i++)
        mm_page_map((char *)sp->slab_base + i * PAGE_SIZE, present);
}

/* Maps the pages of a slab that is on no list, and releases it; returns how
 * many pages. The slab holds its cache until then. */
static size_t release_slab(struct kmem_slab *sp)
{
    struct kmem_cache *cp = sp->slab_cache;
    size_t pages = cp->cache_slab_pages;
    void *base = sp->slab_base;

    map_slab(sp, pages, true);
    kmem_setuse(base, pages, PAGE_SLAB, cp);
    kmem_slab_free_data(sp);
    kmem_slab_free_pages(cp, base);
    kmem_release(cp);
    return pages;
}

/* Removes the oldest slab of `cp` (NULL: of any cache) from the queue. */
static struct kmem_slab *oldest(const struct kmem_cache *cp)
{
    struct kmem_slab *found = NULL;

    mm_lock(&unmapped.lock);
    list_for_each (l, &unmapped.slabs) {
        struct kmem_slab *sp = list_entry(l, struct kmem_slab, slab_link);

        if (cp == NULL || sp->slab_cache == cp) {
            list_remove(&sp->slab_link);
            count_unmapped(-(ptrdiff_t)sp->slab_cache->cache_slab_pages);
            found = sp;
            break;
        }
    }
    mm_unlock(&unmapped.lock);
    return found;
}

size_t kmem_unmapped_release(const struct kmem_cache *cp)
{
    size_t pages = 0;
    struct kmem_slab *sp;

    kmem_transfer_begin();
    while ((sp = oldest(cp)) != NULL)
        pages += release_slab(sp);
    kmem_transfer_end();
    return pages;
}

size_t kmem_unmapped_pages(void)
{
    size_t pages;

    mm_lock(&unmapped.lock);
    pages = unmapped.pages;
    mm_unlock(&unmapped.lock);
    return pages;
}

/* Destroys the objects of a slab that is on no list, unmaps its pages and
 * queues it. A queued slab holds its cache. */
static void unmap(struct kmem_cache *cp, struct kmem_slab *sp)
{
    kmem_hold(cp);
    kmem_slab_destroy_objects(cp, sp);
    kmem_setuse(sp->slab_base, cp->cache_slab_pages, PAGE_UNMAPPED, sp);
    map_slab(sp, cp->cache_slab_pages, false);
    mm_lock(&unmapped.lock);
    list_insert_before(&unmapped.slabs, &sp->slab_link);
    count_unmapped((ptrdiff_t)cp->cache_slab_pages);
    mm_unlock(&unmapped.lock);
    while (kmem_unmapped_pages() > page_count / QUEUE_SHARE &&
           (sp = oldest(NULL)) != NULL)
        release_slab(sp);
}

/* Unmaps all free slabs of the cache. No lock held. */
void kmem_unmap_free_slabs(struct kmem_cache *cp)
{
    struct kmem_slab *sp;

    kmem_transfer_begin();
    while ((sp = kmem_slab_pop(cp, KMEM_REAP_ALL)) != NULL)
        unmap(cp, sp);
    kmem_transfer_end();
}
