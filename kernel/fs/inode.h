/*
 * Inodes: the kernel's representation of files in use.
 *
 * A file system keeps files as it chooses (ramfs: nodes and pages in RAM; proc:
 * functions) and knows them by number. A file in use has an inode, an object of
 * the `inode` cache, found by (file system, number) in a hash table. An inode
 * without references stays cached on the LRU list, since it will probably be
 * used again. Under memory pressure the least recently used are freed first,
 * before any allocation fails.
 *
 *     inode_get ──> in use <──────── found again ────────┐
 *                     │ inode_put: no reference left      │
 *                     v                                   │
 *                  LRU list ──────────────────────────────┘
 *                     │ pressure, or its file has no link
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
struct session;

/*
 * Operations of a file system. All return 0 or a negative error; NULL means not
 * supported (-EROFS or -EINVAL). The caller has locked `dir` and `inode`
 * (inode_lock) unless stated otherwise. Names are valid: 1 to NAME_MAX bytes
 * without '/', not "." or "..". An entry to be created or removed has been
 * looked up under the same lock. A removed directory is empty, and nothing can
 * be created in it: -ENOENT.
 */
struct fs_ops {
    /* Fills in a new inode (type, size, links, device, data) by its number. Not
     * locked: no other task can use it yet. An old inode of the same number may
     * still be in fs_evict, but only one with links. */
    int (*fs_read_inode)(struct inode *inode);
    /* The number of the entry `name`, or -ENOENT. `name` may be ".." except in
     * the root. The file cannot be removed before `dir` is unlocked. */
    int (*fs_lookup)(struct inode *dir, const char *name, uint32_t *ino);
    /* The name of a directory other than the root in its parent: NAME_MAX + 1
     * bytes. NULL if the root is the only directory. */
    int (*fs_name)(struct inode *inode, char *name);
    /* Creates a file or directory with one entry in `dir`. */
    int (*fs_create)(struct inode *dir, const char *name, enum file_type type,
                     uint32_t device, uint32_t *ino);
    int (*fs_link)(struct inode *dir, const char *name, struct inode *inode);
    int (*fs_unlink)(struct inode *dir, const char *name, struct inode *inode);
    int (*fs_rmdir)(struct inode *dir, const char *name, struct inode *inode);
    /* `target` is the file that `to` names and that is replaced, or NULL; a
     * directory if `inode` is one. All four are locked, except `inode` if it is
     * a file. `inode` is no ancestor of to_dir, `target` none of from_dir. */
    int (*fs_rename)(struct inode *from_dir, const char *from,
                     struct inode *to_dir, const char *to, struct inode *inode,
                     struct inode *target);
    /* Returns bytes moved, fewer at the end. `buf` as for user_copy. */
    ssize_t (*fs_read)(struct inode *inode, uint32_t offset, void *buf,
                       size_t n);
    ssize_t (*fs_write)(struct inode *inode, uint32_t offset, const void *buf,
                        size_t n);
    int (*fs_truncate)(struct inode *inode, uint32_t size);
    /* Fills buf, in the kernel's memory, with struct dirent from position
     * *offset on and updates it (0: the beginning). Entries created or removed
     * meanwhile may be missed or seen; others are seen once. Returns bytes
     * stored, 0 at the end. */
    ssize_t (*fs_getdents)(struct inode *dir, uint32_t *offset, void *buf,
                           size_t n);
    /* The inode is dropped: because its file has no link (inode_nlink is 0:
     * free its contents), or only from memory. Not locked. Called under memory
     * pressure too: may not allocate or sleep. Returns true to keep the object,
     * for inode_free later. May be NULL. */
    bool (*fs_evict)(struct inode *inode);
    /* `f` is being opened from the inode, as a file or directory: may give it
     * operations and data of its own (kernel/fs/file.h). Not locked. May be
     * NULL. */
    int (*fs_open)(struct inode *inode, struct file *f);
    /* Updates size and links of an inode. NULL: always up to date. */
    int (*fs_refresh)(struct inode *inode);
    /* Fills in all fields but fs_kind and fs_root. Nothing is locked. NULL: all
     * are 0. */
    int (*fs_stat)(struct fs *fs, struct fs_stat *out);
    /* Returns when all writes to the file, or (NULL, and nothing locked) to the
     * file system, are on disk. NULL: there is no disk. */
    int (*fs_sync)(struct fs *fs, struct inode *inode);
    /* Whether the running task may wait for this file system: 0, or -EDEADLK,
     * -EIO, -EXDEV. Called before an inode is locked. NULL: always. */
    int (*fs_enter)(struct fs *fs);
    /* The file system has been unmounted and its last inode has been dropped:
     * frees it. May not sleep. NULL: it is static, and cannot be unmounted by
     * force. */
    void (*fs_free)(struct fs *fs);
};

