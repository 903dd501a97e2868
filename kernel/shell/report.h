/*
 * Reports for a debugger. GDB's `slate COMMAND` (tools/gdb/slate_report.py)
 * fills in this structure in a stopped machine, calls report_run, and reads the
 * text.
 *
 * The machine may be stopped anywhere: with locks held, in the middle of a
 * change, on a stack without room, in ring 3. So the call has a stack of its
 * own and interrupts are disabled; the kernel behaves as after a panic, where
 * locks are broken and nothing sleeps; and only reports are run (SHELL_REPORT).
 * These write static data, the locks of caches, page frames' data and free
 * pages. The debugger puts back all but the last: the machine continues as if
 * there had been no report.
 */
#pragma once

#include "kernel/shell/shell.h"

#define REPORT_TEXT 4096

extern struct report {
    char report_line[SHELL_LINE_MAX + 2]; /* too long a line is an error */
    uint32_t report_esp; /* of the code that was stopped: for `leaks` */
    uint32_t report_eax, report_ecx, report_edx;
    size_t report_length; /* of the text that has not been read yet */
    char report_text[REPORT_TEXT];
} report;

extern char report_stack_bottom[], report_stack_top[]; /* boot/entry.asm */

/* Runs the line and returns its status. Without arguments, so that any debugger
 * can call it. */
int report_run(void);

/* The text has no room for more: the debugger stops here and reads it. */
void report_full(void);
