/*
 * System calls on file systems as a whole: mount, umount, sync, fsync, statfs.
 */
#include "kernel/fs/file.h"
#include "kernel/fs/path.h"
#include "kernel/fs/userfs.h"
#include "kernel/syscall/path.h"
#include "kernel/syscall/syscall.h"
#include "kernel/object/handle.h"

int32_t sys_mount(uint32_t handle, uint32_t path, NO_C)
{
    struct port *port = (struct port *)handle_object(task_self()->task_handles,
                                                     (int)handle, &port_type);
    struct inode *dir;
    int error;

    if (port == NULL)
        return -EBADF;
    error = path_inode(path, &dir);
    if (error != 0)
        return error;
    error = userfs_mount(port, dir);
    inode_put(dir);
    return error;
}

/* If a path cannot be looked up, for example because a server on it has died or
 * was replaced, it is compared with the paths of the mounts. */
static int unmount(const char *path, struct inode *cwd)
{
    struct inode *root = NULL;
    int error = path_lookup(path, cwd, &root);

    if (error != 0)
        root = fs_find_mount(path);
    return root == NULL ? error : userfs_unmount(root);
}

int32_t sys_umount(uint32_t path, NO_BC)
{
    return with_path(path, unmount);
}

int32_t sys_sync(NO_ABC)
{
    return fs_sync_all();
}

int32_t sys_fsync(uint32_t handle, NO_BC)
{
    struct file *f = (struct file *)handle_object(task_self()->task_handles,
                                                  (int)handle, &file_type);

    return f == NULL ? -EBADF : file_sync(f);
}

int32_t sys_statfs(uint32_t path, uint32_t to, NO_C)
{
    struct inode *inode;
    struct fs_stat st;
    int error;

    if (!user_range((void __user *)to, sizeof(st)))
        return -EFAULT;
    error = path_inode(path, &inode);
    if (error != 0)
        return error;
    error = fs_stat(inode->inode_fs, &st);
    inode_put(inode);
    return error != 0 ? error : user_copy((void *)to, &st, sizeof(st));
}
