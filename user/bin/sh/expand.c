/*
 * Expansion of words to arguments.
 *
 * A word is read once from left to right. Its expansion is built at the end of
 * the arena, as a pattern (sh.h: glob): quoted special characters get a `\`.
 * Unquoted blanks from a variable separate fields.
 */
#include "user/bin/sh/sh.h"
#include "user/lib/ctype.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

struct expander {
    struct fields ex_fields;
    bool ex_split;  /* at blanks; patterns are active */
    bool ex_open;   /* a field has begun, if only with "" */
    bool ex_active; /* the field has an active `*`, `?` or `[` */
    bool ex_failed; /* after a message */
};

bool fields_add(struct fields *f, const char *text)
{
    struct field *new = arena_alloc(sizeof(*new));

    if (new == NULL)
        return false;
    new->field_next = NULL;
    new->field_text = text;
    *f->fields_end = new;
    f->fields_end = &new->field_next;
    f->fields_count++;
    return true;
}

/* ---- characters --------------------------------------------------------- */

static bool is_special(char c)
{
    return c == '*' || c == '?' || c == '[';
}

static void put_quoted(struct expander *e, char c)
{
    e->ex_open = true;
    if (is_special(c) || c == '\\')
        arena_put('\\');
    arena_put(c);
}

static void put(struct expander *e, char c)
{
    if (!is_special(c)) {
        put_quoted(e, c);
        return;
    }
    e->ex_open = true;
    e->ex_active = e->ex_split;
    arena_put(c);
}

/* Reports the first failure: errno, of the pattern. */
static void failed(struct expander *e, const char *pattern)
{
    if (!e->ex_failed && errno == E2BIG)
        complain(1, "the arguments are too long");
    else if (!e->ex_failed)
        complain(1, "%s: %s", pattern, strerror(errno));
    e->ex_failed = true;
}

/* Ends the field. */
static void close_field(struct expander *e)
{
    char *text;
    int found;

    if (!e->ex_open)
        return;
    text = arena_finish();
    found = text == NULL ? -1 : e->ex_active ? glob(text, &e->ex_fields) : 0;
    if (found == 0) {
        glob_plain(text);
        found = fields_add(&e->ex_fields, text) ? 1 : -1;
    }
    if (found < 0)
        failed(e, text);
    e->ex_open = false;
    e->ex_active = false;
}

/* ---- variables ---------------------------------------------------------- */

static void put_value(struct expander *e, const char *value, bool quoted)
{
    for (; *value != 0; value++) {
        if (quoted || !e->ex_split)
            put_quoted(e, *value);
        else if (isspace(*value))
            close_field(e);
        else
            put(e, *value);
    }
}

/* $? $$ $! $# $0 … $9: `c` follows the $. NULL: unknown. */
static const char *special(char c, char *number, size_t size)
{
    int value = shell.shell_status;

    if (isdigit(c)) {
        int n = c - '0';

        if (n == 0)
            return shell.shell_name;
        return n <= shell.shell_argc ? shell.shell_args[n - 1] : "";
    }
    if (c == '$')
        value = getpid();
    else if (c == '!')
        value = shell.shell_background;
    else if (c == '#')
        value = shell.shell_argc;
    else if (c != '?')
        return NULL;
    snprintf(number, size, "%d", value);
    return number;
}

/* Expands a `$` with its name; returns the end. */
static const char *put_variable(struct expander *e, const char *s, bool quoted)
{
    char number[12];
    bool brace = *s == '{';
    const char *name = s + brace;
    size_t n = name_length(name);
    const char *value = NULL;

    if (n == 0) {
        value = special(*name, number, sizeof(number));
        n = 1;
    } else if (!brace || name[n] == '}') {
        value = var_get(name);
        value = value != NULL ? value : "";
    }
    if (value == NULL || (brace && name[n] != '}')) {
        put_quoted(e, '$');
        return s;
    }
    put_value(e, value, quoted);
    return name + n + brace;
}

/* ---- words -------------------------------------------------------------- */

/* Expands "…" after the opening quote; returns the end, after the closing
 * one. */
static const char *put_string(struct expander *e, const char *s)
{
    e->ex_open = true;
    while (*s != '"') {
        if (*s == '$') {
            s = put_variable(e, s + 1, true);
            continue;
        }
        if (*s == '\\' && strchr("\"\\$", s[1]) != NULL)
            s++;
        put_quoted(e, *s++);
    }
    return s + 1;
}

static void expand(struct expander *e, const char *s)
{
    while (*s != 0) {
        if (*s == '\'') {
            e->ex_open = true;
            while (*++s != '\'')
                put_quoted(e, *s);
            s++;
        } else if (*s == '"') {
            s = put_string(e, s + 1);
        } else if (*s == '\\') {
            put_quoted(e, s[1]);
            s += 2;
        } else if (*s == '$') {
            s = put_variable(e, s + 1, false);
        } else {
            put(e, *s++);
        }
    }
}

char **expand_words(const struct word *words, int *argc)
{
    struct field *first = NULL;
    struct expander e = {.ex_fields = {&first, 0}, .ex_split = true};
    char **argv;

    for (; words != NULL; words = words->word_next) {
        expand(&e, words->word_text);
        close_field(&e);
    }
    *argc = e.ex_fields.fields_count;
    argv = arena_alloc(((size_t)*argc + 1) * sizeof(*argv));
    if (argv == NULL)
        failed(&e, NULL);
    if (e.ex_failed)
        return NULL;
    for (int i = 0; i < *argc; i++, first = first->field_next)
        argv[i] = (char *)first->field_text;
    argv[*argc] = NULL;
    return argv;
}

char *expand_word(const char *text)
{
    struct expander e = {0};
    char *result;

    expand(&e, text);
    result = arena_finish();
    if (result == NULL)
        complain(1, "the arguments are too long");
    else
        glob_plain(result);
    return result;
}
