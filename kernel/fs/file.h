/*
 * Open files: what a handle to a file, a device or a pipe end refers to.
 */
#pragma once

#include "kernel/abi/errno.h"
#include "kernel/fs/inode.h"
#include "kernel/object/object.h"
#include "mm/kmem.h"

struct file;

/* Return bytes or a negative error. `buf` as for user_copy. May sleep. Called
 * only if the file was opened for reading or writing. */
struct file_ops {
    ssize_t (*file_read)(struct file *f, void *buf, size_t n);
    ssize_t (*file_write)(struct file *f, const void *buf, size_t n);
    /* The last reference is dropped: frees the file's data and the file. */
    void (*file_release)(struct file *f);
    /* Overrides fields filled in from the inode (0 without one). May be
     * NULL. */
    void (*file_stat)(struct file *f, struct stat *out);
};

struct file {
    struct object file_object; /* first */
    const struct file_ops *file_ops;
    uint32_t file_flags;      /* O_RDONLY …, O_APPEND */
    uint32_t file_offset;     /* by the inode's lock; shared by dup and fork */
    struct inode *file_inode; /* NULL for pipe ends */
    void *file_data;          /* the pipe; proc's text */
};

extern const struct object_type file_type;

/* Initializes open files, pipes and the console. Boot only. */
void file_init(void);

extern struct kmem_cache *file_cache;

/* A new open file with one reference. Takes over the reference to `inode` (may
 * be NULL). NULL: no memory. */
static inline struct file *file_create(const struct file_ops *ops,
                                       uint32_t flags, struct inode *inode,
                                       void *data)
{
    struct file *f = kmem_cache_alloc(file_cache, KM_NOSLEEP);

    if (unlikely(f == NULL))
        return NULL;
    object_init(&f->file_object, &file_type);
    f->file_ops = ops;
    f->file_flags = flags;
    f->file_offset = 0;
    f->file_inode = inode;
    f->file_data = data;
    return f;
}

/* Releases its inode and frees it: for file_release, or as its last step, for
 * files from file_create and file_open. */
void file_free(struct file *f);

/* Opens as open() does. 0 and *out, or an error. May sleep. */
int file_open(const char *path, struct inode *cwd, uint32_t flags,
              struct file **out);

/* As read() and write(): bytes moved, 0 at the end of the file; -EBADF if not
 * opened for this, -EFAULT, -EISDIR, -EFBIG, -ENOSPC, -ENOMEM, -EPIPE, -EINTR.
 * `buf` as for user_copy. May sleep. */
static inline ssize_t file_read(struct file *f, void *buf, size_t n)
{
    if (unlikely((f->file_flags & O_ACCMODE) == O_WRONLY))
        return -EBADF;
    return f->file_ops->file_read(f, buf, n);
}

static inline ssize_t file_write(struct file *f, const void *buf, size_t n)
{
    if (unlikely((f->file_flags & O_ACCMODE) == O_RDONLY))
        return -EBADF;
    return f->file_ops->file_write(f, buf, n);
}

/* As lseek(), ftruncate(), getdents(), fsync(), fstat() and stat(). May sleep.
 */
off_t file_seek(struct file *f, off_t offset, int whence);
int file_truncate(struct file *f, uint32_t size);
ssize_t file_getdents(struct file *f, void *buf, size_t n);
int file_sync(struct file *f);
int file_stat(struct file *f, struct stat *out);
int file_stat_inode(struct inode *inode, struct stat *out);

/* Creates the caches; called by file_init. */
void pipe_init(void);

/* A pipe: two ends, each with one reference. 0 or -ENOMEM. */
int pipe_create(struct file **read_end, struct file **write_end);

/* Without object caching, pipes are allocated by kmem_alloc and constructed
 * each time, to measure what the cache saves. Default true. */
extern bool pipe_caching;

struct pipe_stat {
    const void *stat_pipe;
    uint32_t stat_readers, stat_writers, stat_bytes;
    uint64_t stat_total; /* bytes written so far */
};

/* Replaces a snapshot (zeroed: before the first) by that of the next pipe in
 * order of address. False: there is none. */
bool pipe_next(struct pipe_stat *st);
const char *pipe_verify(const char **where);

/* Initializes kernel/fs: unpacks the ustar archive at [start, start + size)
 * into the root file system (size 0: empty) and creates /dev and /proc. Boot
 * only. Returns the number of archive entries that were broken or did not fit;
 * each is reported on the console. */
unsigned fs_init(const void *start, size_t size);