struct fs {
    const struct fs_ops *fs_ops;
    const char *fs_name; /* "ram", "proc" */
    uint32_t fs_id;
    uint32_t fs_root; /* number of the root directory */
    /* While it is mounted; changed under mount_lock: */
    struct inode *fs_covers;     /* the directory it is mounted on, with a
                                    reference; NULL: the root, or not mounted */
    struct inode *fs_root_inode; /* its root, with a reference */
    char *fs_path;               /* of fs_covers, when it was mounted */
    struct list fs_link;         /* in the list of mounts, by fs_id */
    uint32_t fs_owner;           /* session of the task that mounted it; 0:
                                    outside */
    struct session *fs_session;  /* that session, charged with the mount */
    /* By inode_list_lock: */
    uint32_t fs_inodes; /* in memory */
    bool fs_ended; /* unmounted: operations on its inodes return -EIO, and it is
                      freed with the last of them */
    void *fs_data;
    /* While this is held, no directory moves, and at most one task locks two of
     * them. Taken before any inode is locked. */
    struct mutex fs_rename;
};

#define FS_RENAME_INIT(fs)                                                     \
    MUTEX_INIT((fs).fs_rename, "rename", MUTEX_RANK_RENAME)

enum inode_state {
    INODE_NEW,    /* fs_read_inode runs */
    INODE_READY,  /* in use or in the LRU list */
    INODE_FAILED, /* fs_read_inode failed; no longer in the table */
    INODE_GONE,   /* only a dead server knew its file; likewise */
};

struct inode {
    struct hash_link inode_hash_link; /* this and inode_refs: by
                                         inode_list_lock */
    struct list inode_lru_link;       /* in the LRU list if READY and unused */
    uint32_t inode_refs;
    uint8_t inode_state; /* enum inode_state; waiters hold sched_lock */
    uint8_t inode_type;  /* enum file_type; never changes */
    bool inode_sealed;   /* see inode_seal */
    struct fs *inode_fs;
    uint32_t inode_number;
    struct mutex inode_mutex;
    /* Guarded by inode_mutex: */
    uint32_t inode_size;
    uint32_t inode_nlink; /* 0: the file is freed with its last reference */
    union {
        uint32_t inode_device; /* FILE_DEVICE; never changes */
        uint32_t inode_blocks; /* others: 4 KiB units occupied, if there is
                                  fs_refresh */
    };
    struct fs *inode_mounted; /* a file system covers this directory; set with
                                 mount_lock too, cleared with it alone */
    void *inode_data;         /* private to the file system */
};

/* Creates caches and table; registers with memory pressure. Boot only. */
void inode_init(void);

/* *out: the inode of file `number`, with a reference. 0, -ENOMEM or an error of
 * fs_read_inode or inode_lock. May sleep. */
int inode_get(struct fs *fs, uint32_t number, struct inode **out);

/* The same in two steps, so that the second cannot fail for lack of memory: a
 * blank inode (NULL: no memory), then inode_get_with. inode_get_with frees the
 * blank if it is not needed; inode_free frees one that is never used. */
