/*
 * Reading directories.
 */
#include "user/lib/dirent.h"
#include "user/lib/stdlib.h"
#include "user/lib/unistd.h"

struct dir {
    int dir_handle;
    int dir_error;     /* errno of a readdir that failed, or 0 */
    uint32_t dir_next; /* of the next entry: its offset in dir_buf */
    uint32_t dir_end;
    uint8_t dir_buf[1000] __attribute__((aligned(4)));
};

DIR *opendir(const char *path)
{
    DIR *d = malloc(sizeof(*d));

    if (d == NULL)
        return NULL;
    d->dir_handle = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    d->dir_error = 0;
    d->dir_next = d->dir_end = 0;
    if (d->dir_handle >= 0)
        return d;
    free(d);
    return NULL;
}

struct dirent *readdir(DIR *d)
{
    struct dirent *entry;

    if (d->dir_next == d->dir_end) {
        ssize_t n = getdents(d->dir_handle, d->dir_buf, sizeof(d->dir_buf));

        if (n < 0)
            d->dir_error = errno;
        if (n <= 0)
            return NULL;
        d->dir_next = 0;
        d->dir_end = (uint32_t)n;
    }
    entry = (struct dirent *)(d->dir_buf + d->dir_next);
    d->dir_next += entry->d_reclen;
    return entry;
}

int closedir(DIR *d)
{
    int error = d->dir_error;
    int result = close(d->dir_handle);

    free(d);
    if (error == 0)
        return result;
    errno = error;
    return -1;
}
