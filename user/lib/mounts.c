/*
 * The lists of mounts (user/lib/mounts.h). A line of /proc/mounts: kind,
 * blanks, path; one of /proc/statfs: kind, five figures or dashes, path.
 */
#include "user/lib/mounts.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define COLUMNS_MAX (FS_NAME_MAX + 96) /* before the path */

/* The next line of a mount, whose last word `path` gets. NULL at the end, or
 * after an error. */
static char *next_line(FILE *list, char path[PATH_MAX])
{
    static char line[COLUMNS_MAX + ESCAPED_SIZE(PATH_MAX)];
    char *on;

    do {
        if (fgets(line, sizeof(line), list) == NULL)
            return NULL;
        on = strrchr(line, ' ');
    } while (on == NULL || on[1] != '/'); /* the heading */
    *on++ = 0;
    on[strcspn(on, "\n")] = 0;
    unescape(on);
    strlcpy(path, on, PATH_MAX);
    return line;
}

bool mounts_next(FILE *list, char path[PATH_MAX])
{
    return next_line(list, path) != NULL;
}

bool statfs_next(FILE *list, char path[PATH_MAX], struct fs_stat *out,
                 bool *replied)
{
    uint32_t *const figures[] = {&out->fs_block_size, &out->fs_blocks,
                                 &out->fs_blocks_free, &out->fs_files,
                                 &out->fs_files_free};
    char *save = NULL;
    char *line = next_line(list, path);

    if (line == NULL)
        return false;
    strlcpy(out->fs_kind, strtok_r(line, " ", &save), sizeof(out->fs_kind));
    *replied = true;
    for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
        const char *word = strtok_r(NULL, " ", &save);

        *replied &= word != NULL && *word != '-';
        if (*replied)
            *figures[i] = strtoul(word, NULL, 10);
    }
    return true;
}
