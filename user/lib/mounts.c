/*
 * The list of mounts (user/lib/mounts.h). A line of /proc/mounts: kind, blanks,
 * path.
 */
#include "user/lib/mounts.h"
#include "user/lib/string.h"

#define COLUMNS_MAX (FS_NAME_MAX + 16) /* before the path */

bool mounts_next(FILE *list, char path[PATH_MAX])
{
    static char line[COLUMNS_MAX + ESCAPED_SIZE(PATH_MAX)];
    char *on;

    do {
        if (fgets(line, sizeof(line), list) == NULL)
            return false;
        on = strrchr(line, ' ');
    } while (on == NULL || on[1] != '/'); /* the heading */
    on++;
    on[strcspn(on, "\n")] = 0;
    unescape(on);
    strlcpy(path, on, PATH_MAX);
    return true;
}
