/*
 * Formatted printing: into memory, the standard's vsnprintf for kernel code,
 * and to the console.
 *
 * Supports the flags `-`, `0`, `+`, ` ` and `#`, width and precision (also
 * `*`), lengths hh, h, l, ll, z, and conversions d i u x X o c s p %. No
 * floating point. Returns the length that the whole text would have.
 */
#pragma once

#include <stdarg.h>

#include "kernel/lib/types.h"

int vsnprintf(char *buf, size_t size, const char *fmt, va_list ap)
    PRINTF_LIKE(3, 0);
int snprintf(char *buf, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Formatted printing to the console; \n becomes CR LF on the serial line. May
 * be called anywhere, also in interrupts and panics, but not with sched_lock
 * held. Prints at most 511 characters; longer text ends in dots. The console
 * defines them (drivers/console.c). */
void kprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);
void kvprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);
