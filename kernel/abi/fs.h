/*
 * What the kernel asks of a file server: a program that keeps a file system
 * and has mounted its port somewhere (mount()).
 *
 * Each request is one call of that port (kernel/abi/ipc.h) with a label from
 * enum fs_request; three words, and on demand bytes, are its arguments. The
 * answer's label is 0; its word 0 is the result, 0 or more, or a negated error
 * number. Files are known by number, which the server chooses: not 0, and not
 * used again while a file lives.
 *
 *                 word 0    word 1    word 2   bytes     answer, besides word 0
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
 * Names come without a NUL: 1 … NAME_MAX bytes, no '/', not "." and not ".."
 * (but FS_LOOKUP asks for ".." too, never in the root). The two of a rename are
 * separated by a NUL: from, to. What is replaced by a rename is looked up by
 * the server, which knows that it may be: the kernel has checked types and that
 * an FS_CREATE, FS_LINK makes no second entry of a name.
 *
 * A file without a link lives until FS_RELEASE, which the kernel sends when
 * nobody has it open any more; a server that starts again gives up such files
 * as it finds. FS_SYNC returns when all that was written before (to that file,
 * or to any) is on the medium. FS_UNMOUNT writes everything and ends the use;
 * after it only FS_STAT comes, if the port is mounted again.
 */
#pragma once

#include "kernel/abi/types.h"

/* Bytes of a file, or of directory entries, in one request or answer at most;
 * larger reads and writes come piece by piece. A server has room for as many.
 */
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
    uint32_t fs_files; /* that there can be; 0: no limit */
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
