/*
 * Port 0xE9: a side channel on which the kernel reports events to tools, one
 * JSON object per line, so that console text may change.
 */
#pragma once

#include "kernel/lib/types.h"

/* Whether the port exists; if not, output is dropped. */
bool debugcon_present(void);

/* Writes the formatted text and a newline. The caller writes the braces. */
void debugcon_event(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Writes `n` bytes, at most DEBUGCON_LINE_MAX, as one line. */
#define DEBUGCON_LINE_MAX 511
void debugcon_line(const char *text, size_t n);

/* Escapes `text` for use in a JSON string; truncates what does not fit. */
void debugcon_escape(const char *text, char *out, size_t size);
