/*
 * Several processors on the host, over unchanged sources of the kernel.
 *
 * Each processor runs one task, which is a fiber. The sources are compiled with
 * -fsanitize=thread, so that the compiler inserts a call before each access to
 * memory; here the calls are points at which the next processor may go on
 * instead. The spin locks and the scheduler are those of fibers.c: a fiber that
 * needs a lock, or blocks, cannot go on until it gets the lock or is woken.
 *
 * A schedule says which processor begins, and at which point each of two
 * processors stops once; else each runs as far as it can, and then the next
 * one. All schedules of a case are run. One fails if no fiber can go on but one
 * has not ended (a wake-up was lost), if a fiber reaches into the stack frame
 * of another that has been left, or if the case's check fails.
 */
#pragma once

#include "kernel/task/sync.h"

#define FIBERS_MAX 3

struct wake_case {
    const char *case_name;
    void (*case_make)(void); /* before each schedule */
    void (*case_run[FIBERS_MAX])(void);
    void (*case_check)(void); /* after it; may be NULL */
};

#define WAKE_TRUE(e)                                                           \
    do {                                                                       \
        if (!(e))                                                              \
            fibers_failed(#e " is not true");                                  \
    } while (0)

/* Ends the process; says which schedule failed, and why. */
void fibers_failed(const char *why) __attribute__((noreturn));

/* Runs all schedules; returns how many. */
unsigned fibers_run(const struct wake_case *r);

/* The task of the fiber with this number. */
struct task *fibers_task(unsigned number);

/* As a kill does. */
void fibers_kill(struct task *t);
