/*
 * Wait queues, eventcounts, mutexes, condition variables, in their textbook
 * meaning.
 *
 * Only the wakes of wait queues and eventcount_advance may be used in
 * interrupts. A task holds a mutex and may wait while it does; a spin lock may
 * not be held across a wait. Each type has a constructed state (free, no
 * waiters) in which it is left, so cached objects keep it between uses.
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

/* The same for an event that a program must cause: 0; -EINTR if the caller is
 * killed; -EIO if the caller is a kernel task, after KERNEL_PATIENCE_MS. */
int wait_queue_block_killable(struct wait_queue *q);

/* A kernel task, which cannot be killed, waits so long for a program. */
#define KERNEL_PATIENCE_MS 5000u

/* Wakes the first waiter. Takes sched_lock; the caller of
 * wait_queue_wake_locked holds it. May be used in interrupts. */
void wait_queue_wake(struct wait_queue *q);
void wait_queue_wake_locked(struct wait_queue *q);

/* Wakes all that wait now, one in each hold of sched_lock. */
void wait_queue_wake_all(struct wait_queue *q);

/* ---- eventcounts -------------------------------------------------------- */

/*
 * How often an event has happened, and the tasks that wait for the next one (D.
 * Reed and R. Kanodia, "Synchronization with eventcounts and sequencers",
 * 1979). For a condition that sched_lock does not guard: the waker changes the
 * condition, then advances the count. The waiter reads the count, then tests
 * the condition, then waits. An event between the test and the wait has
 * advanced the count, so the wait returns at once.
 */
struct eventcount {
    uint32_t event_count; /* changed only under sched_lock */
    struct wait_queue event_waiters;
};

#define EVENTCOUNT_INIT(name, reason)                                          \
    {                                                                          \
        0, WAIT_QUEUE_INIT((name).event_waiters, reason)                       \
    }

static inline uint32_t eventcount_read(const struct eventcount *e)
{
    return __atomic_load_n(&e->event_count, __ATOMIC_ACQUIRE);
}

/* Wakes all waiters. Takes sched_lock. May be used in interrupts. */
void eventcount_advance(struct eventcount *e);

/* Blocks unless the count has changed since it was read as `seen`. 0, or
 * -EINTR if the caller is killed. Takes sched_lock. */
int eventcount_wait(struct eventcount *e, uint32_t seen, bool interruptible);

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

int mutex_lock_slow(struct mutex *m, bool killable);
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

/* Waits uninterruptibly, for a mutex that is held for a short time only. */
static inline void mutex_lock(struct mutex *m)
{
    if (unlikely(!mutex_try(m)))
        mutex_lock_slow(m, false);
#ifdef CONFIG_DEBUG
    mutex_debug_take(m);
#endif
}

/* For a mutex whose holder may wait for a program. 0, or an error of
 * wait_queue_block_killable: then the caller does not hold it. */
__attribute__((warn_unused_result)) static inline int
mutex_lock_killable(struct mutex *m)
{
    int error = likely(mutex_try(m)) ? 0 : mutex_lock_slow(m, true);

#ifdef CONFIG_DEBUG
    if (error == 0)
        mutex_debug_take(m);
#endif
    return error;
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

/* Wakes one waiter, or all. The caller holds the waiters' mutex: only then may
 * it look without sched_lock whether there are any. */
static inline void cond_signal(struct cond *c)
{
    if (!list_empty(&c->cond_waiters.wait_tasks))
        wait_queue_wake(&c->cond_waiters);
}

static inline void cond_broadcast(struct cond *c)
{
    if (!list_empty(&c->cond_waiters.wait_tasks))
        wait_queue_wake_all(&c->cond_waiters);
}
