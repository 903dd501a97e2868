/*
 * Inodes: the kernel's picture of a file that somebody has a use for.
 *
 * A file system keeps files wherever it likes (ramfs: nodes and pages in RAM;
 * proc: functions) and knows them by number. What is in use has an inode, an
 * object of the `inode` cache, found by (file system, number) in a hash table.
 * Without references an inode stays, on the LRU list, since it will likely be
 * asked for again; under memory pressure the oldest go first, before anything
 * else is given up or fails.
 *
 *     inode_get ──> in use <──────── found again ────────┐
 *                     │ inode_put: no reference left      │
 *                     v                                   │
 *                  LRU list ──────────────────────────────┘
 *                     │ pressure, or its file is gone (no link)
 *                     v
 *                 evicted: back to the cache, constructed
 */
#pragma once

#include "kernel/abi/fs.h"
#include "kernel/fs/hash.h"
#include "kernel/task/sync.h"

struct file;
struct fs;
struct inode;

/*
 * What a file system can do. All return 0 or a negative error; NULL means
 * that the system has no such thing (-EROFS or -EINVAL, as fits). `dir` and
 * `inode` are locked (inode_lock) by the caller unless it says otherwise.
 * Names are checked: 1 … NAME_MAX bytes without '/', not "." or "..", and an
 * entry that is made or taken away has been looked up under the same lock. In
 * a directory that has been removed there is nothing, and nothing can be made:
 * -ENOENT.
 */
struct fs_ops {
    /* Fills in a new inode (type, size, links, device, data) by its number.
     * Not locked: nobody else can use it yet. While it runs an old inode of
     * the same number may still be on its way out (fs_evict), but only one
     * that has links. */
    int (*fs_read_inode)(struct inode *inode);
    /* The number of the entry `name`; -ENOENT. ".." comes too, but not that of
     * the root. The file cannot go before `dir` is unlocked. */
    int (*fs_lookup)(struct inode *dir, const char *name, uint32_t *ino);
    /* The name of a directory other than the root in its parent: NAME_MAX + 1
     * bytes. NULL where the root is the only directory. */
    int (*fs_name)(struct inode *inode, char *name);
    /* A new file or directory with one entry in `dir`. */
    int (*fs_create)(struct inode *dir, const char *name, enum file_type type,
                     uint32_t device, uint32_t *ino);
    int (*fs_link)(struct inode *dir, const char *name, struct inode *inode);
    int (*fs_unlink)(struct inode *dir, const char *name, struct inode *inode);
    int (*fs_rmdir)(struct inode *dir, const char *name, struct inode *inode);
    /* `target` is what `to` already is and makes room, or NULL: a directory if
     * `inode` is one. All four are locked, but for `inode` if it is a file.
     * `inode` is no ancestor of to_dir, `target` none of from_dir. */
    int (*fs_rename)(struct inode *from_dir, const char *from,
                     struct inode *to_dir, const char *to, struct inode *inode,
                     struct inode *target);
    /* Bytes moved, less at the end of the file. `buf` as for user_copy. */
    ssize_t (*fs_read)(struct inode *inode, uint32_t offset, void *buf,
                       size_t n);
    ssize_t (*fs_write)(struct inode *inode, uint32_t offset, const void *buf,
                        size_t n);
    int (*fs_truncate)(struct inode *inode, uint32_t size);
    /* Fills buf with struct dirent from position *offset on, which moves
     * (0 is the beginning; entries made or removed meanwhile may or may not
     * be seen, others are seen once). Bytes stored; 0 at the end. */
    ssize_t (*fs_getdents)(struct inode *dir, uint32_t *offset, void *buf,
                           size_t n);
    /* The inode goes: because its file has no link any more (inode_nlink is
     * 0: give up its contents), or just from memory. Not locked; may be
     * called under memory pressure, so it may not allocate or sleep. NULL:
     * nothing to do. */
    void (*fs_evict)(struct inode *inode);
    /* `f` is opened from the inode, as a file or directory: gives it, if need
     * be, operations and data of its own (kernel/fs/file.h). Not locked. NULL:
     * nothing to do. */
    int (*fs_open)(struct inode *inode, struct file *f);
    /* Brings size and links of an inode up to date. NULL: they always are. */
    int (*fs_refresh)(struct inode *inode);
    /* How full it is: fills in all but fs_kind and fs_root, which are known.
     * Nothing is locked. NULL: there is nothing to tell, all is 0. */
    int (*fs_stat)(struct fs *fs, struct fs_stat *out);
    /* What has been written, to the file or (NULL, and nothing locked) at all,
     * is on the medium afterwards. NULL: there is none. */
    int (*fs_sync)(struct fs *fs, struct inode *inode);
    /* Whether the running task may wait for this file system at all: 0, or
     * -EDEADLK, -EIO. Called before an inode is locked. NULL: always. */
    int (*fs_enter)(struct fs *fs);
};

