/*
 * Steps of a path walk that the tree's operations take one by one, and the
 * root. The rest of paths is in kernel/fs/inode.h.
 */
#pragma once

#include "kernel/fs/inode.h"

/* The entry `name` of a directory that the caller has locked: *out gets a
 * reference. 0 or what fs_lookup or inode_get says. */
int path_child(struct inode *dir, const char *name, struct inode **out);

/* From a covered directory to the root of what covers it; others stay. The
 * reference at *at moves along. -ENOMEM, -EDEADLK. */
int path_descend(struct inode **at);

/* Makes an inode, whose reference stays the caller's, the root of all. */
void path_set_root(struct inode *inode);
