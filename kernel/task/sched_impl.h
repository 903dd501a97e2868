/*
 * Private to kernel/task.
 */
#pragma once

#include "kernel/task/sync.h"
#include "kernel/task/task.h"

/* The caller of each holds sched_lock. */
void sched_ready(struct task *t);
void sched_switch(void);
const char *sched_verify(size_t tasks);

/* The number of pids, and the one given last. Guarded by sched_lock. */
extern uint32_t pid_limit;
extern uint32_t pid_last;

void sched_init(struct task *boot, struct task *idle_task);
