/*
 * Wait queues, eventcounts, mutexes and condition variables: lists of tasks
 * under sched_lock, so that a test and the wait that follows are one step.
 */
#include "kernel/abi/errno.h"
#include "kernel/task/sched_impl.h"
#include "kernel/x86/panic.h"

/* ---- wait queues -------------------------------------------------------- */

static inline void wait_enter(struct wait_queue *q, struct task *self)
{
    spin_assert_held(&sched_lock);
    list_insert_before(&q->wait_tasks, &self->task_link);
    self->task_waiting = q;
}

/* Blocks the caller, which is in a queue. If the task was killed, sched_block
 * returns without removing it from the queue, so it removes itself. */
static inline int block_in_queue(struct task *self, bool interruptible,
                                 uint32_t timeout_ms)
{
    int result = sched_block(interruptible, timeout_ms);

    if (self->task_waiting != NULL) {
        list_remove(&self->task_link);
        self->task_waiting = NULL;
    }
    return result;
}

int wait_queue_block(struct wait_queue *q, bool interruptible,
                     uint32_t timeout_ms)
{
    struct task *self = task_self();

    wait_enter(q, self);
    return block_in_queue(self, interruptible, timeout_ms);
}

int wait_queue_block_killable(struct wait_queue *q)
{
    bool kernel = task_self()->task_space == NULL;
    int result = wait_queue_block(q, true, kernel ? KERNEL_PATIENCE_MS : 0);

    return result == -ETIMEDOUT ? -EIO : result;
}

void wait_queue_wake_locked(struct wait_queue *q)
{
    spin_assert_held(&sched_lock);
    if (!list_empty(&q->wait_tasks))
        sched_wake(list_entry(q->wait_tasks.next, struct task, task_link), 0);
}

void wait_queue_wake(struct wait_queue *q)
{
    spin_lock(&sched_lock);
    wait_queue_wake_locked(q);
    spin_unlock(&sched_lock);
}

/* Tasks that enter the queue meanwhile are not woken. The list is on the stack,
 * so it is only left when it is seen empty under the lock: a task that is
 * killed removes itself from it. */
static void wake_all_locked(struct wait_queue *q)
{
    struct wait_queue woken;

    wait_queue_init(&woken, NULL);
    list_splice(&q->wait_tasks, &woken.wait_tasks);
    while (!list_empty(&woken.wait_tasks)) {
        wait_queue_wake_locked(&woken);
        sched_lock_break();
    }
}

void wait_queue_wake_all(struct wait_queue *q)
{
    spin_lock(&sched_lock);
    wake_all_locked(q);
    spin_unlock(&sched_lock);
}

/* ---- eventcounts -------------------------------------------------------- */

void eventcount_advance(struct eventcount *e)
{
    spin_lock(&sched_lock);
    __atomic_store_n(&e->event_count, e->event_count + 1, __ATOMIC_RELEASE);
    wake_all_locked(&e->event_waiters);
    spin_unlock(&sched_lock);
}

int eventcount_wait(struct eventcount *e, uint32_t seen, bool interruptible)
{
    int result = 0;

    spin_lock(&sched_lock);
    if (e->event_count == seen)
        result = wait_queue_block(&e->event_waiters, interruptible, 0);
    spin_unlock(&sched_lock);
    return result;
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
int mutex_lock_slow(struct mutex *m, bool killable)
{
    struct task *self = task_self();
    int error = 0;

    if (m->mutex_owner == self)
        panic("mutex %s: taken twice by task %s", m->mutex_waiters.wait_reason,
              self->task_name);
    spin_lock(&sched_lock);
    while (error == 0 && !mutex_try(m))
        error = killable ? wait_queue_block_killable(&m->mutex_waiters)
                         : wait_queue_block(&m->mutex_waiters, false, 0);
    spin_unlock(&sched_lock);
    return error;
}

static inline void mutex_release(struct mutex *m)
{
    spin_assert_held(&sched_lock);
    __atomic_store_n(&m->mutex_owner, NULL, __ATOMIC_RELEASE);
    if (unlikely(!list_empty(&m->mutex_waiters.wait_tasks)))
        wait_queue_wake_locked(&m->mutex_waiters);
}

void mutex_unlock(struct mutex *m)
{
#ifdef CONFIG_DEBUG
    mutex_debug_release(m);
#endif
    spin_lock(&sched_lock);
    mutex_release(m);
    spin_unlock(&sched_lock);
}

#ifdef CONFIG_DEBUG
void mutex_debug_take(struct mutex *m)
{
    struct task *self = task_self();
    struct mutex *outer = self->task_mutex;

    if ((read_eflags() & EFLAGS_IF) == 0 && cpu_self()->cpu_locks != 0)
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

/* From the release on, another processor may take the mutex and look for
 * waiters without sched_lock (cond_signal), so the caller is in the queue by
 * then. */
int cond_wait(struct cond *c, struct mutex *m)
{
    struct task *self = task_self();
    int result;

#ifdef CONFIG_DEBUG
    mutex_debug_release(m);
#endif
    spin_lock(&sched_lock);
    wait_enter(&c->cond_waiters, self);
    mutex_release(m);
    result = block_in_queue(self, true, 0);
    spin_unlock(&sched_lock);
    mutex_lock(m);
    return result;
}
