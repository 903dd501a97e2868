/*
 * System calls by path: each copies its paths into kernel memory and passes
 * them to kernel/fs.
 */
#include "kernel/syscall/path.h"
#include "kernel/fs/directory.h"
#include "kernel/fs/file.h"
#include "kernel/fs/path.h"
#include "kernel/syscall/syscall.h"
#include "mm/kmem.h"

int path_copy_in(uint32_t user, char **path)
{
    int n;

    *path = kmem_alloc(PATH_MAX, KM_NOSLEEP);
    if (*path == NULL)
        return -ENOMEM;
    n = copy_string_from_user(*path, (const char __user *)user, PATH_MAX);
    if (n < 0) {
        path_free(*path);
        return n;
    }
    return 0;
}

void path_free(char *path)
{
    kmem_free(path, PATH_MAX);
}

/* ---- one path ----------------------------------------------------------- */

int32_t with_path(uint32_t user, int (*fn)(const char *path, struct inode *cwd))
{
    char *path;
    int error = path_copy_in(user, &path);

    if (error != 0)
        return error;
    error = fn(path, task_self()->task_cwd);
    path_free(path);
    return error;
}

int32_t sys_mkdir(uint32_t a, NO_BC)
{
    return with_path(a, fs_mkdir);
}

int32_t sys_rmdir(uint32_t a, NO_BC)
{
    return with_path(a, fs_rmdir);
}

int32_t sys_unlink(uint32_t a, NO_BC)
{
    return with_path(a, fs_unlink);
}

static int change_directory(const char *path, struct inode *cwd)
{
    struct inode *to;
    int error = path_lookup(path, cwd, &to);

    if (error != 0)
        return error;
    if (to->inode_type != FILE_DIRECTORY) {
        inode_put(to);
        return -ENOTDIR;
    }
    /* point of no return */
    task_self()->task_cwd = to;
    inode_put(cwd);
    return 0;
}

int32_t sys_chdir(uint32_t a, NO_BC)
{
    return with_path(a, change_directory);
}

int path_inode(uint32_t user, struct inode **out)
{
    char *path;
    int error = path_copy_in(user, &path);

    if (error != 0)
        return error;
    error = path_lookup(path, task_self()->task_cwd, out);
    path_free(path);
    return error;
}

int32_t sys_stat(uint32_t a, uint32_t b, NO_C)
{
    struct inode *inode;
    struct stat st;
    int error;

    if (!user_range((void __user *)b, sizeof(st)))
        return -EFAULT;
    error = path_inode(a, &inode);
    if (error != 0)
        return error;
    error = file_stat_inode(inode, &st);
    inode_put(inode);
    return error != 0 ? error : user_copy((void *)b, &st, sizeof(st));
}

/* ---- two paths ---------------------------------------------------------- */

static int32_t with_paths(uint32_t a, uint32_t b,
                          int (*fn)(const char *old, const char *new,
                                    struct inode *cwd))
{
    char *old, *new;
    int error = path_copy_in(a, &old);

    if (error != 0)
        return error;
    error = path_copy_in(b, &new);
    if (error == 0) {
        error = fn(old, new, task_self()->task_cwd);
        path_free(new);
    }
    path_free(old);
    return error;
}

int32_t sys_rename(uint32_t a, uint32_t b, NO_C)
{
    return with_paths(a, b, fs_rename);
}

int32_t sys_link(uint32_t a, uint32_t b, NO_C)
{
    return with_paths(a, b, fs_link);
}

/* ---- from a directory to its path --------------------------------------- */

int32_t sys_getcwd(uint32_t a, uint32_t b, NO_C)
{
    struct inode *cwd = task_self()->task_cwd;
    int error = 0;
    char *path;
    int len;

    if (!user_range((void __user *)a, b))
        return -EFAULT;
    path = kmem_alloc(PATH_MAX, KM_NOSLEEP);
    if (path == NULL)
        return -ENOMEM;
    len = path_of(cwd == NULL ? path_root() : cwd, path, PATH_MAX);
    if (len >= 0 && (uint32_t)len >= b)
        len = -ERANGE;
    if (len >= 0)
        error = user_copy((void *)a, path, (size_t)len + 1);
    path_free(path);
    return error != 0 ? error : len;
}
