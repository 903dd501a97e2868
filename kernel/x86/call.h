/*
 * Messages between processors that run (Intel SDM volume 3, 4.10.5 and 10.6):
 * forget a page, call a function, stand still.
 *
 * A page that one processor unmaps may be in the translation buffers of the
 * others. To map one needs no message: what is not mapped is not in them. Nor
 * do pages of programs, as long as an address space is that of one task.
 *
 * On one processor, none of these sends anything.
 */
#pragma once

#include "kernel/x86/cpu.h"

#ifdef CONFIG_SMP

/* Sets up the interrupts of messages, before another processor runs. */
void call_init(void);

/* Every processor has forgotten the page, whose entry is clear, when this
 * returns. Interrupts may be disabled, and spin locks held: a processor that
 * waits for a lock, or to send a message of this kind, serves others. */
void call_forget(vaddr_t page);

/* Does what call_forget of another processor asks of this one. In each turn of
 * a loop that waits with interrupts disabled. */
void call_serve(void);

/* Calls fn(arg) once on each processor, with interrupts disabled, and returns
 * when all have returned; fn takes no lock that its caller may hold. The
 * caller has interrupts enabled and no lock. */
void call_all(void (*fn)(void *arg), void *arg);

/* Between these two the other processors stand still, and interrupts are
 * disabled. They do not nest; the caller of the first has interrupts enabled
 * and no lock. The second gets what the first returned. */
uint32_t call_stop_others(void);
void call_resume_others(uint32_t flags);

/* Interrupts another processor, which then runs the scheduler if its task is
 * marked for that. Does not wait. Interrupts are disabled. */
void call_resched(const struct cpu *cpu);

#else

#define call_resched(cpu) ((void)(cpu))

static inline void call_forget(vaddr_t page)
{
    invlpg(page);
}

static inline uint32_t call_stop_others(void)
{
    return irq_save();
}

static inline void call_resume_others(uint32_t flags)
{
    irq_restore(flags);
}

#endif
