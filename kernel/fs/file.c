/*
 * Open files: opening by path, and operations on files and directories. Devices
 * (device.c, tty.c), pipe ends (pipe.c) and file systems with fs_open supply
 * operations of their own.
 *
 *     handle ──> struct file ──> file_ops ──> file system, device, pipe
 *                    └── file_inode
 */
#include "kernel/fs/file.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/device.h"
#include "kernel/fs/directory.h"
#include "kernel/fs/path.h"
#include "kernel/fs/tty.h"
#include "kernel/lib/string.h"
#include "kernel/vm/user.h"
#include "kernel/task/cache.h"
#include "mm/kmem.h"

#define OPEN_FLAGS                                                             \
    (O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_DIRECTORY |         \
     O_CLOEXEC)

struct kmem_cache *file_cache;

/* ---- the object --------------------------------------------------------- */

void file_free(struct file *f)
{
    inode_put(f->file_inode);
    kmem_cache_free(file_cache, f);
}

static void destroy_file(struct object *o)
{
    struct file *f = (struct file *)o;

    f->file_ops->file_release(f);
}

const struct object_type file_type = {"file", destroy_file, NULL, NULL};

void file_init(void)
{
    file_cache = cache_create("file", sizeof(struct file), 0, NULL, NULL);
    pipe_init();
    tty_init();
}

/* ---- files and directories ---------------------------------------------- */

/* Locks the inode of a handle. -EDEADLK if the caller itself serves its file
 * system. */
static int lock(struct inode *inode)
{
    int error = inode_enter(inode);

    return likely(error == 0) ? inode_lock(inode) : error;
}

static ssize_t regular_read(struct file *f, void *buf, size_t n)
{
    struct inode *inode = f->file_inode;
    ssize_t done = lock(inode);

    if (unlikely(done < 0))
        return done;
    done = inode->inode_fs->fs_ops->fs_read(inode, f->file_offset, buf, n);
    if (done > 0)
        f->file_offset += (uint32_t)done;
    inode_unlock(inode);
    return done;
}

/* Offsets stay below 2^31. */
static ssize_t regular_write(struct file *f, const void *buf, size_t n)
{
    struct inode *inode = f->file_inode;
    const struct fs_ops *ops = inode->inode_fs->fs_ops;
    uint32_t offset;
    ssize_t done = lock(inode);

    if (unlikely(done < 0))
        return done;
    offset = f->file_offset;
    if (f->file_flags & O_APPEND) {
        if (ops->fs_refresh != NULL)
            done = ops->fs_refresh(inode, false);
        offset = inode->inode_size;
    }
    if (done == 0 && n != 0 && offset >= INT32_MAX)
        done = -EFBIG;
    if (done == 0)
        done = ops->fs_write(inode, offset, buf, MIN(n, INT32_MAX - offset));
    if (done > 0)
        f->file_offset = offset + (uint32_t)done;
    inode_unlock(inode);
    return done;
}

static ssize_t directory_read(struct file *f UNUSED, void *buf UNUSED,
                              size_t n UNUSED)
{
    return -EISDIR;
}

static const struct file_ops regular_ops = {regular_read, regular_write,
                                            file_free, NULL};
static const struct file_ops directory_ops = {directory_read, NULL, file_free,
                                              NULL};

/* Entries are first stored in kernel memory, so that the position moves only
 * when the caller has them. */
ssize_t file_getdents(struct file *f, void *buf, size_t n)
{
    struct inode *inode = f->file_inode;
    size_t size = MIN(n, PAGE_SIZE);
    uint32_t offset;
    ssize_t done;
    void *entries;
    int error;

    if (f->file_ops != &directory_ops)
        return -ENOTDIR;
    if (size == 0)
        return -EINVAL;
    entries = kmem_alloc(size, KM_NOSLEEP);
    if (entries == NULL)
        return -ENOMEM;
    done = lock(inode);
    if (done < 0)
        goto free;
    offset = f->file_offset;
    done = inode->inode_fs->fs_ops->fs_getdents(inode, &offset, entries, size);
    error = done > 0 ? user_copy(buf, entries, (size_t)done) : 0;
    if (error != 0)
        done = error;
    if (done >= 0)
        f->file_offset = offset;
    inode_unlock(inode);
free:
    kmem_free(entries, size);
    return done;
}

int file_truncate(struct file *f, uint32_t size)
{
    struct inode *inode = f->file_inode;
    int error;

    if ((f->file_flags & O_ACCMODE) == O_RDONLY)
        return -EBADF;
    if (f->file_ops != &regular_ops || size > INT32_MAX)
        return -EINVAL;
    error = lock(inode);
    if (error != 0)
        return error;
    error = inode->inode_fs->fs_ops->fs_truncate(inode, size);
    inode_unlock(inode);
    return error;
}

