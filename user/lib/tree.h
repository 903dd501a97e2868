/*
 * Trees of files.
 */
#pragma once

#include "kernel/lib/types.h"

/* Removes a file, or a directory with all that is in it, trying again where a
 * call fails for want of memory. `path` has room for PATH_MAX bytes; what lies
 * deeper stays. false: something is left. */
bool remove_tree(char *path);
