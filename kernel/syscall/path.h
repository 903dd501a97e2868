/*
 * Paths that programs give.
 */
#pragma once

#include "kernel/lib/types.h"

struct inode;

/* A path of the calling program in memory of the kernel's, to be given back by
 * path_out. 0, -EFAULT, -ENAMETOOLONG, -ENOMEM. */
int path_in(uint32_t user, char **path);
void path_out(char *path);

/* The inode that a path of the program leads to: *out gets a reference. */
int path_inode(uint32_t user, struct inode **out);
