/*
 * Waiting for a spin lock: in kernels for several processors (SMP_SRC in
 * tools/make/kernel.mk).
 */
#include "kernel/x86/spinlock.h"
#include "kernel/x86/panic.h"

/* Reads the lock until it is free: only then does the line of the cache move
 * once for each attempt to take it. After a panic the holder is stopped, or is
 * this processor, and the kernel shell needs the lock. */
void spin_wait(struct spinlock *l)
{
    uint32_t turns = 0;

    while (__atomic_load_n(&l->lock_taken, __ATOMIC_RELAXED) != 0) {
        if (panic_happened())
            l->lock_taken = 0;
        else
            spin_debug_wait(l, turns++);
        cpu_relax();
    }
}
