/*
 * The VGA text display: 80 x 25 characters with a hardware cursor, and the
 * last few hundred lines to look back at.
 */
#pragma once

#include "kernel/lib/types.h"

/* Clears the screen and shows the cursor. Needs only the direct map. */
void vga_init(void);

/* Shows text as screen_write describes. */
void vga_write(const char *text, size_t n);

/* Looks `pages` screenfuls further back, or forward if negative. The next
 * output ends it. */
void vga_look(int pages);
