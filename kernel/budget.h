/*
 * The option budget=N: a run that takes more than N million instructions ends
 * itself. Tests use it as their time-out: unlike a second on some host, an
 * instruction means the same everywhere.
 */
#pragma once

#include "kernel/lib/types.h"

/* The exit code of a run that used up its budget (power_exit). */
#define BUDGET_EXIT 3

/* Sets the limit, in million ticks of the time-stamp counter from now on;
 * under QEMU's -icount shift=0 a tick is one instruction. */
void budget_set(uint32_t millions);

/* Ends the run if they have. Called at every tick of the clock. */
void budget_check(void);
