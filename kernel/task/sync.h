/*
 * Wait queues, mutexes, condition variables, in their textbook meaning.
 *
 * Only wait_queue_wake may be used in interrupts. A task holds a mutex and may
 * wait while it does; a spin lock may not be held across a wait. Each type has
 * a constructed state (free, no waiters) in which it is left, so cached objects
 * keep it between uses.
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

/* Puts the caller into the queue and blocks it, as sched_block does. Caller
 * holds sched_lock. */
int wait_queue_block(struct wait_queue *q, bool interruptible,
                     uint32_t timeout_ms);

/* Wakes the first `n` waiters (UINT32_MAX: all). Takes sched_lock; the caller
 * of wait_queue_wake_locked holds it. May be used in interrupts. */
void wait_queue_wake(struct wait_queue *q, unsigned n);
void wait_queue_wake_locked(struct wait_queue *q, unsigned n);

/* ---- mutexes ------------------------------------------------------------ */

struct mutex {
    struct task *mutex_owner; /* NULL: free */
    struct wait_queue mutex_waiters;
#ifdef CONFIG_DEBUG
    unsigned mutex_rank;
    struct mutex *mutex_outer; /* the mutex that the owner took before */
#endif
};

/* Ranks, ascending, as for spin locks (docs/locking.md). Mutexes are taken
 * before spin locks. */
enum mutex_rank {
    MUTEX_RANK_RENAME = 1, /* one rename at a time in a file system */
    MUTEX_RANK_DIRECTORY,  /* of a directory; parents first */
    MUTEX_RANK_FILE,       /* of other inodes */
    MUTEX_RANK_PIPE,
    MUTEX_RANK_CONSOLE,
};

#ifdef CONFIG_DEBUG
#define MUTEX_INIT(name, reason, rank)                                         \
    {                                                                          \
        NULL, WAIT_QUEUE_INIT((name).mutex_waiters, reason), rank, NULL        \
    }

/* Panics unless the running task holds the mutex. */
void mutex_assert_held(const struct mutex *m);
#else
#define mutex_assert_held(m) ((void)(m))

#define MUTEX_INIT(name, reason, rank)                                         \
    {                                                                          \
        NULL, WAIT_QUEUE_INIT((name).mutex_waiters, reason)                    \
    }
#endif

void mutex_init(struct mutex *m, const char *reason, unsigned rank);

void mutex_lock_slow(struct mutex *m);
void mutex_debug_take(struct mutex *m);
void mutex_debug_release(struct mutex *m);

/* Takes the mutex if it is free. */
static inline bool mutex_try(struct mutex *m)
{
    struct task *none = NULL;

    return __atomic_compare_exchange_n(&m->mutex_owner, &none, task_self(),
                                       false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* Waits uninterruptibly: mutexes are held for a short time. */
static inline void mutex_lock(struct mutex *m)
{
    if (unlikely(!mutex_try(m)))
        mutex_lock_slow(m);
#ifdef CONFIG_DEBUG
    mutex_debug_take(m);
#endif
}

void mutex_unlock(struct mutex *m);

/* ---- condition variables ------------------------------------------------ */

struct cond {
    struct wait_queue cond_waiters;
};

static inline void cond_init(struct cond *c, const char *reason)
{
    wait_queue_init(&c->cond_waiters, reason);
}

/* Releases `m`, waits and takes it again. Returns 0, or -EINTR if the task was
 * killed; `m` is held in both cases. Test the condition again afterwards. */
int cond_wait(struct cond *c, struct mutex *m);

/* Wakes one waiter, or all. The caller should hold the waiters' mutex. */
static inline void cond_signal(struct cond *c)
{
    if (!list_empty(&c->cond_waiters.wait_tasks))
        wait_queue_wake(&c->cond_waiters, 1);
}

static inline void cond_broadcast(struct cond *c)
{
    if (!list_empty(&c->cond_waiters.wait_tasks))
        wait_queue_wake(&c->cond_waiters, UINT32_MAX);
}
