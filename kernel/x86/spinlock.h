/*
 * Spin locks that disable interrupts while they are held.
 *
 * The lock saves the holder's interrupt flag, so the caller needs no register
 * for it. Locks must therefore be released in the reverse order of taking. On
 * one processor taking is three instructions and releasing two. (If the lock's
 * address depends on ESP, both are right: POP computes it after, PUSH before it
 * changes ESP, SDM volume 2.)
 *
 * CONFIG_SMP adds the spinning. CONFIG_DEBUG asserts that locks are taken in
 * ascending rank (docs/locking.md) and released by their holder.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/x86/cpu.h"

struct spinlock {
    uint32_t lock_taken;  /* 1 while held, on several processors */
    uint32_t lock_eflags; /* of the holder, before it took the lock */
#ifdef CONFIG_DEBUG
    const char *lock_name;
    unsigned lock_rank;
#endif
};

#ifdef CONFIG_DEBUG
#define SPINLOCK_INIT(name, rank)                                              \
    {                                                                          \
        0, 0, name, rank                                                       \
    }

/* Whether the ranks allow this processor to take the lock now. */
bool spin_debug_in_order(const struct spinlock *l);

/* Both panic and name the locks if the order is broken. */
void spin_debug_take(struct spinlock *l);
void spin_debug_release(struct spinlock *l);
bool spin_debug_held(const struct spinlock *l);

/* Panics unless this processor holds the lock. */
void spin_assert_held(const struct spinlock *l);
#else
#define SPINLOCK_INIT(name, rank)                                              \
    {                                                                          \
        0, 0                                                                   \
    }

#define spin_debug_take(l)    ((void)(l))
#define spin_debug_release(l) ((void)(l))
#define spin_debug_held(l)    ((void)(l), true)
#define spin_assert_held(l)   ((void)(l))
#endif

static inline void spin_init(struct spinlock *l, const char *name UNUSED,
                             unsigned rank UNUSED)
{
    *l = (struct spinlock)SPINLOCK_INIT(name, rank);
}

static inline void spin_lock(struct spinlock *l)
{
#ifdef CONFIG_SMP
    uint32_t flags = read_eflags();

    irq_disable();
    while (__atomic_exchange_n(&l->lock_taken, 1, __ATOMIC_ACQUIRE) != 0)
        __builtin_ia32_pause();
    l->lock_eflags = flags;
#else
    __asm__ volatile("pushfl; cli; popl %0"
                     : "=m"(l->lock_eflags)
                     :
                     : "memory", "cc");
#endif
    spin_debug_take(l);
}

static inline void spin_unlock(struct spinlock *l)
{
    spin_debug_release(l);
#ifdef CONFIG_SMP
    uint32_t flags = l->lock_eflags;

    __atomic_store_n(&l->lock_taken, 0, __ATOMIC_RELEASE);
    irq_restore(flags);
#else
    __asm__ volatile("pushl %0; popfl"
                     :
                     : "m"(l->lock_eflags)
                     : "memory", "cc");
#endif
}