struct inode *inode_blank(void);
void inode_free(struct inode *inode);
int inode_get_with(struct fs *fs, uint32_t number, struct inode *blank,
                   struct inode **out);

/* Makes a file's contents immutable, because rights depend on them, and the
 * names of a file, device or directory: they are neither removed nor renamed,
 * and a file gets no other. The caller keeps its reference, since the seal is
 * in the inode and not in the file system. Must precede any open for writing.
 */
static inline void inode_seal(struct inode *inode)
{
    inode->inode_sealed = true;
}

/* Adds a reference; the caller has one already. */
struct inode *inode_ref(struct inode *inode);

/* Drops a reference. NULL does nothing. Never waits for a server. */
void inode_put(struct inode *inode);

/* The holder may wait for a server. 0, -EINTR or -EIO, as for any
 * mutex_lock_killable. */
__attribute__((warn_unused_result)) static inline int
inode_lock(struct inode *inode)
{
    return mutex_lock_killable(&inode->inode_mutex);
}

static inline void inode_unlock(struct inode *inode)
{
    mutex_unlock(&inode->inode_mutex);
}

#define inode_assert_locked(inode) mutex_assert_held(&(inode)->inode_mutex)

/* Reads as fs_read does, and takes the lock. -EISDIR for a directory, -EINVAL
 * for what cannot be read. */
ssize_t inode_read(struct inode *inode, uint32_t offset, void *buf, size_t n);

/* Frees all unreferenced inodes of a file system. True if none is left. Never
 * sleeps. */
bool inode_flush(struct fs *fs);

/* Whether only the root of a file system is in memory, with `refs`
 * references. */
bool inode_only_root(struct inode *root, uint32_t refs);

/* Sets fs_ended and frees all unreferenced inodes; with the last inode, the
 * file system. */
void inode_end(struct fs *fs);

/* Drops the files without a link of a file system: their inodes leave the table
 * and become INODE_GONE. Never sleeps. */
void inode_drop_unlinked(struct fs *fs);

/* Frees at most `most` unreferenced inodes, least recently used first. Returns
 * how many. Never sleeps. */
size_t inode_reclaim(size_t most);

struct inode_totals {
    size_t total_cached; /* inodes in memory */
    size_t total_unused; /* of these, without a reference */
    uint64_t total_hits, total_misses, total_reclaimed;
};

void inode_totals(struct inode_totals *out);

struct inode_stat {
    char stat_fs[FS_NAME_MAX + 1];
    uint32_t stat_fs_id;
    uint32_t stat_number, stat_refs, stat_size, stat_nlink;
    uint8_t stat_type;
};

/* Snapshots of the next inodes after `after` (NULL: the first) in order of file
 * system and number, at most n. */
size_t inode_stats(const struct inode_stat *after, struct inode_stat *out,
                   size_t n);

const char *inode_verify(const char **where);

/* ---- paths (kernel/fs/path.c) ------------------------------------------- */

/*
 * Walks a path from the root ("/…") or from `cwd` (NULL: the root). `.`, `..`
 * and doubled slashes are as in POSIX; there are no symbolic links. A path with
 * a trailing slash must be a directory. *out gets a reference. -ENOENT (also
 * for ""), -ENOTDIR, -ENAMETOOLONG, -ENOMEM. May sleep; no inode locked.
 */
int path_lookup(const char *path, struct inode *cwd, struct inode **out);

/* The same up to the last name: *dir gets a reference to the directory, `name`
 * (NAME_MAX + 1 bytes) the last component, which need not exist. Returns 0, or
 * 1 if a slash follows, so a directory is required. -EINVAL if the name is "."
 * or "..", -EBUSY if the path is a root. */
int path_parent(const char *path, struct inode *cwd, struct inode **dir,
                char *name);

/* The absolute path of a directory. Returns its length, or -ERANGE, -ENOENT
 * (it has been removed), -ENOMEM. May sleep; no inode locked. */
