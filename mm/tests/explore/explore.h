/*
 * Exploration: tasks that run by turns over the unchanged sources of mm/.
 *
 * Each task is a fiber. It can be switched from at its points: before it takes
 * a lock, after it releases one, when it waits for memory, and where a
 * constructor, a destructor or a page supplier begins and ends. A task that
 * needs a lock which another holds is blocked until then, as on a machine with
 * several processors. The schedule alone decides where a switch happens, so a
 * schedule that fails can be run again.
 *
 * A schedule from a seed has more points: after a lock is taken, and, in the
 * program mmraces (mm/tests/races/), each access to memory. Its tasks run on
 * virtual processors. A task that holds a lock, or spins for one, has
 * interrupts disabled and stays on its processor; any other can be preempted,
 * or interrupted, and continue on another processor.
 *
 *     mmtest -x                    every pair of operations, every schedule
 *     mmtest -x A                  those whose first is A
 *     mmtest -x A+B                this pair
 *     mmtest -x A+B@7,3            one schedule of it, with all its steps
 *     mmtest -r SEED [N]           the schedules of N seeds
 */
#pragma once

#include "mm/tests/kmem_test.h"
#include "tools/test/budget.h"

#define EXPLORE_TASKS 4
#define NEVER         UINT32_MAX

/* The budget of a schedule, and of the preparation for all: 20 times what the
 * longest takes. */
#define EXPLORE_STEPS 150000000

/* What is run: each task has a function. */
typedef void explore_fn_t(unsigned task);

/* How a schedule decides where to switch. */
enum explore_way {
    BY_STOPS,    /* two tasks, at two given points */
    BY_CHANCE,   /* at one point in `rate`, to any task */
    BY_PRIORITY, /* PCT: the task with the highest priority runs; at depth - 1
                    of the first `rate` points the running task gets the lowest
                    one */
    BY_PLACE,    /* likewise, up to `depth` times: at one in `rate` of the first
                    points of each instruction or line */
};

/* BY_STOPS: task 0 runs first and stops at its point number `stop[0]`; task 1
 * runs until its point `stop[1]`; then task 0 to its end. The others follow
 * from the seed alone. */
struct schedule {
    const char *schedule_name;
    enum explore_way schedule_way;
    unsigned schedule_tasks;
    unsigned schedule_cpus;
    uint32_t schedule_stop[2];
    uint32_t schedule_seed;
    uint32_t schedule_rate;
    unsigned schedule_depth;
    explore_fn_t *schedule_interrupt; /* may run in any task; NULL: none */
};

/* Runs the tasks to their ends. A panic, a deadlock or a wrong use of a lock
 * ends the process after a report; so does explore_failed. */
void explore_run(const struct schedule *s, explore_fn_t *const *run);

/* From here to the end of the process a panic is a failure of the schedule. */
void explore_guard(void);

/* The number of the step at which a task took or released this lock, `skip`
 * such steps before its last one; 0: there is none. Later steps have higher
 * ones. */
size_t explore_step(unsigned task, const mm_lock_t *lock, unsigned skip);

/* The running task is about to access memory, with code at `pc` (mmraces). It
 * may be switched from before it does. If another task accesses the same bytes
 * then, and one of the two writes and one is not atomic, no lock orders them:
 * the schedule fails. */
enum explore_access {
    EXPLORE_READ,
    EXPLORE_WRITE,
    EXPLORE_ATOMIC
};
void explore_access(const void *at, size_t size, enum explore_access access,
                    uintptr_t pc);

/* Whether tasks run: else explore_access must not be called. */
extern bool explore_runs;

/* How many switches the last schedule had, and a number that differs (almost
 * certainly) if two schedules differ in any step. */
extern uint64_t explore_switches;
uint32_t explore_digest(void);

/* Reports what is wrong, the schedule and its last steps; ends the process. */
void explore_failed(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn));

#define EXPLORE_TRUE(e)                                                        \
    do {                                                                       \
        if (!(e))                                                              \
            explore_failed("%s:%d: not true: %s", __FILE__, __LINE__, #e);     \
    } while (0)

/* Every schedule of a case of two tasks: `make` before each, `check` after it.
 * With `deep`, task 1 stops as well. Returns how many. */
struct explore_case {
    const char *case_name;
    void (*make)(void);
    explore_fn_t *run[2];
    void (*check)(void);
};
size_t explore_case(const struct explore_case *c, bool deep);

/* The same in a process of its own: a failure fails the running test. */
void explore_all(const struct explore_case *c);

/* Prints all steps of the schedule of this name, or with these stops ("7" or
 * "7,3"). */
void explore_show(const char *schedule);
