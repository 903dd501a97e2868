/*
 * The option budget=N: a run that takes more than N million instructions ends
 * itself. Tests use it as their time-out: unlike a second on some host, an
 * instruction means the same everywhere.
 */
#pragma once

#include "kernel/lib/types.h"

/* Exit codes (power_exit) of a run that used up its budget, and of one that
 * panicked: its clock stands still then, and nobody is there to look. */
#define BUDGET_EXIT       3
#define BUDGET_EXIT_PANIC 4

/* Sets the limit, in million ticks of the time-stamp counter from now on;
 * under QEMU's -icount shift=0 a tick is one instruction. */
void budget_set(uint32_t millions);

/* Ends the run if they have. Called at every tick of the clock. */
void budget_check(void);

/* Ends the run if it has a limit at all. For panics. */
void budget_panic(void);
