/*
 * Fibers, and the schedules that they follow; explore.h says what for.
 */
#include "mm/tests/explore/explore.h"
#include "mm/tests/explore/steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
/* Must be called before and after a switch to another stack. */
void __sanitizer_start_switch_fiber(void **save, const void *stack,
                                    size_t size);
void __sanitizer_finish_switch_fiber(void *saved, const void **stack,
                                     size_t *size);
#define START_SWITCH(save, bottom, size)                                       \
    __sanitizer_start_switch_fiber(save, bottom, size)
#define FINISH_SWITCH(save, bottom, size)                                      \
    __sanitizer_finish_switch_fiber(save, bottom, size)
#define SWITCH(from, to)                                                       \
    swapcontext(&(from)->place_context, &(to)->place_context)
#else
#define START_SWITCH(save, bottom, size)  ((void)(save))
#define FINISH_SWITCH(save, bottom, size) ((void)(save))
/* swapcontext makes a system call; this one only when a fiber begins. */
#define SWITCH(from, to)                                                       \
    do {                                                                       \
        if (_setjmp((from)->place_jump) == 0) {                                \
            if ((to)->place_begins)                                            \
                begin_at(to);                                                  \
            _longjmp((to)->place_jump, 1);                                     \
        }                                                                      \
    } while (0)
#endif

#define STACK_BYTES KIB(256)
#define WAITS       50 /* waits for memory while no other task can run */
#define NO_CPU      EXPLORE_TASKS
#define INTERRUPTS                                                             \
    16 /* of a schedule, at most: reaping, which they undo, ends */
#define PLACES 4096
#define FIRST  3 /* accesses of an instruction are its first */

/* Where a fiber, or the scheduler, goes on. */
struct place {
    ucontext_t place_context;
    jmp_buf place_jump;
    bool place_begins;
};

enum state {
    READY,
    BLOCKED,
    WAITING,
    CALLING, /* for its turn, or for a processor to let the call in */
    DONE
};

static struct fiber {
    struct host_task fiber_task;
    enum state fiber_state;
    explore_fn_t *fiber_run;
    unsigned fiber_cpu; /* NO_CPU: it is on none */
    bool fiber_interrupted;
    uint32_t fiber_priority;
    uint32_t fiber_points;
    unsigned fiber_waits;
    const mm_lock_t *fiber_lock; /* it spins for */
    struct access {
        uintptr_t access_from, access_end; /* equal: none */
        enum explore_access access_kind;
        uintptr_t access_pc;
    } fiber_access; /* it is about to make */
    struct place fiber_place;
    void *fiber_stack;
    void *fiber_fake; /* the address sanitizer's */
} fibers[EXPLORE_TASKS];

static const struct schedule *now;
static struct place scheduler;
static void *scheduler_fake;
/* Of use to the address sanitizer only. */
static const void *scheduler_stack __attribute__((unused));
static size_t scheduler_stack_size __attribute__((unused));
static unsigned running; /* the fiber that has the processor */
static unsigned turn;    /* the next one to have it, if it is ready */
static struct fiber *cpus[EXPLORE_TASKS];
static uint32_t chance;
static uint32_t left; /* points up to the next switch from a seed; 0: none */
static uint32_t changes[2]; /* BY_PRIORITY: points between changes */
static uint32_t lowest;     /* priority */
static unsigned places_left, interrupts_left;
static uint8_t places[PLACES]; /* accesses by instruction */
static unsigned accesses;      /* tasks that are about to make one */
uint64_t explore_switches;
static char shown[64]; /* the schedule whose steps are printed */
static bool all_steps;
bool explore_runs;

/* ---- the report --------------------------------------------------------- */

static void print_name(void)
{
    if (now == NULL) {
        printf("(before any)");
        return;
    }
    printf("%s", now->schedule_name);
    if (now->schedule_way != BY_STOPS)
        return;
    for (unsigned i = 0; i < 2 && now->schedule_stop[i] != NEVER; i++)
        printf("%c%u", i == 0 ? '@' : ',', now->schedule_stop[i]);
}

void explore_failed(const char *fmt, ...)
{
    va_list ap;

    host_explorer = NULL;
    explore_runs = false;
    printf("schedule ");
    print_name();
    printf(": ");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    steps_print(all_steps);
    if (host_printed[0] != '\0')
        printf("%s", host_printed);
    fflush(stdout);
    _exit(1);
}

static void failed(const char *why)
{
    explore_failed("%s", why);
}

/* ---- processors --------------------------------------------------------- */

