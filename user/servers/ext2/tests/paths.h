/*
 * File operations by path for tests: like the kernel, they call functions of
 * the core. All return 0 or more, or a negated error number.
 */
#pragma once

#include "user/servers/ext2/ext2.h"

/* The number of the file at a path. */
int path_find(struct ext2 *fs, const char *path, uint32_t *file);
int path_create(struct ext2 *fs, const char *path, uint32_t type,
                uint32_t device);
int path_unlink(struct ext2 *fs, const char *path);
int path_rmdir(struct ext2 *fs, const char *path);
int path_link(struct ext2 *fs, const char *from, const char *to);
int path_rename(struct ext2 *fs, const char *from, const char *to);
/* Creates the file if there is none. Returns the bytes written. */
int path_write(struct ext2 *fs, const char *path, uint32_t offset,
               const void *data, size_t n);
int path_fsync(struct ext2 *fs, const char *path);
int path_truncate(struct ext2 *fs, const char *path, uint32_t size);
/* Reads all of it into memory of malloc; NULL on failure. *size gets the size
 * or the error. */
uint8_t *path_read(struct ext2 *fs, const char *path, int32_t *size);

/* Calls a function for each entry but "." and "..", with its path below `path`
 * and its attributes. */
typedef int path_walk_t(void *arg, const char *path, uint32_t file,
                        const struct fs_attr *attr);
int path_walk(struct ext2 *fs, const char *path, path_walk_t *f, void *arg);
