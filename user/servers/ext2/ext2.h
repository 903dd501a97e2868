/*
 * The ext2 file system: the core of the server, independent of messages and
 * drivers. It accesses its disk through a struct ext2_disk, so it runs in ring
 * 3 and on the host.
 *
 *     name.c      create, link, unlink, rmdir, rename
 *     dir.c       entries of directories     dir_room.c  space for new ones
 *     file.c      read, write, truncate
 *     map.c       the disk blocks of each file
 *     node.c      inodes in memory
 *     alloc.c     bitmaps
 *     buffer.c    blocks in memory
 *     commit.c    changes to the disk, in an order that survives a power cut
 *     super.c     mounting, and the checks before it
 *     journal.c   atomic changes: moved directories
 *     recover.c   repair after a crash
 *
 * docs/ext2.md describes it. Calls must not overlap.
 *
 * The functions have the signatures of fs_serve (user/lib/fs_server.h): `fs` is
 * a struct ext2. They return 0 or more, or a negated error number: EIO if the
 * disk fails or its contents are invalid (then the file system is marked as
 * damaged and becomes read-only: EROFS), ENOSPC without free blocks or inodes.
 */
#pragma once

#include "kernel/abi/errno.h"
#include "kernel/abi/fs.h"

struct ext2;

/* Access to a disk. Functions return 0 or a negated error number. Until a flush
 * returns, writes may be lost or reordered. */
struct ext2_disk {
    int (*disk_read)(void *arg, uint32_t first, uint32_t sectors, void *buf);
    int (*disk_write)(void *arg, uint32_t first, uint32_t sectors,
                      const void *buf);
    int (*disk_flush)(void *arg);
    /* Seconds, for the times of files. */
    uint32_t (*disk_seconds)(void *arg);
    /* Prints a line for the operator; no newline. */
    void (*disk_say)(void *arg, const char *text);
    void *disk_arg;
    uint32_t disk_sectors; /* of 512 bytes */
};

/* Counts since mounting. */
struct ext2_counts {
    uint32_t count_hits, count_misses; /* blocks asked for */
    uint32_t count_reads, count_read_sectors;
    uint32_t count_writes, count_write_sectors;
    uint32_t count_flushes;
    uint32_t count_commits;
    uint32_t count_journaled; /* moves of directories by the journal */
    uint32_t count_errors;    /* of the disk and its contents */
};

/*
 * Checks the disk and, if it is valid, creates a file system in *out, which
 * keeps a copy of *disk and about `cache` bytes of blocks (at least 64 KiB). 0;
 * -EINVAL: not ext2; -ENOSYS: unsupported features; -EIO; -ENOMEM. *why
 * describes the error.
 */
int ext2_mount(const struct ext2_disk *disk, uint32_t cache, struct ext2 **out,
               const char **why);

/* Frees all memory. Changes not written by ext2_unmount are lost. */
void ext2_free(struct ext2 *fs);

/* Why the file system is read-only, or NULL. */
const char *ext2_read_only(const struct ext2 *fs);

void ext2_counts(const struct ext2 *fs, struct ext2_counts *out);

/* NULL, or the first broken invariant of the data in memory. */
const char *ext2_verify(const struct ext2 *fs);

/* As in struct fs_functions. About every second, call ext2_sync for file 0. The
 * offset of ext2_getdents is a byte offset in the directory. */
int ext2_stat(void *fs, struct fs_stat *out);
int ext2_inode(void *fs, uint32_t file, struct fs_attr *out);
int ext2_lookup(void *fs, uint32_t dir, const char *name, uint32_t *file);
int ext2_name(void *fs, uint32_t dir, char name[NAME_MAX + 1]);
int ext2_create(void *fs, uint32_t dir, const char *name, uint32_t type,
                uint32_t device, uint32_t *file);
int ext2_link(void *fs, uint32_t dir, const char *name, uint32_t file);
int ext2_unlink(void *fs, uint32_t dir, const char *name, uint32_t file,
                uint32_t *links);
int ext2_rmdir(void *fs, uint32_t dir, const char *name, uint32_t file);
int ext2_rename(void *fs, uint32_t from_dir, const char *from, uint32_t to_dir,
                const char *to, uint32_t file);
ssize_t ext2_read(void *fs, uint32_t file, uint32_t offset, void *buf,
                  size_t n);
ssize_t ext2_write(void *fs, uint32_t file, uint32_t offset, const void *buf,
                   size_t n, uint32_t *size);
int ext2_truncate(void *fs, uint32_t file, uint32_t size);
ssize_t ext2_getdents(void *fs, uint32_t dir, uint32_t *offset, void *buf,
                      size_t n);
int ext2_release(void *fs, uint32_t file);
int ext2_sync(void *fs, uint32_t file);
int ext2_unmount(void *fs);
