/*
 * Synchronous unmapping (paper, section 6.5): a slab that becomes complete is
 * destroyed at once and its pages are taken away, so that whoever still has a
 * pointer into it faults.
 *
 * The pages do not go back to buddy at once, who might hand them out again and
 * so make the pointer work: they lie in a queue, with slab data and bufctls, so
 * that a fault can be told whose buffer it hit. The oldest go back when the
 * queue has its share of memory, all of them under pressure.
 */
#include "mm/kmem_impl.h"
#include "mm/debug/audit.h"
#include "mm/segkmem.h"

#define QUEUE_SHARE 16 /* of all pages: one part in so many */

static struct {
    mm_lock_t lock;
    struct list slabs; /* oldest first */
    size_t pages;
} buried = {
    .lock = MM_LOCK_INIT("kmem unmapped", MM_RANK_CACHE),
    .slabs = LIST_INIT(buried.slabs),
};

static void map_slab(const struct kmem_slab *sp, size_t pages, bool present)
{
    for (size_t i = 0; i < pages; i++)
        mm_page_map((char *)sp->slab_base + i * PAGE_SIZE, present);
}

/* Gives a slab's pages back to buddy after all. It is on no list. */
static void exhume(struct kmem_slab *sp)
{
    struct kmem_cache *cp = sp->slab_cache;
    void *base = sp->slab_base;

    map_slab(sp, cp->cache_slab_pages, true);
    kmem_setuse(base, cp->cache_slab_pages, PAGE_SLAB, cp);
    kmem_slab_free_data(sp);
    kmem_slab_free_pages(cp, base);
}

/* Takes the oldest slab of `cp`, NULL: of any, off the queue. */
static struct kmem_slab *oldest(const struct kmem_cache *cp)
{
    struct kmem_slab *found = NULL;

    mm_lock(&buried.lock);
    list_for_each (l, &buried.slabs) {
        struct kmem_slab *sp = list_entry(l, struct kmem_slab, slab_link);

        if (cp == NULL || sp->slab_cache == cp) {
            list_remove(&sp->slab_link);
            buried.pages -= sp->slab_cache->cache_slab_pages;
            found = sp;
            break;
        }
    }
    mm_unlock(&buried.lock);
    return found;
}

size_t kmem_unmapped_release(const struct kmem_cache *cp)
{
    size_t pages = 0;
    struct kmem_slab *sp;

    kmem_transfer_begin();
    while ((sp = oldest(cp)) != NULL) {
        pages += sp->slab_cache->cache_slab_pages;
        exhume(sp);
    }
    kmem_transfer_end();
    return pages;
}

size_t kmem_unmapped_pages(void)
{
    return buried.pages;
}

/* Takes the pages of a slab away instead of giving them back: it is on no
 * list, its objects destroyed. */
static void bury(struct kmem_cache *cp, struct kmem_slab *sp)
{
    kmem_event(KMEM_RING_SLAB, KMEM_WHY_UNMAP, cp, sp->slab_base,
               sp->slab_chunks);
    kmem_slab_end(cp, sp);
    kmem_setuse(sp->slab_base, cp->cache_slab_pages, PAGE_UNMAPPED, sp);
    map_slab(sp, cp->cache_slab_pages, false);
    mm_lock(&buried.lock);
    list_insert_before(&buried.slabs, &sp->slab_link);
    buried.pages += cp->cache_slab_pages;
    mm_unlock(&buried.lock);
    while (buried.pages > page_count / QUEUE_SHARE && (sp = oldest(NULL)))
        exhume(sp);
}

void kmem_unmap_free_slabs(struct kmem_cache *cp)
{
    struct kmem_slab *sp;

    kmem_transfer_begin();
    while ((sp = kmem_slab_pop(cp)) != NULL)
        bury(cp, sp);
    kmem_transfer_end();
}
