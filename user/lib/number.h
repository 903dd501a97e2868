/*
 * Numbers typed by the user, as arguments of options.
 */
#pragma once

#include "kernel/lib/types.h"

/* The value if it is from `least` to `most`; else prints a message and exits
 * with status 2. */
uint32_t number_between(const char *text, uint32_t least, uint32_t most);

/* The same for bytes, which may be followed by k (1,024) or M (1,048,576). */
uint32_t size_between(const char *text, uint32_t least, uint32_t most);