/* Whether interrupts are disabled where the task is. */
static bool is_pinned(const struct fiber *f)
{
    return f->fiber_task.task_locks != 0 || f->fiber_lock != NULL ||
           f->fiber_interrupted || f->fiber_task.task_inside;
}

static void leave_cpu(struct fiber *f)
{
    if (f->fiber_cpu != NO_CPU)
        cpus[f->fiber_cpu] = NULL;
    f->fiber_cpu = NO_CPU;
}

/* The first processor from this one on that has no task, or one that can be
 * preempted; NO_CPU: there is none. */
static unsigned free_cpu(unsigned from)
{
    for (unsigned i = 0; i < now->schedule_cpus; i++) {
        unsigned k = (from + i) % now->schedule_cpus;

        if (cpus[k] == NULL || !is_pinned(cpus[k]))
            return k;
    }
    return NO_CPU;
}

static bool has_cpu(const struct fiber *f)
{
    return f->fiber_cpu != NO_CPU || free_cpu(0) != NO_CPU;
}

/* Gives the task a processor, whose task, if it has one, is preempted. */
static void enter_cpu(struct fiber *f)
{
    unsigned cpu;

    if (f->fiber_cpu != NO_CPU)
        return;
    cpu = free_cpu(test_random(&chance) % now->schedule_cpus);
    if (cpus[cpu] != NULL)
        leave_cpu(cpus[cpu]);
    cpus[cpu] = f;
    f->fiber_cpu = cpu;
}

/* ---- fibers ------------------------------------------------------------- */

#ifndef __SANITIZE_ADDRESS__
static void begin_at(struct place *p)
{
    p->place_begins = false;
    setcontext(&p->place_context);
}
#endif

/* Switches to the scheduler. */
static void leave(enum state state)
{
    struct fiber *f = &fibers[running];

    f->fiber_state = state;
    if (state == WAITING || state == DONE)
        leave_cpu(f);
    START_SWITCH(state == DONE ? NULL : &f->fiber_fake, scheduler_stack,
                 scheduler_stack_size);
    SWITCH(&f->fiber_place, &scheduler);
    FINISH_SWITCH(f->fiber_fake, NULL, NULL);
}

static void begin(void)
{
    FINISH_SWITCH(NULL, &scheduler_stack, &scheduler_stack_size);
    fibers[running].fiber_run(running);
    host_check_unlocked("is held after the task's end");
    for (unsigned i = 0; i < EXPLORE_TASKS; i++)
        if (fibers[i].fiber_state == WAITING)
            fibers[i].fiber_state = READY;
    leave(DONE);
}

static void resume(unsigned i)
{
    struct fiber *f = &fibers[i];

    explore_switches++;
    enter_cpu(f);
    running = i;
    host_self = &f->fiber_task;
    host_task = i + 1;
    host_cpu = f->fiber_cpu;
    START_SWITCH(&scheduler_fake, f->fiber_stack, STACK_BYTES);
    SWITCH(&scheduler, &f->fiber_place);
    FINISH_SWITCH(scheduler_fake, NULL, NULL);
}

static unsigned another(void)
{
    return (running + 1) % now->schedule_tasks;
}

static void note_step(struct step s)
{
    s.step_task = running;
    s.step_point = fibers[running].fiber_points;
    steps_add(&s);
}

static void note(const char *what, const mm_lock_t *lock, const char *file,
                 int line)
{
    note_step((struct step){.step_what = what,
                            .step_lock = lock,
                            .step_file = file,
                            .step_line = line});
}

/* ---- points ------------------------------------------------------------- */

/* The number of points up to the next switch. */
static void plan_switch(void)
{
    if (now->schedule_way == BY_CHANCE) {
        left = 1 + test_random(&chance) % (2 * now->schedule_rate - 1);
    } else if (now->schedule_way == BY_PRIORITY) {
        left = changes[0];
        changes[0] = changes[1];
        changes[1] = 0;
    }
}

/* Whether to switch at this instruction, or lock in a line. */
static bool is_place(uintptr_t pc)
{
    uint8_t *count = &places[pc * 0x9e3779b1u >> 12 & (PLACES - 1)];

    if (places_left == 0 || *count == FIRST)
        return false;
    ++*count;
    if (test_random(&chance) % now->schedule_rate != 0)
        return false;
    places_left--;
    return true;
}

static bool by_priority(void)
{
    return now->schedule_way == BY_PRIORITY || now->schedule_way == BY_PLACE;
}

