/*
 * The ways out: power off, reset, and an exit status for an emulator.
 */
#pragma once

#include "kernel/lib/types.h"

/* Switches the machine off once all output has left it. Where that is not
 * possible, says so and halts. */
void power_off(void) __attribute__((noreturn));

/* Starts the machine again. */
void power_reset(void) __attribute__((noreturn));

/* Ends an emulator that has an exit port, with (code << 1) | 1 as its status;
 * other machines are switched off. */
void power_exit(uint8_t code) __attribute__((noreturn));
