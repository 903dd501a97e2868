/*
 * Wait queues, mutexes, condition variables, in their textbook meaning.
 *
 * None may be used in interrupts but wait_queue_wake. A mutex is held by a
 * task and may be held across a wait; a spin lock may not. All have a
 * constructed state (free, nobody waiting), which is what they are left in, so
 * that objects in caches keep them between uses.
 */
#pragma once

#include "kernel/task/task.h"

/* ---- wait queues -------------------------------------------------------- */

#define WAIT_QUEUE_INIT(name, reason)                                          \
    {                                                                          \
        LIST_INIT((name).wait_tasks), reason                                   \
    }

static inline void wait_queue_init(struct wait_queue *q, const char *reason)
{
    list_init(&q->wait_tasks);
    q->wait_reason = reason;
}

/* With sched_lock held: puts the caller into the queue and waits, as
 * sched_block does. */
int wait_queue_block(struct wait_queue *q, bool interruptible,
                     uint32_t timeout_ms);

/* Wakes the first `n` that wait (UINT32_MAX: all); takes sched_lock itself.
 * In interrupts too. wait_queue_wake_locked with the lock held. */
void wait_queue_wake(struct wait_queue *q, unsigned n);
void wait_queue_wake_locked(struct wait_queue *q, unsigned n);

/* ---- mutexes ------------------------------------------------------------ */

struct mutex {
    struct task *mutex_owner; /* NULL: free */
    struct wait_queue mutex_waiters;
#ifdef CONFIG_DEBUG
    unsigned mutex_rank;
    struct mutex *mutex_outer; /* the one that its owner took before */
#endif
};

/* Ranks, ascending, as for spin locks (docs/locking.md). Every mutex is taken
 * before any spin lock. */
enum mutex_rank {
    MUTEX_RANK_RENAME = 1, /* one rename at a time in a file system */
    MUTEX_RANK_DIRECTORY,  /* of an inode that is one; parents first */
    MUTEX_RANK_FILE,       /* of other inodes */
    MUTEX_RANK_PIPE,
    MUTEX_RANK_CONSOLE,
    MUTEX_RANK_HALL,
};

#ifdef CONFIG_DEBUG
#define MUTEX_INIT(name, reason, rank)                                         \
    {                                                                          \
        NULL, WAIT_QUEUE_INIT((name).mutex_waiters, reason), rank, NULL        \
    }
#else
#define MUTEX_INIT(name, reason, rank)                                         \
    {                                                                          \
        NULL, WAIT_QUEUE_INIT((name).mutex_waiters, reason)                    \
    }
#endif

void mutex_init(struct mutex *m, const char *reason, unsigned rank);

void mutex_lock_slow(struct mutex *m);
void mutex_unlock_slow(struct mutex *m);
void mutex_debug_taken(struct mutex *m);
void mutex_debug_released(struct mutex *m);

/* Takes it if it is free. */
static inline bool mutex_try(struct mutex *m)
{
    struct task *none = NULL;

    return __atomic_compare_exchange_n(&m->mutex_owner, &none, task_self(),
                                       false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* Waits, not to be interrupted: mutexes are held for a short time. */
static inline void mutex_lock(struct mutex *m)
{
    if (unlikely(!mutex_try(m)))
        mutex_lock_slow(m);
#ifdef CONFIG_DEBUG
    mutex_debug_taken(m);
#endif
}

void mutex_unlock(struct mutex *m);

static inline bool mutex_held(const struct mutex *m)
{
    return m->mutex_owner == task_self();
}

/* ---- condition variables ------------------------------------------------ */

struct cond {
    struct wait_queue cond_waiters;
};

static inline void cond_init(struct cond *c, const char *reason)
{
    wait_queue_init(&c->cond_waiters, reason);
}

/* Lets go of `m`, waits, takes it again. 0, or -EINTR if the task was killed
 * (m is held then too). The condition must be tested again. */
int cond_wait(struct cond *c, struct mutex *m);

/* Wake one, or all, of those that wait. `m` of the waiters should be held. */
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);
