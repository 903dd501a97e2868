/*
 * Exploration: tasks that run by turns over the unchanged sources of mm/.
 *
 * Each task is a fiber (tools/test/fibers.h). Its points are: before it takes a
 * lock, after it releases one, and where a constructor, a destructor or a page
 * supplier begins and ends. It can also wait for memory.
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
#include "tools/test/fibers.h"

/* How a schedule decides where to switch. */
enum explore_way {
    BY_STOPS,    /* two tasks, at the stops of the fibers */
    BY_CHANCE,   /* at one point in `rate`, to any task */
    BY_PRIORITY, /* PCT: the task with the highest priority runs; at depth - 1
                    of the first `rate` points the running task gets the lowest
                    one */
    BY_PLACE,    /* likewise, up to `depth` times: at one in `rate` of the first
                    points of each instruction or line */
};

/* BY_STOPS: a task that stops lets the other one run, and so does one that
 * releases a lock which the other needs. The others follow from the seed. */
struct schedule {
    enum explore_way schedule_way;
    unsigned schedule_cpus;
    uint32_t schedule_seed;
    uint32_t schedule_rate;
    unsigned schedule_depth;
    void (*schedule_interrupt)(void); /* may run in any task; NULL: none */
};

/* Runs a case by this schedule. A panic, a deadlock or a wrong use of a lock
 * ends the process after a report; so does fibers_failed. */
void explore_run(const struct schedule *s, const struct fiber_case *c);

/* From here to the end of the process a panic is a failure of the schedule. */
void explore_guard(void);

/* The number of the step at which a task took or released this lock, `skip`
 * such steps before its last one; 0: there is none. Later steps have higher
 * ones. */
size_t explore_step(unsigned task, const mm_lock_t *lock, unsigned skip);

/* Only while a task runs: it is about to access memory, with code at `pc`
 * (mmraces). It may be switched from before it does. If another task accesses
 * the same bytes then, and one of the two writes and one is not atomic, no lock
 * orders them: the schedule fails. */
enum explore_access {
    EXPLORE_READ,
    EXPLORE_WRITE,
    EXPLORE_ATOMIC
};
void explore_access(const void *at, size_t size, enum explore_access access,
                    uintptr_t pc);

/* How many switches the last schedule had, and a number that differs (almost
 * certainly) if two schedules differ in any step. */
extern uint64_t explore_switches;
uint32_t explore_digest(void);

/* Every schedule of a case of two tasks in which task 0, which begins, stops;
 * with `deep`, task 1 stops as well. Returns how many. */
size_t explore_case(const struct fiber_case *c, bool deep);

/* The same in a process of its own: a failure fails the running test. */
void explore_all(const char *name, void (*make)(void), void (*first)(void),
                 void (*second)(void), void (*check)(void));

/* Prints all steps of the schedule of this name (fibers_name). */
void explore_show(const char *schedule);
