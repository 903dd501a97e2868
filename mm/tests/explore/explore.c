/*
 * Virtual processors, and the schedules that tasks follow; explore.h says what
 * for.
 */
#include "mm/tests/explore/explore.h"
#include "mm/tests/explore/steps.h"

#include <stdio.h>
#include <string.h>

#define WAITS   50          /* waits for memory while no other task can run */
#define CALLING FIBER_OTHER /* waits for its turn, or for a processor */
#define NO_CPU  FIBERS_MAX
#define INTERRUPTS                                                             \
    16 /* of a schedule, at most: reaping, which they undo, ends */
#define PLACES 16384 /* in a schedule, at most; a power of two */
#define FIRST  3     /* accesses of an instruction are its first */

const long long fibers_budget = 150000000; /* 20 times what the longest takes */

/* What belongs to a fiber here. */
static struct task {
    struct host_task task_host;
    unsigned task_cpu; /* NO_CPU: it is on none */
    bool task_interrupted;
    uint32_t task_priority;
    unsigned task_waits;
    unsigned task_awaits; /* CALLING: a processor, or NO_CPU: its turn */
    struct access {
        uintptr_t access_from, access_end; /* equal: none */
        enum explore_access access_kind;
        uintptr_t access_pc;
    } task_access; /* it is about to make */
} tasks[FIBERS_MAX];

static const struct schedule *now;
static unsigned cpus[FIBERS_MAX]; /* the tasks that they run, or NO_FIBER */
static bool is_called;            /* by a task */
static uint32_t chance;
static uint32_t left; /* points up to the next switch from a seed; 0: none */
static uint32_t changes[2]; /* BY_PRIORITY: points between changes */
static uint32_t lowest;     /* priority */
static unsigned places_left, interrupts_left;

/* How often a schedule was at an instruction, or took or released a lock in a
 * line. If two of them shared a count, the schedule would depend on where the
 * program was linked. */
static struct place {
    uintptr_t place_at;      /* the instruction, or the file's name */
    int place_line;          /* 0: an instruction */
    uint32_t place_schedule; /* that of another one is free */
    uint8_t place_count;
} places[PLACES];
static uint32_t schedules; /* so far */

static unsigned accesses; /* tasks that are about to make one */
uint64_t explore_switches;
static char shown[64]; /* the schedule whose steps are printed */
static bool all_steps;

/* ---- the report --------------------------------------------------------- */

static void print_locks(unsigned i)
{
    const struct host_task *t = &tasks[i].task_host;
    const mm_lock_t *lock = fibers[i].fiber_lock;

    if (lock == NULL && t->task_locks == 0)
        return;
    printf("  task %u", i);
    if (lock != NULL)
        printf(" spins for \"%s\"", lock->lock_name);
    for (unsigned n = 0; n < t->task_locks; n++)
        printf("%s \"%s\"", n == 0 ? ", holds" : "",
               t->task_lock[n]->lock_name);
    printf("\n");
}

void fibers_report(void)
{
    host_explorer = NULL;
    for (unsigned i = 0; i < fibers_count; i++)
        print_locks(i);
    steps_print(all_steps);
    if (host_printed[0] != '\0')
        printf("%s", host_printed);
}

static void failed(const char *why)
{
    fibers_failed("%s", why);
}

/* ---- processors --------------------------------------------------------- */

/* Whether interrupts are disabled where the task is. */
static bool is_pinned(unsigned task)
{
    const struct task *t = &tasks[task];

    return t->task_host.task_locks != 0 || fibers[task].fiber_lock != NULL ||
           t->task_interrupted || t->task_host.task_inside;
}

static void leave_cpu(unsigned task)
{
    if (tasks[task].task_cpu != NO_CPU)
        cpus[tasks[task].task_cpu] = NO_FIBER;
    tasks[task].task_cpu = NO_CPU;
}

/* Whether the processor has no task, or one that can be preempted. */
static bool is_free(unsigned cpu)
{
    return cpus[cpu] == NO_FIBER || !is_pinned(cpus[cpu]);
}

/* The first free processor from this one on, or NO_CPU. */
static unsigned free_cpu(unsigned from)
{
    for (unsigned i = 0; i < now->schedule_cpus; i++) {
        unsigned k = (from + i) % now->schedule_cpus;

        if (is_free(k))
            return k;
    }
    return NO_CPU;
}

/* Gives the task a processor, whose task, if it has one, is preempted. */
static void enter_cpu(unsigned task)
{
    unsigned cpu;

    if (tasks[task].task_cpu != NO_CPU)
        return;
    cpu = free_cpu(test_random(&chance) % now->schedule_cpus);
    if (cpus[cpu] != NO_FIBER)
        leave_cpu(cpus[cpu]);
    cpus[cpu] = task;
    tasks[task].task_cpu = cpu;
}

/* ---- points ------------------------------------------------------------- */

