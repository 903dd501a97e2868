/*
 * The page array: the boot loader's memory map, frame by frame.
 *
 * Boot loaders disagree about the details, so the code is defensive: a frame is
 * RAM only if a usable region covers all of it and no reserved region touches
 * it. The array has an entry for every frame below the limit, and reserved ones
 * up to a whole number of buddy's largest blocks:
 *
 *     frame   0   …  255 | 256 … kernel … array | …  usable  … | padding
 *     state   reserved   | reserved or kernel   | tail         | reserved
 *
 * A usable frame starts as PAGE_TAIL; buddy_init makes blocks of them.
 */
#include "mm/page.h"
#include "mm/buddy.h"

#define LOW_MEMORY_FRAMES (MIB(1) >> PAGE_SHIFT)

struct page *page_array;
size_t page_count;

size_t page_usable;
uint64_t page_beyond;
const struct mem_region *page_regions;
size_t page_region_count;

static size_t padded_count(size_t frames)
{
    return ROUND_UP(frames, (size_t)BUDDY_MAX_PAGES);
}

size_t page_array_bytes(size_t frames)
{
    return padded_count(frames) * sizeof(struct page);
}

static void mark_frames(size_t first, size_t end, enum page_state state)
{
    for (struct page *p = page_array + first; p < page_array + end; p++)
        p->page_state = state;
}

/* The frames that [start, end) covers wholly, cut to the array. */
static void mark_inside(const struct mem_region *r)
{
    uint64_t first = PAGES_FOR(r->region_start);
    uint64_t end = r->region_end >> PAGE_SHIFT;

    if (first >= end)
        return;
    first = MAX(first, (uint64_t)LOW_MEMORY_FRAMES);
    end = MIN(end, (uint64_t)page_count);
    if (first < end)
        mark_frames((size_t)first, (size_t)end, PAGE_TAIL);
    if (r->region_end > (uint64_t)page_count << PAGE_SHIFT)
        page_beyond += r->region_end -
                       MAX(r->region_start, (uint64_t)page_count << PAGE_SHIFT);
}

/* The frames of which [start, end) touches a byte, cut to the array. */
static void mark_touched(uint64_t start, uint64_t end, enum page_state state)
{
    uint64_t first = start >> PAGE_SHIFT;
    uint64_t last = MIN(PAGES_FOR(end), (uint64_t)page_count);

    if (first < last && start < end)
        mark_frames((size_t)first, (size_t)last, state);
}

void page_init(void *array, size_t frames, const struct mem_region *regions,
               size_t n, paddr_t kernel_start, paddr_t kernel_end)
{
    MM_ASSERT((uintptr_t)array % BUDDY_ALIGN == 0);
    page_array = array;
    page_count = frames;
    page_regions = regions;
    page_region_count = n;
    page_usable = 0;
    page_beyond = 0;
    for (size_t i = 0; i < padded_count(frames); i++) {
        page_array[i].page_tag = PAGE_TAG(PAGE_RESERVED, PAGE_NO_ORDER);
        page_array[i].page_owner = NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (regions[i].region_usable)
            mark_inside(&regions[i]);
    for (size_t i = 0; i < n; i++)
        if (!regions[i].region_usable)
            mark_touched(regions[i].region_start, regions[i].region_end,
                         PAGE_RESERVED);
    mark_touched(kernel_start, kernel_end, PAGE_KERNEL);
    for (size_t i = 0; i < frames; i++)
        page_usable += page_array[i].page_state != PAGE_RESERVED;
}
