/*
 * Power off, reset, and an exit status for an emulator.
 */
#pragma once

#include "kernel/lib/types.h"

/* Switches the machine off after all output is sent. If that is not possible,
 * prints a message and halts. */
void power_off(void) __attribute__((noreturn));

/* Restarts the machine. */
void power_reset(void) __attribute__((noreturn));

/* Ends an emulator that has an exit port, with status (code << 1) | 1; switches
 * other machines off. */
void power_exit(uint8_t code) __attribute__((noreturn));
