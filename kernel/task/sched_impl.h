/*
 * What the files of kernel/task share with one another alone.
 */
#pragma once

#include "kernel/task/sync.h"
#include "kernel/task/task.h"

/* Above every other spin lock: it may be taken with any of them held. */
#define SCHED_LOCK_RANK 50

/* With sched_lock held, all of them. */
void sched_ready(struct task *t);
void sched_switch(void);
const char *sched_verify(size_t tasks);

void sched_init(struct task *boot, struct task *idle_task);
