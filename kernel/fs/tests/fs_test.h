/*
 * Shared by the tests of kernel/fs: a directory of their own, a small file
 * system that counts its calls, and operations in one call.
 */
#pragma once

#include "kernel/abi/errno.h"
#include "kernel/fs/directory.h"
#include "kernel/fs/path.h"
#include "kernel/fs/ramfs.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"

/* For what a case reads or writes; holds the history of the console. */
extern char fs_test_bytes[KIB(16) + 1];

/* Every case that makes files does so below this directory. */
#define T "/tmp/t"

/* Both invariants; fails the case at this line. */
#define FS_VERIFY()                                                            \
    do {                                                                       \
        KT_SOUND(inode_verify);                                                \
        KT_SOUND(ramfs_verify);                                                \
    } while (0)

/* Makes T; removes it with all that is in it. */
void fs_test_begin(void);
void fs_test_end(void);

/* If the case is stopped, it loses the references to inodes that it has gained
 * since, T is removed, and test_fs unmounted. fs_test_begin and test_fs_begin
 * do this. */
void fs_test_note(void);

/* Removes everything below the directory `path`, not itself. */
void fs_test_empty(const char *path);

/* Looks up `path`: 0 or the error. */
int fs_test_look(const char *path);

/* The inode at `path` with a reference; the case needs it. */
struct inode *fs_test_get(const char *path);

/* The locked operations. */
ssize_t fs_test_write(struct inode *inode, uint32_t offset, const void *buf,
                      size_t n);
int fs_test_truncate(struct inode *inode, uint32_t size);
ssize_t fs_test_getdents(struct inode *dir, uint32_t *offset, void *buf,
                         size_t n);

/* A new file with these contents; 0 or an error. */
int fs_test_file(const char *path, const char *text);

/* Whether the file at `path` has exactly these contents. */
bool fs_test_has(const char *path, const char *text);

/* Number of entries of a directory with "." and "..", read by `n` bytes at a
 * time. */
unsigned fs_test_count(struct inode *dir, size_t n);

/*
 * Files called by their numbers, 2 … 9999, in a root that is number 1; and
 * in it a directory "d", number 10000, with nothing in it.
 */
extern struct fs test_fs;

#define TEST_FS_DIR 10000u

struct test_fs_log {
    unsigned reads;     /* calls of fs_read_inode */
    unsigned evictions; /* calls of fs_evict */
    uint32_t evicted;   /* number of the last */
    uint32_t fail;      /* fs_read_inode of this number: -EIO */
    uint32_t sleep_ms;  /* and takes so long */
};

extern struct test_fs_log test_fs_log;

/* Clears the log; and evicts all inodes of test_fs, true if none is left. */
void test_fs_begin(void);
bool test_fs_end(void);
