/* Paths for tests: walking, and the checks that the kernel makes. */
#include "user/servers/ext2/tests/paths.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "user/lib/stdlib.h"

#define ROOT      2u
#define PATH_SIZE 512u
#define CHUNK     16384u

/* The directory of a path's last name, and that name. */
static int parent_of(struct ext2 *fs, const char *path, uint32_t *dir,
                     char name[PATH_SIZE])
{
    const char *slash;
    size_t n;

    *dir = ROOT;
    while (*path == '/')
        path++;
    while ((slash = strchr(path, '/')) != NULL) {
        int r;

        n = (size_t)(slash - path);
        memcpy(name, path, n);
        name[n] = 0;
        r = ext2_lookup(fs, *dir, name, dir);
        if (r < 0)
            return r;
        path = slash + 1;
    }
    snprintf(name, PATH_SIZE, "%s", path);
    return 0;
}

int path_find(struct ext2 *fs, const char *path, uint32_t *file)
{
    char name[PATH_SIZE];
    int r = parent_of(fs, path, file, name);

    if (r == 0 && name[0] != 0)
        r = ext2_lookup(fs, *file, name, file);
    return r;
}

int path_create(struct ext2 *fs, const char *path, uint32_t type,
                uint32_t device)
{
    char name[PATH_SIZE];
    uint32_t dir, file;
    int r = parent_of(fs, path, &dir, name);

    if (r < 0)
        return r;
    r = ext2_lookup(fs, dir, name, &file);
    if (r != -ENOENT)
        return r == 0 ? -EEXIST : r;
    return ext2_create(fs, dir, name, type, device, &file);
}

int path_unlink(struct ext2 *fs, const char *path)
{
    char name[PATH_SIZE];
    uint32_t dir, file, links;
    int r = parent_of(fs, path, &dir, name);

    if (r == 0)
        r = ext2_lookup(fs, dir, name, &file);
    if (r == 0)
        r = ext2_unlink(fs, dir, name, file, &links);
    if (r == 0 && links == 0)
        r = ext2_release(fs, file);
    return r;
}

int path_rmdir(struct ext2 *fs, const char *path)
{
    char name[PATH_SIZE];
    uint32_t dir, file = 0;
    int r = parent_of(fs, path, &dir, name);

    if (r == 0)
        r = ext2_lookup(fs, dir, name, &file);
    if (r == 0)
        r = ext2_rmdir(fs, dir, name, file);
    return r == 0 ? ext2_release(fs, file) : r;
}

int path_link(struct ext2 *fs, const char *from, const char *to)
{
    char name[PATH_SIZE];
    uint32_t dir, file, there;
    int r = path_find(fs, from, &file);

    if (r == 0)
        r = parent_of(fs, to, &dir, name);
    if (r < 0)
        return r;
    r = ext2_lookup(fs, dir, name, &there);
    if (r != -ENOENT)
        return r == 0 ? -EEXIST : r;
    return ext2_link(fs, dir, name, file);
}

int path_rename(struct ext2 *fs, const char *from, const char *to)
{
    char name[PATH_SIZE], to_name[PATH_SIZE];
    uint32_t dir, to_dir, file, victim = 0;
    struct fs_attr attr;
    int r = parent_of(fs, from, &dir, name);

    if (r == 0)
        r = ext2_lookup(fs, dir, name, &file);
    if (r == 0)
        r = parent_of(fs, to, &to_dir, to_name);
    if (r < 0)
        return r;
    if (ext2_lookup(fs, to_dir, to_name, &victim) < 0)
        victim = 0;
    r = ext2_rename(fs, dir, name, to_dir, to_name, file);
    if (r == 0 && victim != 0 && victim != file &&
        ext2_inode(fs, victim, &attr) == 0 && attr.attr_nlink == 0)
        r = ext2_release(fs, victim);
    return r;
}

int path_write(struct ext2 *fs, const char *path, uint32_t offset,
               const void *data, size_t n)
{
    uint32_t file, size;
    size_t done = 0;
    int r = path_create(fs, path, FILE_REGULAR, 0);

    if (r == 0 || r == -EEXIST)
        r = path_find(fs, path, &file);
    if (r < 0)
        return r;
    while (done < n) {
        r = ext2_write(fs, file, offset + (uint32_t)done,
                       (const uint8_t *)data + done, MIN(n - done, CHUNK),
                       &size);
        if (r <= 0)
            return done > 0 ? (int)done : r;
        done += (size_t)r;
    }
    return (int)done;
}

int path_truncate(struct ext2 *fs, const char *path, uint32_t size)
{
    uint32_t file;
    int r = path_find(fs, path, &file);

    return r < 0 ? r : ext2_truncate(fs, file, size);
}

int path_fsync(struct ext2 *fs, const char *path)
{
    uint32_t file;
    int r = path_find(fs, path, &file);

    return r < 0 ? r : ext2_sync(fs, file);
}

uint8_t *path_read(struct ext2 *fs, const char *path, int32_t *size)
{
    struct fs_attr attr;
    uint32_t file, done = 0;
    uint8_t *data;

    *size = path_find(fs, path, &file);
    if (*size == 0)
        *size = ext2_inode(fs, file, &attr);
    if (*size < 0)
        return NULL;
    data = malloc(attr.attr_size + 1u);
    while (done < attr.attr_size) {
        *size = ext2_read(fs, file, done, data + done,
                          MIN(attr.attr_size - done, CHUNK));
        if (*size <= 0) {
            free(data);
            return NULL;
        }
        done += (uint32_t)*size;
    }
    *size = (int32_t)done;
    return data;
}

/* ---- walking ------------------------------------------------------------- */

struct walk {
    struct ext2 *walk_fs;
    path_walk_t *walk_f;
    void *walk_arg;
    uint32_t walk_depth;
};

static int walk_dir(struct walk *w, const char *path, uint32_t dir);

static int walk_entry(struct walk *w, const char *path, const struct dirent *d)
{
    char below[PATH_SIZE];
    struct fs_attr attr;
    int r;

    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return 0;
    snprintf(below, sizeof(below), "%s/%s", path, d->d_name);
    r = ext2_inode(w->walk_fs, d->d_ino, &attr);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = w->walk_f(w->walk_arg, below, d->d_ino, &attr);
    if (r == 0 && attr.attr_type == FILE_DIRECTORY && w->walk_depth < 40) {
        w->walk_depth++;
        r = walk_dir(w, below, d->d_ino);
        w->walk_depth--;
    }
    return r;
}

static int walk_dir(struct walk *w, const char *path, uint32_t dir)
{
    char *buf = malloc(4096);
    uint32_t offset = 0;
    int r;

    while ((r = ext2_getdents(w->walk_fs, dir, &offset, buf, 4096)) > 0) {
        int n = r;

        r = 0;
        for (int i = 0; i < n && r == 0;) {
            const struct dirent *d = (const struct dirent *)(buf + i);

            r = walk_entry(w, path, d);
            i += d->d_reclen;
        }
        if (r != 0)
            break;
    }
    free(buf);
    return r;
}

int path_walk(struct ext2 *fs, const char *path, path_walk_t *f, void *arg)
{
    struct walk w = {.walk_fs = fs, .walk_f = f, .walk_arg = arg};
    uint32_t dir;
    int r = path_find(fs, path, &dir);

    return r < 0 ? r : walk_dir(&w, strcmp(path, "/") == 0 ? "" : path, dir);
}
