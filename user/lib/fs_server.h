/*
 * File servers: requests of the kernel (kernel/abi/fs.h) are received, checked,
 * passed to plain functions, whose results are the replies.
 *
 *     kernel ── FS_READ 12, 4096, 512 ──> fs_serve ──> fs_read(fs, 12, 4096, …)
 *            <── 512, bytes ──────────────────┘ <────── 512
 *
 * A server fills in a struct fs_functions, creates a port and calls fs_serve.
 * Requests come one at a time, so the functions need no locks.
 *
 * This header needs no C library, so a server's core can also be built for the
 * host.
 */
#pragma once

#include "kernel/abi/errno.h"
#include "kernel/abi/fs.h"

/*
 * `fs` is the argument of fs_serve. All return 0 or more, or a negated error
 * number (-ENOENT). Names are checked: strings of 1 to NAME_MAX bytes without
 * '/', and "." or ".." only for fs_lookup ("..", and not in the root). NULL:
 * not supported; the caller gets -EROFS for changes, else -EINVAL.
 */
struct fs_functions {
    /* The file system as a whole. Not NULL. */
    int (*fs_stat)(void *fs, struct fs_stat *out);
    /* A file by number; -ENOENT. Not NULL. */
    int (*fs_inode)(void *fs, uint32_t file, struct fs_attr *out);
    /* *file: the number of an entry. Not NULL. */
    int (*fs_lookup)(void *fs, uint32_t dir, const char *name, uint32_t *file);
    /* The name of a directory in its parent; not called for the root. */
    int (*fs_name)(void *fs, uint32_t dir, char name[NAME_MAX + 1]);

    /* Creates a file (enum file_type) whose name is not in the directory yet:
     * *file. `device` is for device nodes. */
    int (*fs_create)(void *fs, uint32_t dir, const char *name, uint32_t type,
                     uint32_t device, uint32_t *file);
    int (*fs_link)(void *fs, uint32_t dir, const char *name, uint32_t file);
    /* Removes the entry: *links gets the file's remaining links. With 0 it
     * lives on until fs_release. */
    int (*fs_unlink)(void *fs, uint32_t dir, const char *name, uint32_t file,
                     uint32_t *links);
    /* The same for an empty directory: -ENOTEMPTY. */
    int (*fs_rmdir)(void *fs, uint32_t dir, const char *name, uint32_t file);
    /* Replaces the file at `to`: a file by a file, an empty directory by a
     * directory (-ENOTEMPTY). As after fs_unlink and fs_rmdir, the replaced
     * file lives on until fs_release. */
    int (*fs_rename)(void *fs, uint32_t from_dir, const char *from,
                     uint32_t to_dir, const char *to, uint32_t file);

    /* Returns bytes read, fewer only at the end of the file. n is at most
     * FS_DATA_MAX. */
    ssize_t (*fs_read)(void *fs, uint32_t file, uint32_t offset, void *buf,
                       size_t n);
    /* Returns bytes written, fewer only if there is no more space (none:
     * -ENOSPC); *size gets the file's new size. offset + n is below 2^31. */
    ssize_t (*fs_write)(void *fs, uint32_t file, uint32_t offset,
                        const void *buf, size_t n, uint32_t *size);
    int (*fs_truncate)(void *fs, uint32_t file, uint32_t size);
    /* Fills buf with struct dirent (dirent_store), including "." and "..",
     * from position *offset on and updates it; 0 is the beginning. Entries
     * neither created nor removed meanwhile are seen once. Returns bytes
     * stored; 0 at the end; -EINVAL if not one fits. */
    ssize_t (*fs_getdents)(void *fs, uint32_t dir, uint32_t *offset, void *buf,
                           size_t n);

    /* This file has no link and is no longer open: frees it. */
    int (*fs_release)(void *fs, uint32_t file);
    /* Returns when all writes to this file, or to any (0), are on disk. NULL:
     * they always are. */
    int (*fs_sync)(void *fs, uint32_t file);
    /* The same for all files; the file system is not used afterwards. */
    int (*fs_unmount)(void *fs);

    /* Notification bits of the port (alarm(), interrupts). NULL: ignored. */
    void (*fs_notified)(void *fs, uint32_t bits);
};

/*
 * Mounts the port on the directory `path`, or replaces a server that died
 * there, and serves requests until the file system is unmounted: then 0. -1
 * with errno if mounting fails. `path` NULL: another task mounts it. The port
 * stays open.
 */
int fs_serve(int port, const char *path, const struct fs_functions *functions,
             void *fs);
