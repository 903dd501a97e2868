/*
 * mv FROM TO, mv FROM… DIRECTORY: renames files and directories.
 */
#include "user/lib/err.h"
#include "user/lib/directory.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

static bool move(const char *from, const char *to)
{
    char inside[PATH_MAX];

    to = target_path(from, to, inside);
    if (to == NULL)
        return false;
    if (rename(from, to) == 0)
        return true;
    warn("%s to %s", from, to);
    return false;
}

int main(int argc, char **argv)
{
    const char *to = argv[argc - 1];
    bool good = true;

    if (getopt(argc, argv, "") != -1 || argc - optind < 2)
        usage("FROM TO | FROM... DIRECTORY");
    if (argc - optind > 2 && !is_directory(to))
        errx(2, "%s is not a directory", to);
    for (int i = optind; i < argc - 1; i++)
        good &= move(argv[i], to);
    return !good;
}
