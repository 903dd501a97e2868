/*
 * The I/O permission bit map of the TSS (Intel manual, volume 1, chapter 19):
 * which ports of devices ring 3 may use.
 *
 * It holds the ports of one task's rights, and changes only when a task with
 * other ports runs: it takes 8 KiB. For a task without ports the segment ends
 * before the map. The map is the first processor's, so tasks with ports run
 * there.
 */
#pragma once

#include "kernel/task/task.h"

/* Loads the map for `next`. Caller holds sched_lock. */
void io_map_load(const struct task *next);

/* Called at each switch: one test if neither task has ports. */
static inline void io_map_switch(const struct task *self,
                                 const struct task *next)
{
    if (unlikely((uintptr_t)self->task_ports | (uintptr_t)next->task_ports))
        io_map_load(next);
}

/* NULL, or what is wrong: the map allows exactly the ports of the task that
 * runs on the first processor. Caller holds sched_lock. */
const char *io_map_check(void);
