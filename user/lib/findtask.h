/*
 * Tasks by name, as /proc/tasks lists them.
 */
#pragma once

#include "kernel/abi/types.h"

/* The pid of a task of that name, or 0. Ends the program if the list cannot be
 * read. */
pid_t find_task(const char *name);
