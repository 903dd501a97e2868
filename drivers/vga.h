/*
 * The VGA text display: 80 x 25 characters with a hardware cursor, and several
 * hundred lines to scroll back.
 */
#pragma once

#include "kernel/lib/types.h"

/* Clears the screen and shows the cursor. Needs only the direct map. */
void vga_init(void);

/* Shows text as screen_write describes. */
void vga_write(const char *text, size_t n);

/* Scrolls back `pages` screens, or forward if negative. The next output ends
 * it. */
void vga_look(int pages);
