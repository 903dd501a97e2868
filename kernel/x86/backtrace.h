/*
 * Who called whom: a walk along the frame pointers.
 */
#pragma once

#include "kernel/lib/types.h"

/* The return addresses found from the frame at `frame` (an EBP) on, nearest
 * first; returns how many were stored. Follows no pointer that is not mapped,
 * stops at the first that is not a frame's. */
unsigned backtrace(uintptr_t frame, uintptr_t *pc, unsigned max);

/*
 * The caller of a function that was interrupted before it set up its frame, or
 * that has none (leaf functions): looks near the top of its stack for an
 * address that stands behind a call. `pc` is where it was, `esp` its stack
 * pointer, `ebp` its caller's frame. 0 if it has a frame; then that tells.
 */
uintptr_t backtrace_leaf_caller(uintptr_t pc, uintptr_t esp, uintptr_t ebp);
