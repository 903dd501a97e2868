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

/* Copies the name of the first entry of a directory other than "." and "..":
 * "" if there is none. False and errno if the directory cannot be read. */
static bool first_entry(const char *path, char *name)
{
    DIR *d = opendir(path);
    struct dirent *e;

    if (d == NULL)
        return false;
    while ((e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            break;
    strlcpy(name, e != NULL ? e->d_name : "", NAME_MAX + 1);
    return closedir(d) == 0;
}

/* Always removes the first entry, because the directory changes meanwhile. */
static bool remove_directory(const char *path)
{
    char name[NAME_MAX + 1];
    char inside[PATH_MAX];

    for (;;) {
        if (!first_entry(path, name))
            return failed(path);
        if (name[0] == 0)
            return rmdir(path) == 0 || failed(path);
        if (!path_join(inside, sizeof(inside), path, name))
            return failed(path);
        if (!remove_path(inside))
            return false;
    }
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
        good &= remove_path(argv[optind]);
    return !good;
}
