/*
 * Page frames: one struct page for each 4 KiB of physical memory that the
 * allocator manages, in one array indexed by frame number.
 *
 * Holes in the machine's memory map have entries too, marked reserved, so
 * that "my buddy" is always one index away and never outside the array.
 */
#pragma once

#include "kernel/lib/list.h"
#include "mm/platform.h"

/* The use of a frame, in the order of the legend of `pages`. */
enum page_state {
    PAGE_RESERVED, /* a hole, the BIOS, a device: never used */
    PAGE_KERNEL,   /* the kernel's image, its page tables, this array */
    PAGE_TAIL,     /* not the first frame of its block, which has its state */
    PAGE_FREE,     /* first frame of a block on a buddy free list */
    PAGE_ALLOC,    /* first frame of an allocated block */
    PAGE_SLAB,     /* segkmem: slab pages of page_owner, a cache */
    PAGE_HASH,     /* segkmem: hash table of page_owner, a cache */
    PAGE_OVERSIZE, /* segkmem: a kmem_alloc of more than the last class */
    PAGE_UNMAPPED, /* segkmem: unmapped by debugging mode S; page_owner is the
                      slab that contained it */
    PAGE_USER,     /* of programs, which map it page_refs times */
    PAGE_STATES
};

/* The order of a frame that is not the first of its block. */
#define PAGE_NO_ORDER 0xff

struct page {
    union {
        struct list page_link; /* free list of its order; first frame only */
        uint32_t page_refs;    /* PAGE_USER: how many entries map it */
        size_t page_bytes;     /* PAGE_OVERSIZE: the size that was allocated in
                                  the first frame, 0 in the others */
    };
    /* Guarded by buddy's lock if the block is free, else by the lock of its
       owner: segkmem's for PAGE_SLAB to PAGE_UNMAPPED. Buddy looks at the tag
       of a block that is not its own only to see whether it is free. */
    union {
        struct {
            uint8_t page_state; /* enum page_state */
            uint8_t page_order; /* of its block, or PAGE_NO_ORDER */
            uint16_t page_zero; /* always */
        };
        uint32_t page_tag; /* all at once: PAGE_TAG(state, order) */
    };
    void *page_owner; /* see the states; else NULL */
};

/* Pages that hold so many bytes, however many: nothing overflows. */
#define PAGES_FOR(bytes) (((bytes) >> PAGE_SHIFT) + (((bytes)&PAGE_MASK) != 0))

#define PAGE_TAG(state, order) ((uint32_t)((state) | (order) << 8))

/* One run of physical memory as the boot loader reported it, in bytes. The
 * end is exclusive and may lie above 4 GiB. */
struct mem_region {
    uint64_t region_start;
    uint64_t region_end;
    bool region_usable;
};

extern struct page *page_array;
extern size_t page_count;

extern size_t page_usable;   /* frames of the array that are RAM */
extern uint64_t page_beyond; /* bytes of RAM that it leaves out */

/* The memory map that page_init was given. */
extern const struct mem_region *page_regions;
extern size_t page_region_count;

/* Bytes of page array needed for memory up to frame number `frames`: one
 * entry each, and as many reserved ones as complete the last largest block. */
size_t page_array_bytes(size_t frames);

/*
 * Builds the array in `array` (page_array_bytes(frames) bytes, aligned to
 * BUDDY_ALIGN) for frames 0 … frames-1 from `n` regions in any order,
 * overlapping or not: a frame is usable if one usable region covers it wholly
 * and no reserved one touches it. Frames inside [kernel_start, kernel_end)
 * become PAGE_KERNEL. The rest is reserved. Frames below 1 MiB are never
 * usable: boot loaders disagree about them. buddy_init then makes blocks of
 * usable frames. The regions are read later, too. Boot only.
 */
void page_init(void *array, size_t frames, const struct mem_region *regions,
               size_t n, paddr_t kernel_start, paddr_t kernel_end);

static inline size_t page_index(const struct page *p)
{
    return (size_t)(p - page_array);
}

static inline paddr_t page_to_phys(const struct page *p)
{
    return (paddr_t)page_index(p) << PAGE_SHIFT;
}

static inline void *page_to_virt(const struct page *p)
{
    return mm_phys_to_virt(page_to_phys(p));
}

/* The frame that holds `addr`, an address in the direct map, or NULL if that
 * frame is not in the array. */
static inline struct page *virt_to_page(const void *addr)
{
    size_t i = mm_virt_to_phys(addr) >> PAGE_SHIFT;

    return i < page_count ? &page_array[i] : NULL;
}
