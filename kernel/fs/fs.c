/*
 * File systems: mounting and unmounting, and the directory tree at boot: the
 * root in RAM with the files of the initrd, standard directories, device nodes.
 */
#include "drivers/console.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/device.h"
#include "kernel/fs/directory.h"
#include "kernel/fs/file.h"
#include "kernel/fs/proc.h"
#include "kernel/fs/path.h"
#include "kernel/fs/ramfs.h"
#include "kernel/fs/userfs.h"
#include "kernel/lib/string.h"
#include "kernel/object/session.h"
#include "kernel/x86/panic.h"
#include "mm/kmem.h"

/* ---- mounting ----------------------------------------------------------- */

static struct spinlock mount_lock = SPINLOCK_INIT("mounts", LOCK_RANK_MOUNTS);
static struct list mounts = LIST_INIT(mounts); /* by fs_id */
static uint32_t last_id;

uint32_t fs_new_id(void)
{
    return __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
}

/* Inserts it into the list, in order of fs_id. */
static void insert_mount(struct fs *fs)
{
    struct list *at = mounts.prev;

    spin_assert_held(&mount_lock);
    while (at != &mounts &&
           list_entry(at, struct fs, fs_link)->fs_id > fs->fs_id)
        at = at->prev;
    list_insert_after(at, &fs->fs_link);
}

/* The path of `dir` as text of its own, or NULL. */
static int copy_path(struct inode *dir, char **out)
{
    char *path = kmem_alloc(PATH_MAX, KM_NOSLEEP);
    int len;

    if (path == NULL)
        return -ENOMEM;
    len = path_of(dir, path, PATH_MAX);
    if (len >= 0) {
        *out = kmem_alloc((size_t)len + 1, KM_NOSLEEP);
        if (*out == NULL)
            len = -ENOMEM;
        else
            memcpy(*out, path, (size_t)len + 1);
    }
    kmem_free(path, PATH_MAX);
    return MIN(len, 0);
}

static void free_path(struct fs *fs)
{
    kmem_free(fs->fs_path, strlen(fs->fs_path) + 1);
    fs->fs_path = NULL;
}

/* Whether a locked directory is empty: 0, -ENOTEMPTY or an error of
 * fs_getdents. A server that lies makes only few requests. */
static int check_empty(struct inode *dir)
{
    uint32_t entries[32]; /* holds "." and ".." and any third */
    uint32_t offset = 0;

    inode_assert_locked(dir);
    for (int i = 0; i < 3; i++) {
        ssize_t n = dir->inode_fs->fs_ops->fs_getdents(dir, &offset, entries,
                                                       sizeof(entries));

        if (n <= 0)
            return (int)n;
        for (size_t at = 0; at < (size_t)n;) {
            const struct dirent *d = (const void *)((char *)entries + at);

            if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
                return -ENOTEMPTY;
            at += d->d_reclen;
        }
    }
    return -ENOTEMPTY;
}

/* Mounts `fs`, which has all it needs, on `dir`. While `dir` is locked, it can
 * be neither removed nor replaced. */
static int cover(struct fs *fs, struct inode *dir)
{
    int r = inode_lock(dir);

    if (r < 0)
        return r;
    if (dir->inode_mounted != NULL)
        r = -EBUSY;
    else if (dir->inode_nlink == 0)
        r = -ENOENT;
    else if (fs->fs_owner != 0)
        r = check_empty(dir);
    if (r == 0) {
        spin_lock(&mount_lock);
        fs->fs_covers = inode_ref(dir);
        dir->inode_mounted = fs;
        insert_mount(fs);
        spin_unlock(&mount_lock);
    }
    inode_unlock(dir);
    return r;
}

/* The directory may have been renamed before it was covered. By now another
 * task may have unmounted it. */
static void update_path(struct fs *fs, struct inode *dir)
{
    char *path, *old;

    if (copy_path(dir, &path) < 0)
        return;
    spin_lock(&mount_lock);
    old = path;
    if (dir->inode_mounted == fs) {
        old = fs->fs_path;
        fs->fs_path = path;
    }
    spin_unlock(&mount_lock);
    kmem_free(old, strlen(old) + 1);
}

int fs_mount(struct fs *fs, struct inode *dir)
{
    int r;

    if (dir->inode_type != FILE_DIRECTORY)
        return -ENOTDIR;
    if (fs->fs_covers != NULL || dir->inode_number == dir->inode_fs->fs_root)
        return -EBUSY;
    if (!session_charge(session_self(), SESSION_MOUNTS, 1))
        return -ENOSPC;
    fs->fs_session = session_self();
    fs->fs_owner = session_number(session_self());
    if (fs->fs_id == 0)
        fs->fs_id = fs_new_id();
    fs->fs_ended = false;
    r = copy_path(dir, &fs->fs_path);
    if (r < 0)
        goto refund;
    r = inode_get(fs, fs->fs_root, &fs->fs_root_inode);
    if (r < 0)
        goto drop_path;
    r = cover(fs, dir);
    if (r < 0)
        goto put_root;
    update_path(fs, dir);
    return 0;
put_root:
    inode_put(fs->fs_root_inode);
drop_path:
    free_path(fs);
refund:
    session_refund(fs->fs_session, SESSION_MOUNTS, 1);
    return r;
}

bool fs_may_change(const struct fs *fs)
{
    uint32_t session = session_number(session_self());

    return session == 0 || session == fs->fs_owner;
}

