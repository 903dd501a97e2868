/*
 * head [-n LINES] [FILE…]: prints the first lines, 10 by default.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/stdlib.h"

static unsigned long lines = 10;
static bool titled;

static bool print_head(FILE *f, const char *name)
{
    unsigned long left = lines;
    int c;

    if (titled) {
        printf("==> ");
        putname(name);
        puts(" <==");
    }
    while (left > 0 && (c = fgetc(f)) != EOF) {
        putchar(c);
        left -= c == '\n';
    }
    return true;
}

int main(int argc, char **argv)
{
    int letter;

    while ((letter = getopt(argc, argv, "n:")) != -1) {
        char *end;

        if (letter == '?')
            usage("[-n LINES] [FILE...]");
        lines = strtoul(optarg, &end, 10);
        if (end == optarg || *end != 0)
            errx(2, "%s is not a number of lines", optarg);
    }
    titled = argc - optind > 1;
    return !for_each_file(argv + optind, print_head);
}
