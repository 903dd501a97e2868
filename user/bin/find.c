/*
 * find [PATH…] [-name PATTERN] [-type f|d|c]: prints every path below that
 * matches.
 */
#include "user/lib/dirent.h"
#include "user/lib/err.h"
#include "user/lib/match.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

static const char *want_name;
static uint8_t want_type; /* enum file_type, or 0 */

/* The current path: extended and cut during the walk. */
static char path[PATH_MAX];

static void consider(uint8_t type)
{
    char buf[PATH_MAX];
    const char *name = path_last(path, buf);

    if (want_type != 0 && want_type != type)
        return;
    if (want_name != NULL && !glob_match(want_name, *name ? name : path))
        return;
    putname(path);
    putchar('\n');
}

static bool failed(void)
{
    warn("%s", path);
    return false;
}

static bool walk(uint8_t type);

/* Visits the entries of the open directory `d` at `path`. */
static bool walk_entries(DIR *d)
{
    size_t length = strlen(path);
    struct dirent *e;
    bool good = true;

    while ((e = readdir(d)) != NULL) {
        if (is_dots(e->d_name))
            continue;
        if (path_join(path, sizeof(path), path, e->d_name))
            good &= walk(e->d_type);
        else
            good = failed();
        path[length] = 0;
    }
    return good;
}

static bool walk(uint8_t type)
{
    DIR *d;
    bool good;

    consider(type);
    if (type != FILE_DIRECTORY)
        return true;
    d = opendir(path);
    if (d == NULL)
        return failed();
    good = walk_entries(d);
    return closedir(d) == 0 ? good : failed();
}

static bool walk_from(const char *start)
{
    struct stat st;

    if (strlcpy(path, start, sizeof(path)) >= sizeof(path)) {
        errno = ENAMETOOLONG;
    } else if (stat(start, &st) == 0) {
        return walk((uint8_t)st.st_type);
    }
    warn("%s", start);
    return false;
}

static uint8_t read_type(const char *s)
{
    if (strcmp(s, "f") == 0)
        return FILE_REGULAR;
    if (strcmp(s, "d") == 0)
        return FILE_DIRECTORY;
    if (strcmp(s, "c") == 0)
        return FILE_DEVICE;
    errx(2, "-type %s: must be f, d or c", s);
}

/* Parses the tests after the paths; false if they are invalid. */
static bool read_tests(char **argv)
{
    for (; *argv != NULL; argv += 2) {
        if (argv[1] == NULL)
            return false;
        if (strcmp(*argv, "-name") == 0)
            want_name = argv[1];
        else if (strcmp(*argv, "-type") == 0)
            want_type = read_type(argv[1]);
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    bool good = true;
    int tests = 1;

    while (tests < argc && argv[tests][0] != '-')
        tests++;
    if (!read_tests(argv + tests))
        usage("[PATH...] [-name PATTERN] [-type f|d|c]");
    if (tests == 1)
        return !walk_from(".");
    for (int i = 1; i < tests; i++)
        good &= walk_from(argv[i]);
    return !good;
}
