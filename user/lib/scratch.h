/*
 * A temporary directory for a program's files.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Runs fn() in a child in a new directory under /tmp, waits for it, and removes
 * the directory, also if the child is killed, even for lack of memory. Returns
 * the result of fn, or 128 + signal, or 1 if it could not be run or something
 * could not be removed, after a message.
 */
int scratch_run(int (*fn)(void));