int file_sync(struct file *f)
{
    struct inode *inode = f->file_inode;
    int error;

    if (inode == NULL || inode->inode_type == FILE_DEVICE)
        return -EINVAL;
    if (inode->inode_fs->fs_ops->fs_sync == NULL)
        return 0;
    error = lock(inode);
    if (error != 0)
        return error;
    error = inode->inode_fs->fs_ops->fs_sync(inode->inode_fs, inode);
    inode_unlock(inode);
    return error;
}

/* ---- status and position ------------------------------------------------ */

int file_stat_inode(struct inode *inode, struct stat *out)
{
    const struct fs_ops *ops = inode->inode_fs->fs_ops;
    bool device = inode->inode_type == FILE_DEVICE;
    int error = lock(inode);

    if (error != 0)
        return error;
    if (ops->fs_refresh != NULL)
        error = ops->fs_refresh(inode, true);
    *out = (struct stat){
        .st_fs = inode->inode_fs->fs_id,
        .st_ino = inode->inode_number,
        .st_type = inode->inode_type,
        .st_nlink = inode->inode_nlink,
        .st_size = inode->inode_size,
        .st_device = device ? inode->inode_device : 0,
    };
    if (ops->fs_refresh == NULL)
        out->st_blocks = ROUND_UP(inode->inode_size, PAGE_SIZE) / PAGE_SIZE;
    else if (!device)
        out->st_blocks = inode->inode_blocks;
    inode_unlock(inode);
    return error;
}

int file_stat(struct file *f, struct stat *out)
{
    int error = 0;

    memset(out, 0, sizeof(*out));
    if (f->file_inode != NULL)
        error = file_stat_inode(f->file_inode, out);
    if (error == 0 && f->file_ops->file_stat != NULL)
        f->file_ops->file_stat(f, out);
    return error;
}

/* Only the file system knows what a position in a directory means, so it can
 * only be kept or reset to 0. */
off_t file_seek(struct file *f, off_t offset, int whence)
{
    struct stat st;
    int64_t to;

    if (f->file_inode == NULL || f->file_inode->inode_type == FILE_DEVICE)
        return -ESPIPE;
    if (whence != SEEK_SET && whence != SEEK_CUR && whence != SEEK_END)
        return -EINVAL;
    to = file_stat(f, &st);
    if (to == 0)
        to = lock(f->file_inode);
    if (to != 0)
        return (off_t)to;
    to = whence == SEEK_SET   ? 0
         : whence == SEEK_CUR ? f->file_offset
                              : st.st_size;
    to += offset;
    if (to < 0 || to > INT32_MAX ||
        (st.st_type == FILE_DIRECTORY && to != 0 && to != f->file_offset))
        to = -EINVAL;
    else
        f->file_offset = (uint32_t)to;
    inode_unlock(f->file_inode);
    return (off_t)to;
}

/* ---- opening ------------------------------------------------------------ */

static bool writes(uint32_t flags)
{
    return (flags & O_ACCMODE) != O_RDONLY;
}

/* Whether an inode may be opened with these flags. */
static int check_inode(const struct inode *inode, uint32_t flags)
{
    if (inode->inode_type == FILE_DIRECTORY)
        return writes(flags) || (flags & O_CREAT) ? -EISDIR : 0;
    if (flags & O_DIRECTORY)
        return -ENOTDIR;
    if (inode->inode_type != FILE_REGULAR || !writes(flags))
        return 0;
    if (inode->inode_fs->fs_ops->fs_write == NULL)
        return -EROFS;
    return inode->inode_sealed ? -EPERM : 0;
}

/* Allocates the open file first: after a file is created nothing may fail. */
int file_open(const char *path, struct inode *cwd, uint32_t flags,
              struct file **out)
{
    const struct fs_ops *ops;
    struct inode *inode;
    struct file *f;
    int error;

    if ((flags & ~OPEN_FLAGS) != 0 || (flags & O_ACCMODE) == O_ACCMODE ||
        ((flags & O_CREAT) && (flags & O_DIRECTORY)) ||
        ((flags & O_TRUNC) && !writes(flags)))
        return -EINVAL;
    f = file_create(NULL, flags & (O_ACCMODE | O_APPEND), NULL, NULL);
    if (f == NULL)
        return -ENOMEM;
    error = flags & O_CREAT ? fs_create_file(path, cwd, flags, &inode)
                            : path_lookup(path, cwd, &inode);
    if (error != 0)
        goto free;
    f->file_inode = inode;
    f->file_ops =
        inode->inode_type == FILE_DIRECTORY ? &directory_ops : &regular_ops;
    ops = inode->inode_fs->fs_ops;
    error = check_inode(inode, flags);
    if (error == 0 && inode->inode_type == FILE_DEVICE)
        error = device_open(f);
    else if (error == 0 && ops->fs_open != NULL)
        error = ops->fs_open(inode, f);
    if (error == 0 && (flags & O_TRUNC) && f->file_ops == &regular_ops)
        error = file_truncate(f, 0);
    if (error != 0)
        goto free;
    *out = f;
    return 0;
free:
    file_free(f);
    return error;
}
