/*
 * Servers as init knows them: what the manifest says, and how they are doing.
 *
 *     wanted ── needs are ready ──> running ── ready ──> …
 *        ^                             │
 *        └── due: at once, or after a  │ killed, crashed, failed
 *            while if it died young <──┘
 *                                      └ ended with status 0, or EXIT_ABSENT:
 *                                        done
 */
#pragma once

#include "kernel/lib/manifest.h"
#include "user/lib/ipc.h"

#define SERVER_WORDS 8 /* of a command line, with the program */

struct server {
    struct server *server_next; /* in the manifest's order */
    struct manifest_server server_stanza;
    char *server_argv[SERVER_WORDS + 1]; /* words of the stanza's command */

    bool server_wanted; /* of this session */
    pid_t server_pid;   /* 0: does not run */
    uint32_t server_began_ms;
    uint32_t server_due_ms; /* if wanted and not running: when to start it */
    unsigned server_young;  /* deaths in a row soon after the start */
    unsigned server_starts;
};

/* ---- manifest.c --------------------------------------------------------- */

/* The servers of the manifest, in its order; NULL if there are none. Says what
 * is wrong in it, and goes on. (What a server may have of the machine is the
 * kernel's business, which has read it at boot.) */
struct server *servers_read(const char *path);

/* The server of that name, or NULL. */
struct server *server_find(struct server *all, const char *name);

/* ---- server.c ----------------------------------------------------------- */

/* Wants a server, with all that it needs, before others that need it. false,
 * after a message: there is no such server. */
bool server_want(struct server *all, const char *name);

/* Starts those that are wanted, due, and whose needs are ready. With `wait` it
 * waits until each is ready, or has ended, or SERVER_PATIENCE_MS are over. */
void servers_start(struct server *all, bool wait);

/* Whether it can be used: its name, or what it mounts, is there. */
bool server_is_ready(const struct server *s);

/* A child has ended: true if it was a server. It will be started again if it
 * is to be. */
bool server_ended(struct server *all, pid_t pid, int status);

/* Milliseconds until the next server is due; UINT32_MAX: none. */
uint32_t servers_due(const struct server *all);

/* Whether it runs: to tell servers from other children. */
const struct server *server_of(const struct server *all, pid_t pid);

#define SERVER_PATIENCE_MS 5000u