struct fs {
    const struct fs_ops *fs_ops;
    const char *fs_name; /* "ram", "proc" */
    uint32_t fs_id;
    uint32_t fs_root;            /* number of the root directory */
    struct inode *fs_covers;     /* directory that it is mounted on, with a
                                reference; NULL: the root of all */
    struct inode *fs_root_inode; /* its root, where it keeps a reference to
                                    it: it can come and go while others look */
    uint32_t fs_inodes;          /* in memory; by inode_list_lock */
    void *fs_data;
    /* While it is held no directory moves, and one task at most locks two of
     * them. Taken before any inode is locked. */
    struct mutex fs_rename;
    struct list fs_link; /* in the list of what is mounted, by fs_id */
};

#define FS_RENAME_INIT(fs)                                                     \
    MUTEX_INIT((fs).fs_rename, "rename", MUTEX_RANK_RENAME)

enum inode_state {
    INODE_NEW,    /* fs_read_inode runs */
    INODE_READY,  /* in use or in the LRU list */
    INODE_FAILED, /* fs_read_inode said no; in no table any more */
    INODE_GONE,   /* its file went with its server; likewise */
};

struct inode {
    struct hash_link inode_hash_link; /* by inode_list_lock, to inode_refs */
    struct list inode_lru_link;       /* in the LRU list if READY and unused */
    uint32_t inode_refs;
    uint8_t inode_state; /* enum inode_state; whoever waits holds sched_lock */
    uint8_t inode_type;  /* enum file_type; never changes */
    bool inode_sealed;   /* never to be opened for writing; see inode_seal */
    struct fs *inode_fs;
    uint32_t inode_number;
    uint32_t inode_device; /* never changes either */
    struct mutex inode_mutex;
    /* By inode_mutex: */
    uint32_t inode_size;
    uint32_t inode_nlink;     /* 0: its last reference takes the file along */
    uint32_t inode_blocks;    /* 4 KiB units that it occupies, where fs_refresh
                                 tells; elsewhere the size does */
    struct fs *inode_mounted; /* a file system covers this directory */
    void *inode_data;         /* the file system's own */
};

/* Caches and hash table; registers with memory pressure. Boot only. */
void inode_init(void);

/* The inode of a file by number, with a reference: *out. 0, -ENOMEM or what
 * fs_read_inode says. May sleep. */
int inode_get(struct fs *fs, uint32_t number, struct inode **out);

/* The same in two steps, for whoever must not fail for lack of memory in the
 * second: a blank inode (NULL: no memory), and inode_get with it. What is not
 * needed of it goes back by itself; inode_blank_free if it comes to nothing. */
struct inode *inode_blank(void);
void inode_blank_free(struct inode *blank);
int inode_get_with(struct fs *fs, uint32_t number, struct inode *blank,
                   struct inode **out);

/* From now on the file's contents cannot be changed: privileges hang on them.
 * Whoever seals keeps a reference, since the inode knows it and the file system
 * does not. Before anybody can have opened the file for writing. */
static inline void inode_seal(struct inode *inode)
{
    inode->inode_sealed = true;
}

/* One more reference to an inode that the caller has one to. */
struct inode *inode_ref(struct inode *inode);

/* Drops one. May sleep. NULL does nothing. */
void inode_put(struct inode *inode);

static inline void inode_lock(struct inode *inode)
{
    mutex_lock(&inode->inode_mutex);
}

static inline void inode_unlock(struct inode *inode)
{
    mutex_unlock(&inode->inode_mutex);
}

/* Reads as fs_read does, taking the lock. -EISDIR for a directory, -EINVAL for
 * what cannot be read. */
ssize_t inode_read(struct inode *inode, uint32_t offset, void *buf, size_t n);

/* Gives up all unreferenced inodes of one file system. True if it has no inode
 * left. Never sleeps. */
bool inode_flush(struct fs *fs);

/* Gives up all unreferenced inodes of one file system. True if only its root is
 * left, with `refs` references. Never sleeps. */
bool inode_only_root(struct inode *root, uint32_t refs);

/* The files without a link of a file system are gone, all of a sudden: nobody
 * finds their inodes any more, whose state becomes INODE_GONE. Never sleeps. */
void inode_forget_unlinked(struct fs *fs);

