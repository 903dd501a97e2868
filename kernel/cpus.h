/*
 * The processors besides the one that boots.
 */
#pragma once

#include "kernel/x86/cpu.h"

/* Starts the processor with this APIC as the next number; it waits for work.
 * False: it does not answer, or there is no memory, with a message. May sleep.
 */
bool cpus_add(uint8_t apic);
