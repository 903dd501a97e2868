/*
 * /proc, and the tables in it that the kernel shell prints.
 */
#pragma once

#include "kernel/fs/inode.h"
#include "kernel/lib/table.h"
#include "kernel/task/task.h"

extern struct fs proc_fs;

/* The tables of the kernel shell's commands `ps` and `sessions`, for the rows
 * that these functions print. */
extern const struct column proc_task_columns[], proc_session_columns[];
void proc_tasks(const struct table *t);
void proc_sessions(const struct table *t);

/* Prints what the kernel shell's command `kmastat` does, or, `all`, a row of
 * exact numbers for every cache. The shell supplies it at boot. */
typedef void proc_kmastat_t(print_t *print, void *to, bool all);
void proc_set_kmastat(proc_kmastat_t *table);
