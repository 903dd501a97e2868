/*
 * The target of a copy or a move (user/lib/directory.h).
 */
#include "user/lib/directory.h"
#include "user/lib/err.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_type == FILE_DIRECTORY;
}

const char *target_path(const char *from, const char *to, char inside[PATH_MAX])
{
    char buf[PATH_MAX];

    if (!is_directory(to))
        return to;
    if (path_join(inside, PATH_MAX, to, path_last(from, buf)))
        return inside;
    warn("%s", to);
    return NULL;
}
