/*
 * Counts of spin locks (kernel/x86/lockstat.c), and the command that shows
 * them.
 *
 * Tests: kernel/x86/lockstat.c
 */
#include "kernel/x86/lockstat.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/tests/shell_test.h"
#include "kernel/x86/spinlock.h"
#include "tools/workshop/ktest/ktest.h"

#ifdef CONFIG_DEBUG
static struct spinlock first = SPINLOCK_INIT("counted", 60);
static const char same_name[] = "counted"; /* at another address */
static struct spinlock second = SPINLOCK_INIT(same_name, 60);
static struct spinlock other_rank = SPINLOCK_INIT("counted", 61);

static __attribute__((noinline)) void hold(struct spinlock *l, unsigned turns)
{
    spin_lock(l);
    for (volatile unsigned i = 0; i < turns; i++)
        continue;
    spin_unlock(l);
}

KTEST(lockstat, locks_of_a_name_and_rank_are_counted_together)
{
    const struct lock_class *class = lock_class_of(&first);

    lock_class_reset();
    hold(&first, 10);
    hold(&second, 1000);
    hold(&other_rank, 10);
    KT_TRUE(lock_class_of(&second) == class);
    KT_TRUE(lock_class_of(&other_rank) != class);
    KT_EQ(class->class_taken, 2);
    KT_EQ(class->class_waited, 0);
    KT_TRUE(class->class_longest > class->class_held / 2);
    KT_TRUE(class->class_longest < class->class_held);
}

KTEST(lockstat, the_longest_hold_has_its_place)
{
    const struct lock_class *class = lock_class_of(&first);
    uintptr_t offset;

    lock_class_reset();
    hold(&first, 1000);
    KT_TRUE(symbol_lookup(class->class_release, &offset) ==
            symbol_lookup((uintptr_t)hold, &offset));
}

KTEST(lockstat, turns_of_those_that_wait)
{
    const struct lock_class *class = lock_class_of(&first);
    uint32_t flags = irq_save();

    lock_class_reset();
    lock_class_turn(&first, true);
    lock_class_turn(&first, false);
    lock_class_turn(&second, true);
    irq_restore(flags);
    KT_EQ(class->class_waited, 2);
    KT_EQ(class->class_turns, 3);
    KT_EQ(class->class_taken, 0);
}

KTEST(lockstat, a_reset_forgets_counts_and_keeps_names)
{
    struct lock_class c;
    unsigned n = 0;
    unsigned left;

    hold(&first, 1);
    while (lock_class_stat(n, &c))
        n++;
    lock_class_reset();
    for (left = 0; lock_class_stat(left, &c); left++)
        if (c.class_rank == 60 && strcmp(c.class_name, "counted") == 0)
            KT_TRUE(c.class_taken == 0 && c.class_longest == 0 &&
                    c.class_held == 0 && c.class_release == 0);
    KT_EQ(left, n);
    KT_TRUE(lock_class_since() != 0);
}

KTEST(lockstat, rows_are_in_the_order_of_ranks)
{
    unsigned rank = 0;
    unsigned rows = 0;

    hold(&first, 1);
    KT_EQ(shell_test_run("locks -j"), 0);
    for (const char *at = shell_test_said;
         (at = strstr(at, "\"rank\":")) != NULL; rows++) {
        unsigned next = 0;

        for (at += strlen("\"rank\":"); *at >= '0' && *at <= '9'; at++)
            next = next * 10 + (unsigned)(*at - '0');
        KT_TRUE(next >= rank);
        rank = next;
    }
    KT_TRUE(rows >= 10 && rank >= 60);
}
#else
KTEST(lockstat, other_kernels_count_nothing)
{
    KT_EQ(shell_test_run("locks"), 1);
    KT_TRUE(strstr(shell_test_said, "DEBUG=1 counts locks") != NULL);
}
#endif
