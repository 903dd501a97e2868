/*
 * Port 0xE9: a write-only side channel on which the kernel reports events to
 * tools, one JSON object per line, so that console text stays free to change.
 */
#pragma once

#include "kernel/lib/types.h"

/* True if somebody takes what is written; if not, it is dropped. */
bool debugcon_present(void);

/* Writes the formatted text and a newline. The caller writes the braces. */
void debugcon_event(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Writes `n` bytes, at most DEBUGCON_LINE_MAX, as one line. */
#define DEBUGCON_LINE_MAX 511
void debugcon_line(const char *text, size_t n);

/* Makes of `text` what may stand between the quotes of a JSON string, cut if it
 * does not fit. */
void debugcon_escape(const char *text, char *out, size_t size);
