/*
 * grep [-cinv] PATTERN [FILE…]: prints matching lines (user/lib/match.h
 * describes patterns).
 *
 * Status 0 if a line matched, 1 if not, 2 after an error.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/match.h"
#include "user/lib/stdlib.h"

static const char *pattern;
static bool only_count;
static bool fold;
static bool numbers;
static bool invert;
static bool named; /* several files: print their names */
static bool found;

static void print_name(const char *name)
{
    if (!named)
        return;
    putname(name);
    putchar(':');
}

static void print_line(const char *name, unsigned number, const char *line)
{
    print_name(name);
    if (numbers)
        printf("%u:", number);
    puts(line);
}

static bool search(FILE *f, const char *name)
{
    char *line = NULL;
    size_t size = 0;
    unsigned number = 0;
    unsigned count = 0;
    ssize_t n;

    while ((n = getline(&line, &size, f)) > 0) {
        number++;
        if (line[n - 1] == '\n')
            line[n - 1] = 0;
        if (regex_match(pattern, line, fold) == invert)
            continue;
        count++;
        if (!only_count)
            print_line(name, number, line);
    }
    free(line);
    if (only_count) {
        print_name(name);
        printf("%u\n", count);
    }
    found |= count > 0;
    return true;
}

int main(int argc, char **argv)
{
    bool good;
    int letter;

    while ((letter = getopt(argc, argv, "cinv")) != -1) {
        if (letter == '?')
            usage("[-cinv] PATTERN [FILE...]");
        only_count |= letter == 'c';
        fold |= letter == 'i';
        numbers |= letter == 'n';
        invert |= letter == 'v';
    }
    if (optind == argc)
        usage("[-cinv] PATTERN [FILE...]");
    pattern = argv[optind++];
    named = argc - optind > 1;
    good = for_each_file(argv + optind, search);
    fflush(stdout);
    if (!good || ferror(stdout))
        return 2;
    return found ? 0 : 1;
}
