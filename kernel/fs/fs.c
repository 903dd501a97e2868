/*
 * File systems: mounting and unmounting, and the directory tree at boot: the
 * root in RAM with the files of the initrd, standard directories, device nodes.
 */
#include "drivers/console.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/fs/proc.h"
#include "kernel/fs/path.h"
#include "kernel/fs/ramfs.h"
#include "kernel/fs/userfs.h"
#include "kernel/lib/string.h"
#include "kernel/x86/panic.h"

/* ---- mounting ----------------------------------------------------------- */

#define MOUNT_LOCK_RANK 4

static struct spinlock mount_lock = SPINLOCK_INIT("mounts", MOUNT_LOCK_RANK);
static struct list mounts = LIST_INIT(mounts); /* by fs_id */
static uint32_t last_id;

uint32_t fs_new_id(void)
{
    return __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
}

/* Inserts it into the list, in order of fs_id. */
static void insert_mount(struct fs *fs)
{
    struct list *at;

    spin_lock(&mount_lock);
    at = mounts.prev;
    while (at != &mounts &&
           list_entry(at, struct fs, fs_link)->fs_id > fs->fs_id)
        at = at->prev;
    list_insert_after(at, &fs->fs_link);
    spin_unlock(&mount_lock);
}

static void remove_mount(struct fs *fs)
{
    spin_lock(&mount_lock);
    list_remove(&fs->fs_link);
    spin_unlock(&mount_lock);
}

/* The references are taken under the lock: a file system in the list has its
 * covered directory, and one whose root is in use is not removed. */
struct fs *fs_next(uint32_t after, struct inode **on, struct inode **root)
{
    struct fs *found = NULL;

    *on = *root = NULL;
    spin_lock(&mount_lock);
    list_for_each (l, &mounts) {
        struct fs *fs = list_entry(l, struct fs, fs_link);

        if (fs->fs_id <= after)
            continue;
        if (fs->fs_covers != NULL)
            *on = inode_ref(fs->fs_covers);
        if (fs->fs_root_inode != NULL)
            *root = inode_ref(fs->fs_root_inode);
        found = fs;
        break;
    }
    spin_unlock(&mount_lock);
    return found;
}

int fs_mount(struct fs *fs, struct inode *dir)
{
    int r = 0;

    if (dir->inode_type != FILE_DIRECTORY)
        return -ENOTDIR;
    if (fs->fs_covers != NULL || dir->inode_number == dir->inode_fs->fs_root)
        return -EBUSY;
    inode_lock(dir);
    if (dir->inode_mounted != NULL)
        r = -EBUSY;
    else if (dir->inode_nlink == 0)
        r = -ENOENT;
    if (r == 0) {
        if (fs->fs_id == 0)
            fs->fs_id = fs_new_id();
        fs->fs_covers = inode_ref(dir);
        dir->inode_mounted = fs;
        insert_mount(fs);
    }
    inode_unlock(dir);
    return r;
}

/* While the covered directory is locked, no path walk can enter. */
int fs_unmount(struct inode *root, uint32_t refs)
{
    struct fs *fs = root->inode_fs;
    struct inode *dir = fs->fs_covers;
    bool idle;

    if (dir == NULL)
        return -EINVAL;
    inode_lock(dir);
    remove_mount(fs);
    idle = inode_only_root(root, refs);
    if (idle) {
        dir->inode_mounted = NULL;
        fs->fs_covers = NULL;
    } else {
        insert_mount(fs);
    }
    inode_unlock(dir);
    if (!idle)
        return -EBUSY;
    inode_put(dir);
    return 0;
}

/* ---- all file systems --------------------------------------------------- */

int fs_stat(struct fs *fs, struct fs_stat *out)
{
    const struct fs_ops *ops = fs->fs_ops;
    int r = 0;

    *out = (struct fs_stat){.fs_root = fs->fs_root};
    if (ops->fs_stat != NULL)
        r = ops->fs_stat(fs, out);
    strlcpy(out->fs_kind, fs->fs_name, sizeof(out->fs_kind));
    return r;
}

int fs_sync_all(void)
{
    struct inode *on, *root;
    uint32_t last = 0;
    struct fs *fs;
    int first = 0;

    while ((fs = fs_next(last, &on, &root)) != NULL) {
        int r = 0;

        last = fs->fs_id;
        if (fs->fs_ops->fs_sync != NULL && root != NULL)
            r = fs->fs_ops->fs_sync(fs, NULL);
        inode_put(root);
        inode_put(on);
        if (first == 0)
            first = r;
    }
    return first;
}

/* ---- boot --------------------------------------------------------------- */

/* The root directory stays in use while the kernel runs. */
static void make_root(const void *start, size_t size, unsigned *broken)
{
    struct inode *root;

    ramfs.fs_id = fs_new_id();
    *broken = ustar_unpack(start, size, ramfs_root());
    if (inode_get(&ramfs, ramfs.fs_root, &root) < 0)
        panic("not enough memory for the root directory");
    path_set_root(root);
    insert_mount(&ramfs);
}

static void must(const char *path, int r)
{
    if (r < 0 && r != -EEXIST)
        panic("cannot make %s: error %d", path, -r);
}

static void make_directory(const char *path)
{
    must(path, fs_mkdir(path, NULL));
}

static void make_device(const char *path, uint32_t device)
{
    must(path, fs_mknod(path, NULL, FILE_DEVICE, device));
}

static void mount_at(const char *path, struct fs *fs)
{
    struct inode *dir;
    int r = path_lookup(path, NULL, &dir);

    if (r == 0) {
        r = fs_mount(fs, dir);
        inode_put(dir);
    }
    must(path, r);
}

unsigned fs_init(const void *start, size_t size)
{
    unsigned broken;

    inode_init();
    userfs_init();
    ramfs_init();
    file_init();
    make_root(start, size, &broken);
    make_directory("/dev");
    make_directory("/proc");
    make_directory("/tmp");
    make_device("/dev/console", 1);
    make_device("/dev/null", 2);
    make_device("/dev/zero", 3);
    make_device("/dev/debug", 4);
    mount_at("/proc", &proc_fs);
    return broken;
}
