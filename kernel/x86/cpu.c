/*
 * Data of each processor, and the lock checks of debug builds that use it.
 */
#include "kernel/x86/cpu.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/spinlock.h"

struct cpu cpu_boot;

void cpu_triple_fault(void)
{
    struct {
        uint16_t limit;
        uint32_t base;
    } __attribute__((packed)) none = {0, 0};

    __asm__ volatile("lidt %0; int3" : : "m"(none));
    for (;;)
        cpu_halt();
}

#ifdef CONFIG_DEBUG
static struct spinlock *innermost(const struct cpu *cpu)
{
    return cpu->cpu_locks == 0 ? NULL : cpu->cpu_lock[cpu->cpu_locks - 1];
}

bool spin_debug_in_order(const struct spinlock *l)
{
    const struct spinlock *last = innermost(cpu_self());

    return last == NULL || last->lock_rank < l->lock_rank;
}

void spin_debug_take(struct spinlock *l)
{
    struct cpu *cpu = cpu_self();
    const struct spinlock *last = innermost(cpu);

    if (!spin_debug_in_order(l))
        panic("lock order: %s (rank %u) taken while %s (rank %u) is held",
              l->lock_name, l->lock_rank, last->lock_name, last->lock_rank);
    if (cpu->cpu_locks == CPU_LOCKS_MAX)
        panic("lock order: %s taken while too many locks are held",
              l->lock_name);
    cpu->cpu_lock[cpu->cpu_locks++] = l;
}

void spin_debug_release(struct spinlock *l)
{
    struct cpu *cpu = cpu_self();
    const struct spinlock *last = innermost(cpu);

    if (last != l)
        panic("lock order: %s released while %s was taken last", l->lock_name,
              last == NULL ? "no lock" : last->lock_name);
    cpu->cpu_locks--;
}

bool spin_debug_held(const struct spinlock *l)
{
    const struct cpu *cpu = cpu_self();

    for (unsigned i = 0; i < cpu->cpu_locks; i++)
        if (cpu->cpu_lock[i] == l)
            return true;
    return false;
}

void spin_assert_held(const struct spinlock *l)
{
    if (!spin_debug_held(l))
        panic("lock %s must be held here", l->lock_name);
}
#endif