int path_of(struct inode *dir, char *buf, size_t size);

/* The root directory, borrowed; NULL before fs_init. */
struct inode *path_root(void);

/* ---- directories (kernel/fs/directory.c) -------------------------------- */

/*
 * System calls by path. All return 0 or a negative error: those of path_lookup,
 * -EROFS, those listed, and the last four -EPERM for what is sealed. All may
 * sleep; no inode locked.
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

/* Replaces a file by a file, or an empty directory by a directory, in one step.
 * -EINVAL (into itself), -ENOTEMPTY, -EISDIR, -ENOTDIR, -EXDEV, -EBUSY. */
int fs_rename(const char *old, const char *new, struct inode *cwd);

/* For open() with O_CREAT in `flags`: the file, created if it does not exist.
 * -EEXIST if it exists and O_EXCL is set. An existing file may be of any type,
 * also a directory. */
int fs_create_file(const char *path, struct inode *cwd, uint32_t flags,
                   struct inode **out);

/* For fs_getdents: stores an entry in the `n` bytes at `to`, which are in the
 * kernel's memory. Returns its length, 0 if it does not fit. */
size_t dirent_store(void *to, size_t n, uint32_t ino, enum file_type type,
                    const char *name);

/* ---- mounting (kernel/fs/fs.c) ------------------------------------------ */

/* A number for a file system that has inodes before it is mounted. */
uint32_t fs_new_id(void);

/* Mounts a file system on the directory `dir` and takes a reference to it and
 * to the root; assigns fs_id if it is 0. -EBUSY (covered, or a root), -ENOTDIR,
 * -ENOENT (it has been removed), -ENOMEM, or an error of inode_get or path_of.
 * In a session also -ENOTEMPTY, an error of fs_getdents, or -ENOSPC (too many
 * mounts). May sleep. */
int fs_mount(struct fs *fs, struct inode *dir);

/* Whether the running task may unmount it, or replace its server: it is outside
 * sessions, or in the session that mounted it. */
bool fs_may_change(const struct fs *fs);

/* Unmounts the file system of `root`, its root, to which the caller has the
 * only reference outside the mount. -EBUSY if `root` has another, or if another
 * inode is in use or covered; -EINVAL if it is not mounted. */
int fs_unmount(struct inode *root);

/* The root of the file system mounted last on `path`, as fs_path says, with a
 * reference; NULL: none. Nothing is looked up in any file system. */
struct inode *fs_find_mount(const char *path);

/* Unmounts the file system of `root` whatever uses it: operations on its inodes
 * return -EIO, and it is freed with the last of them. -EINVAL if it is not
 * mounted, or static. */
int fs_unmount_forced(struct inode *root);

/* The root of the file system that covers `dir`, and the directory that `fs`
 * covers, each with a reference; NULL: none. */
struct inode *fs_mounted_on(const struct inode *dir);
struct inode *fs_covered_by(const struct fs *fs);

/* The mounted file system with the lowest fs_id above `after`; NULL: no more.
 * *root gets its root, with a reference, which keeps it in memory. `path` gets
 * fs_path: PATH_MAX bytes, or NULL. */
struct fs *fs_next(uint32_t after, char *path, struct inode **root);

/* The result of statfs for a file system of which the caller uses an inode. May
 * sleep. */
int fs_stat(struct fs *fs, struct fs_stat *out);

/* Writes everything to disk, on all file systems. Returns the first error,
 * after all have been tried. May sleep; for those that other sessions mounted,
 * KERNEL_PATIENCE_MS at most, all together. */
int fs_sync_all(void);

/* Whether the running task, which may be a server, may wait for an inode's file
 * system. Call this before locking the inode. No kernel task may wait for a
 * server: -EXDEV. */
static inline int inode_enter(const struct inode *inode)
{
    struct fs *fs = inode->inode_fs;

    return likely(fs->fs_ops->fs_enter == NULL) ? 0 : fs->fs_ops->fs_enter(fs);
}
