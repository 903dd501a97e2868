/*
 * wc [-clw] [FILE…]: counts lines, words and bytes.
 */
#include "user/lib/copy.h"
#include "user/lib/ctype.h"
#include "user/lib/err.h"
#include "user/lib/string.h"

struct counts {
    unsigned count_lines;
    unsigned count_words;
    unsigned count_bytes;
};

static struct counts total;
static unsigned files;
static bool show_bytes, show_lines, show_words;

static void print_counts(const struct counts *c, const char *name)
{
    if (show_lines)
        printf(" %7u", c->count_lines);
    if (show_words)
        printf(" %7u", c->count_words);
    if (show_bytes)
        printf(" %7u", c->count_bytes);
    if (strcmp(name, "-") != 0) {
        putchar(' ');
        putname(name);
    }
    putchar('\n');
}

static bool count(FILE *f, const char *name)
{
    struct counts c = {0};
    bool in_word = false;
    int ch;

    while ((ch = fgetc(f)) != EOF) {
        c.count_bytes++;
        c.count_lines += ch == '\n';
        c.count_words += !in_word && !isspace(ch);
        in_word = !isspace(ch);
    }
    print_counts(&c, name);
    files++;
    total.count_lines += c.count_lines;
    total.count_words += c.count_words;
    total.count_bytes += c.count_bytes;
    return true;
}

int main(int argc, char **argv)
{
    bool good;
    int letter;

    while ((letter = getopt(argc, argv, "clw")) != -1) {
        if (letter == '?')
            usage("[-clw] [FILE...]");
        show_bytes |= letter == 'c';
        show_lines |= letter == 'l';
        show_words |= letter == 'w';
    }
    if (!show_bytes && !show_lines && !show_words)
        show_bytes = show_lines = show_words = true;
    good = for_each_file(argv + optind, count);
    if (files > 1)
        print_counts(&total, "total");
    return !good;
}
