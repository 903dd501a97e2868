/*
 * The output of a command at a terminal stops after each screenful and waits
 * for a key, in the manner of `more`.
 */
#pragma once

#include "kernel/lib/types.h"

/* A line was typed. If this was at a terminal, the output of the calling task
 * with interrupts enabled is paged, until it moves the cursor. */
void pager_begin(void);

/* Text is shown as it comes, as until pager_begin(). */
void pager_end(void);

/* The same as console_echo, a page at a time. */
void pager_echo(const char *s, size_t n);

/* The command's report ends in what matters, such as a sum: it is shown to its
 * end without a stop, and pager_report_ended() says how to see its head if that
 * is no longer on the screen. */
void pager_to_end(void);
void pager_report_ended(void);

/* True if the user wants no more: the rest is dropped. */
bool pager_quit(void);
