/*
 * cp FROM TO, cp FROM… DIRECTORY: copies files. -s waits until the copies are
 * on disk.
 */
#include "user/lib/err.h"
#include "user/lib/directory.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

/* Whether `from` is a file, and `to` another or none: opening the same one for
 * writing would truncate it. False after a message. */
static bool may_copy(const char *from, const char *to)
{
    struct stat a;
    struct stat b;

    if (stat(from, &a) < 0) {
        warn("%s", from);
        return false;
    }
    if (a.st_type == FILE_DIRECTORY) {
        warnx("%s is a directory", from);
        return false;
    }
    if (stat(to, &b) < 0) {
        if (errno == ENOENT)
            return true;
        warn("%s", to);
        return false;
    }
    if (a.st_fs != b.st_fs || a.st_ino != b.st_ino)
        return true;
    warnx("%s and %s are the same file", from, to);
    return false;
}

/* Copies all bytes; returns the path that failed, or NULL. */
static const char *copy_bytes(int in, int out, const char *from, const char *to)
{
    static char buf[32768];
    ssize_t n;

    while ((n = read(in, buf, sizeof(buf))) > 0)
        if (write_all(out, buf, (size_t)n) < 0)
            return to;
    return n < 0 ? from : NULL;
}

static bool copy_file(const char *from, const char *to, bool sync)
{
    int in = open(from, O_RDONLY);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC);
    const char *failed = in < 0 ? from : out < 0 ? to : NULL;

    if (failed == NULL)
        failed = copy_bytes(in, out, from, to);
    if (failed == NULL && sync && fsync(out) < 0)
        failed = to;
    if (failed != NULL)
        warn("%s", failed);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return failed == NULL;
}

static bool copy(const char *from, const char *to, bool sync)
{
    char inside[PATH_MAX];

    to = target_path(from, to, inside);
    return to != NULL && may_copy(from, to) && copy_file(from, to, sync);
}

int main(int argc, char **argv)
{
    const char *to = argv[argc - 1];
    bool sync = false;
    bool good = true;
    int c;

    while ((c = getopt(argc, argv, "s")) != -1) {
        if (c != 's')
            usage("[-s] FROM TO | [-s] FROM... DIRECTORY");
        sync = true;
    }
    if (argc - optind < 2)
        usage("[-s] FROM TO | [-s] FROM... DIRECTORY");
    if (argc - optind > 2 && !is_directory(to))
        errx(2, "%s is not a directory", to);
    for (int i = optind; i < argc - 1; i++)
        good &= copy(argv[i], to, sync);
    return !good;
}
