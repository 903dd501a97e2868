/*
 * Every invariant of the buddy allocator, as code: the free lists are sound,
 * blocks cover all usable frames without overlap, and both agree.
 */
#include "mm/buddy_impl.h"

/* Whether a link is that of an entry of the page array. */
static bool link_plausible(const struct list *l)
{
    uintptr_t off = (uintptr_t)l - (uintptr_t)&page_array[0].page_link;

    return off < page_count * sizeof(struct page) &&
           off % sizeof(struct page) == 0;
}

/* One page on the free list of order k. */
static const char *verify_free(const struct page *p, unsigned k)
{
    size_t i = page_index(p);

    if (p->page_tag != PAGE_TAG(PAGE_FREE, k))
        return "page on a free list is not free at that order";
    if ((i & (((size_t)1 << k) - 1)) != 0)
        return "free block is not aligned to its size";
    /* The buddy's tag may be changing if it is allocated. */
    if (k < BUDDY_MAX_ORDER &&
        MM_UNLOCKED(page_array[i ^ ((size_t)1 << k)].page_tag) ==
            PAGE_TAG(PAGE_FREE, k))
        return "two free buddies are not joined";
    return NULL;
}

/* The list of one order; *blocks and *free (pages) are totals over all lists.
 * The walk ends even if the list has become a circle without its head: it
 * reaches a page whose `prev` is not the page before. */
static const char *verify_free_list(unsigned k, size_t *blocks, size_t *free,
                                    const struct page **where)
{
    struct list *head = &buddy_zone.zone_list[k];
    struct list *prev = head;
    const char *why = NULL;

    for (struct list *l = head->next; l != head; l = l->next) {
        if (!link_plausible(l))
            return "free list leads outside the page array";
        *where = buddy_list_page(l);
        if (l->prev != prev)
            return "free list links disagree";
        why = verify_free(*where, k);
        if (why != NULL)
            return why;
        prev = l;
        ++*blocks;
        *free += (size_t)1 << k;
    }
    return head->prev == prev ? NULL : "free list links disagree";
}

/* Whether the owner of a block may be changing the states of its frames one by
 * one: segkmem does so under its own lock. */
static bool is_changing(const struct page *first, const struct page *p)
{
    return first->page_state >= PAGE_ALLOC && p->page_state >= PAGE_SLAB;
}

/* Block by block through the array: they cover the usable frames. */
static const char *verify_blocks(size_t *managed, size_t *blocks,
                                 const struct page **where)
{
    for (size_t i = 0; i < page_count;) {
        const struct page *p = &page_array[i];
        size_t n = 1;

        *where = p;
        if (p->page_state == PAGE_TAIL)
            return "frame belongs to no block";
        if (p->page_state >= PAGE_STATES)
            return "page state is not a state";
        if (p->page_state >= PAGE_FREE) {
            if (p->page_order > BUDDY_MAX_ORDER)
                return "block has no order";
            n = (size_t)1 << p->page_order;
            *managed += n;
            *blocks += p->page_state == PAGE_FREE;
        }
        for (size_t j = 1; j < n; j++) {
            *where = p + j;
            if (i + j >= page_count || p[j].page_order != PAGE_NO_ORDER ||
                (p[j].page_state != PAGE_TAIL && !is_changing(p, p + j)))
                return "block overlaps another";
        }
        i += n;
    }
    return NULL;
}

static const char *verify_zone(const struct page **where)
{
    size_t managed = 0;
    size_t listed = 0;
    size_t tagged = 0;
    size_t free = 0;
    const char *why = NULL;

    MM_ASSERT(mm_lock_held(&buddy_zone.zone_lock));
    for (unsigned k = 0; k < BUDDY_ORDERS && why == NULL; k++)
        why = verify_free_list(k, &listed, &free, where);
    if (why == NULL)
        why = verify_blocks(&managed, &tagged, where);
    if (why == NULL && listed != tagged)
        why = "a free block is on no free list";
    if (why == NULL && managed != buddy_zone.zone_total_pages)
        why = "blocks do not add up to all managed pages";
    if (why == NULL && free != buddy_zone.zone_free)
        why = "free pages are not as many as are counted";
    if (why == NULL && free + buddy_zone.zone_taken <
                           buddy_zone.zone_reserved + buddy_zone.zone_taken)
        why = "more pages are reserved than are free";
    return why;
}

const char *buddy_verify(const struct page **where)
{
    const char *why;

    *where = NULL;
    mm_lock(&buddy_zone.zone_lock);
    why = verify_zone(where);
    mm_unlock(&buddy_zone.zone_lock);
    if (why == NULL)
        *where = NULL;
    return why;
}
