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
#include "kernel/task/io_map.h"
#include "kernel/x86/ipi.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/switch.h"

struct spinlock sched_lock = SPINLOCK_INIT("scheduler", LOCK_RANK_SCHED);

static struct list ready[PRIORITIES];
static uint32_t ready_mask;

void sched_init(struct task *boot, struct task *idle_task)
{
    for (unsigned i = 0; i < PRIORITIES; i++)
        list_init(&ready[i]);
    idle_task->task_state = TASK_READY;
    boot->task_state = TASK_RUNNING;
    boot->task_slice = TASK_SLICE;
    cpu_self()->cpu_idle = idle_task;
    cpu_self()->cpu_task = boot;
}

/* ---- processors --------------------------------------------------------- */

static inline bool may_run(const struct task *t, const struct cpu *cpu)
{
    return !CPU_SEVERAL || (t->task_cpus & cpu->cpu_bit) != 0;
}

/* The processor runs the scheduler soon. */
static void resched(struct cpu *cpu)
{
    cpu->cpu_task->task_pending |= PENDING_RESCHED;
    if (cpu != cpu_self())
        ipi_resched(cpu);
}

/* A processor for a task that is ready: the one whose task has the lowest
 * priority of all, below that of `t`. One that runs the scheduler soon anyway
 * was found for another task. */
static __attribute__((noinline)) void place_on_any(const struct task *t)
{
    unsigned lowest = t->task_priority;
    struct cpu *best = NULL;
    struct cpu *cpu;

    for_each_cpu (cpu) {
        const struct task *now = cpu->cpu_task;

        if (now->task_priority < lowest &&
            (now->task_pending & PENDING_RESCHED) == 0 && may_run(t, cpu)) {
            lowest = now->task_priority;
            best = cpu;
        }
    }
    if (best != NULL)
        resched(best);
}

static inline void place(const struct task *t)
{
    struct task *self = task_self();

    if (cpu_count > 1)
        place_on_any(t);
    else if (t->task_priority > self->task_priority)
        self->task_pending |= PENDING_RESCHED;
}

void sched_move(struct task *t, uint8_t cpus)
{
    struct cpu *cpu = cpu_of(t);

    spin_assert_held(&sched_lock);
    t->task_cpus = cpus;
    if (cpu != NULL && !may_run(t, cpu))
        resched(cpu);
}

void sched_move_self(uint8_t cpus)
{
    spin_lock(&sched_lock);
    sched_move(task_self(), cpus);
    spin_unlock(&sched_lock);
    sched_preempt();
}

static bool is_idle(const struct cpu *cpu)
{
    return __atomic_load_n(&cpu->cpu_task, __ATOMIC_RELAXED) == cpu->cpu_idle;
}

void sched_confine(bool to_first)
{
    struct cpu *cpu;

    spin_lock(&sched_lock);
    for_each_cpu (cpu) {
        cpu->cpu_bit = to_first && cpu != &cpu_boot ? 0 : 1u << cpu->cpu_number;
        resched(cpu);
    }
    spin_unlock(&sched_lock);
    for_each_cpu (cpu)
        while (cpu->cpu_bit == 0 && !is_idle(cpu))
            sched_yield();
}

/* ---- queues ------------------------------------------------------------- */

void sched_ready(struct task *t)
{
    spin_assert_held(&sched_lock);
    t->task_state = TASK_READY;
    if (t->task_priority == PRIORITY_IDLE)
        return;
    list_insert_before(&ready[t->task_priority], &t->task_link);
    ready_mask |= 1u << t->task_priority;
}

/* The first of the highest priority that may run here, if that is not the first
 * of all: few tasks may not run anywhere. Or the idle task. */
static __attribute__((noinline)) struct task *pick_other(const struct cpu *cpu)
{
    for (unsigned priority = PRIORITIES; priority-- > 0;)
        list_for_each (l, &ready[priority]) {
            struct task *t = list_entry(l, struct task, task_link);

            if (may_run(t, cpu))
                return t;
        }
    return cpu->cpu_idle;
}

static inline struct task *pick(const struct cpu *cpu)
{
    struct list *queue;
    struct task *t;

    if (ready_mask == 0)
        return cpu->cpu_idle;
    queue = &ready[31 - (unsigned)__builtin_clz(ready_mask)];
    t = list_entry(queue->next, struct task, task_link);
    if (unlikely(!may_run(t, cpu))) {
        t = pick_other(cpu);
        if (t == cpu->cpu_idle)
            return t;
        queue = &ready[t->task_priority];
    }
    list_remove(&t->task_link);
    if (list_empty(queue))
        ready_mask &= ~(1u << t->task_priority);
    return t;
}

/* ---- switching ---------------------------------------------------------- */

/* The lock saves the interrupt flag of the task that took it. Each task has its
 * own flag again when it returns from here. */
