/*
 * The PS/2 keyboard on an i8042 controller.
 *
 * All functions are called with interrupts disabled, one at a time.
 */
#pragma once

#include "kernel/lib/types.h"

/* Configures controller and keyboard for polling. False: there is no
 * controller; the other functions then do nothing. */
bool kbd_init(void);

/* Sets the function that takes keys: characters or enum console_key. */
void kbd_set_sink(void (*sink)(int key));

/* Switches from polling to interrupts. */
void kbd_enable_interrupts(void);

/* Passes keys that have arrived to the sink. */
void kbd_receive(void);
