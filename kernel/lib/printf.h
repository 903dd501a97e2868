/*
 * Formatted printing into memory: the standard's vsnprintf for kernel code.
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
