/*
 * /proc, and the tables in it that the kernel shell prints.
 */
#pragma once

#include "kernel/fs/inode.h"
#include "kernel/task/task.h"

extern struct fs proc_fs;

/* Writes to `to`, as printf does. */
typedef void proc_print_t(void *to, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Prints what the kernel shell's command `ps` prints. */
void proc_tasks(proc_print_t *print, void *to);

/* Prints what the kernel shell's command `sessions` prints. */
void proc_sessions(proc_print_t *print, void *to, bool json);

/* "ready", "running", "blocked" or "ended". */
const char *proc_state(enum task_state state);

/* Prints what the kernel shell's command `kmastat` does, or, `all`, a wide row
 * for every cache. The shell supplies it at boot. */
typedef void proc_kmastat_t(proc_print_t *print, void *to, bool all);
void proc_set_kmastat(proc_kmastat_t *table);
