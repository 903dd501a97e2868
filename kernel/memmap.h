/*
 * Physical memory: from what the boot loader reported to what mm/ manages.
 */
#pragma once

#include "kernel/x86/multiboot.h"
#include "mm/page.h"

#define MEMMAP_REGIONS_MAX 64

/*
 * Reads a Multiboot memory map of `length` bytes at `map` into at most `max`
 * regions and returns their number. Pure: touches nothing else. Entries that
 * lie about their size, are empty or wrap around are cut or left out; boot
 * loaders produce them.
 */
size_t memmap_parse(const void *map, size_t length, struct mem_region *out,
                    size_t max);

/* The end of the usable memory that holds `addr`, 0 if none does. Regions that
 * touch count as one; reserved ones end it. */
uint64_t memmap_usable_end(const struct mem_region *r, size_t n, uint64_t addr);

/* The lowest place for `bytes` bytes of usable memory at `from` or on a page
 * after it, within the direct map; 0 if there is none. `from` is page
 * aligned. */
paddr_t memmap_space(const struct mem_region *r, size_t n, paddr_t from,
                     size_t bytes);

/*
 * Takes over the machine's memory: regions, page tables, page array, buddy.
 * Halts with a message if there is no map or too little memory. Everything in
 * `info` that is needed later has been copied when this returns; page_regions
 * is the map then, modules included as reserved.
 */
void memmap_init(const struct multiboot_info *info);

/* The first boot module, which is the initrd; *size is 0 if there is none, or
 * if it lies outside the memory that is managed. After memmap_init. */
const void *memmap_initrd(size_t *size);