/* Gives up unreferenced inodes, the least recently used first, `most` at most.
 * Returns how many. Never sleeps. */
size_t inode_reclaim(size_t most);

struct inode_totals {
    size_t total_cached; /* inodes in memory */
    size_t total_unused; /* of these without a reference */
    uint64_t total_hits, total_misses, total_reclaimed;
};

void inode_totals(struct inode_totals *out);

struct inode_stat {
    char stat_fs[FS_NAME_MAX + 1];
    uint32_t stat_fs_id;
    uint32_t stat_number, stat_refs, stat_size, stat_nlink;
    uint8_t stat_type;
};

/* Copies what `inodes` shows of those that come next after `after` (NULL: the
 * first), in order of file system and number; `n` at most. */
size_t inode_stats(const struct inode_stat *after, struct inode_stat *out,
                   size_t n);

const char *inode_verify(const char **where);

/* ---- paths (kernel/fs/path.c) ------------------------------------------- */

/*
 * Walks a path from the root ("/…") or from `cwd` (NULL: the root). `.` `..`
 * and doubled slashes are as POSIX has them; there are no symbolic links. A
 * trailing slash wants a directory. *out gets a reference. -ENOENT (also for
 * ""), -ENOTDIR, -ENAMETOOLONG, -ENOMEM. May sleep; no inode locked.
 */
int path_lookup(const char *path, struct inode *cwd, struct inode **out);

/* The same up to the last name: *dir gets a reference to the directory, `name`
 * (NAME_MAX + 1 bytes) the last component, which need not exist. Returns 0, or
 * 1 if a slash follows: a directory is meant. -EINVAL if the name is "." or
 * "..", -EBUSY if the path is a root. */
int path_parent(const char *path, struct inode *cwd, struct inode **dir,
                char *name);

/* The absolute path of a directory. Returns its length, or -ERANGE, -ENOENT
 * (it has been removed), -ENOMEM. May sleep; no inode locked. */
int path_of(struct inode *dir, char *buf, size_t size);

/* The root directory of all, borrowed; NULL before fs_init. */
struct inode *path_root(void);

/* ---- the tree (kernel/fs/directory.c)  */

/*
 * What system calls do by path. All return 0 or a negative error: those of
 * path_lookup, -EROFS, and what stands here. All may sleep; no inode locked.
 */

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

/* Replaces a file by a file, an empty directory by a directory, at once.
 * -EINVAL (into itself), -ENOTEMPTY, -EISDIR, -ENOTDIR, -EXDEV, -EBUSY. */
int fs_rename(const char *old, const char *new, struct inode *cwd);

/* The part of open() with O_CREAT in `flags`: the file, made if it is not
 * there; -EEXIST if it is and O_EXCL is among the flags. May be anything that
 * there was before, also a directory. */
int fs_create_file(const char *path, struct inode *cwd, uint32_t flags,
                   struct inode **out);

/* ---- mounting (kernel/fs/fs.c) ------------------------------------------ */

/* A number for a file system that will be mounted, and has inodes before. */
uint32_t fs_new_id(void);

/* Covers the directory `dir` (a reference is taken) by a file system, which
 * gets its fs_id here if it has none. -EBUSY (covered, or a root), -ENOTDIR,
 * -ENOENT (it has been removed). */
int fs_mount(struct fs *fs, struct inode *dir);

/* Uncovers the directory again. -EBUSY if an inode of `fs` is in use, or one
 * is covered; -EINVAL if it is not mounted. fs_unmount_root: the root alone may
 * be in use, with `refs` references, which are the caller's. */
int fs_unmount(struct fs *fs);
int fs_unmount_root(struct inode *root, uint32_t refs);

/* The mounted file system with the lowest fs_id above `after`, NULL after the
 * last. *on gets the covered directory (NULL: it is the root of all), *root
 * fs_root_inode, each with a reference: so long it is not unmounted. */
struct fs *fs_next(uint32_t after, struct inode **on, struct inode **root);

/* What statfs tells of a file system of which the caller uses an inode. May
 * sleep. */
int fs_stat(struct fs *fs, struct fs_stat *out);

/* Everything written so far is on its medium, on all file systems; the first
 * error, after all have been tried. May sleep. */
int fs_sync_all(void);

/* Whether the running task may wait for the file system that an inode is of.
 * To be asked before it is locked, by whoever could be a server himself. */
static inline int inode_enter(const struct inode *inode)
{
    struct fs *fs = inode->inode_fs;

    return likely(fs->fs_ops->fs_enter == NULL) ? 0 : fs->fs_ops->fs_enter(fs);
}

/* kernel/fs/proc.c */
extern struct fs proc_fs;
