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

#include "kernel/task/sync.h"

struct fs;
struct inode;

/*
 * What a file system can do. All return 0 or a negative error; NULL means
 * that the system has no such thing (-EROFS or -EINVAL, as fits). `dir` and
 * `inode` are locked (inode_lock) by the caller unless it says otherwise.
 * Names are checked: 1 … NAME_MAX bytes without '/', not "." or "..".
 */
struct fs_ops {
    /* Fills in a new inode (type, size, links, device) by its number. */
    int (*fs_read_inode)(struct inode *inode);
    /* The number of the entry `name`; -ENOENT. "." and ".." come too. */
    int (*fs_lookup)(struct inode *dir, const char *name, uint32_t *ino);
    /* A new file or directory with one entry in `dir`. */
    int (*fs_create)(struct inode *dir, const char *name, enum file_type type,
                     uint32_t device, uint32_t *ino);
    int (*fs_link)(struct inode *dir, const char *name, struct inode *inode);
    int (*fs_unlink)(struct inode *dir, const char *name, struct inode *inode);
    int (*fs_rmdir)(struct inode *dir, const char *name, struct inode *inode);
    /* `target` is what `to` already is, or NULL; both directories locked. */
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
     * called under memory pressure, so it may not allocate or sleep. */
    void (*fs_evict)(struct inode *inode);
};

struct fs {
    const struct fs_ops *fs_ops;
    const char *fs_name; /* "ram", "proc" */
    uint32_t fs_id;
    uint32_t fs_root;        /* number of the root directory */
    struct inode *fs_covers; /* directory that it is mounted on; NULL: the
                                root of all */
    void *fs_data;
};

struct inode {
    struct list inode_hash_link;
    struct list inode_lru_link; /* in the LRU list if inode_refs is 0 */
    struct fs *inode_fs;
    uint32_t inode_number;
    uint32_t inode_refs; /* by inode_lock_all, as the two links */
    struct mutex inode_mutex;
    /* By inode_mutex: */
    uint8_t inode_type; /* enum file_type */
    uint32_t inode_size;
    uint32_t inode_nlink;
    uint32_t inode_device;
    struct fs *inode_mounted; /* a file system covers this directory */
    void *inode_data;         /* the file system's own */
};

/* Caches and hash table; registers with memory pressure. Boot only. */
void inode_init(void);

/* The inode of a file by number, with a reference: *out. 0, -ENOMEM or what
 * fs_read_inode says. May sleep. */
int inode_get(struct fs *fs, uint32_t number, struct inode **out);

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

/* Reads as fs_read does, taking the lock. -EISDIR for a directory. */
ssize_t inode_read(struct inode *inode, uint32_t offset, void *buf, size_t n);

/* Gives up unreferenced inodes, the least recently used first, `most` at most.
 * Returns how many. Never sleeps. */
size_t inode_reclaim(size_t most);

struct inode_totals {
    size_t total_cached; /* inodes in memory */
    size_t total_unused; /* of these without a reference */
    uint64_t total_hits, total_misses, total_reclaimed;
};

void inode_totals(struct inode_totals *out);

/* Copies what `inodes` shows, `n` at most, in order of the hash table. */
struct inode_stat {
    const char *stat_fs;
    uint32_t stat_number, stat_refs, stat_size, stat_nlink;
    uint8_t stat_type;
};

size_t inode_stats(struct inode_stat *out, size_t n);

const char *inode_verify(const char **where);

/* ---- paths (kernel/fs/path.c) ------------------------------------------- */

/*
 * Walks a path from the root ("/…") or from `cwd`. `.` `..` and doubled
 * slashes are as POSIX has them; there are no symbolic links. A trailing slash
 * wants a directory. *out gets a reference. -ENOENT (also for ""), -ENOTDIR,
 * -ENAMETOOLONG, -ENOMEM. May sleep.
 */
int path_lookup(const char *path, struct inode *cwd, struct inode **out);

/* The same up to the last name: *dir gets a reference to the directory, `name`
 * (NAME_MAX + 1 bytes) the last component, which need not exist. -EINVAL if
 * that is "." or "..", -EBUSY if the path is a root. */
int path_parent(const char *path, struct inode *cwd, struct inode **dir,
                char *name);

/* The absolute path of a directory. Returns its length, or -ERANGE, -ENOENT
 * (it has been removed). */
int path_of(struct inode *dir, char *buf, size_t size);

/* The root directory of all, borrowed; NULL before fs_init. */
struct inode *path_root(void);