/* The points of the changes of a schedule BY_PRIORITY. */
static void plan_changes(void)
{
    uint32_t a = 1 + test_random(&chance) % now->schedule_rate;
    uint32_t b = 1 + test_random(&chance) % now->schedule_rate;

    changes[0] = now->schedule_depth < 3 ? a : MIN(a, b);
    changes[1] = now->schedule_depth < 3 || a == b ? 0 : MAX(a, b) - MIN(a, b);
}

static void interrupt(struct fiber *f)
{
    interrupts_left--;
    note("is interrupted", NULL, "", 0);
    f->fiber_interrupted = true;
    now->schedule_interrupt(running);
    f->fiber_interrupted = false;
}

/* Another task may run; or an interrupt comes. */
static void switch_by_seed(void)
{
    struct fiber *f = &fibers[running];

    plan_switch();
    if (by_priority())
        f->fiber_priority = --lowest;
    else if (interrupts_left != 0 && !is_pinned(f) &&
             test_random(&chance) % 4 == 0)
        interrupt(f);
    leave(READY);
}

/* The tasks that spin for a lock which is free now. True if one of them is to
 * run at once. */
static bool unblock(const mm_lock_t *lock)
{
    bool wanted = false;

    for (unsigned i = 0; i < now->schedule_tasks; i++) {
        struct fiber *f = &fibers[i];

        if (f->fiber_state != BLOCKED || f->fiber_lock != lock)
            continue;
        f->fiber_state = READY;
        wanted |= now->schedule_way == BY_STOPS ? i == turn
                  : now->schedule_way == BY_PRIORITY
                      ? f->fiber_priority > fibers[running].fiber_priority
                      : false;
    }
    return wanted;
}

static void point(const char *what, const mm_lock_t *lock, const char *file,
                  int line)
{
    struct fiber *f = &fibers[running];
    bool wanted = lock != NULL && lock->lock_owner == NULL && unblock(lock);

    f->fiber_points++;
    note(what, lock, file, line);
    if (now->schedule_way == BY_PLACE
            ? is_place((uintptr_t)file + (uintptr_t)line * PLACES)
            : left != 0 && --left == 0) {
        switch_by_seed();
        return;
    }
    if (now->schedule_way == BY_STOPS && running < 2 &&
        f->fiber_points == now->schedule_stop[running]) {
        turn = another();
        wanted = true;
    }
    if (wanted)
        leave(READY);
}

/* A lock has been taken. */
static void taken(const mm_lock_t *lock, const char *file, int line)
{
    if (now->schedule_way != BY_STOPS)
        point("has", lock, file, line);
}

static void block(mm_lock_t *lock)
{
    struct fiber *f = &fibers[running];

    note("spins for", lock, "", 0);
    f->fiber_lock = lock;
    leave(BLOCKED);
    f->fiber_lock = NULL;
}

static bool is_called;                  /* by a task */
static unsigned awaited[EXPLORE_TASKS]; /* a processor, or NO_CPU: the turn */

static bool may_go_on(unsigned task)
{
    unsigned cpu = awaited[task];

    if (cpu == NO_CPU)
        return !is_called;
    return cpus[cpu] == NULL || cpus[cpu] == &fibers[task] ||
           !is_pinned(cpus[cpu]);
}

static void await(unsigned cpu)
{
    awaited[running] = cpu;
    while (!may_go_on(running))
        leave(CALLING);
}

/* mm_call_all: an interrupt on each processor, one after the other. Meanwhile
 * the caller has interrupts disabled, and so has the processor. */
static void call(void (*fn)(void *arg), void *arg)
{
    struct fiber *f = &fibers[running];
    unsigned mine;

    if (f->fiber_interrupted) {
        f->fiber_task.task_inside = true;
        fn(arg);
        f->fiber_task.task_inside = false;
        return;
    }
    point("calls all", NULL, "", 0);
    await(NO_CPU);
    is_called = true;
    f->fiber_task.task_inside = true;
    mine = f->fiber_cpu;
    for (unsigned cpu = 0; cpu < now->schedule_cpus; cpu++) {
        await(cpu);
        if (cpu != mine && cpus[cpu] != NULL)
            leave_cpu(cpus[cpu]);
        cpus[cpu] = f;
        host_cpu = f->fiber_cpu = cpu;
        fn(arg);
        if (cpu != mine)
            cpus[cpu] = NULL;
        host_cpu = f->fiber_cpu = mine;
    }
    f->fiber_task.task_inside = false;
    is_called = false;
    point("has called all", NULL, "", 0);
}

