/*
 * Requests of the kernel to a file server: a program that implements a file
 * system and has mounted its port (mount()).
 *
 * Each request is one call of that port (kernel/abi/ipc.h) with a label from
 * enum fs_request. Its arguments are three words and, for some requests, bytes.
 * The reply's label is 0; its word 0 is the result, 0 or more, or a negated
 * error number. The server numbers its files: not 0, and not reused while a
 * file lives.
 *
 *                 word 0    word 1    word 2   bytes     reply, besides word 0
 *     FS_STAT     -         -         -        -         bytes: struct fs_stat
 *     FS_INODE    file      -         -        -         bytes: struct fs_attr
 *     FS_LOOKUP   directory -         -        name      word 1: file
 *     FS_NAME     directory -         -        -         bytes: its name
 *     FS_CREATE   directory type      device   name      word 1: file
 *     FS_LINK     directory file      -        name
 *     FS_UNLINK   directory file      -        name      word 1: links left
 *     FS_RMDIR    directory file      -        name
 *     FS_RENAME   directory directory file     two names
 *     FS_READ     file      offset    bytes    -         word 0: bytes; bytes
 *     FS_WRITE    file      offset    -        contents  word 0: bytes taken;
 *                                                        word 1: size now
 *     FS_TRUNCATE file      size      -        -
 *     FS_GETDENTS directory offset    bytes    -         word 0: bytes; word 1:
 *                                                        next offset; bytes:
 *                                                        struct dirent …
 *     FS_RELEASE  file      -         -        -
 *     FS_SYNC     file or 0 -         -        -
 *     FS_UNMOUNT  -         -         -        -
 *
 * Names are 1 to NAME_MAX bytes without a NUL and without '/', not "." or ".."
 * (but FS_LOOKUP may ask for "..", except in the root). The two names of a
 * rename, from and to, are separated by a NUL. The server looks up the file
 * that a rename replaces, and may replace it: the kernel has checked the types.
 * The kernel also checks that FS_CREATE and FS_LINK use a new name.
 *
 * A file without a link exists until FS_RELEASE. After the file was closed, the
 * next task with a request sends FS_RELEASE first. A restarted server frees
 * such files.
 * Mount a port only once: two mounts do not share their open files. FS_SYNC
 * returns when all earlier writes (to that file, or to any) are on disk.
 * FS_UNMOUNT writes everything and ends the mount; the only request after it is
 * FS_STAT, if the port is mounted again.
 */
#pragma once

#include "kernel/abi/types.h"
#include "kernel/lib/string.h"

/* Bytes of a file, or of directory entries, in one request or reply. Larger
 * reads and writes are split. A server must accept this many. */
#define FS_DATA_MAX 65536u

enum fs_request {
    FS_STAT = 0x100,
    FS_INODE,
    FS_LOOKUP,
    FS_NAME,
    FS_CREATE,
    FS_LINK,
    FS_UNLINK,
    FS_RMDIR,
    FS_RENAME,
    FS_READ,
    FS_WRITE,
    FS_TRUNCATE,
    FS_GETDENTS,
    FS_RELEASE,
    FS_SYNC,
    FS_UNMOUNT,
};

#define FS_NAME_MAX 15 /* characters in a file system's kind: "ext2" */

/* A file system as a whole. */
struct fs_stat {
    uint32_t fs_root;       /* number of the root directory */
    uint32_t fs_block_size; /* bytes */
    uint32_t fs_blocks;
    uint32_t fs_blocks_free;
    uint32_t fs_files; /* most files possible; 0: no limit */
    uint32_t fs_files_free;
    char fs_kind[FS_NAME_MAX + 1];
};

/* A file. */
struct fs_attr {
    uint32_t attr_type; /* enum file_type */
    uint32_t attr_nlink;
    uint32_t attr_size;   /* bytes */
    uint32_t attr_device; /* of a device node */
    uint32_t attr_blocks; /* 4 KiB units that it occupies, rounded up */
};

/* For the bytes of FS_GETDENTS: stores an entry with a name of `len` bytes in
 * the `room` bytes at `to`. Returns its length in bytes, 0 if it does not
 * fit. */
static inline size_t dirent_store(void *to, size_t room, uint32_t file,
                                  uint32_t type, const char *name, size_t len)
{
    struct dirent *d = to;
    size_t size = ROUND_UP(sizeof(*d) + len + 1, 4);

    if (size > room)
        return 0;
    d->d_ino = file;
    d->d_reclen = (uint16_t)size;
    d->d_type = (uint8_t)type;
    d->d_namlen = (uint8_t)len;
    memcpy(d->d_name, name, len);
    memset(d->d_name + len, 0, size - sizeof(*d) - len);
    return size;
}
