/*
 * A directory for a program's own files, which is gone afterwards.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Runs fn() in a child whose directory is a new one under /tmp, waits for it,
 * and removes the directory, whatever became of the child: it may be killed,
 * even for a page that there was no memory for. Returns what fn returned, or
 * 128 + signal, or 1 if it could not be run or something could not be removed;
 * then there is a message.
 */
int scratch_run(int (*fn)(void));