/* mm_wait_for_memory. False if no task is left that could free any. */
static bool wait_for_memory(void)
{
    struct fiber *f = &fibers[running];

    note("waits for memory", NULL, "", 0);
    turn = another();
    leave(WAITING);
    return f->fiber_waits++ < WAITS;
}

/* ---- accesses ----------------------------------------------------------- */

static bool conflict(const struct access *a, const struct access *b)
{
    return a->access_from < b->access_end && b->access_from < a->access_end &&
           (a->access_kind == EXPLORE_WRITE ||
            b->access_kind == EXPLORE_WRITE ||
            a->access_kind != b->access_kind);
}

static void print_access(unsigned task, const struct access *a)
{
    static const char *const kinds[] = {"reads", "writes", "changes"};

    printf("  task %u %s %zu bytes at %#lx ", task, kinds[a->access_kind],
           (size_t)(a->access_end - a->access_from),
           (unsigned long)a->access_from);
    steps_print_place(a->access_pc);
    printf("\n");
}

/* No lock orders this access and the one that a task is about to make. */
static void check_access(const struct access *a)
{
    for (unsigned i = 0; i < now->schedule_tasks; i++) {
        const struct access *b = &fibers[i].fiber_access;

        if (i == running || !conflict(a, b))
            continue;
        print_access(running, a);
        print_access(i, b);
        explore_failed("two accesses that no lock orders");
    }
}

void explore_access(const void *at, size_t size, enum explore_access access,
                    uintptr_t pc)
{
    struct fiber *f = &fibers[running];
    struct access a = {(uintptr_t)at, (uintptr_t)at + size, access, pc};

    if (accesses != 0)
        check_access(&a);
    if (now->schedule_way == BY_PLACE ? !is_place(pc)
                                      : left == 0 || --left != 0)
        return;
    note_step((struct step){.step_what = "accesses", .step_pc = pc});
    f->fiber_access = a;
    accesses++;
    switch_by_seed();
    f->fiber_access = (struct access){0};
    accesses--;
}

/* ---- the scheduler ------------------------------------------------------ */

static unsigned in_state(enum state state, unsigned from)
{
    unsigned best = EXPLORE_TASKS;

    for (unsigned i = 0; i < now->schedule_tasks; i++) {
        unsigned k = (from + i) % now->schedule_tasks;

        if (fibers[k].fiber_state != state || !has_cpu(&fibers[k]))
            continue;
        if (!by_priority())
            return k;
        if (best == EXPLORE_TASKS ||
            fibers[k].fiber_priority > fibers[best].fiber_priority)
            best = k;
    }
    return best;
}

static void print_locks(unsigned i)
{
    const struct fiber *f = &fibers[i];
    const struct host_task *t = &f->fiber_task;

    printf("  task %u", i);
    if (f->fiber_lock != NULL)
        printf(" spins for \"%s\"", f->fiber_lock->lock_name);
    for (unsigned n = 0; n < t->task_locks; n++)
        printf("%s \"%s\"", n == 0 ? ", holds" : "",
               t->task_lock[n]->lock_name);
    printf("\n");
}

static void check_deadlock(void)
{
    bool done = true;

    for (unsigned i = 0; i < now->schedule_tasks; i++)
        done &= fibers[i].fiber_state == DONE;
    if (done)
        return;
    for (unsigned i = 0; i < now->schedule_tasks; i++)
        if (fibers[i].fiber_state != DONE)
            print_locks(i);
    explore_failed("deadlock: no task can run");
}

/* The task that runs next; EXPLORE_TASKS: all are done. */
static unsigned choose(void)
{
    unsigned from = now->schedule_way == BY_STOPS
                        ? turn
                        : test_random(&chance) % now->schedule_tasks;
    unsigned i;

    for (i = 0; i < now->schedule_tasks; i++)
        if (fibers[i].fiber_state == CALLING && may_go_on(i))
            fibers[i].fiber_state = READY;
    i = in_state(READY, from);
    if (i == EXPLORE_TASKS)
        i = in_state(WAITING, from);
    if (i == EXPLORE_TASKS)
        check_deadlock();
    return i;
}

