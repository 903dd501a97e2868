/*
 * The kernel's page tables (Intel SDM volume 3, chapter 4).
 *
 * All RAM up to PAGING_MAX_RAM at KERNEL_BASE, in 4 KiB entries: the direct
 * map. Text and read-only data are write-protected, also in ring 0.
 */
#pragma once

#include "kernel/lib/types.h"

#define KERNEL_BASE    0xC0000000u
#define PAGING_MAX_RAM MIB(896)

#define PTE_PRESENT 1u
#define PTE_WRITE   2u
#define PTE_USER    4u
#define PTE_THROUGH 8u  /* write-through, for devices */
#define PTE_NOCACHE 16u /* uncached, for devices */
#define PTE_UNCOUNTED                                                          \
    (1u << 9) /* ours: its frame's references are not counted */

/* From the linker script: the edges of the image. */
extern char image_start[], image_end[];
extern char text_start[], text_end[], rodata_start[], rodata_end[];
extern char heap_text_start[], heap_text_end[];
extern char data_start[], data_end[], bss_start[], bss_end[];

/* From boot/entry.asm: the boot stack, and the guard page below it. */
extern char boot_stack_guard[], boot_stack_bottom[], boot_stack_top[];

/* The `bytes` at any physical address, at most 4 MiB of them, until the next
 * call. Before paging_init: it uses the page directory of boot. */
const void *paging_window(paddr_t addr, size_t bytes);

/* Bytes needed for the page tables of `frames` frames. */
size_t paging_bytes(size_t frames);

/* Builds the tables for frames 0 to frames-1 in `space` (paging_bytes() of it,
 * page aligned, mapped now and in the direct map) and switches to them. */
void paging_init(size_t frames, void *space);

/* CR3 for tasks without page tables of their own. */
uint32_t paging_kernel_cr3(void);

/* Copies the kernel's part into the directory of a new address space. */
void paging_copy_kernel(uint32_t *to);

/* Unmaps one page of the direct map, or maps it again. */
void paging_unmap(vaddr_t addr);
void paging_map(vaddr_t addr);

/* The entry that maps `addr`, or 0. */
uint32_t paging_entry(vaddr_t addr);

/* Whether ring 0 can read (write) there without a fault. */
bool paging_readable(vaddr_t addr);
bool paging_writable(vaddr_t addr);

/* NULL, or the first broken invariant of the kernel's page tables. */
const char *paging_verify(void);
