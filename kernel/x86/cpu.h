/*
 * The processor: its registers and instructions, and its own data in the kernel
 * (Intel SDM volume 2 and volume 3, chapter 2).
 */
#pragma once

#include "kernel/lib/types.h"

#define EFLAGS_IF (1u << 9)
#define EFLAGS_VM (1u << 17) /* virtual-8086 mode: a program's */
#define EFLAGS_AC (1u << 18) /* in ring 0: see protect.h */

struct spinlock;
struct task;

#define CPU_LOCKS_MAX 8

/* Data of one processor. Reached only through cpu_self(). */
struct cpu {
    struct task *cpu_task; /* the running task; first: trap.asm loads it.
                              NULL until there are tasks. */
    unsigned cpu_number;
    unsigned cpu_locks; /* locks held, in debug builds */
    struct spinlock *cpu_lock[CPU_LOCKS_MAX];
};

extern struct cpu cpu_boot;

/* The running processor. There is one. */
static inline struct cpu *cpu_self(void)
{
    return &cpu_boot;
}

static inline uint64_t rdtsc(void)
{
    uint64_t value;

    __asm__ volatile("rdtsc" : "=A"(value) : : "memory");
    return value;
}

/* A function that returns what an instruction stores in a register. */
#define CPU_READ(name, instruction)                                            \
    static inline uint32_t name(void)                                          \
    {                                                                          \
        uint32_t value;                                                        \
                                                                               \
        __asm__ volatile(instruction : "=r"(value));                           \
        return value;                                                          \
    }

CPU_READ(read_cr0, "mov %%cr0, %0")
CPU_READ(read_cr2, "mov %%cr2, %0")
CPU_READ(read_cr3, "mov %%cr3, %0")
CPU_READ(read_cr4, "mov %%cr4, %0")
CPU_READ(read_eflags, "pushfl; popl %0")
/* The frame pointer of the function into which this is inlined. */
CPU_READ(read_ebp, "mov %%ebp, %0")

static inline void write_cr3(uint32_t value)
{
    __asm__ volatile("mov %0, %%cr3" : : "r"(value) : "memory");
}

static inline void write_cr4(uint32_t value)
{
    __asm__ volatile("mov %0, %%cr4" : : "r"(value) : "memory");
}

static inline void invlpg(vaddr_t addr)
{
    __asm__ volatile("invlpg (%0)" : : "r"(addr) : "memory");
}

/* ---- interrupts --------------------------------------------------------- */

static inline void irq_enable(void)
{
    __asm__ volatile("sti" : : : "memory");
}

static inline void irq_disable(void)
{
    __asm__ volatile("cli" : : : "memory");
}

/* Disables interrupts; pass the result to irq_restore. */
static inline uint32_t irq_save(void)
{
    uint32_t flags = read_eflags();

    irq_disable();
    return flags;
}

static inline void irq_restore(uint32_t flags)
{
    if (flags & EFLAGS_IF)
        irq_enable();
}

/* One hlt: waits for the next interrupt, if they are enabled. */
static inline void cpu_halt(void)
{
    __asm__ volatile("hlt" : : : "memory");
}

/* Enables interrupts and waits for one. None is missed in between (sti takes
 * effect one instruction later). */
static inline void cpu_wait_interrupt(void)
{
    __asm__ volatile("sti; hlt" : : : "memory");
}

/* Faults without a table of handlers, so that the processor resets. */
void cpu_triple_fault(void) __attribute__((noreturn));
