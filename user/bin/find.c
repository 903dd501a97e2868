/*
 * find [PATH…] [-name PATTERN] [-type f|d|c]: prints every path below that
 * matches.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/tree.h"
#include "user/lib/unistd.h"

static const char *want_name;
static uint8_t want_type; /* enum file_type, or 0 */

static bool consider(const char *path, uint8_t type)
{
    char buf[PATH_MAX];
    const char *name = path_last(path, buf);

    if ((want_type == 0 || want_type == type) &&
        (want_name == NULL || glob_match(want_name, *name ? name : path))) {
        putname(path);
        putchar('\n');
    }
    return true;
}

static bool walk_from(const char *start)
{
    char path[PATH_MAX];
    struct stat st;

    if (strlcpy(path, start, sizeof(path)) >= sizeof(path))
        errno = ENAMETOOLONG;
    else if (stat(start, &st) == 0)
        return tree_walk(path, (uint8_t)st.st_type, consider) == 0;
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
