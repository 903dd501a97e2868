/*
 * Statistics of page frames: how many there are of each kind, the block of a
 * frame, and the names of states.
 */
#pragma once

#include "mm/page.h"

struct page_totals {
    size_t total_frames;   /* entries in the array */
    size_t total_usable;   /* frames that the memory map calls RAM */
    size_t total_reserved; /* holes and reserved frames below the limit */
    size_t total_kernel;   /* frames of the image, page tables and array */
    uint64_t total_unused; /* bytes of RAM above the direct map */
};

/* The counts at the end of page_init, and the function that takes them then. */
const struct page_totals *page_totals(void);
void page_count_totals(uint64_t unused);

/* The memory map as it was read; page_set_regions sets it, once. */
const struct mem_region *page_regions(size_t *n);
void page_set_regions(const struct mem_region *r, size_t n);

/* The first frame of the block that holds `p`: `p` itself unless its state is
 * PAGE_TAIL. NULL if no block does, which only a broken array shows. */
const struct page *page_block(const struct page *p);

/* The name of a state, for pictures and messages. */
const char *page_state_name(enum page_state state);