/* ---- unmounting --------------------------------------------------------- */

/* The two references to the root are those of the mount and of the caller. An
 * inode that another task has used since the flush counts as in use. */
int fs_unmount(struct inode *root, bool force)
{
    struct fs *fs = root->inode_fs;
    struct inode *dir;
    int r = 0;

    if (!force)
        inode_flush(fs);
    spin_lock(&mount_lock);
    dir = fs->fs_covers;
    if (dir == NULL || (force && fs->fs_ops->fs_free == NULL)) {
        r = -EINVAL;
    } else if (!force && !inode_only_root(root, 2)) {
        r = -EBUSY;
    } else { /* from here on no path leads into it */
        list_remove(&fs->fs_link);
        dir->inode_mounted = NULL;
        fs->fs_covers = NULL;
    }
    spin_unlock(&mount_lock);
    if (r < 0)
        return r;
    inode_end(fs);
    inode_put(fs->fs_root_inode);
    inode_put(dir);
    free_path(fs);
    session_refund(fs->fs_session, SESSION_MOUNTS, 1);
    return 0;
}

/* ---- what is mounted where ---------------------------------------------- */

/* All take their references under the lock: while a file system is in the list,
 * it has its root and its covered directory. */

struct inode *fs_mounted_on(const struct inode *dir)
{
    struct inode *root = NULL;

    spin_lock(&mount_lock);
    if (dir->inode_mounted != NULL)
        root = inode_ref(dir->inode_mounted->fs_root_inode);
    spin_unlock(&mount_lock);
    return root;
}

struct inode *fs_covered_by(const struct fs *fs)
{
    struct inode *dir = NULL;

    spin_lock(&mount_lock);
    if (fs->fs_covers != NULL)
        dir = inode_ref(fs->fs_covers);
    spin_unlock(&mount_lock);
    return dir;
}

struct inode *fs_find_mount(const char *path)
{
    struct inode *root = NULL;

    spin_lock(&mount_lock);
    for (struct list *l = mounts.prev; root == NULL && l != &mounts;
         l = l->prev) {
        const struct fs *fs = list_entry(l, struct fs, fs_link);

        if (strcmp(fs->fs_path, path) == 0)
            root = inode_ref(fs->fs_root_inode);
    }
    spin_unlock(&mount_lock);
    return root;
}

struct fs *fs_next(uint32_t after, char *path, struct inode **root)
{
    struct fs *found = NULL;

    spin_lock(&mount_lock);
    list_for_each (l, &mounts) {
        struct fs *fs = list_entry(l, struct fs, fs_link);

        if (fs->fs_id <= after)
            continue;
        *root = inode_ref(fs->fs_root_inode);
        if (path != NULL)
            strlcpy(path, fs->fs_path, PATH_MAX);
        found = fs;
        break;
    }
    spin_unlock(&mount_lock);
    return found;
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

/* A file system that another session mounted is left out: its server may never
 * reply. */
int fs_sync_all(void)
{
    uint32_t session = session_number(session_self());
    struct inode *root;
    uint32_t last = 0;
    struct fs *fs;
    int first = 0;

    while ((fs = fs_next(last, NULL, &root)) != NULL) {
        bool strange = fs->fs_owner != 0 && fs->fs_owner != session;
        int r = 0;

        if (!strange && fs->fs_ops->fs_sync != NULL)
            r = inode_enter(root) ?: fs->fs_ops->fs_sync(fs, NULL);
        last = fs->fs_id;
        inode_put(root);
        if (first == 0)
            first = r;
    }
    return first;
}

/* ---- boot --------------------------------------------------------------- */

/* What is made at boot: a device, or (0) a directory. */
static const struct {
    const char *path;
    uint32_t device;
} made[] = {
    {"/dev", 0},
    {"/proc", 0},
    {"/tmp", 0},
    {"/dev/console", DEVICE_CONSOLE},
    {"/dev/null", DEVICE_NULL},
    {"/dev/zero", DEVICE_ZERO},
    {"/dev/debug", DEVICE_DEBUG},
};

/* The root directory stays in use while the kernel runs. */
unsigned fs_init(const void *start, size_t size)
{
    static char path[] = "/";
    struct inode *dir;
    unsigned broken;
    int r;

    inode_init();
    userfs_init();
    ramfs_init();
    file_init();
    ramfs.fs_id = fs_new_id();
    ramfs.fs_path = path;
    broken = ustar_unpack(start, size, ramfs_root());
    if (inode_get(&ramfs, ramfs.fs_root, &ramfs.fs_root_inode) < 0)
        panic("not enough memory for the root directory");
    path_set_root(ramfs.fs_root_inode);
    spin_lock(&mount_lock);
    insert_mount(&ramfs);
    spin_unlock(&mount_lock);
    for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
        r = fs_mknod(made[i].path, NULL,
                     made[i].device == 0 ? FILE_DIRECTORY : FILE_DEVICE,
                     made[i].device);
        if (r < 0 && r != -EEXIST)
            panic("cannot make %s: error %d", made[i].path, -r);
    }
    r = path_lookup("/proc", NULL, &dir);
    if (r == 0) {
        r = fs_mount(&proc_fs, dir);
        inode_put(dir);
    }
    if (r < 0)
        panic("cannot mount /proc: error %d", -r);
    return broken;
}
