/*
 * Directory trees.
 */
#pragma once

#include "kernel/abi/types.h"

/* Calls `visit` with `path`, whose type (FILE_…) this is, and, if it is a
 * directory and `visit` returns true, for everything in it. `path` has room for
 * PATH_MAX bytes and is extended meanwhile. Prints a message for each directory
 * that cannot be read, and returns for how many. */
unsigned tree_walk(char *path, uint8_t type,
                   bool (*visit)(const char *path, uint8_t type));

/* Removes a file, or a directory with all its contents; repeats calls that fail
 * for lack of memory. `path` has room for PATH_MAX bytes; deeper files are not
 * removed. False: something is left. */
bool remove_tree(char *path);
