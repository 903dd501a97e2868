/*
 * head [-n LINES | -LINES] [FILE…]: prints the first lines, 10 by default.
 */
#include "user/lib/copy.h"
#include "user/lib/ctype.h"
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

static void read_lines(const char *text)
{
    char *end;

    lines = strtoul(text, &end, 10);
    if (!isdigit(*text) || *end != 0)
        errx(2, "%s is not a number of lines", text);
}

int main(int argc, char **argv)
{
    int letter;

    if (argc > 1 && argv[1][0] == '-' && isdigit(argv[1][1]))
        read_lines(argv[optind++] + 1);
    while ((letter = getopt(argc, argv, "n:")) != -1) {
        if (letter == '?')
            usage("[-n LINES | -LINES] [FILE...]");
        read_lines(optarg);
    }
    titled = argc - optind > 1;
    return !for_each_file(argv + optind, print_head);
}
