/*
 * Suggests a command in place of one that does not exist.
 *
 *     $ cta file
 *     sh: cta: not found; did you mean cat?
 */
#include "kernel/lib/edit_distance.h"
#include "user/bin/sh/sh.h"
#include "user/lib/dirent.h"
#include "user/lib/string.h"

/* Names of commands on other systems. */
static const char *const synonyms[][2] = {
    {"bye", "exit"},  {"logout", "exit"}, {"poweroff", "exit"},
    {"quit", "exit"}, {"copy", "cp"},     {"del", "rm"},
    {"dir", "ls"},    {"man", "help"},    {"move", "mv"},
};

static bool in_directory(const char *path, const char *name, unsigned edits,
                         char out[NAME_MAX + 1])
{
    DIR *d = opendir(path);
    const struct dirent *entry;
    bool found = false;

    while (!found && d != NULL && (entry = readdir(d)) != NULL) {
        found = entry->d_name[0] != '.' &&
                edit_distance_within(name, entry->d_name, edits);
        if (found)
            strlcpy(out, entry->d_name, NAME_MAX + 1);
    }
    if (d != NULL && closedir(d) < 0)
        complain(0, "%s: %s", path, strerror(errno));
    return found;
}

/* In the directories of PATH, which strtok_r splits. */
static bool in_path(const char *name, unsigned edits, char out[NAME_MAX + 1])
{
    const char *path = var_get("PATH");
    char directories[PATH_MAX];
    char *rest = directories;
    const char *directory;

    strlcpy(directories, path != NULL ? path : "/bin:/sbin",
            sizeof(directories));
    while ((directory = strtok_r(rest, ":", &rest)) != NULL)
        if (in_directory(directory, name, edits, out))
            return true;
    return false;
}

static bool in_builtins(const char *name, unsigned edits,
                        char out[NAME_MAX + 1])
{
    for (const struct builtin *b = builtins; b->builtin_name != NULL; b++) {
        if (edit_distance_within(name, b->builtin_name, edits)) {
            strlcpy(out, b->builtin_name, NAME_MAX + 1);
            return true;
        }
    }
    return false;
}

bool suggest(const char *name, char out[NAME_MAX + 1])
{
    for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++) {
        if (strcmp(name, synonyms[i][0]) == 0) {
            strlcpy(out, synonyms[i][1], NAME_MAX + 1);
            return true;
        }
    }
    for (unsigned edits = 1; edits <= edit_distance_most(name); edits++)
        if (in_builtins(name, edits, out) || in_path(name, edits, out))
            return true;
    return false;
}
