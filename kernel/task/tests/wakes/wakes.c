/*
 * Processors that are fibers: their points, spin locks and scheduler.
 */
#include "kernel/task/tests/wakes/wakes.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "tools/test/budget.h"

const long long fibers_budget = 20000; /* 20 times what the longest takes */

struct cpu wakes_cpu;
struct spinlock sched_lock = SPINLOCK_INIT("scheduler", 50);
static struct task tasks[FIBERS_MAX];

struct task *wakes_task(unsigned number)
{
    return &tasks[number];
}

void budget_used_up(const char *why)
{
    fibers_failed("%s", why);
}

void fibers_report(void)
{
}

/* ---- points ------------------------------------------------------------- */

static void point(void)
{
    if (fibers_running != NO_FIBER && fibers_point())
        fibers_leave(FIBER_READY);
}

static void access(const void *addr, size_t size UNUSED)
{
    point();
    if (fibers_running != NO_FIBER && fibers_frame_left((uintptr_t)addr))
        fibers_failed("the stack frame at %p has been left", addr);
}

/* What the compiler calls before an access. */
#define ON_READ(at, size)        access(at, size)
#define ON_WRITE(at, size)       access(at, size)
#define ON_LOAD(at, size, order) ((void)(order), access(at, size))
#define ON_STORE(at, size)       access(at, size)
#define ON_CHANGE(at, size)      access(at, size)
#include "mm/tests/races/instrumented.h"

/* ---- spin locks --------------------------------------------------------- */

/* Before and after the processors run, locks are free and are not needed. */

static struct fiber *self(void)
{
    return fibers_running == NO_FIBER ? NULL : &fibers[fibers_running];
}

static void take(struct spinlock *l)
{
    while (l->lock_owner != NULL)
        fibers_spin(l);
    l->lock_owner = self();
}

static void give(struct spinlock *l)
{
    spin_assert_held(l);
    l->lock_owner = NULL;
    fibers_release(l);
}

void spin_lock(struct spinlock *l)
{
    point();
    if (fibers_running != NO_FIBER && l->lock_owner == self())
        fibers_failed("a spin lock is taken twice");
    take(l);
}

void spin_unlock(struct spinlock *l)
{
    give(l);
    point();
}

void spin_assert_held(const struct spinlock *l)
{
    if (l->lock_owner != self())
        fibers_failed("a spin lock must be held here");
}

/* ---- the scheduler of kernel/task/sched.c ------------------------------- */

int sched_block(bool interruptible, uint32_t timeout_ms UNUSED)
{
    struct task *t = task_self();

    spin_assert_held(&sched_lock);
    if (interruptible && (t->task_pending & PENDING_KILL))
        return -EINTR;
    t->task_state = TASK_BLOCKED;
    t->task_interruptible = interruptible;
    t->task_wake_result = 0;
    give(&sched_lock);
    fibers_leave(FIBER_WAITING);
    take(&sched_lock);
    return t->task_wake_result;
}

/* list_remove, which is not compiled with points here. */
static void remove_link(const struct list *l)
{
    access(&l->prev->next, sizeof(l->next));
    l->prev->next = l->next;
    access(&l->next->prev, sizeof(l->prev));
    l->next->prev = l->prev;
}

void sched_wake(struct task *t, int result)
{
    spin_assert_held(&sched_lock);
    if (t->task_state != TASK_BLOCKED)
        fibers_failed("a task is woken that is not blocked");
    t->task_wake_result = result;
    t->task_interruptible = false;
    t->task_state = TASK_RUNNING;
    if (t->task_waiting != NULL) {
        remove_link(&t->task_link);
        t->task_waiting = NULL;
    }
    fibers[t - tasks].fiber_state = FIBER_READY;
}

void wakes_kill(struct task *t)
{
    spin_lock(&sched_lock);
    t->task_pending |= PENDING_KILL;
    if (t->task_state == TASK_BLOCKED && t->task_interruptible)
        sched_wake(t, -EINTR);
    spin_unlock(&sched_lock);
}

/* ---- schedules ---------------------------------------------------------- */

static int64_t rank(unsigned number)
{
    return fibers[number].fiber_state == FIBER_READY ? 0 : -1;
}

void fibers_play(unsigned first)
{
    unsigned next = first;

    memset(tasks, 0, sizeof(tasks));
    for (unsigned i = 0; i < fibers_count; i++)
        tasks[i].task_state = TASK_RUNNING;
    while ((next = fibers_choose(next, rank)) != NO_FIBER) {
        wakes_cpu.cpu_task = &tasks[next];
        fibers_resume(next++);
    }
}

size_t wakes_run(const struct fiber_case *c)
{
    size_t n = 0;

    for (unsigned first = 0; c->case_run[first] != NULL; first++)
        for (unsigned i = 0; c->case_run[i] != NULL; i++)
            n += fibers_all(c, first, i, true);
    return n;
}
