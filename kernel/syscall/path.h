/*
 * Paths given by programs.
 */
#pragma once

#include "kernel/lib/types.h"

struct inode;

/* Copies a path of the calling program into kernel memory, to be freed with
 * path_free. 0, -EFAULT, -ENAMETOOLONG, -ENOMEM. */
int path_copy_in(uint32_t user, char **path);
void path_free(char *path);

/* Calls fn with a path of the calling program, and its current directory. */
int32_t with_path(uint32_t user,
                  int (*fn)(const char *path, struct inode *cwd));

/* *out: the inode of a program's path, with a reference. */
int path_inode(uint32_t user, struct inode **out);
