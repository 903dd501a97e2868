/*
 * Functions in single steps: EFLAGS.TF makes the processor raise #DB after each
 * instruction (SDM volume 3, section 17.3.1.4). So a test does between two
 * instructions what an interrupt or another processor may do there, and tries
 * each place in turn.
 */
#pragma once

#include "kernel/x86/trap.h"

static inline void write_eflags(uint32_t value)
{
    __asm__ volatile("pushl %0; popfl" : : "r"(value) : "memory", "cc");
}

/* Whether this machine steps; an emulator may not. */
bool steps_work(void);

/* Runs fn. Before its instruction number n, from 1, each(tf, n) is called with
 * interrupts disabled; *tf has the registers of that moment. A few instructions
 * around fn are stepped too. Returns the number of the last one. */
unsigned steps_run(void (*fn)(void),
                   void (*each)(const struct trapframe *tf, unsigned n));
