/*
 * The end of normal operation: a report, and the kernel shell on the stopped
 * machine. All floors may panic; kernel/panic.c knows how.
 */
#pragma once

#include "kernel/lib/types.h"

struct trapframe;

/* Reports the text, the registers and the callers, and stops the machine in
 * the kernel shell. Callable anywhere. */
void panic(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn, cold));

/* The same, about the place where a trap found the machine. */
void panic_at(struct trapframe *tf, const char *text)
    __attribute__((noreturn, cold));

/* The same for an exception that has no handler. */
void panic_trap(struct trapframe *tf) __attribute__((noreturn, cold));

/* True once the machine has panicked. */
bool panic_happened(void);

/* Prints the callers again, as the report of the first panic did. */
void panic_backtrace(void);

/* Prints the callers of the code that runs now. */
void print_backtrace_here(void);

/* Prints return addresses, a line each, with the functions that they are in;
 * the first may be that of an instruction which a trap interrupted. */
void print_frames(const uintptr_t *pc, unsigned n, bool trapped);
