/*
 * How this folder reports what it cannot go on from: through functions that
 * the kernel above it supplies (kernel/panic.c).
 */
#pragma once

#include "kernel/lib/types.h"

struct trapframe;

void x86_panic(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn, cold));

/* An exception that nobody handles. Does not return unless the shell that it
 * ends in was told to continue. */
void x86_panic_trap(struct trapframe *tf);
