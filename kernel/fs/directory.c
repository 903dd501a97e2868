/*
 * Changes to directories by path: mkdir, mknod, unlink, rmdir, link, rename,
 * and open with O_CREAT. Names and types are checked here for all file systems.
 *
 * Locks are taken from the root downwards: first a directory, then its entries.
 * Only rename locks two directories neither of which contains the other (see
 * lock_both). A file system may lie about which directory contains which.
 * Therefore two directories are locked only while fs_rename is held, and no
 * deadlock can follow from a lie.
 */
#include "kernel/fs/directory.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/path.h"
#include "kernel/lib/string.h"

#define DEPTH_MAX PATH_MAX /* nesting of directories */

/* Where an entry is or will be. */
struct place {
    struct inode *dir; /* with a reference */
    bool slash;        /* the path ends in a slash: must be a directory */
    char name[NAME_MAX + 1];
};

static int find_place(const char *path, struct inode *cwd, struct place *p)
{
    int r;

    p->dir = NULL;
    r = path_parent(path, cwd, &p->dir, p->name);
    p->slash = r == 1;
    return MIN(r, 0);
}

/* The same for a new entry: -EEXIST for "/", "." and "..". (If p->dir is NULL,
 * the error is a server's, from a look-up on the way.) */
static int find_new_place(const char *path, struct inode *cwd, struct place *p)
{
    int r = find_place(path, cwd, p);

    return p->dir != NULL && (r == -EBUSY || r == -EINVAL) ? -EEXIST : r;
}

/* Locks the directory of a new entry, if that can be there: 0, -EEXIST, -ENOENT
 * (a slash follows, but it is no directory) or an error of fs_lookup. */
static int lock_new_place(const struct place *p, bool directory)
{
    uint32_t number;
    int r = inode_lock(p->dir);

    if (r < 0)
        return r;
    r = p->dir->inode_fs->fs_ops->fs_lookup(p->dir, p->name, &number);
    if (r == -ENOENT && (directory || !p->slash))
        return 0;
    inode_unlock(p->dir);
    return r == 0 ? -EEXIST : r;
}

/* ---- creating ----------------------------------------------------------- */

static int create_entry(const struct place *p, enum file_type type,
                        uint32_t device, uint32_t *number)
{
    const struct fs_ops *ops = p->dir->inode_fs->fs_ops;

    inode_assert_locked(p->dir);
    if (ops->fs_create == NULL)
        return -EROFS;
    return ops->fs_create(p->dir, p->name, type, device, number);
}

int fs_mknod(const char *path, struct inode *cwd, enum file_type type,
             uint32_t device)
{
    struct place p;
    uint32_t number;
    int r = find_new_place(path, cwd, &p);

    if (r < 0)
        return r;
    r = lock_new_place(&p, type == FILE_DIRECTORY);
    if (r < 0)
        goto put;
    r = create_entry(&p, type, device, &number);
    inode_unlock(p.dir);
put:
    inode_put(p.dir);
    return r;
}

int fs_mkdir(const char *path, struct inode *cwd)
{
    return fs_mknod(path, cwd, FILE_DIRECTORY, 0);
}

/* Creates a file in a locked directory. The inode is allocated first, so that a
 * file is never created that cannot be opened. */
static int create_inode(const struct place *p, struct inode **out)
{
    struct inode *blank = inode_blank();
    uint32_t number;
    int r;

    if (blank == NULL)
        return -ENOMEM;
    r = create_entry(p, FILE_REGULAR, 0, &number);
    if (r < 0) {
        inode_free(blank);
        return r;
    }
    return inode_get_with(p->dir->inode_fs, number, blank, out);
}

int fs_create_file(const char *path, struct inode *cwd, uint32_t flags,
                   struct inode **out)
{
    struct place p;
    int r = find_new_place(path, cwd, &p);

    if (r == -EEXIST && (flags & O_EXCL) == 0)
        return path_lookup(path, cwd, out);
    if (r < 0)
        return r;
    r = p.slash ? -EISDIR : inode_lock(p.dir);
    if (r < 0)
        goto put;
    r = path_child(p.dir, p.name, out);
    if (r == -ENOENT) {
        r = create_inode(&p, out);
    } else if (r == 0 && (flags & O_EXCL) != 0) {
        inode_put(*out);
        r = -EEXIST;
    }
    inode_unlock(p.dir);
put:
    inode_put(p.dir);
    if (r < 0)
        return r;
    r = path_descend(out);
    if (r < 0)
        inode_put(*out);
    return r;
}

