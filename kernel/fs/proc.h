/*
 * /proc, and the tables in it that the kernel shell prints.
 */
#pragma once

#include "kernel/fs/inode.h"
#include "kernel/lib/string.h"
#include "kernel/lib/table.h"
#include "kernel/task/task.h"

extern struct fs proc_fs;

/* Files with tables that the kernel shell prints as well. */
extern const struct table_source proc_buddyinfo, proc_meminfo, proc_tasks,
    proc_sessions, proc_servers;

/* The table of the kernel shell's command `mounts`, whose columns these are.
 * `path` is room for a path and for the same with its blanks escaped. No server
 * is asked. */
extern const struct column proc_mount_columns[];
#define PROC_PATHS (PATH_MAX + ESCAPED_SIZE(PATH_MAX))
void proc_mounts(const struct table *t, char path[PROC_PATHS]);
