/*
 * Paths: from names to inodes, and from a directory back to its path.
 *
 * A walk holds one reference, to the current directory, and locks that
 * directory while it finds the next number and gets its inode, so that the file
 * cannot be removed in between. At a mount point the walk goes from the covered
 * directory to the root of the mounted file system, and back at "..".
 */
#include "kernel/fs/path.h"
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"

static struct inode *root;

struct inode *path_root(void)
{
    return root;
}

void path_set_root(struct inode *inode)
{
    root = inode;
}

/* ---- one step ----------------------------------------------------------- */

/* Replaces the reference at *at by `next`. */
static void replace_inode(struct inode **at, struct inode *next)
{
    inode_put(*at);
    *at = next;
}

static bool is_root(const struct inode *inode)
{
    return inode->inode_number == inode->inode_fs->fs_root;
}

int path_child(struct inode *dir, const char *name, struct inode **out)
{
    uint32_t number;
    int r;

    inode_assert_locked(dir);
    r = dir->inode_fs->fs_ops->fs_lookup(dir, name, &number);
    return r < 0 ? r : inode_get(dir->inode_fs, number, out);
}

int path_descend(struct inode **at)
{
    struct inode *next;
    int r = 0;

    while (r == 0 && unlikely((*at)->inode_mounted != NULL) &&
           (next = fs_mounted_on(*at)) != NULL) {
        replace_inode(at, next);
        r = inode_enter(next);
    }
    return r;
}

/* From the root of a mounted file system to the directory it covers. */
static void ascend(struct inode **at)
{
    struct inode *covered;

    while (is_root(*at) && (covered = fs_covered_by((*at)->inode_fs)) != NULL)
        replace_inode(at, covered);
}

/* Moves *at, a directory, to its entry `name`. */
static int path_step(struct inode **at, const char *name)
{
    struct inode *next;
    int r;

    if (strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0) {
        ascend(at);
        if (is_root(*at))
            return 0;
        r = inode_enter(*at);
        if (r < 0)
            return r;
    }
    r = inode_lock(*at);
    if (r < 0)
        return r;
    r = path_child(*at, name, &next);
    inode_unlock(*at);
    if (r < 0)
        return r;
    replace_inode(at, next);
    return path_descend(at);
}

/* ---- the walk ----------------------------------------------------------- */

/* Copies the next name of the path and moves the path past it and the slashes
 * that follow. Returns its length; 0 at the end; -ENAMETOOLONG. */
static int next_name(const char **path, char *name)
{
    const char *p = *path;
    int n = 0;

    while (*p != '\0' && *p != '/') {
        if (n == NAME_MAX)
            return -ENAMETOOLONG;
        name[n++] = *p++;
    }
    name[n] = '\0';
    while (*p == '/')
        p++;
    *path = p;
    return n;
}

/* Walks the path: all of it or, if `last` is not NULL, up to the last name,
 * which is copied to `last` ("" if there is none). *out gets a reference. */
static int path_walk(const char *path, struct inode *cwd, char *last,
                     struct inode **out)
{
    struct inode *at = inode_ref(cwd != NULL && *path != '/' ? cwd : root);
    int r = *path == '\0' ? -ENOENT : inode_enter(at);
    char name[NAME_MAX + 1];

    while (*path == '/')
        path++;
    while (r == 0) {
        int n = next_name(&path, name);

        if (n == 0)
            break;
        if (n > 0 && at->inode_type != FILE_DIRECTORY)
            n = -ENOTDIR;
        if (n > 0 && last != NULL && *path == '\0') {
            strlcpy(last, name, sizeof(name));
            break;
        }
        r = n < 0 ? n : path_step(&at, name);
    }
    if (r < 0)
        inode_put(at);
    else
        *out = at;
    return r;
}

/* Whether the path ends in a slash. */
static bool ends_in_slash(const char *path)
{
    return path[strlen(path) - 1] == '/';
}

int path_lookup(const char *path, struct inode *cwd, struct inode **out)
{
    int r = path_walk(path, cwd, NULL, out);

    if (r == 0 && (*out)->inode_type != FILE_DIRECTORY && ends_in_slash(path)) {
        inode_put(*out);
        r = -ENOTDIR;
    }
    return r;
}

int path_parent(const char *path, struct inode *cwd, struct inode **dir,
                char *name)
{
    int r;

    name[0] = '\0';
    r = path_walk(path, cwd, name, dir);
    if (r < 0)
        return r;
    if (name[0] == '\0')
        r = -EBUSY;
    else if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        r = -EINVAL;
    else
        return ends_in_slash(path);
    inode_put(*dir);
    return r;
}

/* ---- from a directory to its path --------------------------------------- */

/* Puts "/name" of the directory *at in front of buf[*begin] and moves *at to
 * its parent. */
static int prepend(struct inode **at, char *buf, size_t *begin)
{
    char name[NAME_MAX + 1];
    struct inode *parent;
    size_t n;
    int r = inode_lock(*at);

    if (r < 0)
        return r;
    r = (*at)->inode_nlink == 0 ? -ENOENT
                                : (*at)->inode_fs->fs_ops->fs_name(*at, name);
    if (r == 0)
        r = path_child(*at, "..", &parent);
    inode_unlock(*at);
    if (r < 0)
        return r;
    replace_inode(at, parent);
    n = strlen(name);
    if (*begin < n + 1)
        return -ERANGE;
    *begin -= n + 1;
    buf[*begin] = '/';
    memcpy(buf + *begin + 1, name, n);
    return 0;
}

/* The same for all directories up to the root of the file system. No directory
 * moves meanwhile. */
static int prepend_all(struct inode **at, char *buf, size_t *begin)
{
    struct mutex *still = &(*at)->inode_fs->fs_rename;
    int r = inode_enter(*at);

    if (r == 0)
        r = mutex_lock_killable(still);
    if (r < 0)
        return r;
    while (r == 0 && !is_root(*at))
        r = prepend(at, buf, begin);
    mutex_unlock(still);
    return r;
}

int path_of(struct inode *dir, char *buf, size_t size)
{
    struct inode *at = inode_ref(dir);
    size_t begin = size - 1;
    int r = 0;

    if (size < 2)
        r = -ERANGE;
    else
        buf[begin] = '\0';
    for (; r == 0; r = prepend_all(&at, buf, &begin)) {
        ascend(&at);
        if (at->inode_fs->fs_ended)
            r = -ENOENT;
        if (r < 0 || is_root(at))
            break;
    }
    inode_put(at);
    if (r < 0)
        return r;
    if (begin == size - 1)
        buf[--begin] = '/';
    memmove(buf, buf + begin, size - begin);
    return (int)(size - begin - 1);
}
