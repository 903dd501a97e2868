/*
 * Single steps of a path walk, for kernel/fs/directory.c, and the root. The
 * other functions of paths are in kernel/fs/inode.h.
 */
#pragma once

#include "kernel/fs/inode.h"

/* *out: the entry `name` of a locked directory, with a reference. 0 or an error
 * of fs_lookup or inode_get. */
int path_child(struct inode *dir, const char *name, struct inode **out);

/* Moves *at, with its reference, from a covered directory to the root of the
 * file system mounted there; other inodes stay. -ENOMEM, -EDEADLK. */
int path_descend(struct inode **at);

/* Makes an inode the root; the caller keeps its reference. */
void path_set_root(struct inode *inode);
