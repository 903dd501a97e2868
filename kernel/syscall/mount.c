/*
 * System calls on file systems as a whole: mount, umount, sync, fsync, statfs.
 */
#include "kernel/fs/file.h"
#include "kernel/fs/userfs.h"
#include "kernel/syscall/path.h"
#include "kernel/syscall/syscall.h"
#include "kernel/task/handle.h"

int32_t sys_mount(uint32_t handle, uint32_t path, uint32_t c)
{
    struct port *port = (struct port *)handle_object(task_self()->task_handles,
                                                     (int)handle, &port_type);
    struct inode *dir;
    int error;

    (void)c;
    if (port == NULL)
        return -EBADF;
    error = path_inode(path, &dir);
    if (error != 0)
        return error;
    error = userfs_mount(port, dir);
    inode_put(dir);
    return error;
}

int32_t sys_umount(uint32_t path, uint32_t b, uint32_t c)
{
    struct inode *root;
    int error = path_inode(path, &root);

    (void)b;
    (void)c;
    if (error != 0)
        return error;
    return userfs_unmount(root);
}

int32_t sys_sync(uint32_t a, uint32_t b, uint32_t c)
{
    (void)a;
    (void)b;
    (void)c;
    return fs_sync_all();
}

int32_t sys_fsync(uint32_t handle, uint32_t b, uint32_t c)
{
    struct file *f = (struct file *)handle_object(task_self()->task_handles,
                                                  (int)handle, &file_type);

    (void)b;
    (void)c;
    return f == NULL ? -EBADF : file_sync(f);
}

int32_t sys_statfs(uint32_t path, uint32_t to, uint32_t c)
{
    struct inode *inode;
    struct fs_stat st;
    int error;

    (void)c;
    if (!user_range((void __user *)to, sizeof(st)))
        return -EFAULT;
    error = path_inode(path, &inode);
    if (error != 0)
        return error;
    error = fs_stat(inode->inode_fs, &st);
    inode_put(inode);
    return error != 0 ? error : user_copy((void *)to, &st, sizeof(st));
}
