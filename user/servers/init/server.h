/*
 * Servers of init: their stanzas and states.
 *
 *     wanted ── needs are ready ──> running ── ready ──> …
 *        ^                             │
 *        └── due: at once, or after a  │ killed, crashed, failed
 *            pause if it died soon  <──┘
 *                                      └ ended with status 0, or EXIT_ABSENT:
 *                                        done
 *
 * A server that somebody else started is used as it is: the task that init
 * started for it ends with status 0.
 */
#pragma once

#include "kernel/lib/manifest.h"
#include "user/lib/ipc.h"

#define SERVER_WORDS 8 /* words of a command line, with the program */

struct server {
    struct server *server_next; /* in the manifest's order */
    struct manifest_server server_stanza;
    char *server_argv[SERVER_WORDS + 1]; /* words of the stanza's command */

    bool server_wanted; /* to run in this session */
    pid_t server_pid;   /* 0: not running */
    uint32_t server_began_ms;
    uint32_t server_due_ms; /* if wanted and not running: time of the start */
    unsigned server_young;  /* early deaths in a row */
    unsigned server_starts;
};

/* ---- manifest.c --------------------------------------------------------- */

/* The servers of the manifest, in its order; NULL: none. Reports errors and
 * continues. (The kernel has read at boot what each server may use.) */
struct server *servers_read(const char *path);

/* The server of that name, or NULL. */
struct server *server_find(struct server *all, const char *name);

/* ---- server.c ----------------------------------------------------------- */

/* Marks a server, and all it needs, as wanted. False after a message: there is
 * no such server. */
bool server_want(struct server *all, const char *name);

/* Starts wanted servers that are due and whose needs are ready. With `wait`
 * waits until each is ready, has ended, or SERVER_PATIENCE_MS are over. */
void servers_start(struct server *all, bool wait);

/* Whether it can be used: its name or its mount exists. */
bool server_is_ready(const struct server *s);

/* A child has ended: true if it was a server. Decides whether and when to
 * restart it. */
bool server_ended(struct server *all, pid_t pid, int status);

/* Milliseconds until the next server is due; UINT32_MAX: none. */
uint32_t servers_due(const struct server *all);

/* The server with that pid, or NULL. */
const struct server *server_of(const struct server *all, pid_t pid);

#define SERVER_PATIENCE_MS 5000
