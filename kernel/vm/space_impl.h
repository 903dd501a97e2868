/*
 * Private to kernel/vm.
 */
#pragma once

#include "kernel/vm/space.h"

#define PAGE_ENTRIES 1024u /* in a page table */

void space_caches_init(void);

/* The page table entry of an address; NULL if there is no table. */
uint32_t *space_entry(const struct space *s, uaddr_t addr);

/* The frame that an entry maps. */
struct page *space_frame(uint32_t pte);

/* The pages of a region that its space has been promised: all if it may write
 * to them, but not a device's. */
size_t space_promised(const struct region *r);

/* The region that holds an address, or NULL. */
struct region *space_region(const struct space *s, uaddr_t addr);
