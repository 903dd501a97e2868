/*
 * The recorder: notes each request to the slab allocator (recorder.c).
 */
#pragma once

#include "tools/workshop/trace/recording.h"

extern struct recording recording;

/* Notes an event of these operands. Safe in interrupts. */
void recorder_put(enum trace_op op, const void *addr, uint32_t what);
