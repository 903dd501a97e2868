/*
 * Segments and task states (Intel SDM volume 3, chapters 3 and 8).
 *
 * Segments are flat and only distinguish the rings. There are two task state
 * segments: one for the stack pointers that the processor needs, and one for
 * the double fault, which cannot use the stack on which it was raised. The I/O
 * permission map follows the first (volume 1, section 19.5): a bit for each
 * port, 0 where ring 3 may use it.
 *
 * Each processor has its own segment table, task state segments and stack for
 * the double fault. Only the first has a map. The last segment is the data of
 * the processor (struct cpu); with SMP=1 the kernel has it in GS.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/x86/cpu.h"

#define GDT_KERNEL_CODE 0x08
#define GDT_KERNEL_DATA 0x10
#define GDT_TSS         0x18
#define GDT_DF_TSS      0x20
#define GDT_USER_CODE   0x2B /* with requested privilege level 3 */
#define GDT_USER_DATA   0x33
#define GDT_CPU         0x38 /* as in trap.asm; ring 3 cannot load it */
#define GDT_ENTRIES     8

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

struct segments {
    uint64_t segments_gdt[GDT_ENTRIES];
    struct tss *segments_tss;
    struct tss segments_fault; /* the double fault's task */
    vaddr_t segments_guard;    /* the page below its stack */
};

#define GDT_PORTS 65536u

/* The processor reads two bytes of the map at a time, hence one more. */
extern struct tss_and_ports {
    struct tss tss;
    uint8_t tss_ports[GDT_PORTS / 8 + 1];
} gdt_tss;

/* Loads the segments of the processor that boots. Before any use of cpu_self or
 * cpu_running. */
void gdt_init(void);

/* Fills in the GDT of a processor and the TSS of its double fault.
 * segments_tss is set, to a TSS of `tss_bytes` bytes, and so is segments_guard,
 * to the guard page and the stack of the double fault, of `stack_bytes` bytes
 * together. A double fault will use the page directory in use now. */
void gdt_fill(struct cpu *cpu, struct segments *s, size_t tss_bytes,
              size_t stack_bytes);

/* Loads them on that processor. */
void gdt_load(const struct cpu *cpu);

/* NULL, or what is wrong with them. */
const char *gdt_verify(const struct cpu *cpu);

/* The stack that the processor loads when it leaves ring 3. */
static inline void gdt_set_stack(const struct cpu *cpu, vaddr_t top)
{
    cpu_tss(cpu)->esp0 = top;
}

/* Sets whether ring 3 may use the ports first to last, if the map is on. */
void gdt_ports_allow(uint32_t first, uint32_t last, bool allow);

/* Switches the map on or off; without it ring 3 may use no port. */
static inline void gdt_ports_on(bool on)
{
    gdt_tss.tss.iomap = on ? (uint16_t)sizeof(struct tss)
                           : (uint16_t)sizeof(struct tss_and_ports);
}

static inline bool gdt_ports_are_on(void)
{
    return gdt_tss.tss.iomap == sizeof(struct tss);
}

/* Ports that the map allows, on or not. */
size_t gdt_ports_allowed(void);

/* Whether the map allows a port. */
static inline bool gdt_port_allowed(uint32_t port)
{
    return (gdt_tss.tss_ports[port / 8] >> port % 8 & 1) == 0;
}

/* The state of the task that a double fault interrupted. */
const struct tss *gdt_interrupted(void);

/* Gives this processor's double fault the current page tables. */
void gdt_set_cr3(uint32_t cr3);

/* Leaves the double fault's task for the ordinary one, on the stack in use, so
 * that the next double fault finds its task free. */
void gdt_leave_fault_task(void);

/* The guard page below the stack of a processor's double fault, unmapped by
 * paging_init. */
vaddr_t gdt_fault_guard(const struct cpu *cpu);