static void note_step(struct step s)
{
    s.step_task = fibers_running;
    s.step_point = fibers[fibers_running].fiber_points;
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

static struct place *find_place(uintptr_t at, int line)
{
    uint32_t hash = ((uint32_t)at + 4096u * (uint32_t)line) * 0x9e3779b1u >> 12;

    for (uint32_t i = hash; i != hash + PLACES; i++) {
        struct place *p = &places[i % PLACES];

        if (p->place_schedule != schedules)
            *p = (struct place){at, line, schedules, 0};
        if (p->place_at == at && p->place_line == line)
            return p;
    }
    fibers_failed("it has more than %d places", PLACES);
}

/* Whether to switch at this instruction, or lock in a line. */
static bool is_place(uintptr_t at, int line)
{
    struct place *p;

    if (places_left == 0)
        return false;
    p = find_place(at, line);
    if (p->place_count == FIRST)
        return false;
    p->place_count++;
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

static void interrupt(struct task *t)
{
    interrupts_left--;
    note("is interrupted", NULL, "", 0);
    t->task_interrupted = true;
    now->schedule_interrupt();
    t->task_interrupted = false;
}

/* Another task may run; or an interrupt comes. */
static void switch_by_seed(void)
{
    struct task *t = &tasks[fibers_running];

    plan_switch();
    if (by_priority())
        t->task_priority = --lowest;
    else if (interrupts_left != 0 && !is_pinned(fibers_running) &&
             test_random(&chance) % 4 == 0)
        interrupt(t);
    fibers_leave(FIBER_READY);
}

/* Whether one of the tasks in a set is to run at once: it has a free lock. */
static bool is_urgent(unsigned set)
{
    uint32_t priority = tasks[fibers_running].task_priority;

    for (unsigned i = 0; i < fibers_count; i++)
        if ((set >> i & 1) != 0 && (now->schedule_way == BY_STOPS ||
                                    (now->schedule_way == BY_PRIORITY &&
                                     tasks[i].task_priority > priority)))
            return true;
    return false;
}

static void point(const char *what, const mm_lock_t *lock, const char *file,
                  int line)
{
    unsigned released = 0;
    bool stops;

    if (fibers_running == NO_FIBER)
        return;
    stops = fibers_point();
    note(what, lock, file, line);
    if (lock != NULL && lock->lock_owner == NULL)
        released = fibers_release(lock);
    if (now->schedule_way == BY_PLACE ? is_place((uintptr_t)file, line)
                                      : left != 0 && --left == 0)
        switch_by_seed();
    else if (stops || (released != 0 && is_urgent(released)))
        fibers_leave(FIBER_READY);
}

/* A lock has been taken. */
static void taken(const mm_lock_t *lock, const char *file, int line)
{
    if (fibers_running != NO_FIBER && now->schedule_way != BY_STOPS)
        point("has", lock, file, line);
}

static void block(mm_lock_t *lock)
{
    FIBERS_TRUE(fibers_running != NO_FIBER); /* else none could release it */
    note("spins for", lock, "", 0);
    fibers_spin(lock);
}

static bool may_go_on(unsigned task)
{
    unsigned cpu = tasks[task].task_awaits;

    if (cpu == NO_CPU)
        return !is_called;
    return cpus[cpu] == task || is_free(cpu);
}

static void await(unsigned cpu)
{
    tasks[fibers_running].task_awaits = cpu;
    while (!may_go_on(fibers_running))
        fibers_leave(CALLING);
}

/* mm_call_all: an interrupt on each processor, one after the other. Meanwhile
 * the caller has interrupts disabled, and so has the processor. */
static bool call(void (*fn)(void *arg), void *arg)
{
    struct task *t = &tasks[fibers_running];
    unsigned mine;

    if (fibers_running == NO_FIBER)
        return false;
    if (t->task_interrupted) {
        t->task_host.task_inside = true;
        fn(arg);
        t->task_host.task_inside = false;
        return true;
    }
    point("calls all", NULL, "", 0);
    await(NO_CPU);
    is_called = true;
    t->task_host.task_inside = true;
    mine = t->task_cpu;
    for (unsigned cpu = 0; cpu < now->schedule_cpus; cpu++) {
        await(cpu);
        if (cpu != mine && cpus[cpu] != NO_FIBER)
            leave_cpu(cpus[cpu]);
        cpus[cpu] = fibers_running;
        host_cpu = t->task_cpu = cpu;
        fn(arg);
        if (cpu != mine)
            cpus[cpu] = NO_FIBER;
        host_cpu = t->task_cpu = mine;
    }
    t->task_host.task_inside = false;
    is_called = false;
    point("has called all", NULL, "", 0);
    return true;
}

/* mm_wait_for_memory. False if no task is left that could free any. */
static bool wait_for_memory(void)
{
    struct task *t = &tasks[fibers_running];

    note("waits for memory", NULL, "", 0);
    fibers_leave(FIBER_WAITING);
    return t->task_waits++ < WAITS;
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
    for (unsigned i = 0; i < fibers_count; i++) {
        const struct access *b = &tasks[i].task_access;

        if (i == fibers_running || !conflict(a, b))
            continue;
        print_access(fibers_running, a);
        print_access(i, b);
        fibers_failed("two accesses that no lock orders");
    }
}

void explore_access(const void *at, size_t size, enum explore_access access,
                    uintptr_t pc)
{
    struct task *t = &tasks[fibers_running];
    struct access a = {(uintptr_t)at, (uintptr_t)at + size, access, pc};

    if (accesses != 0)
        check_access(&a);
    if (now->schedule_way == BY_PLACE ? !is_place(pc, 0)
                                      : left == 0 || --left != 0)
        return;
    note_step((struct step){.step_what = "accesses", .step_pc = pc});
    t->task_access = a;
    accesses++;
    switch_by_seed();
    t->task_access = (struct access){0};
    accesses--;
}

/* ---- the scheduler ------------------------------------------------------ */

/* A task that waits for memory runs if no other can. */
static int64_t rank(unsigned task)
{
    enum fiber_state state = fibers[task].fiber_state;

    if ((state != FIBER_READY && state != FIBER_WAITING) ||
        (tasks[task].task_cpu == NO_CPU && free_cpu(0) == NO_CPU))
        return -1;
    return (state == FIBER_READY ? INT64_C(1) << 32 : 0) +
           (by_priority() ? tasks[task].task_priority : 0);
}

static unsigned choose(unsigned from)
{
    for (unsigned i = 0; i < fibers_count; i++)
        if (fibers[i].fiber_state == CALLING && may_go_on(i))
            fibers[i].fiber_state = FIBER_READY;
    if (now->schedule_way != BY_STOPS)
        from = test_random(&chance) % fibers_count;
    return fibers_choose(from, rank);
}

static void run(unsigned task)
{
    explore_switches++;
    enter_cpu(task);
    host_self = &tasks[task].task_host;
    host_task = task + 1;
    host_cpu = tasks[task].task_cpu;
    fibers_resume(task);
    if (fibers[task].fiber_state == FIBER_WAITING)
        leave_cpu(task);
    if (fibers[task].fiber_state != FIBER_DONE)
        return;
    leave_cpu(task);
    host_check_unlocked("is held after the task's end");
    for (unsigned i = 0; i < fibers_count; i++)
        if (fibers[i].fiber_state == FIBER_WAITING)
            fibers[i].fiber_state = FIBER_READY;
}

/* Sets out a schedule from its seed. */
static void plan(void)
{
    steps_begin();
    explore_switches = 0;
    chance = now->schedule_seed;
    lowest = INT32_MAX;
    left = 0;
    accesses = 0;
    is_called = false;
    places_left = now->schedule_depth;
    interrupts_left = now->schedule_interrupt != NULL ? INTERRUPTS : 0;
    schedules++;
    all_steps = shown[0] != '\0' && strcmp(fibers_name(), shown) == 0;
    if (now->schedule_way == BY_PRIORITY)
        plan_changes();
    if (now->schedule_way != BY_STOPS)
        plan_switch();
    for (unsigned i = 0; i < FIBERS_MAX; i++)
        cpus[i] = NO_FIBER;
    for (unsigned i = 0; i < fibers_count; i++)
        tasks[i] = (struct task){.task_cpu = NO_CPU,
                                 .task_priority =
                                     lowest + test_random(&chance) % 1024};
}

void fibers_play(unsigned first)
{
    struct host_task *self = host_self;
    unsigned next = first;

    plan();
    host_print_clear();
    host_wait = wait_for_memory;
    while ((next = choose(next)) != NO_FIBER)
        run(next++);
    host_wait = NULL;
    host_self = self;
    host_task = 1;
    host_cpu = 0;
    if (all_steps)
        steps_print(true);
}

void explore_show(const char *schedule)
{
    snprintf(shown, sizeof(shown), "%s", schedule);
}

void explore_run(const struct schedule *s, const struct fiber_case *c)
{
    now = s;
    fibers_schedule(c);
}

void explore_guard(void)
{
    static const struct host_explorer explorer = {point, taken, block, call,
                                                  failed};

    host_explorer = &explorer;
}

/* ---- all schedules of two tasks ----------------------------------------- */

size_t explore_case(const struct fiber_case *c, bool deep)
{
    static const struct schedule by_stops = {.schedule_cpus = 2};

    explore_guard();
    now = &by_stops;
    return fibers_all(c, 0, 0, deep);
}

static void explore_deep(const void *c)
{
    explore_case(c, true);
}

void explore_all(const char *name, void (*make)(void), void (*first)(void),
                 void (*second)(void), void (*check)(void))
{
    struct fiber_case c = {name, make, {first, second}, check};

    if (fibers_apart(explore_deep, &c) != 0)
        KT_FAIL("%s: a schedule fails", name);
}
