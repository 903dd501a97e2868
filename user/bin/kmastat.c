/*
 * kmastat [NAME]: the kernel's object caches from /proc/kmastat, or only lines
 * that contain NAME, with the header.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

int main(int argc, char **argv)
{
    FILE *f = fopen("/proc/kmastat", "r");
    bool found = argc == 1;
    char line[160];

    if (argc > 2)
        usage("[NAME]");
    if (f == NULL)
        err(1, "/proc/kmastat");
    for (bool header = true; fgets(line, sizeof(line), f); header = false) {
        bool match = argc == 1 || strstr(line, argv[1]) != NULL;

        found |= match && !header;
        if (match || header)
            fputs(line, stdout);
    }
    if (!found)
        errx(1, "no cache matches %s", argv[1]);
    return 0;
}
