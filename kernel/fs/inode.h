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

#include "kernel/fs/fs.h"
#include "kernel/fs/hash.h"

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
    bool inode_unsure;   /* by inode_mutex: the fields below may be out of date,
                            so the inode is freed with its last reference */
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

/* Whether an inode with this number is in the table, in use or not. */
bool inode_known(struct fs *fs, uint32_t number);

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

/* Called when a new file gets this number. An inode with the same number is of
 * a file that was lost with a dead server: it becomes INODE_GONE, unless a file
 * system is mounted on it. */
void inode_forget(struct fs *fs, uint32_t number);

/* Frees at most `most` unreferenced inodes, least recently used first. Returns
 * how many. Never sleeps. */
size_t inode_reclaim(size_t most);

/* Lets the inode at this address be the next that is reclaimed. False: there is
 * no unreferenced inode. Any address is allowed. */
bool inode_make_oldest(const void *at);

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
    const char *stat_type; /* inode_type_name */
};

/* "file", "dir" or "device"; "new" until its file system has read it. */
const char *inode_type_name(const struct inode *inode);

/* Replaces a snapshot (zeroed: before the first) by that of the next inode in
 * order of file system and number. False: there is none. */
bool inode_next(struct inode_stat *st);

const char *inode_verify(const char **where);

/* Whether the running task, which may be a server, may wait for an inode's file
 * system. Call this before locking the inode. No kernel task may wait for a
 * server: -EXDEV. */
static inline int inode_enter(const struct inode *inode)
{
    struct fs *fs = inode->inode_fs;

    return likely(fs->fs_ops->fs_enter == NULL) ? 0 : fs->fs_ops->fs_enter(fs);
}
