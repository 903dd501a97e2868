/*
 * Copies files to standard output, and iterates over input files.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

void put_bytes(const void *bytes, size_t n)
{
    if (write_all(STDOUT_FILENO, bytes, n) == 0)
        return;
    if (errno != EPIPE)
        warn("standard output");
    _exit(1);
}

/* Until the end of the file: false if reading failed. */
static bool copy(int handle)
{
    static char buf[4096];
    ssize_t n;

    while ((n = read(handle, buf, sizeof(buf))) > 0)
        put_bytes(buf, (size_t)n);
    return n == 0;
}

bool copy_file(const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    int handle = standard ? STDIN_FILENO : open(path, O_RDONLY);
    bool good = handle >= 0 && copy(handle);

    if (!good)
        warn("%s", path);
    if (handle >= 0 && !standard)
        close(handle);
    return good;
}

static bool one_file(const char *path, bool (*each)(FILE *f, const char *name))
{
    bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : fopen(path, "r");
    bool good;

    if (f == NULL) {
        warn("%s", path);
        return false;
    }
    good = each(f, path);
    errno = ferror(f);
    if (errno != 0) {
        warn("%s", path);
        good = false;
    }
    if (!standard)
        fclose(f);
    return good;
}

bool for_each_file(char *const paths[], bool (*each)(FILE *f, const char *name))
{
    bool good = true;

    if (paths[0] == NULL)
        return one_file("-", each);
    for (; *paths != NULL; paths++)
        good &= one_file(*paths, each);
    return good;
}
