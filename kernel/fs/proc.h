/*
 * /proc, and the table in it that the floor above prints.
 */
#pragma once

#include "kernel/fs/inode.h"

extern struct fs proc_fs;

/* Writes as printf to `to`. */
typedef void proc_print_t(void *to, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Prints the table of caches with proc_print_t: a row per cache, no blanks in
 * a value. The kernel shell supplies it at boot. */
typedef void proc_table_t(proc_print_t *print, void *to);
void proc_set_kmastat(proc_table_t *table);
