/*
 * Directory trees.
 */
#pragma once

#include "kernel/lib/types.h"

/* Removes a file, or a directory with all its contents; repeats calls that fail
 * for lack of memory. `path` has room for PATH_MAX bytes; deeper files are not
 * removed. False: something is left. */
bool remove_tree(char *path);
