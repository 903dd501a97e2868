/*
 * stormfuzz: declarations shared by its files.
 *
 *     main.c      rounds: starts tasks, kills them, checks that they end
 *     server.c    a hostile file server
 *     client.c    random calls that reach such servers
 */
#pragma once

#include "user/lib/unistd.h"

#define SERVERS 3

#define CARRIER (HANDLES_MAX - 1) /* the port on which servers send theirs */

/* The servers' ports, as handles that may call. */
extern int ports[SERVERS];

/* The directory of the round; mounts are on m0, m1 … and in them. */
extern char top[PATH_MAX];

/* The two kinds of tasks, which run until they are killed. A server may exit.
 * Both have called srand(). */
void server_run(void) __attribute__((noreturn));
void client_run(void) __attribute__((noreturn));
