/*
 * Private to kernel/fs/userfs.c and userfs_ops.c.
 */
#pragma once

#include "kernel/fs/userfs.h"

struct userfs {
    struct fs userfs_fs; /* first */
    /* Guarded by sched_lock: */
    struct port *userfs_port;         /* with a reference */
    struct wait_queue userfs_waiting; /* tasks waiting for a new server */
    uint64_t userfs_lost_ms;    /* when the port was found dead; 0: it lives */
    uint32_t userfs_generation; /* servers so far: the number of this one */
    uint32_t userfs_requests;
    bool userfs_changing;        /* another port is taking over */
    struct list userfs_released; /* inodes whose files are no longer in use:
                                    those without a link need an FS_RELEASE
                                    request */
    char userfs_kind[FS_NAME_MAX + 1];
};

static inline struct userfs *userfs_of(const struct fs *fs)
{
    return (struct userfs *)fs;
}

/* The low bits of inode_data; the others are userfs_generation. */
enum {
    USERFS_CHANGED = 1, /* changed since it was read; no reply says how */
    USERFS_WRITTEN = 2, /* written since the last fsync */
    USERFS_LOST = 4,    /* the same, but the server has died since */
    USERFS_SHIFT = 3,
};

/* The number of the server that an inode was last read from. */
static inline uint32_t userfs_generation(const struct inode *inode)
{
    return (uint32_t)(uintptr_t)inode->inode_data >> USERFS_SHIFT;
}

static inline bool userfs_has(const struct inode *inode, uint32_t bits)
{
    return ((uint32_t)(uintptr_t)inode->inode_data & bits) != 0;
}

/* A request and its reply. */
struct userfs_request {
    uint32_t request_words[4]; /* tag and words; then the reply's */
    struct ipc_buffer request_buffer;
    struct inode *request_others[2]; /* its other inodes, locked; or NULL */
    struct inode *request_new_in; /* the directory of a new name, or NULL: only
                                     for the server that looked up the name */
    bool request_once; /* must not be repeated if the server dies during it */
    uint32_t request_generation; /* of the only server it is for; 0: any */
    unsigned request_tries;      /* servers that died during it */
};

/* Another result of userfs_call: there is a new server, which may not know the
 * file of the request. The request is unchanged. */
#define USERFS_STALE INT32_MIN

/* Sends a request and waits for the reply. Returns the server's result, 0 or
 * more, or an error of the server or the kernel. While the server is dead,
 * waits for the next one; -EIO if none comes. */
int32_t userfs_call(struct userfs *u, struct userfs_request *c);

/* The inode of a file that is no longer in use becomes a release: the next task
 * that calls the server tells it. False: that server has died, or the file
 * system is unmounted. */
bool userfs_release(struct userfs *u, struct inode *inode);

/* Frees a file system without inodes. */
void userfs_free(struct fs *fs);

extern const struct fs_ops userfs_ops;
