/*
 * sort [-nr] [FILE…]: prints the lines of all files in order.
 *
 * -n sorts by the number at the start of a line, -r in reverse order.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

static char **lines;
static size_t used;
static size_t room;
static bool by_number;
static bool reverse;

static void add(char *line)
{
    if (used == room) {
        size_t more = MAX(room * 2, (size_t)64);
        char **larger = realloc(lines, more * sizeof(lines[0]));

        if (larger == NULL)
            err(1, "%zu lines", used);
        lines = larger;
        room = more;
    }
    lines[used++] = line;
}

static bool read_lines(FILE *f, const char *name)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;

    while ((n = getline(&line, &size, f)) > 0) {
        char *copy;

        if (line[n - 1] == '\n')
            line[n - 1] = 0;
        copy = strdup(line);
        if (copy == NULL)
            err(1, "%s", name);
        add(copy);
    }
    free(line);
    return true;
}

static int compare(const void *a, const void *b)
{
    const char *x = *(char *const *)a;
    const char *y = *(char *const *)b;
    int order = 0;

    if (by_number) {
        long m = strtol(x, NULL, 10);
        long n = strtol(y, NULL, 10);

        order = (m > n) - (m < n);
    }
    if (order == 0)
        order = strcmp(x, y);
    return reverse ? -order : order;
}

int main(int argc, char **argv)
{
    bool good;
    int letter;

    while ((letter = getopt(argc, argv, "nr")) != -1) {
        if (letter == '?')
            usage("[-nr] [FILE...]");
        by_number |= letter == 'n';
        reverse |= letter == 'r';
    }
    good = for_each_file(argv + optind, read_lines);
    qsort(lines, used, sizeof(lines[0]), compare);
    for (size_t i = 0; i < used; i++)
        puts(lines[i]);
    return !good;
}
