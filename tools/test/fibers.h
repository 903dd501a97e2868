/*
 * Fibers: tasks of one case that take turns in one process, over unchanged
 * sources.
 *
 * A fiber runs until it leaves the processor: at one of its points, because it
 * needs a lock that another holds, or to wait. The schedule alone decides which
 * fiber goes on then, so a schedule that fails can be run again. It fails if no
 * fiber can go on and one has not ended, if its budget of steps is used up, or
 * by fibers_failed.
 *
 *     fibers_all ──> fibers_schedule ──> fibers_play ──> fibers_choose
 *                    make, check         the program's   fibers_resume ─┐
 *                                                                      │
 *                                        a fiber:        fibers_leave <─┘
 *
 * Each program defines what a point is, which fiber can go on, and what else
 * belongs to a fiber: mm/tests/explore/ and kernel/task/tests/wakes/. One uses
 * the host's headers and the other the kernel's, so this one includes neither.
 */
#pragma once

#include "kernel/lib/types.h"

#define FIBERS_MAX 4
#define NO_FIBER   FIBERS_MAX

enum fiber_state {
    FIBER_READY,
    FIBER_SPINNING, /* for fiber_lock */
    FIBER_WAITING,  /* until the program makes it ready */
    FIBER_OTHER,    /* likewise, for a reason of the program's own */
    FIBER_DONE
};

struct fiber {
    enum fiber_state fiber_state;
    const void *fiber_lock; /* that it needs; NULL: none */
    uint32_t fiber_points;  /* that it has passed */
    uint32_t fiber_stop;    /* the point at which it stops; 0: none */
};

extern struct fiber fibers[FIBERS_MAX];
extern unsigned fibers_count;   /* of the case */
extern unsigned fibers_running; /* the number of one, or NO_FIBER */

/* What is run. The list of functions, one for each fiber, ends with NULL. */
struct fiber_case {
    const char *case_name;
    void (*case_make)(void); /* before each schedule */
    void (*case_run[FIBERS_MAX + 1])(void);
    void (*case_check)(void); /* after it; may be NULL */
};

/* ---- schedules ---------------------------------------------------------- */

/* Runs one schedule, with the stops that the fibers have. A failure ends the
 * process. */
void fibers_schedule(const struct fiber_case *c);

/* All schedules in which fiber `begins` runs first, and fiber `stops` stops
 * once; if `deep`, the next fiber stops once as well. Returns how many. */
size_t fibers_all(const struct fiber_case *c, unsigned begins, unsigned stops,
                  bool deep);

/* The name of the schedule that runs: CASE@STOP,STOP,… with the stop of each
 * fiber. Valid up to the next call. */
const char *fibers_name(void);

/* Reports the schedule, what is wrong, and what fibers_report adds. Ends the
 * process with status 1. */
void fibers_failed(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn));

#define FIBERS_TRUE(e)                                                         \
    do {                                                                       \
        if (!(e))                                                              \
            fibers_failed("%s:%d: not true: %s", __FILE__, __LINE__, #e);      \
    } while (0)

/* Runs fn(arg) in a process of its own, whose steps count as this one's
 * (budget.h). Returns what waitpid sets; 0: nothing failed. */
int fibers_apart(void (*fn)(const void *arg), const void *arg);

/* ---- what each program has ---------------------------------------------- */

/* Runs the fibers, all of them ready, to their ends, `first` first: calls
 * fibers_resume while fibers_choose returns one. */
void fibers_play(unsigned first);

/* Prints what is known about a schedule that failed. */
void fibers_report(void);

/* The steps of a schedule, at most. */
extern const long long fibers_budget;

/* ---- for fibers_play ---------------------------------------------------- */

/* The fiber with the highest rank, and among equals the first one in turn,
 * starting with `from`. The rank is negative if it cannot go on. NO_FIBER: all
 * have ended. */
unsigned fibers_choose(unsigned from, int64_t (*rank)(unsigned number));

/* Runs the fiber until it leaves. */
void fibers_resume(unsigned number);

/* ---- for the fiber that runs -------------------------------------------- */

/* Counts a point. True if the fiber is to stop at it. */
bool fibers_point(void);

/* Lets others run. Returns when the fiber is resumed. */
void fibers_leave(enum fiber_state state);

/* The same until the lock is released, and perhaps taken again. */
void fibers_spin(const void *lock);

/* The lock is free: the fibers that spin for it are ready. Returns a set of
 * them: fiber i is bit i. */
unsigned fibers_release(const void *lock);

/* Whether the address is in a stack frame that another fiber has left. */
bool fibers_frame_left(uintptr_t addr);