static void start(unsigned i, explore_fn_t *run)
{
    struct fiber *f = &fibers[i];
    ucontext_t *c = &f->fiber_place.place_context;

    if (f->fiber_stack == NULL)
        f->fiber_stack = malloc(STACK_BYTES);
    f->fiber_task.task_locks = 0;
    f->fiber_task.task_inside = false;
    f->fiber_state = READY;
    f->fiber_run = run;
    f->fiber_cpu = NO_CPU;
    f->fiber_interrupted = false;
    f->fiber_priority = lowest + test_random(&chance) % 1024;
    f->fiber_points = 0;
    f->fiber_waits = 0;
    f->fiber_lock = NULL;
    f->fiber_access = (struct access){0};
    f->fiber_place.place_begins = true;
    getcontext(c);
    c->uc_stack.ss_sp = f->fiber_stack;
    c->uc_stack.ss_size = STACK_BYTES;
    c->uc_link = NULL;
    makecontext(c, begin, 0);
}

static const struct host_explorer explorer = {point, taken, block, call,
                                              failed};

void explore_show(const char *schedule)
{
    snprintf(shown, sizeof(shown), "%s", schedule);
}

/* Whether this is the schedule to show. */
static bool is_shown(const struct schedule *s)
{
    char text[32];
    int n;

    if (s->schedule_way != BY_STOPS)
        return strcmp(s->schedule_name, shown) == 0;
    n = snprintf(text, sizeof(text), "%u", s->schedule_stop[0]);
    if (s->schedule_stop[1] != NEVER)
        snprintf(text + n, sizeof(text) - (size_t)n, ",%u",
                 s->schedule_stop[1]);
    return strcmp(text, shown) == 0;
}

/* Sets out a schedule from its seed. */
static void plan(const struct schedule *s)
{
    now = s;
    turn = 0;
    steps_begin();
    explore_switches = 0;
    chance = s->schedule_seed;
    lowest = INT32_MAX;
    left = 0;
    accesses = 0;
    is_called = false;
    places_left = s->schedule_depth;
    interrupts_left = s->schedule_interrupt != NULL ? INTERRUPTS : 0;
    memset(places, 0, sizeof(places));
    memset(cpus, 0, sizeof(cpus));
    all_steps = shown[0] != '\0' && is_shown(s);
    if (s->schedule_way == BY_PRIORITY)
        plan_changes();
    if (s->schedule_way != BY_STOPS)
        plan_switch();
}

void explore_run(const struct schedule *s, explore_fn_t *const *run)
{
    const struct host_explorer *before = host_explorer;
    struct host_task *self = host_self;
    unsigned next;

    plan(s);
    host_print_clear();
    for (unsigned i = 0; i < s->schedule_tasks; i++)
        start(i, run[i]);
    host_explorer = &explorer;
    host_wait = wait_for_memory;
    explore_runs = true;
    while ((next = choose()) != EXPLORE_TASKS)
        resume(next);
    explore_runs = false;
    host_explorer = before;
    host_wait = NULL;
    host_self = self;
    host_task = 1;
    host_cpu = 0;
    if (all_steps)
        steps_print(true);
}

/* Before and after the tasks run: a panic is a failure of the schedule. */
static void no_point(const char *what, const mm_lock_t *lock, const char *file,
                     int line)
{
    (void)what;
    (void)lock;
    (void)file;
    (void)line;
}

void explore_guard(void)
{
    static const struct host_explorer guard = {no_point, NULL, block, NULL,
                                               failed};

    host_explorer = &guard;
}

/* ---- all schedules of two tasks ----------------------------------------- */

/* One schedule; false if it is none: a task ended before its stop. */
static bool one(const struct explore_case *c, struct schedule *s)
{
    struct budget before = budget_begin("the schedule", EXPLORE_STEPS);

    c->make();
    explore_run(s, c->run);
    c->check();
    budget_end(before);
    for (unsigned i = 0; i < 2; i++)
        if (s->schedule_stop[i] != NEVER &&
            fibers[i].fiber_points < s->schedule_stop[i])
            return false;
    return true;
}

size_t explore_case(const struct explore_case *c, bool deep)
{
    struct schedule s = {
        .schedule_name = c->case_name, .schedule_tasks = 2, .schedule_cpus = 2};
    size_t n = 0;
    bool more = true;

    explore_guard();
    for (s.schedule_stop[0] = 1; more; s.schedule_stop[0]++) {
        s.schedule_stop[1] = NEVER;
        more = one(c, &s);
        n++;
        s.schedule_stop[1] = 1;
        for (; deep && more && one(c, &s); n++)
            s.schedule_stop[1]++;
    }
    return n;
}

void explore_all(const struct explore_case *c)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        explore_case(c, true);
        budget_exit(0);
    }
    if (budget_wait(pid) != 0)
        KT_FAIL("%s: a schedule fails", c->case_name);
}
