/*
 * Wait queues, mutexes and condition variables: lists of tasks under
 * sched_lock, so that a test and the wait that follows are one step.
 */
#include "kernel/task/sched_impl.h"
#include "kernel/x86/panic.h"

/* ---- wait queues -------------------------------------------------------- */

/* If the task was killed, sched_block returns without removing it from the
 * queue, so it removes itself. */
int wait_queue_block(struct wait_queue *q, bool interruptible,
                     uint32_t timeout_ms)
{
    struct task *self = task_self();
    int result;

    spin_assert_held(&sched_lock);
    list_insert_before(&q->wait_tasks, &self->task_link);
    self->task_waiting = q;
    result = sched_block(interruptible, timeout_ms);
    if (self->task_waiting != NULL) {
        list_remove(&self->task_link);
        self->task_waiting = NULL;
    }
    return result;
}

void wait_queue_wake_locked(struct wait_queue *q, unsigned n)
{
    spin_assert_held(&sched_lock);
    for (; n != 0 && !list_empty(&q->wait_tasks); n--)
        sched_wake(list_entry(q->wait_tasks.next, struct task, task_link), 0);
}

void wait_queue_wake(struct wait_queue *q, unsigned n)
{
    spin_lock(&sched_lock);
    wait_queue_wake_locked(q, n);
    spin_unlock(&sched_lock);
}

/* ---- mutexes ------------------------------------------------------------ */

void mutex_init(struct mutex *m, const char *reason, unsigned rank UNUSED)
{
    m->mutex_owner = NULL;
    wait_queue_init(&m->mutex_waiters, reason);
#ifdef CONFIG_DEBUG
    m->mutex_rank = rank;
    m->mutex_outer = NULL;
#endif
}

/* The mutex is held by another task: waits. An unlock wakes the first waiter,
 * which must try again, because another task may have taken the mutex. */
void mutex_lock_slow(struct mutex *m)
{
    struct task *self = task_self();

    if (m->mutex_owner == self)
        panic("mutex %s: taken twice by task %s", m->mutex_waiters.wait_reason,
              self->task_name);
    spin_lock(&sched_lock);
    while (!mutex_try(m))
        wait_queue_block(&m->mutex_waiters, false, 0);
    spin_unlock(&sched_lock);
}

static inline void release(struct mutex *m)
{
    spin_assert_held(&sched_lock);
    m->mutex_owner = NULL;
    if (unlikely(!list_empty(&m->mutex_waiters.wait_tasks)))
        wait_queue_wake_locked(&m->mutex_waiters, 1);
}

void mutex_unlock(struct mutex *m)
{
#ifdef CONFIG_DEBUG
    mutex_debug_release(m);
#endif
    spin_lock(&sched_lock);
    release(m);
    spin_unlock(&sched_lock);
}

#ifdef CONFIG_DEBUG
void mutex_debug_take(struct mutex *m)
{
    struct task *self = task_self();
    struct mutex *outer = self->task_mutex;

    if (cpu_self()->cpu_locks != 0)
        panic("lock order: mutex %s taken with a spin lock held",
              m->mutex_waiters.wait_reason);
    if (outer != NULL && outer->mutex_rank > m->mutex_rank)
        panic("lock order: mutex %s (rank %u) taken while %s (rank %u) is held",
              m->mutex_waiters.wait_reason, m->mutex_rank,
              outer->mutex_waiters.wait_reason, outer->mutex_rank);
    m->mutex_outer = outer;
    self->task_mutex = m;
}

void mutex_assert_held(const struct mutex *m)
{
    if (m->mutex_owner != task_self())
        panic("mutex %s: must be held here by task %s",
              m->mutex_waiters.wait_reason, task_self()->task_name);
}

/* Mutexes may be released in any order, so it may be anywhere in the chain. */
void mutex_debug_release(struct mutex *m)
{
    struct mutex **link = &task_self()->task_mutex;

    while (*link != NULL && *link != m)
        link = &(*link)->mutex_outer;
    if (*link == NULL)
        panic("mutex %s: released by task %s, which does not hold it",
              m->mutex_waiters.wait_reason, task_self()->task_name);
    *link = m->mutex_outer;
    m->mutex_outer = NULL;
}
#endif

/* ---- condition variables ------------------------------------------------ */

int cond_wait(struct cond *c, struct mutex *m)
{
    int result;

#ifdef CONFIG_DEBUG
    mutex_debug_release(m);
#endif
    spin_lock(&sched_lock);
    release(m);
    result = wait_queue_block(&c->cond_waiters, true, 0);
    spin_unlock(&sched_lock);
    mutex_lock(m);
    return result;
}
