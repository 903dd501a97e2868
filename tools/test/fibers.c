/*
 * Contexts, schedules and reports; fibers.h says what for.
 */
#include "tools/test/fibers.h"
#include "tools/test/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES KIB(256)

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

/* Where a fiber, or the scheduler, goes on. */
static struct place {
    ucontext_t place_context;
    jmp_buf place_jump;
    bool place_begins;
    const void *place_stack;
    size_t place_bytes;  /* of the stack */
    uintptr_t place_esp; /* of its innermost frame, while it does not run */
    void *place_fake;    /* the address sanitizer's */
} places[FIBERS_MAX], scheduler;

struct fiber fibers[FIBERS_MAX];
unsigned fibers_count;
unsigned fibers_running = NO_FIBER;
static const struct fiber_case *now; /* NULL: none */
static unsigned first;

/* ---- the report --------------------------------------------------------- */

const char *fibers_name(void)
{
    static char name[128];
    unsigned stops = fibers_count;
    size_t n;

    if (now == NULL)
        return "(none)";
    n = (size_t)snprintf(name, sizeof(name), "%s", now->case_name);
    while (stops != 0 && fibers[stops - 1].fiber_stop == 0)
        stops--;
    for (unsigned i = 0; i < stops; i++)
        n += (size_t)snprintf(name + n, sizeof(name) - n, "%c%u",
                              i == 0 ? '@' : ',', fibers[i].fiber_stop);
    if (first != 0)
        snprintf(name + n, sizeof(name) - n, " (task %u begins)", first);
    return name;
}

void fibers_failed(const char *fmt, ...)
{
    va_list ap;

    fibers_running = NO_FIBER;
    printf("schedule %s: ", fibers_name());
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fibers_report();
    fflush(stdout);
    _exit(1);
}

/* ---- switches ----------------------------------------------------------- */

#ifndef __SANITIZE_ADDRESS__
static void begin_at(struct place *p)
{
    p->place_begins = false;
    setcontext(&p->place_context);
}
#endif

/* Returns when `from` goes on, unless that is its end. */
static void go(struct place *from, struct place *to, bool end)
{
    from->place_esp = (uintptr_t)__builtin_frame_address(0);
    START_SWITCH(end ? NULL : &from->place_fake, to->place_stack,
                 to->place_bytes);
    SWITCH(from, to);
    FINISH_SWITCH(from->place_fake, NULL, NULL);
}

void fibers_leave(enum fiber_state state)
{
    unsigned self = fibers_running;

    fibers[self].fiber_state = state;
    go(&places[self], &scheduler, state == FIBER_DONE);
}

void fibers_resume(unsigned number)
{
    fibers_running = number;
    go(&scheduler, &places[number], false);
    fibers_running = NO_FIBER;
}

static void begin(void)
{
    FINISH_SWITCH(NULL, &scheduler.place_stack, &scheduler.place_bytes);
    now->case_run[fibers_running]();
    fibers_leave(FIBER_DONE);
}

static void start(unsigned i)
{
    struct place *p = &places[i];
    ucontext_t *c = &p->place_context;

    if (p->place_stack == NULL)
        p->place_stack = malloc(STACK_BYTES);
    p->place_bytes = STACK_BYTES;
    p->place_esp = (uintptr_t)p->place_stack;
    p->place_begins = true;
    getcontext(c);
    c->uc_stack.ss_sp = (void *)p->place_stack;
    c->uc_stack.ss_size = STACK_BYTES;
    c->uc_link = NULL;
    makecontext(c, begin, 0);
    fibers[i].fiber_state = FIBER_READY;
    fibers[i].fiber_lock = NULL;
    fibers[i].fiber_points = 0;
}

bool fibers_frame_left(uintptr_t addr)
{
    for (unsigned i = 0; i < fibers_count; i++) {
        uintptr_t from = (uintptr_t)places[i].place_stack;
        uintptr_t left = fibers[i].fiber_state == FIBER_DONE
                             ? STACK_BYTES
                             : places[i].place_esp - from;

        if (i != fibers_running && addr - from < left)
            return true;
    }
    return false;
}

/* ---- points and locks --------------------------------------------------- */

bool fibers_point(void)
{
    struct fiber *f = &fibers[fibers_running];

    return ++f->fiber_points == f->fiber_stop;
}

void fibers_spin(const void *lock)
{
    struct fiber *f = &fibers[fibers_running];

    f->fiber_lock = lock;
    fibers_leave(FIBER_SPINNING);
    f->fiber_lock = NULL;
}

unsigned fibers_release(const void *lock)
{
    unsigned released = 0;

    for (unsigned i = 0; i < fibers_count; i++)
        if (fibers[i].fiber_state == FIBER_SPINNING &&
            fibers[i].fiber_lock == lock) {
            fibers[i].fiber_state = FIBER_READY;
            released |= 1u << i;
        }
    return released;
}

/* ---- schedules ---------------------------------------------------------- */

unsigned fibers_choose(unsigned from, int64_t (*rank)(unsigned number))
{
    unsigned best = NO_FIBER;
    int64_t highest = -1;
    bool done = true;

    for (unsigned i = 0; i < fibers_count; i++) {
        unsigned k = (from + i) % fibers_count;
        int64_t r = rank(k);

        done &= fibers[k].fiber_state == FIBER_DONE;
        if (r > highest) {
            best = k;
            highest = r;
        }
    }
    if (best == NO_FIBER && !done)
        fibers_failed("no task can go on, and one has not ended");
    return best;
}

void fibers_schedule(const struct fiber_case *c)
{
    struct budget before = budget_begin("the schedule", fibers_budget);

    now = c;
    for (fibers_count = 0; c->case_run[fibers_count] != NULL; fibers_count++)
        start(fibers_count);
    c->case_make();
    fibers_play(first);
    if (c->case_check != NULL)
        c->case_check();
    now = NULL;
    budget_end(before);
}

/* Whether it reached its stop: then there are schedules with later ones. */
static bool stopped(const struct fiber *f)
{
    return f->fiber_stop != 0 && f->fiber_points >= f->fiber_stop;
}

size_t fibers_all(const struct fiber_case *c, unsigned begins, unsigned stops,
                  bool deep)
{
    struct fiber *a = &fibers[stops];
    struct fiber *b = &fibers[c->case_run[stops + 1] != NULL ? stops + 1 : 0];
    size_t n = 0;

    first = begins;
    do {
        a->fiber_stop++;
        b->fiber_stop = 0;
        do {
            b->fiber_stop += deep;
            fibers_schedule(c);
            n++;
        } while (stopped(b) && stopped(a));
    } while (stopped(a));
    a->fiber_stop = 0;
    b->fiber_stop = 0;
    first = 0;
    return n;
}

int fibers_apart(void (*fn)(const void *arg), const void *arg)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        fn(arg);
        fflush(stdout);
        budget_exit(0);
    }
    return budget_wait(pid);
}
