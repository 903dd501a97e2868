/*
 * Interprocessor interrupts (IPIs; Intel SDM volume 3, 4.10.5 and 10.6): a TLB
 * shootdown, a call of a function, a pause of all other processors, and a run
 * of the scheduler.
 *
 * The TLBs of other processors may hold the translation of a page that one
 * processor unmaps. To map a page needs no shootdown: a TLB holds no page that
 * is not mapped. Nor do the pages of programs: only one task uses an address
 * space.
 *
 * On a machine with one processor no IPI is sent.
 */
#pragma once

#include "kernel/x86/cpu.h"

#ifdef CONFIG_SMP

/* Sets the gates of the IPIs. Before another processor runs. */
void ipi_init(void);

/* Invalidates a page, whose page table entry is clear, in the TLB of every
 * processor, and returns when all have done so. Interrupts may be disabled, and
 * spin locks held: a processor that waits for a lock, or to begin a shootdown,
 * takes part in those of others. */
void tlb_shootdown(vaddr_t page);

/* Takes part in another processor's shootdown, if there is one. Called in each
 * turn of a loop that waits with interrupts disabled. */
void tlb_shootdown_serve(void);

/* Calls fn(arg) once on each processor, with interrupts disabled, and returns
 * when all have returned; fn takes no lock that its caller may hold. The
 * caller has interrupts enabled and no lock. */
void ipi_call_all(void (*fn)(void *arg), void *arg);

/* From the first call to the second the other processors are paused, and
 * interrupts are disabled. The calls do not nest; the caller of the first has
 * interrupts enabled and no lock. The second gets what the first returned. */
uint32_t ipi_stop_others(void);
void ipi_resume_others(uint32_t flags);

/* Interrupts another processor, which then runs the scheduler if its task has
 * PENDING_RESCHED. Does not wait. Interrupts are disabled. */
void ipi_resched(const struct cpu *cpu);

#else

#define ipi_resched(cpu) ((void)(cpu))

static inline void tlb_shootdown(vaddr_t page)
{
    invlpg(page);
}

static inline uint32_t ipi_stop_others(void)
{
    return irq_save();
}

static inline void ipi_resume_others(uint32_t flags)
{
    irq_restore(flags);
}

#endif
