/*
 * Stopping at boot, if the kernel cannot start.
 */
#pragma once

#include "kernel/lib/types.h"

/* Says why on both consoles and halts for good. For boot only: later, panic. */
void halt(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn, cold));
