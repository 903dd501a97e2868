/*
 * Waiting for a spin lock: in kernels for several processors (SMP_SRC in
 * tools/make/kernel.mk).
 */
#include "kernel/x86/spinlock.h"
#include "kernel/lib/printf.h"
#include "kernel/x86/ipi.h"
#include "kernel/x86/panic.h"

#define BROKEN_MAX 8

/* Descriptions of locks that were taken from their holders. */
static char broken[BROKEN_MAX][64];
static unsigned broken_count;

const char *spin_broken(unsigned i)
{
    return i < broken_count ? broken[i] : NULL;
}

/* The owner is known in debug builds, a moment after it took the lock. */
static void break_lock(struct spinlock *l)
{
    const struct cpu *owner = spin_owner(l);
    char *text;

    l->lock_taken = 0;
    if (broken_count == BROKEN_MAX)
        return;
    text = broken[broken_count++];
    if (owner == NULL)
        snprintf(text, sizeof(broken[0]), "the lock at 0x%08lx was broken",
                 (unsigned long)l);
    else
        snprintf(text, sizeof(broken[0]), "lock %s of CPU %u was broken",
                 spin_name(l), owner->cpu_number);
}

/* Reads the lock until it is free: only then does the line of the cache move
 * once for each attempt to take it. After a panic the holder is stopped, or is
 * this processor, and the kernel shell needs the lock. The holder may wait for
 * all processors to forget a page. */
void spin_wait(struct spinlock *l)
{
    uint32_t turns = 0;

    while (__atomic_load_n(&l->lock_taken, __ATOMIC_RELAXED) != 0) {
        if (panic_happened())
            break_lock(l);
        else
            spin_debug_wait(l, turns++);
        tlb_shootdown_serve();
        cpu_relax();
    }
}
