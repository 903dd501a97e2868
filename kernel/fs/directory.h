/*
 * Changes to directories: system calls by path. All return 0 or a negative
 * error: those of path_lookup, -EROFS, those listed, and -EPERM if a file to be
 * removed, linked or renamed is sealed. All may sleep; no inode locked.
 */
#pragma once

#include "kernel/fs/inode.h"

/* -EEXIST, -ENOMEM. */
int fs_mkdir(const char *path, struct inode *cwd);
int fs_mknod(const char *path, struct inode *cwd, enum file_type type,
             uint32_t device);

/* -ENOTEMPTY, -ENOTDIR, -EBUSY (a root or covered), -EINVAL (ends in "." or
 * ".."). */
int fs_rmdir(const char *path, struct inode *cwd);

/* -EISDIR, -EBUSY, -EINVAL. An open file stays until its last reference. */
int fs_unlink(const char *path, struct inode *cwd);

/* -EEXIST, -EPERM (a directory), -EXDEV. */
int fs_link(const char *old, const char *new, struct inode *cwd);

/* Replaces a file by a file, or an empty directory by a directory, in one step.
 * -EINVAL (into itself), -ENOTEMPTY, -EISDIR, -ENOTDIR, -EXDEV, -EBUSY. */
int fs_rename(const char *old, const char *new, struct inode *cwd);

/* For open() with O_CREAT in `flags`: the file, created if it does not exist.
 * -EEXIST if it exists and O_EXCL is set. An existing file may be of any type,
 * also a directory. */
int fs_create_file(const char *path, struct inode *cwd, uint32_t flags,
                   struct inode **out);
