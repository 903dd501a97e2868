/*
 * Backtraces: walks along the frame pointers.
 */
#pragma once

#include "kernel/lib/types.h"

/* Stores the return addresses from the frame at `frame` (an EBP) on, nearest
 * first; returns their number. Follows only mapped pointers and stops at the
 * first that is not a frame's. */
unsigned backtrace(uintptr_t frame, uintptr_t *pc, unsigned max);

/*
 * The caller of a function that was interrupted before it set up its frame, or
 * that has none (leaf functions): searches the top of its stack for an address
 * that follows a call. `pc` and `esp` are those of the function, `ebp` is its
 * caller's frame. 0 if the function has a frame.
 */
uintptr_t backtrace_leaf_caller(uintptr_t pc, uintptr_t esp, uintptr_t ebp);
