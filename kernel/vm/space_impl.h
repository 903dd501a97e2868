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

/* The region that holds an address, or NULL. */
struct region *space_region(const struct space *s, uaddr_t addr);
