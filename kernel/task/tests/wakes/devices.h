/*
 * What kernel/fs/tty.c and drivers/console.c need besides the scheduler: a
 * keyboard, a display, and a child of the shell.
 */
#pragma once

#include "kernel/lib/types.h"

#define DEVICES_CHILD 7 /* its pid */

/* As after boot. */
void devices_make(void);

/* The interrupt of a key. */
void devices_press(int key);

/* What the display shows. */
const char *devices_shown(void);

/* The case says whether the child has ended. */
bool devices_child_ended(void);
