/*
 * Paths: from a name to an inode and back.
 */
#pragma once

#include "kernel/fs/inode.h"

/*
 * Walks a path from the root ("/…") or from `cwd` (NULL: the root). `.`, `..`
 * and doubled slashes are as in POSIX; there are no symbolic links. A path with
 * a trailing slash must be a directory. *out gets a reference. -ENOENT (also
 * for ""), -ENOTDIR, -ENAMETOOLONG, -ENOMEM. May sleep; no inode locked.
 */
int path_lookup(const char *path, struct inode *cwd, struct inode **out);

/* The same up to the last name: *dir gets a reference to the directory, `name`
 * (NAME_MAX + 1 bytes) the last component, which need not exist. Returns 0, or
 * 1 if a slash follows, so a directory is required. -EINVAL if the name is "."
 * or "..", -EBUSY if the path is a root. */
int path_parent(const char *path, struct inode *cwd, struct inode **dir,
                char *name);

/* The absolute path of a directory. Returns its length, or -ERANGE, -ENOENT
 * (it has been removed), -ENOMEM. May sleep; no inode locked. */
int path_of(struct inode *dir, char *buf, size_t size);

/* The root directory, borrowed; NULL before fs_init. */
struct inode *path_root(void);

/* ---- single steps, for kernel/fs/directory.c ---------------------------- */

/* *out: the entry `name` of a locked directory, with a reference. 0 or an error
 * of fs_lookup or inode_get. */
int path_child(struct inode *dir, const char *name, struct inode **out);

/* Moves *at, with its reference, from a covered directory to the root of the
 * file system mounted there; other inodes stay. -ENOMEM, -EDEADLK. */
int path_descend(struct inode **at);

/* Makes an inode the root; the caller keeps its reference. */
void path_set_root(struct inode *inode);
