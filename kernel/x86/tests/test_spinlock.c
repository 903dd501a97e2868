/*
 * Spin locks (kernel/x86/spinlock.h).
 *
 * Tests: kernel/x86/spinlock.h
 */
#include "kernel/x86/spinlock.h"
#include "tools/workshop/ktest/ktest.h"

static struct spinlock outer = SPINLOCK_INIT("outer", 1);
static struct spinlock inner = SPINLOCK_INIT("inner", 2);

static bool interrupts_on(void)
{
    return (read_eflags() & EFLAGS_IF) != 0;
}

/* Restores the state in any case. */
static void check_nesting(bool on)
{
    uint32_t flags = irq_save();

    if (on)
        irq_enable();
    spin_lock(&outer);
    KT_TRUE(!interrupts_on());
    spin_lock(&inner);
    KT_TRUE(!interrupts_on());
    spin_unlock(&inner);
    KT_TRUE(!interrupts_on());
    spin_unlock(&outer);
    KT_EQ(interrupts_on(), on);
    irq_disable();
    irq_restore(flags);
}

KTEST(spinlock, interrupts_are_enabled_by_the_outermost)
{
    check_nesting(true);
}

KTEST(spinlock, interrupts_stay_off_if_they_were)
{
    check_nesting(false);
}

/* A lock in the frame is reached through ESP or EBP, which spin_lock moves. */
KTEST(spinlock, lock_on_the_stack)
{
    struct {
        uint32_t below;
        struct spinlock lock;
        uint32_t above;
    } local = {0x11111111, SPINLOCK_INIT("local", 3), 0x22222222};
    uint32_t flags = read_eflags();

    spin_lock(&local.lock);
    KT_EQ(local.lock.lock_eflags & EFLAGS_IF, flags & EFLAGS_IF);
    spin_unlock(&local.lock);
    KT_EQ(local.below, 0x11111111);
    KT_EQ(local.above, 0x22222222);
    KT_EQ(read_eflags() & EFLAGS_IF, flags & EFLAGS_IF);
}

#ifdef CONFIG_DEBUG
KTEST(spinlock, ranks_ascend)
{
    uint32_t flags = irq_save(); /* spin_debug_in_order asks this processor */

    KT_TRUE(spin_debug_in_order(&outer));
    KT_TRUE(spin_debug_in_order(&inner));
    spin_lock(&outer);
    KT_TRUE(!spin_debug_in_order(&outer));
    KT_TRUE(spin_debug_in_order(&inner));
    spin_lock(&inner);
    KT_TRUE(!spin_debug_in_order(&outer));
    KT_TRUE(!spin_debug_in_order(&inner));
    spin_unlock(&inner);
    KT_TRUE(spin_debug_in_order(&inner));
    spin_unlock(&outer);
    KT_TRUE(spin_debug_in_order(&outer));
    irq_restore(flags);
}

KTEST(spinlock, held_by_this_processor)
{
    uint32_t flags;

    KT_TRUE(!spin_debug_held(&outer));
    spin_lock(&outer);
    KT_TRUE(spin_debug_held(&outer));
    KT_TRUE(!spin_debug_held(&inner));
    KT_EQ(cpu_self()->cpu_locks, 1);
    KT_TRUE(outer.lock_owner == cpu_self());
    spin_unlock(&outer);
    KT_TRUE(!spin_debug_held(&outer));
    KT_TRUE(outer.lock_owner == NULL);
    flags = irq_save();
    KT_EQ(cpu_self()->cpu_locks, 0);
    irq_restore(flags);
}
#endif