int fs_link(const char *old, const char *new, struct inode *cwd)
{
    struct inode *inode;
    struct place p;
    int r = path_lookup(old, cwd, &inode);

    if (r < 0)
        return r;
    r = inode->inode_type == FILE_DIRECTORY || inode->inode_sealed
            ? -EPERM
            : find_new_place(new, cwd, &p);
    if (r < 0)
        goto put_inode;
    r = p.dir->inode_fs == inode->inode_fs ? lock_new_place(&p, false) : -EXDEV;
    if (r < 0)
        goto put_dir;
    r = inode->inode_fs->fs_ops->fs_link == NULL ? -EROFS : inode_lock(inode);
    if (r < 0)
        goto unlock_dir;
    r = inode->inode_nlink == 0
            ? -ENOENT
            : inode->inode_fs->fs_ops->fs_link(p.dir, p.name, inode);
    inode_unlock(inode);
unlock_dir:
    inode_unlock(p.dir);
put_dir:
    inode_put(p.dir);
put_inode:
    inode_put(inode);
    return r;
}

/* ---- removing ----------------------------------------------------------- */

/* Whether the type and the seal, which never change, allow this removal. */
static int check_removal(const struct place *p, const struct inode *inode,
                         bool directory)
{
    if (directory && inode->inode_type != FILE_DIRECTORY)
        return -ENOTDIR;
    if (!directory && inode->inode_type == FILE_DIRECTORY)
        return -EISDIR;
    if (!directory && p->slash)
        return -ENOTDIR;
    return inode->inode_sealed ? -EPERM : 0;
}

static int remove(const char *path, struct inode *cwd, bool directory)
{
    int (*op)(struct inode * dir, const char *name, struct inode *inode);
    struct mutex *still; /* no directory moves while one is removed */
    struct inode *inode = NULL;
    struct place p;
    int r = find_place(path, cwd, &p);

    if (r < 0)
        return r;
    op = directory ? p.dir->inode_fs->fs_ops->fs_rmdir
                   : p.dir->inode_fs->fs_ops->fs_unlink;
    still = directory ? &p.dir->inode_fs->fs_rename : NULL;
    r = still == NULL ? 0 : mutex_lock_killable(still);
    if (r < 0)
        goto put_dir;
    r = inode_lock(p.dir);
    if (r < 0)
        goto let_move;
    r = path_child(p.dir, p.name, &inode);
    if (r < 0) {
        inode = NULL;
        goto unlock_dir;
    }
    r = check_removal(&p, inode, directory);
    if (r == 0)
        r = op == NULL ? -EROFS : inode_lock(inode);
    if (r < 0)
        goto unlock_dir;
    r = inode->inode_mounted != NULL ? -EBUSY : op(p.dir, p.name, inode);
    inode_unlock(inode);
unlock_dir:
    inode_unlock(p.dir);
    inode_put(inode);
let_move:
    if (still != NULL)
        mutex_unlock(still);
put_dir:
    inode_put(p.dir);
    return r;
}

int fs_rmdir(const char *path, struct inode *cwd)
{
    return remove(path, cwd, true);
}

int fs_unlink(const char *path, struct inode *cwd)
{
    return remove(path, cwd, false);
}

/* ---- renaming ----------------------------------------------------------- */

struct rename {
    struct place from;
    struct place to;
    struct inode *inode;  /* at from */
    struct inode *target; /* at to, or NULL */
    uint32_t from_above;  /* number of the entry of from.dir that is to.dir
                             or contains it; 0: none */
    uint32_t to_above;    /* the same for to.dir */
};

/* Whether `dir` is below `top`: 1, and *child is the number of the entry of
 * `top` that is or contains it; 0; or an error. The caller holds fs_rename. */
static int is_below(struct inode *dir, const struct inode *top, uint32_t *child)
{
    struct inode *at = inode_ref(dir);
    unsigned depth = 0;
    int r = 0;

    mutex_assert_held(&top->inode_fs->fs_rename);
    while (at != top && at->inode_number != at->inode_fs->fs_root) {
        struct inode *parent;

        r = depth++ < DEPTH_MAX ? inode_lock(at) : -EIO;
        if (r < 0)
            break;
        r = path_child(at, "..", &parent);
        inode_unlock(at);
        if (r < 0)
            break;
        *child = at->inode_number;
        inode_put(at);
        at = parent;
    }
    if (r == 0 && at == top)
        r = 1;
    else
        *child = 0;
    inode_put(at);
    return r;
}

