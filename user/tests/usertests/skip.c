/*
 * The option -x FILE: the cases that are skipped, for a machine that cannot do
 * all of them. A line of FILE has the name of a case and the reason; a line
 * that is empty or begins with '#' is ignored. Any mistake ends the program: a
 * misspelled case would run.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

struct skip {
    struct skip *skip_next;
    const struct test *skip_test;
    const char *skip_reason;
};

static struct skip *skips;

static const struct test *find_test(const char *name)
{
    for (const struct test *t = __start_tests; t < __stop_tests; t++)
        if (strcmp(t->test_name, name) == 0)
            return t;
    return NULL;
}

static void add(const char *path, char *line)
{
    char *save;
    const char *name = strtok_r(line, " \n", &save);
    const char *reason = strtok_r(NULL, "\n", &save);
    struct skip *s;

    if (name == NULL || name[0] == '#')
        return;
    if (find_test(name) == NULL)
        errx(2, "%s: %s: no such case; -l lists them", path, name);
    if (reason == NULL || reason[strspn(reason, " ")] == 0)
        errx(2, "%s: %s: the reason is missing", path, name);
    s = malloc(sizeof(*s));
    if (s == NULL)
        err(2, "%s", path);
    s->skip_next = skips;
    s->skip_test = find_test(name);
    s->skip_reason = strdup(reason + strspn(reason, " "));
    if (s->skip_reason == NULL)
        err(2, "%s", path);
    skips = s;
}

void skip_read(const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;

    if (f == NULL)
        err(2, "%s", path);
    while (getline(&line, &size, f) > 0)
        add(path, line);
    errno = ferror(f);
    if (errno != 0)
        err(2, "%s", path);
    free(line);
    fclose(f);
}

const char *skip_reason(const struct test *t)
{
    for (const struct skip *s = skips; s != NULL; s = s->skip_next)
        if (s->skip_test == t)
            return s->skip_reason;
    return NULL;
}
