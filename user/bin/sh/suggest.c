/*
 * Suggests a command in place of one that does not exist.
 *
 *     $ cta file
 *     sh: cta: not found; did you mean cat?
 */
#include "kernel/lib/edit_distance.h"
#include "user/bin/sh/sh.h"
#include "user/lib/string.h"

/* Names of commands on other systems. */
static const char *const synonyms[][2] = {
    {"bye", "exit"},  {"logout", "exit"}, {"poweroff", "exit"},
    {"quit", "exit"}, {"copy", "cp"},     {"del", "rm"},
    {"dir", "ls"},    {"man", "help"},    {"move", "mv"},
};

struct search {
    const char *search_name;
    unsigned search_edits;
    char *search_found; /* empty: none yet */
};

static void compare(const char *command, void *arg)
{
    struct search *s = arg;

    if (s->search_found[0] == 0 &&
        edit_distance_within(s->search_name, command, s->search_edits))
        strlcpy(s->search_found, command, NAME_MAX + 1);
}

bool suggest(const char *name, char out[NAME_MAX + 1])
{
    struct search s = {name, 0, out};

    for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++) {
        if (strcmp(name, synonyms[i][0]) == 0) {
            strlcpy(out, synonyms[i][1], NAME_MAX + 1);
            return true;
        }
    }
    out[0] = 0;
    for (unsigned edits = 1; edits <= edit_distance_most(name); edits++) {
        s.search_edits = edits;
        add_commands(compare, &s);
    }
    return out[0] != 0;
}