/* Locks two inodes, of which the second may be the first, or NULL. */
static int lock_two(struct inode *first, struct inode *second)
{
    int r = inode_lock(first);

    if (r < 0 || second == NULL || second == first)
        return r;
    r = inode_lock(second);
    if (r < 0)
        inode_unlock(first);
    return r;
}

/*
 * Locks both directories, the upper one first. If neither contains the other,
 * the order does not matter: a task that holds one of them waits only for
 * inodes below it, and no other rename runs.
 */
static int lock_both(struct rename *m)
{
    struct inode *first = m->from.dir;
    struct inode *second = m->to.dir;
    int r = 0;

    if (first != second)
        r = is_below(second, first, &m->from_above);
    if (r == 0 && first != second) {
        r = is_below(first, second, &m->to_above);
        if (r == 1) {
            first = m->to.dir;
            second = m->from.dir;
        }
    }
    return r < 0 ? r : lock_two(first, second);
}

static void unlock_both(const struct rename *m)
{
    inode_unlock(m->to.dir);
    if (m->from.dir != m->to.dir)
        inode_unlock(m->from.dir);
}

static int find_both(struct rename *m)
{
    int r = path_child(m->from.dir, m->from.name, &m->inode);

    if (r < 0) {
        m->inode = NULL;
        return r;
    }
    r = path_child(m->to.dir, m->to.name, &m->target);
    if (r < 0)
        m->target = NULL;
    return r == -ENOENT ? 0 : r;
}

/* Whether it is one of the two locked directories. An entry of theirs never is,
 * unless the file system lies. */
static bool is_dir_of(const struct rename *m, const struct inode *inode)
{
    return inode == m->from.dir || inode == m->to.dir;
}

/* Checks what POSIX and seals forbid. Directories are locked, their entries not
 * yet. */
static int check_rename(const struct rename *m)
{
    bool dir = m->inode->inode_type == FILE_DIRECTORY;
    const struct inode *target = m->target;

    inode_assert_locked(m->from.dir);
    inode_assert_locked(m->to.dir);
    if (!dir && (m->from.slash || m->to.slash))
        return -ENOTDIR;
    if (m->inode == target)
        return 0;
    if (m->inode->inode_number == m->from_above || is_dir_of(m, m->inode))
        return -EINVAL;
    if (m->inode->inode_sealed || (target != NULL && target->inode_sealed))
        return -EPERM;
    if (target == NULL)
        return 0;
    if (dir != (target->inode_type == FILE_DIRECTORY))
        return dir ? -ENOTDIR : -EISDIR;
    if (target->inode_number == m->to_above || is_dir_of(m, target))
        return -ENOTEMPTY;
    return 0;
}

/* Takes the last two locks and makes the change. */
static int commit_rename(const struct rename *m)
{
    bool dir = m->inode->inode_type == FILE_DIRECTORY;
    struct inode *first = dir ? m->inode : m->target;
    struct inode *second = dir ? m->target : NULL;
    int r = first == NULL ? 0 : lock_two(first, second);

    if (r < 0)
        return r;
    if (m->inode->inode_mounted != NULL ||
        (m->target != NULL && m->target->inode_mounted != NULL))
        r = -EBUSY;
    else
        r = m->from.dir->inode_fs->fs_ops->fs_rename(m->from.dir, m->from.name,
                                                     m->to.dir, m->to.name,
                                                     m->inode, m->target);
    if (second != NULL)
        inode_unlock(second);
    if (first != NULL)
        inode_unlock(first);
    return r;
}

int fs_rename(const char *old, const char *new, struct inode *cwd)
{
    struct rename m = {.inode = NULL};
    struct fs *fs;
    int r = find_place(old, cwd, &m.from);

    if (r < 0)
        return r;
    r = find_place(new, cwd, &m.to);
    if (r < 0)
        goto put_from;
    fs = m.from.dir->inode_fs;
    if (fs != m.to.dir->inode_fs)
        r = -EXDEV;
    else if (fs->fs_ops->fs_rename == NULL)
        r = -EROFS;
    else
        r = mutex_lock_killable(&fs->fs_rename);
    if (r < 0)
        goto put_to;
    r = lock_both(&m);
    if (r < 0)
        goto let_move;
    r = find_both(&m);
    if (r == 0)
        r = check_rename(&m);
    if (r == 0 && m.inode != m.target)
        r = commit_rename(&m);
    unlock_both(&m);
let_move:
    mutex_unlock(&fs->fs_rename);
    inode_put(m.target);
    inode_put(m.inode);
put_to:
    inode_put(m.to.dir);
put_from:
    inode_put(m.from.dir);
    return r;
}
