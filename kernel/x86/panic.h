/*
 * Panic: a report, then the kernel shell on the stopped machine. Any code may
 * panic; kernel/panic.c implements it.
 */
#pragma once

#include "kernel/lib/types.h"

struct trapframe;

/* Reports the text, the registers and the callers, and stops the machine in the
 * kernel shell, or ends it. May be called anywhere. */
void panic(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn, cold));

/* The same for the place where a trap occurred. */
void panic_at(struct trapframe *tf, const char *text)
    __attribute__((noreturn, cold));

/* The same for an exception without a handler. */
void panic_trap(struct trapframe *tf) __attribute__((noreturn, cold));

/* True once the machine has panicked. */
bool panic_happened(void);

/* Makes the kernel behave as after a panic, for a call of a debugger
 * (kernel/shell/report.c): locks are broken, and nothing sleeps. */
void panic_pretend(void);

/* True once the machine has panicked, unlike panic_happened in such a call. */
bool panic_reported(void);

/* Whether a machine that has panicked, or cannot start, ends (the option
 * panic=exit) with PANIC_EXIT (power_exit); else it waits for a person. */
extern bool panic_exits;

#define PANIC_EXIT 4

/* Prints the callers again, as in the report of the first panic. */
void panic_backtrace(void);

/* Prints the callers of the running code. */
void print_backtrace_here(void);

/* Prints return addresses with their functions, one per line. The first may be
 * the address of an interrupted instruction. */
void print_frames(const uintptr_t *pc, unsigned n, bool trapped);
