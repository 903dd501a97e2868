/*
 * The PS/2 keyboard behind an i8042 controller.
 *
 * All functions are called with interrupts disabled, one at a time.
 */
#pragma once

#include "kernel/lib/types.h"

/* Sets up controller and keyboard for polled use. False if the controller is
 * missing; the other functions then do nothing. */
bool kbd_init(void);

/* Where keys go: `sink` takes a character or an enum console_key. */
void kbd_set_sink(void (*sink)(int key));

/* From polled to interrupt-driven. */
void kbd_enable_interrupts(void);

/* Passes on the keys that have arrived. */
void kbd_receive(void);
