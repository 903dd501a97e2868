/*
 * Shared by the commands that show the users of memory: callers, stacks, ages.
 *
 *     cmd_debug.c         debug          cmd_log.c           log
 *     cmd_kmem_users.c    cache -u leaks cmd_kmem_objects.c  cache -o
 */
#pragma once

#include "kernel/shell/cmd_kmem.h"
#include "mm/debug/debug.h"

#define DEBUGCMD_CALLER 40 /* characters of a caller, NUL included */

/* "function+0x1c" of the caller of the allocator, "-" if it is not known.
 * Returns `text` or "-". */
const char *debugcmd_caller(const struct kmem_transaction *t,
                            char text[DEBUGCMD_CALLER]);

/* Prints the callers, nearest first, in lines of at most 80 columns after
 * `indent` blanks. Nothing if there are none. */
void debugcmd_print_stack(const struct kmem_transaction *t, unsigned indent);

/* The callers as a JSON array of strings. */
void debugcmd_json_stack(const struct kmem_transaction *t);

/* Prints the pointers to the object at an address; words on the stack below
 * `stack_end` are the command's own and left out. */
void debugcmd_print_refs(uintptr_t addr, uintptr_t stack_end);

/* Seconds with six decimals, as the reports have them: "12.000345". */
const char *debugcmd_seconds(uint64_t us, char buf[HEAP_CELL]);

/* How long ago a transaction was, in microseconds. */
uint64_t debugcmd_ago(const struct kmem_transaction *t);

/* The same as a cell; "-" if there was none. */
const char *debugcmd_age(const struct kmem_transaction *t, char buf[HEAP_CELL]);

/* Prints "WHAT by task 3 (sh), 12.000345 s ago" and the stack. */
void debugcmd_print_transaction(const char *what,
                                const struct kmem_transaction *t);

/* The newest transaction of the log on the object that is, or was, at an
 * address. False if the log has none. */
bool logcmd_newest(uintptr_t addr, struct kmem_log_entry *e);
