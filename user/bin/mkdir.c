/*
 * mkdir [-p] DIRECTORY…: creates directories; -p also their parents, and an
 * existing directory is no error.
 */
#include "user/lib/directory.h"
#include "user/lib/err.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

static bool make_one(const char *path, bool may_exist)
{
    int error;

    if (mkdir(path) == 0)
        return true;
    error = errno;
    if (may_exist && error == EEXIST && is_directory(path))
        return true;
    errno = error;
    warn("%s", path);
    return false;
}

static bool make_all(char *path)
{
    char *at = path + strspn(path, "/");

    for (; (at = strchr(at, '/')) != NULL; at++) {
        *at = 0;
        if (!make_one(path, true))
            return false;
        *at = '/';
    }
    return make_one(path, true);
}

int main(int argc, char **argv)
{
    bool parents = false;
    bool good = true;
    int letter;

    while ((letter = getopt(argc, argv, "p")) != -1) {
        if (letter == '?')
            usage("[-p] DIRECTORY...");
        parents = true;
    }
    if (optind == argc)
        usage("[-p] DIRECTORY...");
    for (; optind < argc; optind++)
        good &=
            parents ? make_all(argv[optind]) : make_one(argv[optind], false);
    return !good;
}
