/*
 * The tree at boot: the root in RAM, filled from the initrd; the directories
 * that everybody counts on; device nodes; what is mounted.
 */
#include "drivers/console.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/fs/path.h"
#include "kernel/fs/ramfs.h"
#include "kernel/x86/panic_hook.h"

/* ---- mounting ----------------------------------------------------------- */

static uint32_t last_id;

int fs_mount(struct fs *fs, struct inode *dir)
{
    int r = 0;

    if (dir->inode_type != FILE_DIRECTORY)
        return -ENOTDIR;
    if (fs->fs_covers != NULL)
        return -EBUSY;
    inode_lock(dir);
    if (dir->inode_mounted != NULL)
        r = -EBUSY;
    else if (dir->inode_nlink == 0)
        r = -ENOENT;
    if (r == 0) {
        fs->fs_id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
        fs->fs_covers = inode_ref(dir);
        dir->inode_mounted = fs;
    }
    inode_unlock(dir);
    return r;
}

/* While the covered directory is locked no walk can step down. */
int fs_unmount(struct fs *fs)
{
    struct inode *dir = fs->fs_covers;
    bool idle;

    if (dir == NULL)
        return -EINVAL;
    inode_lock(dir);
    idle = inode_flush(fs);
    if (idle) {
        dir->inode_mounted = NULL;
        fs->fs_covers = NULL;
    }
    inode_unlock(dir);
    if (!idle)
        return -EBUSY;
    inode_put(dir);
    return 0;
}

/* ---- boot --------------------------------------------------------------- */

/* The root of all: it is in use for as long as the kernel runs. */
static void make_root(const void *start, size_t size, unsigned *broken)
{
    struct inode *root;

    ramfs.fs_id = ++last_id;
    *broken = ustar_unpack(start, size, ramfs_root());
    if (inode_get(&ramfs, ramfs.fs_root, &root) < 0)
        panic("no memory for the root directory");
    path_set_root(root);
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
    tree_init();
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
