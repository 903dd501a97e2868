/*
 * Looks for leaks: compares the memory in use before and after.
 *
 * Compared are the objects in use of every cache, the set of caches, the pages
 * that the slab allocator holds and those that programs have mapped, all of
 * them after cached objects and free slabs have been freed: so a difference is
 * a leak and does not come from earlier allocations.
 */
#pragma once

#include "kernel/lib/types.h"

/* Records the memory in use. Without `reclaim` nothing is reclaimed, neither
 * now nor for the comparison, and only objects in use are compared: for a
 * kernel in which reaping may not work. */
void leak_note(bool reclaim);

/* Destroys the caches made since, and their objects. */
void leak_free(void *unused);

/* Passes a line about each difference since to `say`; returns their number. */
unsigned leak_check(void (*say)(const char *line));
