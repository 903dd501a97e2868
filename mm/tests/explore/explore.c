/*
 * Fibers, and the schedules that they follow; explore.h says what for.
 */
#include "mm/tests/explore/explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
#else
#define START_SWITCH(save, bottom, size)  ((void)(save))
#define FINISH_SWITCH(save, bottom, size) ((void)(save))
#endif

#define STACK_BYTES KIB(256)
#define STEPS       2000 /* the last ones are kept for a report */
#define WAITS       50   /* waits for memory while no other task can run */

enum state {
    READY,
    BLOCKED,
    WAITING,
    DONE
};

static struct fiber {
    struct host_task fiber_task;
    enum state fiber_state;
    explore_fn_t *fiber_run;
    uint32_t fiber_points;
    unsigned fiber_waits;
    const mm_lock_t *fiber_lock; /* it is blocked on */
    ucontext_t fiber_context;
    void *fiber_stack;
    void *fiber_fake; /* the address sanitizer's */
} fibers[EXPLORE_TASKS];

struct step {
    unsigned step_task;
    uint32_t step_point;
    const char *step_what;
    const mm_lock_t *step_lock;
    const char *step_file;
    int step_line;
};

static const struct schedule *now;
static ucontext_t scheduler;
static void *scheduler_fake;
/* Of use to the address sanitizer only. */
static const void *scheduler_stack __attribute__((unused));
static size_t scheduler_stack_size __attribute__((unused));
static unsigned running; /* the fiber that has the processor */
static unsigned turn;    /* the next one to have it, if it is ready */
static uint32_t chance;
static char shown[32]; /* the stops of the schedule whose steps are printed */
static bool all_steps;
static struct step steps[STEPS];
static size_t step_count;

size_t explore_step(unsigned task, const mm_lock_t *lock, unsigned skip)
{
    for (size_t i = step_count; i > 0 && i + STEPS > step_count; i--) {
        const struct step *s = &steps[(i - 1) % STEPS];

        if (s->step_task == task && s->step_lock == lock && skip-- == 0)
            return i;
    }
    return 0;
}

/* ---- the report --------------------------------------------------------- */

static void print_name(void)
{
    if (now == NULL) {
        printf("(before any)");
        return;
    }
    if (now->schedule_rate != 0) {
        printf("mmtest -r %u 1", now->schedule_seed);
        return;
    }
    printf("%s", now->schedule_name);
    for (unsigned i = 0; i < 2 && now->schedule_stop[i] != NEVER; i++)
        printf("%c%u", i == 0 ? '@' : ',', now->schedule_stop[i]);
}

static void print_step(const struct step *s)
{
    const char *name = s->step_lock == NULL ? "" : s->step_lock->lock_name;

    printf("  task %u, point %u: %s %s (%s:%d)\n", s->step_task, s->step_point,
           s->step_what, name, s->step_file, s->step_line);
}

/* Steps at which another task goes on, and the last one. */
static void print_steps(void)
{
    size_t first = step_count > STEPS ? step_count - STEPS : 0;

    for (size_t i = first; i < step_count; i++) {
        const struct step *s = &steps[i % STEPS];

        if (i + 1 == step_count || all_steps ||
            steps[(i + 1) % STEPS].step_task != s->step_task)
            print_step(s);
    }
}

void explore_failed(const char *fmt, ...)
{
    va_list ap;

    host_explorer = NULL;
    printf("schedule ");
    print_name();
    printf(": ");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    print_steps();
    if (host_printed[0] != '\0')
        printf("%s", host_printed);
    fflush(stdout);
    _exit(1);
}

static void failed(const char *why)
{
    explore_failed("%s", why);
}

/* ---- fibers ------------------------------------------------------------- */

/* Switches to the scheduler. */
static void leave(enum state state)
{
    struct fiber *f = &fibers[running];

    f->fiber_state = state;
    START_SWITCH(state == DONE ? NULL : &f->fiber_fake, scheduler_stack,
                 scheduler_stack_size);
    swapcontext(&f->fiber_context, &scheduler);
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

    running = i;
    host_self = &f->fiber_task;
    host_task = i + 1;
    START_SWITCH(&scheduler_fake, f->fiber_stack, STACK_BYTES);
    swapcontext(&scheduler, &f->fiber_context);
    FINISH_SWITCH(scheduler_fake, NULL, NULL);
}

static bool by_chance(uint32_t rate)
{
    return test_random(&chance) % rate == 0;
}

/* Whether the running task stops at this point. */
static bool stops(const struct fiber *f)
{
    if (now->schedule_rate != 0)
        return by_chance(now->schedule_rate);
    return running < 2 && f->fiber_points == now->schedule_stop[running];
}

static unsigned another(void)
{
    return (running + 1) % now->schedule_tasks;
}

