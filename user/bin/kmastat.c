/*
 * kmastat [NAME]: the kernel's object caches, with exact numbers, from
 * /proc/kmastat. With NAME only lines that contain it, and the header.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/string.h"

static const char *name;
static bool found;

static bool print_lines(FILE *f, const char *path)
{
    char line[160];

    (void)path;
    for (bool header = true; fgets(line, sizeof(line), f); header = false) {
        bool match = name == NULL || strstr(line, name) != NULL;

        found |= match && !header;
        if (match || header)
            fputs(line, stdout);
    }
    return true;
}

int main(int argc, char **argv)
{
    char *paths[] = {"/proc/kmastat", NULL};

    if (argc > 2)
        usage("[NAME]");
    name = argv[1];
    found = name == NULL;
    if (!for_each_file(paths, print_lines))
        return 1;
    if (!found)
        errx(1, "no cache matches %s", name);
    return 0;
}
