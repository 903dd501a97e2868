/*
 * The time-stamp counter. Under QEMU's -icount shift=0 it counts instructions
 * of programs and kernel; else processor cycles.
 */
#pragma once

#include "kernel/lib/types.h"

static inline uint64_t tsc_read(void)
{
    uint64_t value;

    __asm__ volatile("rdtsc" : "=A"(value)::"memory");
    return value;
}
