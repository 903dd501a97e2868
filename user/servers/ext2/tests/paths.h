/*
 * File operations by path, as the kernel would make them of the functions of
 * the core: for tests. All return 0 or more, or a negated error number.
 */
#pragma once

#include "user/servers/ext2/ext2.h"

/* The number of a path's file. */
int path_find(struct ext2 *fs, const char *path, uint32_t *file);
int path_create(struct ext2 *fs, const char *path, uint32_t type,
                uint32_t device);
int path_unlink(struct ext2 *fs, const char *path);
int path_rmdir(struct ext2 *fs, const char *path);
int path_link(struct ext2 *fs, const char *from, const char *to);
int path_rename(struct ext2 *fs, const char *from, const char *to);
/* Makes the file if there is none. Bytes written. */
int path_write(struct ext2 *fs, const char *path, uint32_t offset,
               const void *data, size_t n);
int path_truncate(struct ext2 *fs, const char *path, uint32_t size);
/* All of it, out of malloc, or NULL; *size, or an error in it. */
uint8_t *path_read(struct ext2 *fs, const char *path, int32_t *size);

/* Calls back for each entry but "." and "..": path below `path`, attributes. */
typedef int path_walk_t(void *arg, const char *path, uint32_t file,
                        const struct fs_attr *attr);
int path_walk(struct ext2 *fs, const char *path, path_walk_t *f, void *arg);