static inline void switch_to(struct task *self, struct task *next)
{
    uint32_t eflags = sched_lock.lock_eflags;
    struct cpu *cpu = cpu_self();

    next->task_state = TASK_RUNNING;
    next->task_switches++;
    if (CPU_SEVERAL) {
        next->task_cpu = (uint8_t)cpu->cpu_number;
        cpu->cpu_switches++;
    }
    cpu->cpu_task = next;
    gdt_set_stack(cpu, next->task_stack_top);
    io_map_switch(self, next);
    if (next->task_cr3 != self->task_cr3)
        write_cr3(next->task_cr3);
    switch_stack(&self->task_esp, next->task_esp);
    /* `self` goes on, perhaps on another processor. */
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
    struct task *next = pick(cpu_self());

    spin_assert_held(&sched_lock);
    self->task_pending &= ~PENDING_RESCHED;
    next->task_slice = TASK_SLICE;
    if (next == self) {
        self->task_state = TASK_RUNNING;
        return;
    }
    if (cpu_count > 1 && self->task_state == TASK_READY)
        place(self);
    switch_to(self, next);
}

static void let_others_run(void)
{
    spin_lock(&sched_lock);
    sched_ready(task_self());
    sched_switch();
    spin_unlock(&sched_lock);
}

/* The caller may wait for a task on another processor, to which `pause` passes
 * the turn in a counted run. A preempted task has done nothing with its own. */
void sched_yield(void)
{
    let_others_run();
    if (CPU_SEVERAL)
        cpu_relax();
}

void sched_preempt(void)
{
    struct task *self = task_self();

    if (self != NULL && (self->task_pending & PENDING_RESCHED))
        let_others_run();
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

/* Whether to switch straight from `self` to `next`: not if a task of higher
 * priority is ready, or another processor has placed a task here. */
static inline bool may_take_over(const struct task *self,
                                 const struct task *next)
{
    return ready_mask >> next->task_priority <= 1 &&
           (!CPU_SEVERAL || ((self->task_pending & PENDING_RESCHED) == 0 &&
                             may_run(next, cpu_self())));
}

int sched_block_handoff(bool interruptible, struct task *next, int result)
{
    struct task *self = task_self();

    spin_assert_held(&sched_lock);
    if (unlikely(!begin_wait(self, interruptible, 0))) {
        sched_wake(next, result);
        return -EINTR;
    }
    if (unlikely(!may_take_over(self, next))) {
        self->task_pending |= PENDING_RESCHED; /* for another task */
        sched_wake(next, result);
        sched_switch();
        return self->task_wake_result;
    }
    end_wait(next, result);
    next->task_slice = self->task_slice; /* the caller's slice continues */
    switch_to(self, next);
    return self->task_wake_result;
}

void sched_wake(struct task *t, int result)
{
    spin_assert_held(&sched_lock);
    end_wait(t, result);
    sched_ready(t);
    place(t);
}

int sched_sleep_ms(uint32_t ms)
{
    static struct wait_queue asleep = WAIT_QUEUE_INIT(asleep, "sleep");
    int result;

    /* It may begin anywhere between two ticks. */
    ms = MIN(ms, UINT32_MAX - TICK_MS) + TICK_MS;
    spin_lock(&sched_lock);
    result = wait_queue_block(&asleep, true, ms);
    spin_unlock(&sched_lock);
    return result == -ETIMEDOUT ? 0 : result;
}

/* ---- the clock ---------------------------------------------------------- */

/* The first processor has the clock, and counts for all. The others are
 * interrupted when the lock is free: the scheduler there needs it. */
void sched_tick(void)
{
    struct cpu *late[CPUS_MAX];
    struct cpu *cpu;
    unsigned n = 0;

    spin_lock(&sched_lock);
    for_each_cpu (cpu) {
        struct task *t = cpu->cpu_task;

        t->task_ticks++;
        if (t->task_slice > 1)
            t->task_slice--;
        else if (ready_mask >> t->task_priority != 0) {
            t->task_pending |= PENDING_RESCHED;
            if (cpu != cpu_self())
                late[n++] = cpu;
        }
    }
    spin_unlock(&sched_lock);
    while (CPU_SEVERAL && n > 0)
        ipi_resched(late[--n]);
    /* This processor holds no lock now. In a counted run `pause` passes the
     * turn to those that have waited for one. */
    if (cpu_count > 1)
        cpu_relax();
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
    struct cpu *cpu;

    for_each_cpu (cpu)
        if (cpu->cpu_task->task_state != TASK_RUNNING)
            wrong = "the task of a processor is not marked running";
    for (unsigned i = 0; i < PRIORITIES && wrong == NULL; i++)
        wrong = verify_ready(i, tasks);
    return wrong;
}
