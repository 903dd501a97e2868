/*
 * Patterns of file names.
 *
 * A pattern is processed one component at a time: components without `*`, `?`
 * and `[` are appended to the path, the others are compared with every name in
 * the directory of the path so far.
 *
 *     /bin/s*      path "/bin/", rest "s*"  ->  /bin/sh /bin/sort …
 */
#include "user/bin/sh/sh.h"
#include "user/lib/dirent.h"
#include "user/lib/string.h"

static char path[PATH_MAX];

struct glob {
    struct field *glob_first;
    int glob_count;
    int glob_error; /* errno of the first failure, or 0 */
};

static void glob_from(struct glob *g, size_t length, char *rest);

void glob_plain(char *pattern)
{
    char *to = pattern;

    for (const char *from = pattern; *from != 0; from++) {
        if (*from == '\\' && from[1] != 0)
            from++;
        *to++ = *from;
    }
    *to = 0;
}

/* Whether a name matches the first n characters of a pattern. */
static bool match(char *pattern, size_t n, const char *name)
{
    char next = pattern[n];
    bool result;

    pattern[n] = 0;
    result = glob_match(pattern, name);
    pattern[n] = next;
    return result;
}

static void failed(struct glob *g)
{
    if (g->glob_error == 0)
        g->glob_error = errno;
}

/* Whether errno, of an open or a stat, means that there is no such file. */
static bool is_absent(void)
{
    return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
}

/* Inserts the path into the result, in order. */
static void add(struct glob *g, size_t length)
{
    struct field **at = &g->glob_first;
    struct field *f = arena_alloc(sizeof(*f));
    char *text = arena_string(path, length);

    if (f == NULL || text == NULL) {
        failed(g);
        return;
    }
    while (*at != NULL && strcmp((*at)->field_text, text) < 0)
        at = &(*at)->field_next;
    f->field_text = text;
    f->field_next = *at;
    *at = f;
    g->glob_count++;
}

/* Appends a name and continues after it. */
static void descend(struct glob *g, size_t length, const char *name, size_t n,
                    char *rest)
{
    if (length + n + 2 > sizeof(path))
        return;
    memcpy(path + length, name, n);
    path[length + n] = 0;
    glob_from(g, length + n, rest);
}

/* Calls descend for each name that matches the pattern's first n characters. */
static void try_names(struct glob *g, size_t length, char *pattern, size_t n)
{
    DIR *d;
    const struct dirent *entry;

    path[length] = 0;
    d = opendir(length > 0 ? path : ".");
    if (d == NULL) {
        if (!is_absent())
            failed(g);
        return;
    }
    while (g->glob_error == 0 && (entry = readdir(d)) != NULL)
        if ((entry->d_name[0] != '.' || pattern[0] == '.') &&
            match(pattern, n, entry->d_name))
            descend(g, length, entry->d_name, entry->d_namlen, pattern + n);
    if (closedir(d) < 0)
        failed(g);
}

/* The path has `length` characters; `rest` is the rest of the pattern. A file
 * that stat cannot read exists: the command will report it. */
static void glob_from(struct glob *g, size_t length, char *rest)
{
    size_t n = strcspn(rest, "/");
    struct stat st;
    char name[NAME_MAX + 2];

    if (*rest == 0) {
        if (stat(path, &st) == 0 || !is_absent())
            add(g, length);
    } else if (n == 0) {
        descend(g, length, "/", 1, rest + 1);
    } else if (strcspn(rest, "*?[") < n) {
        try_names(g, length, rest, n);
    } else if (n < sizeof(name)) {
        strlcpy(name, rest, n + 1);
        glob_plain(name);
        descend(g, length, name, strlen(name), rest + n);
    }
}

int glob(char *pattern, struct fields *f)
{
    struct glob g = {0};

    glob_from(&g, 0, pattern);
    if (g.glob_error != 0) {
        errno = g.glob_error;
        return -1;
    }
    if (g.glob_count == 0)
        return 0;
    *f->fields_end = g.glob_first;
    while (*f->fields_end != NULL)
        f->fields_end = &(*f->fields_end)->field_next;
    f->fields_count += g.glob_count;
    return g.glob_count;
}
