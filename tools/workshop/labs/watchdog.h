/*
 * A watchdog: ends a test that hangs, even with interrupts disabled.
 */
#pragma once

#include "kernel/x86/trap.h"

/* After `seconds` of the machine's time, 2 to 30, an interrupt that nothing can
 * mask calls `fn`, once. Starts anew if it runs already. */
void watchdog_start(unsigned seconds, trap_handler_t fn);
void watchdog_stop(void);
