/*
 * File systems in user space: operations below the mount point become messages
 * to the server's port (kernel/abi/fs.h). Their inodes are in the kernel's
 * inode cache like all others.
 *
 *     path, file ──> fs_ops ──> userfs_ops.c ──> userfs.c ──> port ──> server
 *                      inode    a message per      the port that
 *                               operation          serves now
 *
 * The kernel checks every reply of a server. A server that lies, hangs or dies
 * makes only operations on its own files fail.
 */
#pragma once

#include "kernel/fs/inode.h"
#include "kernel/ipc/port.h"

/* Time that clients of a dead server wait for its successor. */
#define USERFS_PATIENCE_MS 5000u

/* Creates the cache. Boot only. */
void userfs_init(void);

/*
 * Mounts the server of a port on a directory (as path_lookup finds it). If that
 * is the root of a user-space file system whose server is dead, the port takes
 * over; kind and root must be unchanged. 0; -EBUSY (covered, or the root of
 * another or a live file system); -EPERM (not the caller's);
 * -ENOTDIR, -ENOENT; -ENOTEMPTY, -ENOSPC (fs_mount); -EPIPE, -EDEADLK (the
 * caller is the server); -ENOMEM; -EIO (an invalid reply). Waits for the
 * server.
 */
int userfs_mount(struct port *port, struct inode *dir);

/* Unmounts the file system with this root; takes over the caller's reference. A
 * live server is informed, and its reply is the result, but the file system is
 * unmounted in any case. -EBUSY if it is in use, -EINVAL if the inode is not
 * such a root, -EPERM if another session mounted it. */
int userfs_unmount(struct inode *root);

/* The same by force, whatever the server and its clients do. The server is not
 * informed. */
int userfs_unmount_forced(struct inode *root);

/* All that tasks of a session have mounted, likewise. */
void userfs_unmount_session(uint32_t number);

struct userfs_stat {
    bool stat_lives;
    pid_t stat_server; /* received last on the port */
    uint32_t stat_port;
    uint32_t stat_servers;             /* servers so far */
    uint32_t stat_requests;            /* sent so far */
    char stat_name[TASK_NAME_MAX + 1]; /* of the server, "" if it does not
                                          exist */
};

/* Snapshot of a file system, which the caller keeps mounted, for `mounts`.
 * False if it is of another kind. */
bool userfs_snapshot(struct fs *fs, struct userfs_stat *out);

/* NULL, or the first broken invariant of a user-space file system. */
const char *userfs_verify(const char **where);
