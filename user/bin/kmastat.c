/*
 * kmastat [-w] [NAME]: the kernel's object caches, as the kernel shell's
 * command prints them (/proc/caches), or with all columns and caches
 * (/proc/kmastat). With NAME only lines that contain it, and the header.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

int main(int argc, char **argv)
{
    const char *path = "/proc/caches";
    const char *name;
    bool found;
    char line[160];
    FILE *f;
    int c;

    while ((c = getopt(argc, argv, "w")) != -1) {
        if (c != 'w')
            usage("[-w] [NAME]");
        path = "/proc/kmastat";
    }
    if (argc - optind > 1)
        usage("[-w] [NAME]");
    name = argv[optind];
    found = name == NULL;
    f = fopen(path, "r");
    if (f == NULL)
        err(1, "%s", path);
    for (bool header = true; fgets(line, sizeof(line), f); header = false) {
        bool match = name == NULL || strstr(line, name) != NULL;

        found |= match && !header;
        if (match || header)
            fputs(line, stdout);
    }
    if (!found)
        errx(1, "no cache matches %s", name);
    return 0;
}
