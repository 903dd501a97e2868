/*
 * Whether something was left behind: what is in use before and after.
 *
 * Compared are the objects in use of every cache, the set of caches, the pages
 * that the slab allocator holds and those that programs have mapped, all of
 * them after everything that is only kept in case has been given back: so a
 * difference is a leak and not a matter of history.
 */
#pragma once

#include "kernel/lib/types.h"

/* Remembers how things stand. Without `reclaim` nothing is given back, neither
 * now nor for the comparison, and only objects in use are compared: for a
 * kernel in which giving back may not work. */
void leak_note(bool reclaim);

/* Says a line about each difference since; returns how many there are. */
unsigned leak_check(void (*say)(const char *line));
