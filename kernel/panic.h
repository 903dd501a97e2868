/*
 * The end of normal operation: a report, and the kernel shell on the stopped
 * machine.
 */
#pragma once

#include "kernel/lib/types.h"

/* Reports the text, the registers and the callers, and stops the machine in
 * the kernel shell. Callable anywhere. */
void panic(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn, cold));

/* True once the machine has panicked. */
bool panic_happened(void);

/* Prints the callers again, as the report of the first panic did. */
void panic_backtrace(void);

/* Prints the callers of the code that runs now. */
void print_backtrace_here(void);
