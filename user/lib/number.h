/*
 * A number that the user typed, behind an option.
 */
#pragma once

#include "kernel/lib/types.h"

/* Its value if it lies between `least` and `most`; else ends the program with
 * a message and status 2. */
uint32_t number_between(const char *text, uint32_t least, uint32_t most);
