/*
 * Copying that survives a fault (copy.asm). The callers check the addresses:
 * kernel/vm/user.h.
 */
#pragma once

#include "kernel/lib/types.h"

int copy_bytes(void *dst, const void *src, size_t n);
int copy_zero(void *dst, size_t n);
int copy_string(char *dst, const char *src, size_t max);

/* After a fault at an EIP in [copy_begin, copy_end) the trap frame may continue
 * at copy_fault: the function then returns the frame's EAX. */
extern char copy_begin[], copy_end[], copy_fault[];
