/*
 * The checks of spin locks in a debug build: their order, and that each is
 * released by the processor that took it. A processor's data has the locks that
 * it holds.
 */
#include "kernel/lib/symbol.h"
#include "kernel/x86/lockstat.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/spinlock.h"

#ifdef CONFIG_DEBUG
/* A lock is held for some hundred instructions, a turn takes at least six. */
#define TURNS_MAX 1000000u

static struct spinlock *innermost(const struct cpu *cpu)
{
    return cpu->cpu_locks == 0 ? NULL : cpu->cpu_lock[cpu->cpu_locks - 1];
}

bool spin_debug_in_order(const struct spinlock *l)
{
    const struct spinlock *last = innermost(cpu_self());

    return last == NULL || last->lock_rank < l->lock_rank;
}

static void check_order(const struct spinlock *l)
{
    const struct spinlock *last = innermost(cpu_self());

    if (!spin_debug_in_order(l))
        panic("lock order: %s (rank %u) taken while %s (rank %u) is held",
              l->lock_name, l->lock_rank, last->lock_name, last->lock_rank);
}

void spin_debug_wait(struct spinlock *l, uint32_t turns)
{
    const struct cpu *cpu = cpu_self();
    const struct cpu *owner = l->lock_owner;
    char place[64];

    if (owner != cpu && turns < TURNS_MAX) {
        check_order(l);
        lock_class_turn(l, turns == 0);
        return;
    }
    symbol_caller(l->lock_place, place, sizeof(place));
    if (owner == cpu)
        panic("lock %s: taken twice by CPU %u, first in %s", l->lock_name,
              cpu->cpu_number, place);
    if (owner == NULL)
        panic("lock %s: CPU %u waits, but no CPU took it", l->lock_name,
              cpu->cpu_number);
    panic("lock %s: CPU %u waits too long for CPU %u, which took it in %s",
          l->lock_name, cpu->cpu_number, owner->cpu_number, place);
}

void spin_debug_take(struct spinlock *l)
{
    struct cpu *cpu = cpu_self();

    check_order(l);
    if (cpu->cpu_locks == CPU_LOCKS_MAX)
        panic("lock order: %s taken while too many locks are held",
              l->lock_name);
    cpu->cpu_lock[cpu->cpu_locks++] = l;
    l->lock_owner = cpu;
    l->lock_place = (uintptr_t)__builtin_return_address(0);
    l->lock_since = rdtsc();
}

void spin_debug_release(struct spinlock *l)
{
    struct cpu *cpu = cpu_self();
    const struct spinlock *last = innermost(cpu);

    lock_class_count(l, (uintptr_t)__builtin_return_address(0));
    if (last != l)
        panic("lock order: %s released while %s was taken last", l->lock_name,
              last == NULL ? "no lock" : last->lock_name);
    l->lock_owner = NULL;
    cpu->cpu_locks--;
}

/* Interrupts are disabled while any lock is held. */
bool spin_debug_held(const struct spinlock *l)
{
    const struct cpu *cpu;

    if (read_eflags() & EFLAGS_IF)
        return false;
    cpu = cpu_self();
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
