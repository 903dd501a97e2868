/*
 * How this folder reports what it cannot go on from: through functions that
 * the kernel above it supplies (kernel/panic.c).
 */
#pragma once

#include "kernel/lib/types.h"

struct trapframe;

/* Reports the text, the registers and the callers, and stops the machine in
 * the kernel shell. Callable anywhere. */
void panic(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn, cold));

/* The same for an exception that nobody handles. */
void panic_trap(struct trapframe *tf) __attribute__((noreturn, cold));
