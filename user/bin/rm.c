/*
 * rm [-fr] PATH…: removes files; -r directories with all their contents; -f
 * ignores missing files.
 */
#include "user/lib/dirent.h"
#include "user/lib/err.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

static bool force;
static bool recursive;

static bool failed(const char *path)
{
    if (force && errno == ENOENT)
        return true;
    warn("%s", path);
    return false;
}

static bool remove_path(const char *path);

/* Removes entries while their directory is read: readdir still returns the
 * later ones. */
static bool remove_entries(const char *path, DIR *d)
{
    char inside[PATH_MAX];
    struct dirent *e;
    bool good = true;

    while ((e = readdir(d)) != NULL) {
        if (is_dots(e->d_name))
            continue;
        if (path_join(inside, sizeof(inside), path, e->d_name))
            good &= remove_path(inside);
        else
            good = failed(path);
    }
    return good;
}

static bool remove_directory(const char *path)
{
    DIR *d = opendir(path);
    bool good;

    if (d == NULL)
        return failed(path);
    good = remove_entries(path, d);
    if (closedir(d) < 0)
        return failed(path);
    return good && (rmdir(path) == 0 || failed(path));
}

static bool remove_path(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return failed(path);
    if (st.st_type == FILE_DIRECTORY && recursive)
        return remove_directory(path);
    return unlink(path) == 0 || failed(path);
}

/* The root and "." and ".." are not removed, as in POSIX. */
static bool remove_operand(const char *path)
{
    char buf[PATH_MAX];
    const char *name = path_last(path, buf);

    if ((*name != 0 || *path == 0) && !is_dots(name))
        return remove_path(path);
    warnx("%s cannot be removed", path);
    return false;
}

int main(int argc, char **argv)
{
    bool good = true;
    int letter;

    while ((letter = getopt(argc, argv, "fr")) != -1) {
        if (letter == '?')
            usage("[-fr] PATH...");
        force |= letter == 'f';
        recursive |= letter == 'r';
    }
    if (optind == argc)
        usage("[-fr] PATH...");
    for (; optind < argc; optind++)
        good &= remove_operand(argv[optind]);
    return !good;
}
