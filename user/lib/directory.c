/*
 * Where things go (user/lib/folder.h).
 */
#include "user/lib/folder.h"
#include "user/lib/err.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_type == FILE_DIRECTORY;
}

const char *place_in(const char *from, const char *to, char inside[PATH_MAX])
{
    if (!is_folder(to))
        return to;
    if (path_join(inside, PATH_MAX, to, path_name(from)))
        return inside;
    warn("%s", to);
    return NULL;
}
