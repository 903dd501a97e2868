/*
 * Statistics and names of page frames, for commands and tools.
 */
#include "mm/page_stat.h"
#include "mm/buddy.h"

static struct page_totals totals;
static const struct mem_region *regions;
static size_t region_count;

const struct page_totals *page_totals(void)
{
    return &totals;
}

const struct mem_region *page_regions(size_t *n)
{
    *n = region_count;
    return regions;
}

void page_set_regions(const struct mem_region *r, size_t n)
{
    regions = r;
    region_count = n;
}

void page_count_totals(uint64_t unused)
{
    totals = (struct page_totals){
        .total_frames = page_count,
        .total_unused = unused,
    };
    for (const struct page *p = page_array; p < page_array + page_count; p++) {
        if (p->page_state == PAGE_KERNEL)
            totals.total_kernel++;
        else if (p->page_state == PAGE_RESERVED)
            totals.total_reserved++;
    }
    totals.total_usable = page_count - totals.total_reserved;
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

const char *page_state_name(enum page_state state)
{
    static const char *const names[PAGE_STATES] = {
        [PAGE_RESERVED] = "reserved", [PAGE_KERNEL] = "kernel",
        [PAGE_TAIL] = "tail",         [PAGE_FREE] = "free",
        [PAGE_ALLOC] = "allocated",   [PAGE_SLAB] = "slab",
        [PAGE_HASH] = "hash",         [PAGE_OVERSIZE] = "oversize",
        [PAGE_UNMAPPED] = "unmapped", [PAGE_USER] = "user",
    };

    return state < PAGE_STATES ? names[state] : "?";
}
