/*
 * The processors besides the one that boots.
 */
#pragma once

#include "kernel/x86/cpu.h"

/* Starts the processor with this APIC as the next number; it waits for work.
 * False: it does not answer, or there is no memory, with a message. May sleep.
 */
bool cpus_add(uint8_t apic);

/* Calls fn in a task of its own on this processor, with interrupts disabled;
 * returns when that has begun. False: no memory. May sleep. */
bool cpus_run(struct cpu *cpu, void (*fn)(void));
