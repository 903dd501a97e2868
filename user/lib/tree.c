/*
 * Walking and removing a directory tree. Entries are removed while their
 * directory is read: later entries are still seen.
 */
#include "user/lib/tree.h"
#include "user/lib/dirent.h"
#include "user/lib/err.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

static unsigned failed(const char *path)
{
    warn("%s", path);
    return 1;
}

unsigned tree_walk(char *path, uint8_t type,
                   bool (*visit)(const char *path, uint8_t type))
{
    unsigned failures = 0;
    const struct dirent *e;
    size_t length;
    DIR *d;

    if (!visit(path, type) || type != FILE_DIRECTORY)
        return 0;
    d = opendir(path);
    if (d == NULL)
        return failed(path);
    length = strlen(path);
    while ((e = readdir(d)) != NULL) {
        if (is_dots(e->d_name))
            continue;
        if (path_join(path, PATH_MAX, path, e->d_name))
            failures += tree_walk(path, e->d_type, visit);
        else
            failures += failed(path);
        path[length] = 0;
    }
    return closedir(d) == 0 ? failures : failures + failed(path);
}

#define TRIES 3

static void remove_entries(char *path, int handle)
{
    uint8_t buf[256] __attribute__((aligned(4)));
    size_t length = strlen(path);
    ssize_t n;

    while ((n = getdents(handle, buf, sizeof(buf))) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent *d = (const struct dirent *)(buf + at);

            at += d->d_reclen;
            if (is_dots(d->d_name) || length + d->d_namlen + 2 > PATH_MAX)
                continue;
            path[length] = '/';
            memcpy(path + length + 1, d->d_name, d->d_namlen + 1u);
            remove_tree(path);
            path[length] = 0;
        }
}

bool remove_tree(char *path)
{
    for (int i = 0; i < TRIES; i++) {
        int handle;

        if (unlink(path) == 0 || rmdir(path) == 0 || errno == ENOENT)
            return true;
        handle = open(path, O_RDONLY | O_DIRECTORY);
        if (handle < 0)
            continue;
        remove_entries(path, handle);
        close(handle);
    }
    return rmdir(path) == 0;
}
