/*
 * The manifest, as init reads it: which servers there are, what they need, and
 * when they run. docs/driver.md has its form.
 *
 *     server ext2
 *         program  /sbin/ext2 ata 0 /disk
 *         needs    ata
 *         mounts   /disk
 *         start    demand
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/servers/init/server.h"

#define BLANKS " \t\r\n"

struct reader {
    const char *file;
    unsigned line;
    struct server *server; /* the stanza that is being read */
};

static void complain(const struct reader *r, const char *what)
{
    warnx("%s, line %u: %s", r->file, r->line, what);
}

/* ---- the lines of a stanza ---------------------------------------------- */

static void read_program(struct reader *r, char *rest)
{
    size_t n = 0;

    for (char *w; (w = strtok_r(rest, BLANKS, &rest)) != NULL;) {
        if (n == SERVER_WORDS) {
            complain(r, "too many arguments");
            return;
        }
        r->server->server_argv[n] = strdup(w);
        if (r->server->server_argv[n++] == NULL)
            err(1, "%s", r->file);
    }
    if (n == 0)
        complain(r, "`program` wants a path");
}

static void read_needs(struct reader *r, char *rest)
{
    size_t n = 0;

    for (char *w; (w = strtok_r(rest, BLANKS, &rest)) != NULL;) {
        if (n == SERVER_NEEDS || strlen(w) > PORT_NAME_MAX) {
            complain(r, "`needs` has too many names, or too long ones");
            return;
        }
        strlcpy(r->server->server_needs[n++], w, PORT_NAME_MAX + 1);
    }
}

static void read_mounts(struct reader *r, char *rest)
{
    const char *path = strtok_r(rest, BLANKS, &rest);
    size_t room = sizeof(r->server->server_mounts);

    if (path == NULL || path[0] != '/' ||
        strlcpy(r->server->server_mounts, path, room) >= room)
        complain(r, "`mounts` wants a path");
}

/* One of two words: *out is whether it was the first. */
static void read_choice(struct reader *r, char *rest, const char *yes,
                        const char *no, bool *out)
{
    const char *word = strtok_r(rest, BLANKS, &rest);

    if (word != NULL && strcmp(word, yes) == 0)
        *out = true;
    else if (word != NULL && strcmp(word, no) == 0)
        *out = false;
    else
        complain(r, "neither of the two words that may stand here");
}

/* ---- stanzas ------------------------------------------------------------ */

static struct server *new_server(struct reader *r, char *rest)
{
    const char *name = strtok_r(rest, BLANKS, &rest);
    struct server *s;

    if (name == NULL || strlen(name) > PORT_NAME_MAX) {
        complain(r, "`server` wants a name of 1 to 31 characters");
        return NULL;
    }
    s = calloc(1, sizeof(*s));
    if (s == NULL)
        err(1, "%s", r->file);
    strlcpy(s->server_name, name, sizeof(s->server_name));
    s->server_boot = true;
    s->server_always = true;
    return s;
}

/* What the kernel reads. */
static bool is_privilege(const char *key)
{
    return strcmp(key, "ports") == 0 || strcmp(key, "irq") == 0 ||
           strcmp(key, "memory") == 0 || strcmp(key, "dma") == 0;
}

static void read_property(struct reader *r, const char *key, char *rest)
{
    struct server *s = r->server;

    if (s == NULL)
        complain(r, "stands outside of a `server`");
    else if (strcmp(key, "program") == 0)
        read_program(r, rest);
    else if (strcmp(key, "needs") == 0)
        read_needs(r, rest);
    else if (strcmp(key, "mounts") == 0)
        read_mounts(r, rest);
    else if (strcmp(key, "start") == 0)
        read_choice(r, rest, "boot", "demand", &s->server_boot);
    else if (strcmp(key, "restart") == 0)
        read_choice(r, rest, "always", "never", &s->server_always);
    else if (!is_privilege(key))
        complain(r, "no such word");
}

/* Reads one line; a new stanza goes to *end. Returns the new end. */
static struct server **read_line(struct reader *r, char *text,
                                 struct server **end)
{
    char *comment = strchr(text, '#');
    char *key;
    char *rest;

    if (comment != NULL)
        *comment = '\0';
    key = text + strspn(text, BLANKS);
    rest = key + strcspn(key, BLANKS);
    if (*key == '\0')
        return end;
    if (*rest != '\0')
        *rest++ = '\0';
    if (strcmp(key, "server") != 0) {
        read_property(r, key, rest);
        return end;
    }
    r->server = new_server(r, rest);
    if (r->server == NULL)
        return end;
    *end = r->server;
    return &r->server->server_next;
}

struct server *manifest_read(const char *path)
{
    struct reader r = {.file = path};
    struct server *all = NULL;
    struct server **end = &all;
    FILE *f = fopen(path, "r");
    char text[256];

    if (f == NULL) {
        warn("%s", path);
        return NULL;
    }
    while (fgets(text, sizeof(text), f) != NULL) {
        r.line++;
        end = read_line(&r, text, end);
    }
    fclose(f);
    return all;
}

struct server *server_find(struct server *all, const char *name)
{
    while (all != NULL && strcmp(all->server_name, name) != 0)
        all = all->server_next;
    return all;
}
