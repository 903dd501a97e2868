/*
 * Data of each processor, and the lock checks of debug builds that use it.
 */
#include "kernel/x86/cpu.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/lockstat.h"
#include "kernel/x86/panic.h"
#include "kernel/x86/spinlock.h"

struct cpu cpu_boot = {.cpu_bit = 1};
struct cpu *volatile cpu_online[CPUS_MAX] = {&cpu_boot};
unsigned cpu_limit = 1;
unsigned cpu_started = 1;

struct cpu *cpu_of(const struct task *t)
{
    for (unsigned i = 0; i < CPUS_MAX; i++)
        if (cpu_online[i] != NULL && cpu_online[i]->cpu_task == t)
            return cpu_online[i];
    return NULL;
}

const char *cpu_verify(const char **where)
{
    const char *wrong = NULL;

    *where = "the data of a processor";
    for (unsigned i = 0; i < CPUS_MAX && wrong == NULL; i++)
        if (cpu_online[i] != NULL)
            wrong = cpu_online[i]->cpu_number != i
                        ? "it has the number of another one"
                        : gdt_verify(cpu_online[i]);
    return wrong;
}

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
void cpu_debug_stays(void)
{
    if (read_eflags() & EFLAGS_IF)
        panic("cpu_self() is called with interrupts enabled");
}

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
