/*
 * What every file server needs: requests of the kernel (kernel/abi/fs.h) are
 * received, taken apart, handed to plain functions, and answered.
 *
 *     kernel ── FS_READ 12, 4096, 512 ──> fs_serve ──> fs_read(fs, 12, 4096, …)
 *            <── 512, bytes ──────────────────┘ <────── 512
 *
 * A server fills in a struct fs_functions, makes a port and calls fs_serve.
 * Requests come one at a time, so the functions need no locks.
 *
 * This header is no more than the contract: it asks for nothing of the C
 * library, so that the heart of a server can be built elsewhere as well.
 */
#pragma once

#include "kernel/abi/errno.h"
#include "kernel/abi/fs.h"

/*
 * `fs` is what fs_serve was given. All return 0 or more, or a negated error
 * number (-ENOENT). Names are strings of 1 … NAME_MAX bytes, and have been
 * checked: no '/', and "." and ".." only for fs_lookup ("..", and never in the
 * root). NULL: the file system cannot do that; the caller gets -EROFS from
 * what would change something, -EINVAL from the rest.
 */
struct fs_functions {
    /* The file system as a whole. Never NULL. */
    int (*fs_stat)(void *fs, struct fs_stat *out);
    /* A file by number; -ENOENT if there is none. Never NULL. */
    int (*fs_inode)(void *fs, uint32_t file, struct fs_attr *out);
    /* The number of an entry: *file. Never NULL. */
    int (*fs_lookup)(void *fs, uint32_t dir, const char *name, uint32_t *file);
    /* The name of a directory in its parent; never asked of the root. */
    int (*fs_name)(void *fs, uint32_t dir, char name[NAME_MAX + 1]);

    /* A new file (enum file_type), which the directory has no entry of that
     * name for: *file. `device` is of device nodes. */
    int (*fs_create)(void *fs, uint32_t dir, const char *name, uint32_t type,
                     uint32_t device, uint32_t *file);
    int (*fs_link)(void *fs, uint32_t dir, const char *name, uint32_t file);
    /* Takes the entry away: *links gets how many the file has now. Without one
     * it lives on until fs_release. */
    int (*fs_unlink)(void *fs, uint32_t dir, const char *name, uint32_t file,
                     uint32_t *links);
    /* The same of an empty directory: -ENOTEMPTY. */
    int (*fs_rmdir)(void *fs, uint32_t dir, const char *name, uint32_t file);
    /* What there is at `to` makes room: a file for a file, an empty directory
     * for a directory (-ENOTEMPTY); like what fs_unlink and fs_rmdir took away
     * it lives on until fs_release. */
    int (*fs_rename)(void *fs, uint32_t from_dir, const char *from,
                     uint32_t to_dir, const char *to, uint32_t file);

    /* Bytes read, fewer only at the end of the file. n is FS_DATA_MAX at
     * most. */
    ssize_t (*fs_read)(void *fs, uint32_t file, uint32_t offset, void *buf,
                       size_t n);
    /* Bytes written, fewer only if there is no room for more (none at all:
     * -ENOSPC); *size gets the file's size now. offset + n is below 2^31. */
    ssize_t (*fs_write)(void *fs, uint32_t file, uint32_t offset,
                        const void *buf, size_t n, uint32_t *size);
    int (*fs_truncate)(void *fs, uint32_t file, uint32_t size);
    /* Fills buf with struct dirent (fs_put_dirent), "." and ".." too, from
     * position *offset on, which moves; 0 is the beginning. Entries that are
     * neither made nor removed meanwhile are seen once. Bytes stored; 0 at the
     * end; -EINVAL if not even one fits. */
    ssize_t (*fs_getdents)(void *fs, uint32_t dir, uint32_t *offset, void *buf,
                           size_t n);

    /* Nobody has this file open any more, which has no link: it goes. */
    int (*fs_release)(void *fs, uint32_t file);
    /* What has been written to this file, or to any (0), is on the medium when
     * it returns. NULL: it always is. */
    int (*fs_sync)(void *fs, uint32_t file);
    /* The same for all, and nothing is used any more. */
    int (*fs_unmount)(void *fs);

    /* No request of the kernel: notification bits of the port came (alarm(),
     * interrupts). NULL: they mean nothing. */
    void (*fs_notified)(void *fs, uint32_t bits);
};

/*
 * Mounts the port on the directory `path`, or takes the place of a server that
 * died there, and answers requests until the file system has been unmounted:
 * then 0. -1 with errno if it cannot be mounted. `path` NULL: somebody else
 * mounts it. The port stays open.
 */
int fs_serve(int port, const char *path, const struct fs_functions *functions,
             void *fs);

/* Puts a directory entry into the `room` bytes at buf, its name of `n` bytes
 * too. Returns its length, or 0 if there is no room. */
size_t fs_put_dirent(void *buf, size_t room, uint32_t file, uint32_t type,
                     const char *name, size_t n);
