/*
 * The list of servers, in the order of the manifest (parsed by
 * kernel/lib/manifest.h).
 */
#include "user/lib/err.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/servers/init/server.h"

struct reading {
    const char *path;
    struct server *first;
    struct server **end;
};

/* Splits the command into words. Returns NULL or the error. */
static const char *split(struct server *s)
{
    char *rest = s->server_stanza.server_command;
    size_t n = 0;
    char *word;

    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        if (n == SERVER_WORDS)
            return "too many arguments";
        s->server_argv[n++] = word;
    }
    return NULL;
}

static const char *add(const struct manifest_server *stanza, void *arg)
{
    struct reading *r = arg;
    struct server *s = calloc(1, sizeof(*s));
    const char *error;

    if (s == NULL)
        err(1, "%s", r->path);
    s->server_stanza = *stanza;
    error = split(s);
    if (error != NULL) {
        free(s);
        return error;
    }
    *r->end = s;
    r->end = &s->server_next;
    return NULL;
}

static void complain(unsigned line, const char *what, void *arg)
{
    const struct reading *r = arg;

    warnx("%s, line %u: %s", r->path, line, what);
}

/* Reads the whole file; *n gets its length. NULL after a message. */
static char *contents(const char *path, ssize_t *n)
{
    int file = open(path, O_RDONLY);
    struct stat st;
    char *text = NULL;

    *n = -1;
    if (file >= 0 && fstat(file, &st) == 0)
        text = malloc(st.st_size + 1);
    if (text != NULL)
        *n = read(file, text, st.st_size);
    if (*n < 0)
        warn("%s", path);
    if (file >= 0)
        close(file);
    return text;
}

struct server *servers_read(const char *path)
{
    struct reading r = {.path = path};
    const struct manifest_reader reader = {add, complain, &r};
    ssize_t n;
    char *text = contents(path, &n);

    r.end = &r.first;
    if (n > 0)
        manifest_read(text, (size_t)n, &reader);
    free(text);
    return r.first;
}

struct server *server_find(struct server *all, const char *name)
{
    while (all != NULL && strcmp(all->server_stanza.server_name, name) != 0)
        all = all->server_next;
    return all;
}
