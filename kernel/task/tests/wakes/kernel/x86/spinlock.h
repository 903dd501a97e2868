/*
 * Stands for kernel/x86/spinlock.h in waketest (kernel/task/tests/wakes/
 * wakes.h): a fiber that needs a lock which another holds waits for it.
 */
#pragma once

#include "kernel/lib/lock_rank.h"
#include "kernel/x86/cpu.h"

struct spinlock {
    const char *lock_name;
    unsigned lock_rank;
    struct fiber *lock_owner; /* NULL: it is free */
};

#define SPINLOCK_INIT(name, rank)                                              \
    {                                                                          \
        name, rank, NULL                                                       \
    }

static inline void spin_init(struct spinlock *l, const char *name,
                             unsigned rank)
{
    *l = (struct spinlock)SPINLOCK_INIT(name, rank);
}

void spin_lock(struct spinlock *l);
void spin_unlock(struct spinlock *l);
void spin_assert_held(const struct spinlock *l);
