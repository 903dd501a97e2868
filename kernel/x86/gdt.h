/*
 * Segments and task states (Intel SDM volume 3, chapters 3 and 8).
 *
 * Segments are flat and serve only to tell the rings apart. There are two task
 * state segments: one that the processor needs for its stack pointers, and one
 * of its own for the double fault, which cannot use the stack it was raised on.
 */
#pragma once

#include "kernel/lib/types.h"

#define GDT_KERNEL_CODE 0x08
#define GDT_KERNEL_DATA 0x10
#define GDT_TSS         0x18
#define GDT_DF_TSS      0x20
#define GDT_USER_CODE   0x2B /* with the 3 of ring 3 */
#define GDT_USER_DATA   0x33

/* 32-bit task state segment (volume 3, figure 8-2). */
struct tss {
    uint32_t link;
    uint32_t esp0, ss0, esp1, ss1, esp2, ss2;
    uint32_t cr3, eip, eflags;
    uint32_t eax, ecx, edx, ebx, esp, ebp, esi, edi;
    uint32_t es, cs, ss, ds, fs, gs;
    uint32_t ldt;
    uint16_t trap, iomap;
};

extern struct tss gdt_tss;

void gdt_init(void);

/* Where the processor puts its stack pointer when it leaves ring 3. */
static inline void gdt_set_stack(vaddr_t top)
{
    gdt_tss.esp0 = top;
}

/* The state of whatever a double fault interrupted. */
const struct tss *gdt_interrupted(void);

/* The double fault's task takes the page tables in force now. */
void gdt_set_cr3(uint32_t cr3);

/* Leaves the double fault's task for the ordinary one, on the stack in use, so
 * that the next double fault finds its task free. */
void gdt_leave_fault_task(void);

/* The page below the double fault's stack, which paging_init takes away. */
vaddr_t gdt_fault_guard(void);
