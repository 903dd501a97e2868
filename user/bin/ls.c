/*
 * ls [-al] [PATH…]: lists directories, or files.
 *
 * In columns on a console, otherwise one name per line.
 */
#include "user/lib/dirent.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define SCREEN_COLUMNS 79u

struct entry {
    char *entry_name;
    uint8_t entry_type;
};

/* The contents of one directory. */
struct listing {
    struct entry *list_entry;
    size_t list_used;
    size_t list_size;
};

static bool show_all;
static bool show_long;
static bool columns;

static void add(struct listing *l, const char *name, uint8_t type)
{
    struct entry *e;

    if (l->list_used == l->list_size) {
        size_t size = MAX(l->list_size * 2, (size_t)16);
        struct entry *more =
            realloc(l->list_entry, size * sizeof(l->list_entry[0]));

        if (more == NULL)
            err(1, "%s", name);
        l->list_entry = more;
        l->list_size = size;
    }
    e = &l->list_entry[l->list_used++];
    e->entry_type = type;
    e->entry_name = strdup(name);
    if (e->entry_name == NULL)
        err(1, "%s", name);
}

static void forget(struct listing *l)
{
    for (size_t i = 0; i < l->list_used; i++)
        free(l->list_entry[i].entry_name);
    free(l->list_entry);
}

static int by_name(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;

    return strcmp(x->entry_name, y->entry_name);
}

static char type_letter(uint32_t type)
{
    static const char letters[] = "?-dcpo";

    return type < sizeof(letters) - 1 ? letters[type] : '?';
}

static bool print_long(const char *directory, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    if (!path_join(path, sizeof(path), directory, name) ||
        stat(path, &st) < 0) {
        warn("%s", name);
        return false;
    }
    printf("%c %4u %8u %8u ", type_letter(st.st_type), st.st_nlink, st.st_size,
           st.st_ino);
    putname(name);
    putchar('\n');
    return true;
}

static void print_columns(const struct listing *l)
{
    size_t width = 1;
    size_t rows;

    for (size_t i = 0; i < l->list_used; i++)
        width = MAX(width, strlen(l->list_entry[i].entry_name) + 2);
    rows = MAX(SCREEN_COLUMNS / width, 1u);
    rows = (l->list_used + rows - 1) / rows;
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = row; i < l->list_used; i += rows) {
            const char *name = l->list_entry[i].entry_name;

            putname(name);
            if (i + rows < l->list_used)
                printf("%*s", (int)(width - strlen(name)), "");
        }
        putchar('\n');
    }
}

static bool print_listing(const char *directory, const struct listing *l)
{
    bool good = true;

    if (columns && !show_long) {
        print_columns(l);
        return true;
    }
    for (size_t i = 0; i < l->list_used; i++) {
        if (show_long)
            good &= print_long(directory, l->list_entry[i].entry_name);
        else
            puts(l->list_entry[i].entry_name);
    }
    return good;
}

static bool list_directory(const char *path)
{
    struct listing l = {0};
    DIR *d = opendir(path);
    struct dirent *e;
    bool good = true;

    if (d == NULL) {
        warn("%s", path);
        return false;
    }
    while ((e = readdir(d)) != NULL)
        if (show_all || e->d_name[0] != '.')
            add(&l, e->d_name, e->d_type);
    if (closedir(d) < 0) {
        warn("%s", path);
        good = false;
    }
    qsort(l.list_entry, l.list_used, sizeof(l.list_entry[0]), by_name);
    good &= print_listing(path, &l);
    forget(&l);
    return good;
}

static bool list_path(const char *path, bool titled)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        warn("%s", path);
        return false;
    }
    if (st.st_type != FILE_DIRECTORY) {
        if (show_long)
            return print_long("", path);
        putname(path);
        putchar('\n');
        return true;
    }
    if (titled) {
        putname(path);
        puts(":");
    }
    return list_directory(path);
}

int main(int argc, char **argv)
{
    bool good = true;
    int letter;

    while ((letter = getopt(argc, argv, "al")) != -1) {
        if (letter == '?')
            usage("[-al] [PATH...]");
        show_all |= letter == 'a';
        show_long |= letter == 'l';
    }
    columns = isatty(STDOUT_FILENO);
    if (optind == argc)
        return !list_path(".", false);
    for (int i = optind; i < argc; i++)
        good &= list_path(argv[i], argc - optind > 1);
    return !good;
}
