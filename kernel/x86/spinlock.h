/*
 * Spin locks that disable interrupts while they are held.
 *
 * The lock saves the holder's interrupt flag, so the caller needs no register
 * for it. Locks must therefore be released in the reverse order of taking. On
 * one processor taking is three instructions and releasing two. (If the lock's
 * address depends on ESP, both are right: POP computes it after, PUSH before it
 * changes ESP, SDM volume 2.)
 *
 * With CONFIG_SMP it is five and three: a processor also sets and clears a bit,
 * and spins while the bit is set. (There the address may not depend on ESP, so
 * no lock may be in the frame of a function that calls no other.) CONFIG_DEBUG
 * asserts that locks are taken in ascending rank (docs/locking.md) and released
 * by their holder, and counts them (lockstat.h).
 */
#pragma once

#include "kernel/lib/lock_rank.h"
#include "kernel/lib/types.h"
#include "kernel/x86/cpu.h"

struct lock_class;

struct spinlock {
    uint32_t lock_taken;  /* 1 while held, on several processors */
    uint32_t lock_eflags; /* of the holder, before it took the lock */
#ifdef CONFIG_DEBUG
    const char *lock_name;
    unsigned lock_rank;
    const struct cpu *lock_owner;  /* NULL: free */
    uintptr_t lock_place;          /* where it was last taken */
    uint64_t lock_since;           /* time-stamp counter when it was taken */
    struct lock_class *lock_class; /* NULL until it is first taken */
#endif
};

#ifdef CONFIG_DEBUG
#define spin_name(l)  ((l)->lock_name)
#define spin_owner(l) ((l)->lock_owner)
#define SPINLOCK_INIT(name, rank)                                              \
    {                                                                          \
        0, 0, name, rank, NULL, 0, 0, NULL                                     \
    }

/* Whether the ranks allow this processor to take the lock now. */
bool spin_debug_in_order(const struct spinlock *l);

/* Panics if this processor waits for a lock that it holds, or has waited for
 * too many turns. */
void spin_debug_wait(struct spinlock *l, uint32_t turns);

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

#define spin_name(l)          ((void)(l), "a lock")
#define spin_owner(l)         ((void)(l), (const struct cpu *)NULL)
#define spin_debug_wait(l, t) ((void)(l), (void)(t))
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

#ifdef CONFIG_SMP
/* Returns once the lock is free, or soon after. Interrupts are disabled. */
void spin_wait(struct spinlock *l) __attribute__((no_caller_saved_registers));

/* Says which lock was the i-th that was taken from its holder after a panic.
 * NULL: there were not so many. */
const char *spin_broken(unsigned i);
#endif

static inline void spin_lock(struct spinlock *l)
{
#ifdef CONFIG_SMP
    __asm__ volatile inline("pushfl; cli\n"
                            "1:\tlock btsl $0, %0\n\t"
                            "jnc 2f\n\t"
                            "pushl %%eax\n\t"
                            "leal %0, %%eax\n\t"
                            "call spin_wait\n\t"
                            "popl %%eax\n\t"
                            "jmp 1b\n"
                            "2:\tpopl %1"
                            : "+m"(l->lock_taken), "=m"(l->lock_eflags)
                            :
                            : "memory", "cc");
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
    __asm__ volatile("pushl %1; movl $0, %0; popfl"
                     : "=m"(l->lock_taken)
                     : "m"(l->lock_eflags)
                     : "memory", "cc");
#else
    __asm__ volatile("pushl %0; popfl"
                     :
                     : "m"(l->lock_eflags)
                     : "memory", "cc");
#endif
}
