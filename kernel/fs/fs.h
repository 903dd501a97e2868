/*
 * File systems: their operations, and where they are mounted.
 */
#pragma once

#include "kernel/abi/fs.h"
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
    /* Updates the size in an inode; if `all`, every attribute. NULL: inodes are
     * always up to date. */
    int (*fs_refresh)(struct inode *inode, bool all);
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

/* ---- mounting ----------------------------------------------------------- */

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
 * inode is in use or covered; -EINVAL if it is not mounted.
 * `force`: whatever uses it; operations on its inodes return -EIO, and it is
 * freed with the last of them. -EINVAL also if it is static. */
int fs_unmount(struct inode *root, bool force);

/* The root of the file system mounted last on `path`, as fs_path says, with a
 * reference; NULL: none. Nothing is looked up in any file system. */
struct inode *fs_find_mount(const char *path);

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

/* Writes everything to disk, on all file systems but those that other sessions
 * mounted. Returns the first error, after all have been tried. May sleep. */
int fs_sync_all(void);
