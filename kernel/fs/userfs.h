/*
 * File systems that a program keeps: what is below the mount point becomes
 * messages to its port (kernel/abi/fs.h), while the inodes live in the kernel's
 * cache like all others.
 *
 *     path, file ──> fs_ops ──> userfs_ops.c ──> userfs.c ──> port ──> server
 *                      inode    a message per      the port that
 *                               operation          serves now
 *
 * Nothing that a server says is believed before it has been checked. One that
 * lies, hangs or dies makes operations on its own files fail, and no others.
 */
#pragma once

#include "kernel/fs/inode.h"
#include "kernel/ipc/port.h"

/* While a server is dead its clients wait so long for a successor. */
#define USERFS_PATIENCE_MS 5000u

/* So long a task that cannot be killed meanwhile, because its end is the cause,
 * waits until a server has heard that it may give up a file. */
#define USERFS_RELEASE_MS 10000u

/* The cache. Boot only. */
void userfs_init(void);

/*
 * Mounts the server behind a port on a directory (as path_lookup finds it). If
 * that is the root of a user-space file system whose server is dead, the port
 * takes over: kind and root must be those of before. 0; -EBUSY (covered, or the
 * root of something that lives or is another); -ENOTDIR, -ENOENT; -EPIPE,
 * -EDEADLK (the server itself asks); -ENOMEM; -EIO (the server talks nonsense).
 * Waits for the server.
 */
int userfs_mount(struct port *port, struct inode *dir);

/* Unmounts what an inode is the root of; takes over the caller's reference to
 * it. The server, if it lives, is told, and what it says is the result; it has
 * been unmounted then in any case. -EBUSY if it is in use, -EINVAL if the inode
 * is no such root. */
int userfs_unmount(struct inode *root);

struct userfs_stat {
    bool stat_lives;
    pid_t stat_server; /* who received there last */
    uint32_t stat_port;
    uint32_t stat_servers;             /* how many it had so far */
    uint32_t stat_requests;            /* sent so far */
    char stat_name[TASK_NAME_MAX + 1]; /* of the server, "" if it is gone */
};

/* What `mounts` shows of a file system, which the caller keeps mounted. False
 * if it is another kind. */
bool userfs_snapshot(struct fs *fs, struct userfs_stat *out);

/* NULL, or the first broken invariant of a user-space file system. */
const char *userfs_verify(const char **where);
