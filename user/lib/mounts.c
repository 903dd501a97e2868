/*
 * The list of mounts (user/lib/mounts.h). A line: kind, blanks, path.
 */
#include "user/lib/mounts.h"
#include "user/lib/string.h"

bool mounts_next(FILE *list, char path[PATH_MAX])
{
    static char line[FS_NAME_MAX + 16 + ESCAPED_SIZE(PATH_MAX)];
    char *on;

    do {
        if (fgets(line, sizeof(line), list) == NULL)
            return false;
        on = strrchr(line, ' ');
    } while (on == NULL || on[1] != '/'); /* the heading */
    line[strcspn(line, "\n")] = 0;
    unescape(on + 1);
    strlcpy(path, on + 1, PATH_MAX);
    return true;
}