static void note(const char *what, const mm_lock_t *lock, const char *file,
                 int line)
{
    steps[step_count++ % STEPS] = (struct step){
        .step_task = running,
        .step_point = fibers[running].fiber_points,
        .step_what = what,
        .step_lock = lock,
        .step_file = file,
        .step_line = line,
    };
}

/* The tasks that are blocked on a lock which is free now. */
static bool unblock(const mm_lock_t *lock)
{
    bool wanted = false;

    for (unsigned i = 0; i < now->schedule_tasks; i++)
        if (fibers[i].fiber_state == BLOCKED && fibers[i].fiber_lock == lock) {
            fibers[i].fiber_state = READY;
            wanted |= i == turn;
        }
    return wanted && now->schedule_rate == 0;
}

static void point(const char *what, const mm_lock_t *lock, const char *file,
                  int line)
{
    struct fiber *f = &fibers[running];
    bool wanted = lock != NULL && lock->lock_owner == NULL && unblock(lock);

    f->fiber_points++;
    note(what, lock, file, line);
    if (stops(f)) {
        turn = another();
        wanted = true;
    }
    if (wanted)
        leave(READY);
}

static void block(mm_lock_t *lock)
{
    note("blocked on", lock, "", 0);
    fibers[running].fiber_lock = lock;
    leave(BLOCKED);
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

/* ---- the scheduler ------------------------------------------------------ */

static unsigned in_state(enum state state, unsigned from)
{
    for (unsigned i = 0; i < now->schedule_tasks; i++) {
        unsigned k = (from + i) % now->schedule_tasks;

        if (fibers[k].fiber_state == state)
            return k;
    }
    return EXPLORE_TASKS;
}

/* The task that runs next; EXPLORE_TASKS: all are done. */
static unsigned choose(void)
{
    unsigned from =
        now->schedule_rate == 0 ? turn : test_random(&chance) % EXPLORE_TASKS;
    unsigned i = in_state(READY, from);

    if (i == EXPLORE_TASKS)
        i = in_state(WAITING, from);
    if (i == EXPLORE_TASKS && in_state(BLOCKED, 0) != EXPLORE_TASKS)
        explore_failed("all tasks are blocked on locks");
    return i;
}

static void start(unsigned i, explore_fn_t *run)
{
    struct fiber *f = &fibers[i];

    if (f->fiber_stack == NULL)
        f->fiber_stack = malloc(STACK_BYTES);
    f->fiber_task.task_locks = 0;
    f->fiber_state = READY;
    f->fiber_run = run;
    f->fiber_points = 0;
    f->fiber_waits = 0;
    getcontext(&f->fiber_context);
    f->fiber_context.uc_stack.ss_sp = f->fiber_stack;
    f->fiber_context.uc_stack.ss_size = STACK_BYTES;
    f->fiber_context.uc_link = NULL;
    makecontext(&f->fiber_context, begin, 0);
}

void explore_run(const struct schedule *s, explore_fn_t *const *run)
{
    static const struct host_explorer explorer = {point, block, failed};
    const struct host_explorer *before = host_explorer;
    struct host_task *self = host_self;
    unsigned next;

    now = s;
    turn = 0;
    step_count = 0;
    chance = s->schedule_seed;
    host_print_clear();
    for (unsigned i = 0; i < s->schedule_tasks; i++)
        start(i, run[i]);
    host_explorer = &explorer;
    host_wait = wait_for_memory;
    while ((next = choose()) != EXPLORE_TASKS)
        resume(next);
    host_explorer = before;
    host_wait = NULL;
    host_self = self;
    host_task = 1;
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
    static const struct host_explorer guard = {no_point, block, failed};

    host_explorer = &guard;
}

/* ---- all schedules of two tasks ----------------------------------------- */

void explore_show(const char *stops)
{
    snprintf(shown, sizeof(shown), "%s", stops);
}

/* Whether this is the schedule to show. */
static bool is_shown(const struct schedule *s)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%u", s->schedule_stop[0]);

    if (s->schedule_stop[1] != NEVER)
        snprintf(text + n, sizeof(text) - (size_t)n, ",%u",
                 s->schedule_stop[1]);
    return strcmp(text, shown) == 0;
}

/* One schedule; false if it is none: a task ended before its stop. */
static bool one(const struct explore_case *c, struct schedule *s)
{
    all_steps = shown[0] != '\0' && is_shown(s);
    c->make();
    explore_run(s, c->run);
    if (all_steps)
        print_steps();
    c->check();
    for (unsigned i = 0; i < 2; i++)
        if (s->schedule_stop[i] != NEVER &&
            fibers[i].fiber_points < s->schedule_stop[i])
            return false;
    return true;
}

size_t explore_case(const struct explore_case *c, bool deep)
{
    struct schedule s = {.schedule_name = c->case_name, .schedule_tasks = 2};
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
    int status;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        explore_case(c, true);
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        KT_FAIL("%s: a schedule fails", c->case_name);
}
