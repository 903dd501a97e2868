/*
 * Several processors on the host, over unchanged sources of the kernel.
 *
 * Each processor runs one task, which is a fiber (tools/test/fibers.h). The
 * sources are compiled with -fsanitize=thread, so that the compiler inserts a
 * call before each access to memory; here the calls are points at which the
 * next processor may go on instead. The spin locks and the scheduler are those
 * of wakes.c: a fiber that needs a lock, or blocks, cannot go on until it gets
 * the lock or is woken.
 *
 * Each processor runs as far as it can, and then the next one; in a schedule
 * two of them stop once. A schedule also fails if a fiber reaches into a stack
 * frame that another has left.
 */
#pragma once

#include "kernel/task/sync.h"
#include "tools/test/fibers.h"

/* Runs all schedules of a case; returns how many. */
size_t wakes_run(const struct fiber_case *c);

/* The task of the fiber with this number. */
struct task *wakes_task(unsigned number);

/* Does what a kill does. */
void wakes_kill(struct task *t);
