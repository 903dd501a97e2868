/*
 * The part of waketest that uses the host's library, whose types differ from
 * those of kernel/abi/types.h.
 */
#pragma once

#include "kernel/lib/types.h"

/* Prints at once. */
void host_say(const char *text);

/* Ends the process, with an error. */
void host_fail(void) __attribute__((noreturn));

/* Runs fn(arg) in a process of its own; whether it ended without an error. */
bool host_apart(void (*fn)(unsigned arg), unsigned arg);

/* Prepares a context, with a stack of its own, that calls fn. */
void host_context(unsigned number, void (*fn)(void));

/* Switches to the context; returns when it calls host_leave. */
void host_resume(unsigned number);
void host_leave(unsigned number);

/* Whether the address is on its stack, below `esp`. */
bool host_below(unsigned number, uintptr_t addr, uintptr_t esp);
