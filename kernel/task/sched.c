/*
 * The scheduler: chooses the next task and switches to it.
 *
 * One lock, sched_lock, guards every queue that a task can be in. It is held
 * across the switch and released by the task that is switched to, so that no
 * other processor runs a task whose stack is still in use.
 *
 *     ready[KERNEL] -> a -> b         ready_mask = 1 << KERNEL | 1 << USER
 *     ready[SERVER]
 *     ready[USER]   -> c              sleeping until a time: timeout.h
 *
 * The idle task is in no queue; it runs when ready_mask is 0.
 */
#include "kernel/task/sched_impl.h"
#include "drivers/pit.h"
#include "kernel/abi/errno.h"
#include "kernel/task/grant.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/switch.h"

struct spinlock sched_lock = SPINLOCK_INIT("scheduler", SCHED_LOCK_RANK);

static struct list ready[PRIORITIES];
static uint32_t ready_mask;
static struct task *idle;

void sched_init(struct task *boot, struct task *idle_task)
{
    for (unsigned i = 0; i < PRIORITIES; i++)
        list_init(&ready[i]);
    idle = idle_task;
    idle->task_state = TASK_READY;
    boot->task_state = TASK_RUNNING;
    boot->task_slice = TASK_SLICE;
    cpu_self()->cpu_task = boot;
}

/* ---- queues ------------------------------------------------------------- */

void sched_ready(struct task *t)
{
    spin_assert_held(&sched_lock);
    t->task_state = TASK_READY;
    if (t == idle)
        return;
    list_insert_before(&ready[t->task_priority], &t->task_link);
    ready_mask |= 1u << t->task_priority;
}

static struct task *pick(void)
{
    unsigned priority;
    struct task *t;

    if (ready_mask == 0)
        return idle;
    priority = 31 - (unsigned)__builtin_clz(ready_mask);
    t = list_entry(ready[priority].next, struct task, task_link);
    list_remove(&t->task_link);
    if (list_empty(&ready[priority]))
        ready_mask &= ~(1u << priority);
    return t;
}

/* ---- switching ---------------------------------------------------------- */

/* The lock saves the interrupt flag of the task that took it. Each task has its
 * own flag again when it returns from here. */
static inline void switch_to(struct task *self, struct task *next)
{
    uint32_t eflags = sched_lock.lock_eflags;

    next->task_state = TASK_RUNNING;
    next->task_switches++;
    cpu_self()->cpu_task = next;
    gdt_set_stack(next->task_stack_top);
    grant_switch(self, next);
    if (next->task_cr3 != self->task_cr3)
        write_cr3(next->task_cr3);
    switch_stack(&self->task_esp, next->task_esp);
    sched_lock.lock_eflags = eflags;
}

/* The first code that a new task runs after the switch to it. */
void sched_begin(void)
{
    sched_lock.lock_eflags = EFLAGS_IF;
    spin_unlock(&sched_lock);
}

/* Runs the best ready task. The caller is in some queue, or a zombie. */
void sched_switch(void)
{
    struct task *self = task_self();
    struct task *next = pick();

    spin_assert_held(&sched_lock);
    self->task_pending &= ~PENDING_RESCHED;
    next->task_slice = TASK_SLICE;
    if (next != self)
        switch_to(self, next);
    else
        self->task_state = TASK_RUNNING;
}

void sched_yield(void)
{
    spin_lock(&sched_lock);
    sched_ready(task_self());
    sched_switch();
    spin_unlock(&sched_lock);
}

void sched_preempt(void)
{
    struct task *self = task_self();

    if (self != NULL && (self->task_pending & PENDING_RESCHED))
        sched_yield();
}

/* ---- waiting and waking ------------------------------------------------- */

static void time_over(struct timeout *timeout)
{
    sched_wake(list_entry(timeout, struct task, task_timeout), -ETIMEDOUT);
}

/* Records how the caller waits. False: it was killed and does not wait. */
static inline bool begin_wait(struct task *self, bool interruptible,
                              uint32_t timeout_ms)
{
    if (interruptible && (self->task_pending & PENDING_KILL))
        return false;
    self->task_state = TASK_BLOCKED;
    self->task_interruptible = interruptible;
    self->task_wake_result = 0;
    if (timeout_ms != 0)
        timeout_set(&self->task_timeout, timer_ms() + timeout_ms, time_over);
    return true;
}

int sched_block(bool interruptible, uint32_t timeout_ms)
{
    struct task *self = task_self();

    spin_assert_held(&sched_lock);
    if (!begin_wait(self, interruptible, timeout_ms))
        return -EINTR;
    sched_switch();
    return self->task_wake_result;
}

/* Removes the task from the queues in which it waits. */
static inline void end_wait(struct task *t, int result)
{
    t->task_wake_result = result;
    t->task_interruptible = false;
    if (t->task_waiting != NULL) {
        list_remove(&t->task_link);
        t->task_waiting = NULL;
    }
    timeout_clear(&t->task_timeout);
}

int sched_block_handoff(bool interruptible, struct task *next, int result)
{
    struct task *self = task_self();

    spin_assert_held(&sched_lock);
    if (!begin_wait(self, interruptible, 0))
        return -EINTR;
    end_wait(next, result);
    next->task_slice = self->task_slice; /* the caller's slice continues */
    switch_to(self, next);
    return self->task_wake_result;
}

void sched_wake(struct task *t, int result)
{
    struct task *self = task_self();

    spin_assert_held(&sched_lock);
    end_wait(t, result);
    sched_ready(t);
    if (t->task_priority > self->task_priority)
        self->task_pending |= PENDING_RESCHED;
}

int sched_sleep_ms(uint32_t ms)
{
    static struct wait_queue asleep = WAIT_QUEUE_INIT(asleep, "sleep");
    int result;

    spin_lock(&sched_lock);
    result = wait_queue_block(&asleep, true, MAX(ms, 1u));
    spin_unlock(&sched_lock);
    return result == -ETIMEDOUT ? 0 : result;
}

/* ---- the clock ---------------------------------------------------------- */

void sched_tick(void)
{
    struct task *self = task_self();

    spin_lock(&sched_lock);
    self->task_ticks++;
    if (self->task_slice > 1)
        self->task_slice--;
    else if (ready_mask >> self->task_priority != 0)
        self->task_pending |= PENDING_RESCHED;
    spin_unlock(&sched_lock);
}

/* ---- checking ----------------------------------------------------------- */

static const char *verify_ready(unsigned priority, size_t bound)
{
    size_t n = 0;

    list_for_each (l, &ready[priority]) {
        const struct task *t = list_entry(l, struct task, task_link);

        if (n++ > bound)
            return "a run queue does not end";
        if (t->task_state != TASK_READY || t->task_priority != priority)
            return "a task in a run queue is not ready, or in a wrong one";
    }
    return (n != 0) == (ready_mask >> priority & 1)
               ? NULL
               : "ready_mask does not match the run queues";
}

const char *sched_verify(size_t tasks)
{
    const char *wrong = NULL;

    for (unsigned i = 0; i < PRIORITIES && wrong == NULL; i++)
        wrong = verify_ready(i, tasks);
    return wrong;
}
