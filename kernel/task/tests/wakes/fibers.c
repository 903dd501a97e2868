/*
 * Fibers that are processors, and the points at which they take turns.
 */
#include "kernel/task/tests/wakes/fibers.h"

#include "kernel/abi/errno.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/task/tests/wakes/host.h"
#include "tools/test/budget.h"

#define NEVER          UINT32_MAX
#define SCHEDULE_STEPS 20000 /* 20 times what the longest takes */

enum state {
    READY,
    SPINNING, /* for fiber_lock */
    BLOCKED,
    DONE,
};

static struct fiber {
    struct task fiber_task;
    enum state fiber_state;
    const struct spinlock *fiber_lock;
    uint32_t fiber_points;
    uint32_t fiber_stop;
    uintptr_t fiber_esp; /* of its innermost frame, while it does not run */
} fibers[FIBERS_MAX];

struct cpu fibers_cpu;
struct spinlock sched_lock = SPINLOCK_INIT("scheduler", 50);

static const struct wake_case *now;
static unsigned count; /* fibers of the case */
static unsigned first;
static struct fiber *running; /* NULL: the scheduler */

struct task *fibers_task(unsigned number)
{
    return &fibers[number].fiber_task;
}

static unsigned number_of(const struct fiber *f)
{
    return (unsigned)(f - fibers);
}

void fibers_failed(const char *why)
{
    char text[160];
    size_t n =
        (size_t)snprintf(text, sizeof(text), "# processor %u begins", first);

    for (unsigned i = 0; i < count; i++)
        if (fibers[i].fiber_stop != NEVER)
            n += (size_t)snprintf(text + n, sizeof(text) - n,
                                  ", %u stops at point %u", i,
                                  (unsigned)fibers[i].fiber_stop);
    snprintf(text + n, sizeof(text) - n, ": %s\n", why);
    host_say(text);
    host_fail();
}

void budget_used_up(const char *why)
{
    fibers_failed(why);
}

/* ---- points ------------------------------------------------------------- */

static void leave(enum state state)
{
    struct fiber *f = running;
    uint8_t here;

    f->fiber_state = state;
    f->fiber_esp = state == DONE ? UINTPTR_MAX : (uintptr_t)&here;
    host_leave(number_of(f));
}

static void point(void)
{
    if (running != NULL && ++running->fiber_points == running->fiber_stop)
        leave(READY);
}

static void check_frame(uintptr_t addr)
{
    for (unsigned i = 0; i < count; i++) {
        const struct fiber *f = &fibers[i];

        if (f != running && host_below(i, addr, f->fiber_esp))
            fibers_failed("the stack frame at this address has been left");
    }
}

static void access(const void *addr, size_t size UNUSED)
{
    point();
    if (running != NULL)
        check_frame((uintptr_t)addr);
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

static void take(struct spinlock *l)
{
    while (l->lock_owner != NULL) {
        running->fiber_lock = l;
        leave(SPINNING);
    }
    l->lock_owner = running;
}

static void give(struct spinlock *l)
{
    spin_assert_held(l);
    l->lock_owner = NULL;
    for (unsigned i = 0; i < count; i++)
        if (fibers[i].fiber_state == SPINNING && fibers[i].fiber_lock == l)
            fibers[i].fiber_state = READY;
}

void spin_lock(struct spinlock *l)
{
    point();
    if (running != NULL && l->lock_owner == running)
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
    if (l->lock_owner != running)
        fibers_failed("a spin lock must be held here");
}

/* ---- the scheduler of kernel/task/sched.c ------------------------------- */

int sched_block(bool interruptible, uint32_t timeout_ms UNUSED)
{
    struct task *self = task_self();

    spin_assert_held(&sched_lock);
    if (interruptible && (self->task_pending & PENDING_KILL))
        return -EINTR;
    self->task_state = TASK_BLOCKED;
    self->task_interruptible = interruptible;
    self->task_wake_result = 0;
    give(&sched_lock);
    leave(BLOCKED);
    take(&sched_lock);
    return self->task_wake_result;
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
    container_of(t, struct fiber, fiber_task)->fiber_state = READY;
}

void fibers_kill(struct task *t)
{
    spin_lock(&sched_lock);
    t->task_pending |= PENDING_KILL;
    if (t->task_state == TASK_BLOCKED && t->task_interruptible)
        sched_wake(t, -EINTR);
    spin_unlock(&sched_lock);
}

/* ---- schedules ---------------------------------------------------------- */

static void begin(void)
{
    now->case_run[number_of(running)]();
    leave(DONE);
}

static void start(unsigned i)
{
    struct fiber *f = &fibers[i];

    memset(&f->fiber_task, 0, sizeof(f->fiber_task));
    f->fiber_task.task_state = TASK_RUNNING;
    f->fiber_state = READY;
    f->fiber_points = 0;
    f->fiber_esp = 0;
    host_context(i, begin);
}

/* The next fiber after `from` that can go on, or NULL: all have ended. */
static struct fiber *next(unsigned from)
{
    bool ended = true;

    for (unsigned i = 0; i < count; i++) {
        struct fiber *f = &fibers[(from + i) % count];

        if (f->fiber_state == READY)
            return f;
        ended &= f->fiber_state == DONE;
    }
    if (!ended)
        fibers_failed("a task waits for ever");
    return NULL;
}

static void one(void)
{
    struct budget before = budget_begin("it", SCHEDULE_STEPS);
    struct fiber *f = NULL;
    unsigned from = first;

    now->case_make();
    for (unsigned i = 0; i < count; i++)
        start(i);
    while ((f = next(from)) != NULL) {
        running = f;
        fibers_cpu.cpu_task = &f->fiber_task;
        host_resume(number_of(f));
        running = NULL;
        from = number_of(f) + 1;
    }
    if (now->case_check != NULL)
        now->case_check();
    budget_end(before);
}

/* Whether it reached its stop: then there are schedules with later ones. */
static bool stopped(const struct fiber *f)
{
    return f->fiber_points >= f->fiber_stop;
}

/* All schedules in which the fibers `a` and `b` stop. */
static unsigned all_of(struct fiber *a, struct fiber *b)
{
    unsigned n = 0;

    a->fiber_stop = 0;
    do {
        a->fiber_stop++;
        b->fiber_stop = 0;
        do {
            b->fiber_stop++;
            one();
            n++;
        } while (stopped(b) && stopped(a));
    } while (stopped(a));
    a->fiber_stop = NEVER;
    b->fiber_stop = NEVER;
    return n;
}

unsigned fibers_run(const struct wake_case *r)
{
    unsigned n = 0;

    now = r;
    for (count = 0; count < FIBERS_MAX && r->case_run[count] != NULL; count++)
        fibers[count].fiber_stop = NEVER;
    for (first = 0; first < count; first++)
        for (unsigned i = 0; i < count; i++)
            n += all_of(&fibers[i], &fibers[(i + 1) % count]);
    return n;
}
