/*
 * Spin locks that disable interrupts while they are held.
 *
 * The interrupt flag from before is kept in the lock itself: it belongs to
 * whoever holds the lock, and the caller needs no register for it. Locks must
 * therefore be released in the reverse order of taking. On one processor
 * taking is three instructions and releasing two. (Should the lock's address
 * depend on ESP, both are right: POP computes it after, PUSH before it changes
 * ESP, SDM volume 2.)
 *
 * CONFIG_SMP adds the spinning. CONFIG_DEBUG asserts that locks are taken in
 * ascending rank (docs/locking.md) and released by their holder.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/x86/cpu.h"

struct spinlock {
    uint32_t lock_taken;  /* 1 while held, where several can ask */
    uint32_t lock_eflags; /* of the holder, from before */
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

/* Whether this processor may take the lock now, by its rank. */
bool spin_debug_in_order(const struct spinlock *l);

/* Both panic, naming the locks, if the order is broken. */
void spin_debug_taken(struct spinlock *l);
void spin_debug_released(struct spinlock *l);
bool spin_debug_held(const struct spinlock *l);
#else
#define SPINLOCK_INIT(name, rank)                                              \
    {                                                                          \
        0, 0                                                                   \
    }

static inline void spin_debug_taken(struct spinlock *l)
{
    (void)l;
}

static inline void spin_debug_released(struct spinlock *l)
{
    (void)l;
}

static inline bool spin_debug_held(const struct spinlock *l)
{
    (void)l;
    return true;
}
#endif

static inline void spin_init(struct spinlock *l, const char *name,
                             unsigned rank)
{
    *l = (struct spinlock)SPINLOCK_INIT(name, rank);
    (void)name;
    (void)rank;
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
    spin_debug_taken(l);
}

static inline void spin_unlock(struct spinlock *l)
{
    spin_debug_released(l);
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
