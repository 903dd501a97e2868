/*
 * An ext2 file system: the core of the server, which knows neither messages
 * nor drivers. It reaches its disk through a struct ext2_disk, so that the
 * same files run in ring 3 and, with the sanitizers, on a workstation.
 *
 *     name.c      create, link, unlink, rmdir, rename
 *     dir.c       entries of directories     dir_room.c  places for new ones
 *     file.c      read, write, truncate
 *     map.c       which block of the disk has a block of a file
 *     node.c      inodes in memory
 *     alloc.c     bitmaps
 *     buffer.c    blocks in memory
 *     commit.c    changes to the disk, in an order that survives a power cut
 *     super.c     mounting: what is checked before anything is believed
 *     journal.c   changes that must be there all or none: moved directories
 *     recover.c   what a crash has left is put right
 *
 * docs/ext2.md is the chapter. Nothing here is called by two at a time.
 *
 * The functions have the form that fs_serve (user/lib/fs_server.h) wants: `fs`
 * is a struct ext2. They return 0 or more, or a negated error number: EIO when
 * the disk fails or what is on it makes no sense (then the file system is
 * marked as damaged and changes no more: EROFS), ENOSPC when blocks or inodes
 * are used up.
 */
#pragma once

#include "kernel/abi/errno.h"
#include "kernel/abi/fs.h"

struct ext2;

/* How to reach a disk. All may be called at any time; 0 or a negated error
 * number. A write that returned may be lost, and overtaken by later ones, until
 * a flush has returned. */
struct ext2_disk {
    int (*disk_read)(void *arg, uint32_t first, uint32_t sectors, void *buf);
    int (*disk_write)(void *arg, uint32_t first, uint32_t sectors,
                      const void *buf);
    int (*disk_flush)(void *arg);
    /* Seconds since some moment, for the times of files. */
    uint32_t (*disk_seconds)(void *arg);
    /* A line for whoever looks after the machine; without newline. */
    void (*disk_say)(void *arg, const char *text);
    void *disk_arg;
    uint32_t disk_sectors; /* of 512 bytes */
};

/* What the file system has done since it was mounted. */
struct ext2_counts {
    uint32_t count_hits, count_misses; /* blocks asked for */
    uint32_t count_reads, count_read_sectors;
    uint32_t count_writes, count_write_sectors;
    uint32_t count_flushes;
    uint32_t count_commits;
    uint32_t count_journaled; /* moves of directories by the journal */
    uint32_t count_errors;    /* of the disk, and found on it */
};

/*
 * Looks at what is on the disk and, if all of it makes sense, gives a file
 * system in *out, which keeps a copy of *disk and about `cache` bytes of
 * blocks (64 KiB at least). 0; -EINVAL: no ext2; -ENOSYS: one with features
 * that this does not know; -EIO; -ENOMEM. *why says it in words.
 */
int ext2_mount(const struct ext2_disk *disk, uint32_t cache, struct ext2 **out,
               const char **why);

/* Gives back all memory. What ext2_unmount has not written is lost. */
void ext2_free(struct ext2 *fs);

/* Why nothing can be changed, or NULL. */
const char *ext2_read_only(const struct ext2 *fs);

void ext2_counts(const struct ext2 *fs, struct ext2_counts *out);

/* NULL, or the first broken invariant of what is in memory. */
const char *ext2_verify(const struct ext2 *fs);

/* To be called about every second: writes what has not been written. */
int ext2_tick(void *fs);

/* As in struct fs_functions. Of ext2_getdents, an offset is a byte of the
 * directory. */
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
