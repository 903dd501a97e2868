/*
 * A snapshot of the buddy allocator.
 */
#include "mm/inspect/buddy_stat.h"
#include "kernel/lib/string.h"
#include "mm/buddy_impl.h"

/* Blocks on the free list of one order. */
static size_t count_free(unsigned k)
{
    size_t n = 0;

    MM_ASSERT(mm_lock_held(&buddy_zone.zone_lock));
    list_for_each (l, &buddy_zone.zone_list[k])
        n++;
    return n;
}

void buddy_stat(struct buddy_stat *out)
{
    memset(out, 0, sizeof(*out));
    out->stat_largest = -1;
    mm_lock(&buddy_zone.zone_lock);
    for (unsigned k = 0; k < BUDDY_ORDERS; k++) {
        out->stat_free[k] = count_free(k);
        out->stat_allocs[k] = buddy_zone.zone_allocs[k];
        out->stat_frees[k] = buddy_zone.zone_frees[k];
        out->stat_free_pages += out->stat_free[k] << k;
        if (out->stat_free[k] != 0)
            out->stat_largest = (int)k;
    }
    out->stat_splits = buddy_zone.zone_splits;
    out->stat_merges = buddy_zone.zone_merges;
    out->stat_failures = buddy_zone.zone_failures;
    out->stat_pressures = buddy_zone.zone_pressures;
    out->stat_total_pages = buddy_zone.zone_total_pages;
    mm_unlock(&buddy_zone.zone_lock);
}

unsigned buddy_unusable(const struct buddy_stat *st, unsigned order)
{
    size_t small = 0;

    if (st->stat_free_pages == 0)
        return 0;
    for (unsigned k = 0; k < MIN(order, BUDDY_ORDERS); k++)
        small += st->stat_free[k] << k;
    return (unsigned)(((uint64_t)small * 1000 + st->stat_free_pages / 2) /
                      st->stat_free_pages);
}

const struct page *page_block(const struct page *p)
{
    size_t i = page_index(p);

    if (p->page_state != PAGE_TAIL)
        return p;
    for (unsigned order = 1; order <= BUDDY_MAX_ORDER; order++) {
        const struct page *head = &page_array[i & ~(((size_t)1 << order) - 1)];

        if (head->page_order != PAGE_NO_ORDER && head->page_order >= order)
            return head;
    }
    return NULL;
}
