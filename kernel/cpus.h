/*
 * The processors besides the one that boots.
 */
#pragma once

#include "kernel/x86/cpu.h"

/* Starts the processor with this APIC as the next number; it waits for work.
 * False: it does not answer, or there is no memory, with a message. May sleep.
 */
bool cpus_add(uint8_t apic);

/* Starts a processor of cpus_add, again if it is online, with fn, interrupts
 * disabled, on the stack of its idle task, which goes on if fn returns. False:
 * it does not answer, and is off. May sleep. */
bool cpus_run(struct cpu *cpu, void (*fn)(void));
