/*
 * beattest: tests of the driver beat, each part alone. The files of the driver
 * are linked into this program, except main.c and ram.c. A part runs in a
 * child, with the test's own versions of the other parts; the parent process
 * checks the results.
 *
 *     run -p beattest PART
 *
 *     main.c      the table of tests; parts as servers in children
 *     chip.c      the driver's chip.c, with a real chip
 *     parts.c     loop.c, clients.c, service.c
 *     keep.c      keep.c, with a RAM that survives its writer
 *     client.c    tempo's beat.c, with drivers that die
 *     system.c    the whole driver
 */
#pragma once

#include "docs/labs/08-messages/servers/beat/beat.h"
#include "tools/workshop/labs/seed.h"
#include "user/tests/devtest/devtest.h"

#define PART "part" /* the name of the tested part's port */

/* What follows from the seed. */
enum {
    SEED_PERIOD = 80,
    SEED_LAST,
    SEED_FIRST,
    SEED_LATE,
    SEED_KEPT
};

/* Forks a child that runs `serve`, which publishes a port, and returns a handle
 * to the port. Ends this program if there is none after a second. part_end ends
 * the child. */
int part_begin(void (*serve)(void));
void part_end(void);

/* Called by a part: creates its port and publishes it. */
int part_port(void);

/* Sends a request to the part: word 0 of its reply, or minus errno. */
int part_ask(uint32_t label, uint32_t word);

/* Waits until a part reports (label COUNT) that so many clients wait; false: it
 * did not within half a second. */
#define PART_COUNT 1000
bool part_waits(int n);

/* The same as the driver's loop, but not written by the student. */
void receive(int port, bool (*serve)(struct message *m),
             void (*notified)(uint32_t bits)) __attribute__((noreturn));

/* For `receive`: ignores a notification. */
void no_notification(uint32_t bits);

/* Whether a child is still alive. */
bool lives(pid_t pid);

void beat_chip(void);
void beat_loop(void);
void beat_clients(void);
void beat_refuse(void);
void beat_keep(void);
void beat_order(void);
void beat_survive(void);
void beat_storm(void);

/* The program that has the chip's grant. */
void chip_server(void) __attribute__((noreturn));

/* A file takes the place of the chip's RAM: creates and fills it; removes
 * it. */
void ram_fill(uint8_t value);
void ram_remove(void);

/* The process exits with status RAM_DEATH instead of writing the byte with this
 * number, counted from now on. 0: never. */
extern unsigned ram_deadly;
#define RAM_DEATH 77
