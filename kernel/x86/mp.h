/*
 * Starting and stopping other processors (Intel SDM volume 3, 8.4). The kernel
 * decides which, and waits for them: kernel/cpus.c.
 */
#pragma once

#include "kernel/lib/types.h"

/* Resets a processor; it then waits for mp_launch. */
void mp_reset(uint8_t apic);

/* Makes a processor start at the code of mp_place, unless it runs. */
void mp_launch(uint8_t apic);

/* Places the start-up code, which continues at a frame of switch_prepare with
 * the directory of boot and its own segments; and puts back what was there. */
void mp_place(uint32_t frame);
void mp_unplace(void);

/* Stops the other processors for good, for a panic, and stores where they were
 * (cpu_stopped). Does not wait long for one that does not answer. */
void mp_stop(void);
