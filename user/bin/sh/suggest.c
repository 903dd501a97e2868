/*
 * Suggests a command in place of one that does not exist.
 *
 *     $ cta file
 *     sh: cta: not found; did you mean cat?
 */
#include "user/bin/sh/sh.h"
#include "user/lib/dirent.h"
#include "user/lib/string.h"

/* Names of commands on other systems. */
static const char *const synonyms[][2] = {
    {"bye", "exit"},  {"logout", "exit"}, {"poweroff", "exit"},
    {"quit", "exit"}, {"copy", "cp"},     {"del", "rm"},
    {"dir", "ls"},    {"man", "help"},    {"move", "mv"},
};

/* Whether `a` becomes `b` by at most so many edits: a letter more, less or
 * changed, or two exchanged. */
static bool is_near(const char *a, const char *b, unsigned edits)
{
    while (*a != 0 && *a == *b) {
        a++;
        b++;
    }
    if (*a == 0 && *b == 0)
        return true;
    if (edits == 0)
        return false;
    edits--;
    return (*a != 0 && is_near(a + 1, b, edits)) ||
           (*b != 0 && is_near(a, b + 1, edits)) ||
           (*a != 0 && *b != 0 && is_near(a + 1, b + 1, edits)) ||
           (*a != 0 && a[0] == b[1] && a[1] == b[0] &&
            is_near(a + 2, b + 2, edits));
}

static bool in_directory(const char *path, const char *name, unsigned edits,
                         char out[NAME_MAX + 1])
{
    DIR *d = opendir(path);
    const struct dirent *entry;
    bool found = false;

    while (!found && d != NULL && (entry = readdir(d)) != NULL) {
        found = entry->d_name[0] != '.' && is_near(name, entry->d_name, edits);
        if (found)
            strlcpy(out, entry->d_name, NAME_MAX + 1);
    }
    if (d != NULL)
        closedir(d);
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
        if (is_near(name, b->builtin_name, edits)) {
            strlcpy(out, b->builtin_name, NAME_MAX + 1);
            return true;
        }
    }
    return false;
}

bool suggest(const char *name, char out[NAME_MAX + 1])
{
    static const uint8_t least[] = {0, 2, 5}; /* letters for so many edits */
    size_t letters = strlen(name);

    for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++) {
        if (strcmp(name, synonyms[i][0]) == 0) {
            strlcpy(out, synonyms[i][1], NAME_MAX + 1);
            return true;
        }
    }
    for (unsigned edits = 1;
         edits < ARRAY_SIZE(least) && letters >= least[edits]; edits++)
        if (in_builtins(name, edits, out) || in_path(name, edits, out))
            return true;
    return false;
}
