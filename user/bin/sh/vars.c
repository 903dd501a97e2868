/*
 * Variables: a list of "NAME=value" texts; exported ones are passed to the
 * programs that the shell runs.
 */
#include "user/bin/sh/sh.h"
#include "user/lib/ctype.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

struct var {
    struct var *var_next;
    bool var_exported;
    bool var_of_command; /* VAR_COMMAND */
    char var_text[];     /* NAME=value */
};

static struct var *vars;

size_t name_length(const char *s)
{
    size_t n = 0;

    if (isdigit(*s))
        return 0;
    while (isalnum(s[n]) || s[n] == '_')
        n++;
    return n;
}

bool is_assignment(const char *word)
{
    size_t n = name_length(word);

    return n > 0 && word[n] == '=';
}

/* The pointer to the variable, or the one at the list's end. */
static struct var **find(const char *name)
{
    size_t n = name_length(name);
    struct var **v = &vars;

    while (*v != NULL &&
           (strncmp((*v)->var_text, name, n) != 0 || (*v)->var_text[n] != '='))
        v = &(*v)->var_next;
    return v;
}

const char *var_get(const char *name)
{
    const struct var *v = *find(name);

    return v != NULL ? v->var_text + name_length(name) + 1 : NULL;
}

bool var_set(const char *assignment, enum var_use use)
{
    struct var **at = use == VAR_COMMAND ? &vars : find(assignment);
    struct var *old = use == VAR_COMMAND ? NULL : *at;
    size_t n = strlen(assignment) + 1;
    struct var *v = malloc(sizeof(*v) + n);

    if (v == NULL) {
        complain(1, "no memory for a variable");
        return false;
    }
    memcpy(v->var_text, assignment, n);
    v->var_exported = use == VAR_EXPORT || (old != NULL && old->var_exported);
    v->var_of_command =
        use == VAR_COMMAND || (old != NULL && old->var_of_command);
    v->var_next = old != NULL ? old->var_next : *at;
    *at = v;
    free(old);
    return true;
}

static void remove_at(struct var **at)
{
    struct var *v = *at;

    *at = v->var_next;
    free(v);
}

void vars_end_command(void)
{
    for (struct var **at = &vars; *at != NULL;) {
        if ((*at)->var_of_command)
            remove_at(at);
        else
            at = &(*at)->var_next;
    }
}

void var_unset(const char *name)
{
    struct var **at = find(name);

    if (*at != NULL)
        remove_at(at);
}

bool var_export(const char *name)
{
    struct var *v = *find(name);
    char text[256];
    size_t n = strlen(name);

    if (v != NULL) {
        v->var_exported = true;
        return true;
    }
    if (n + 2 > sizeof(text)) {
        complain(1, "export: %s: the name is too long", name);
        return false;
    }
    memcpy(text, name, n);
    memcpy(text + n, "=", 2);
    return var_set(text, VAR_EXPORT);
}

char **vars_environment(void)
{
    size_t n = 0;
    char **environment;

    for (const struct var *v = vars; v != NULL; v = v->var_next)
        n += v->var_exported;
    environment = arena_alloc((n + 1) * sizeof(*environment));
    if (environment == NULL)
        return NULL;
    n = 0;
    for (struct var *v = vars; v != NULL; v = v->var_next)
        if (v->var_exported)
            environment[n++] = v->var_text;
    environment[n] = NULL;
    return environment;
}

void vars_each(void (*fn)(const char *text))
{
    for (const struct var *v = vars; v != NULL; v = v->var_next)
        if (v->var_exported)
            fn(v->var_text);
}

void vars_init(char **environment)
{
    for (; *environment != NULL; environment++)
        if (is_assignment(*environment))
            var_set(*environment, VAR_EXPORT);
}
