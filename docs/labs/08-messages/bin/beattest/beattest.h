/*
 * beattest: tests of the driver beat, each part by itself. The files of the
 * driver are linked into this program, except main.c and ram.c. A part runs in
 * a child, with parts of the test around it in the place of the driver's; the
 * parent process judges.
 *
 *     run -p beattest PART
 *
 *     main.c      names of the tests; servers that are children
 *     chip.c      the driver's chip.c, with a chip
 *     parts.c     loop.c, clients.c, service.c
 *     keep.c      keep.c, with a RAM that outlives its writer
 *     client.c    tempo's beat.c, with a driver that dies
 *     system.c    all of it
 */
#pragma once

#include "docs/labs/08-messages/servers/beat/beat.h"
#include "user/tests/devtest/devtest.h"

#define PART "part" /* the name of the port behind which a part is tried */

/* A child that runs `serve`, which publishes a port. Ends this program if it
 * has not done so after a second. A handle to it; it ends with the part. */
int part_begin(void (*serve)(void));
void part_end(void);

/* The port of a part that calls this, with its name. */
int part_port(void);

/* A request to the part: word 0 of what it answered, or minus errno. */
int part_ask(uint32_t label, uint32_t word);

/* Waits until a part says that so many wait, by the label COUNT; false: it did
 * not within half a second. */
#define PART_COUNT 1000
bool part_waits(int n);

/* The same loop as the driver's, which is not a student's. */
void receive(int port, bool (*serve)(struct message *m),
             void (*notified)(uint32_t bits)) __attribute__((noreturn));

/* For `receive`, where notifications mean nothing. */
void no_notification(uint32_t bits);

/* Whether a child has not ended yet. */
bool lives(pid_t pid);

void beat_chip(void);
void beat_loop(void);
void beat_clients(void);
void beat_refuse(void);
void beat_keep(void);
void beat_order(void);
void beat_survive(void);
void beat_storm(void);

/* The program that has the chip. */
void chip_server(void) __attribute__((noreturn));

/* Instead of the chip's RAM, a file. Fills it, which makes it; removes it. */
void ram_fill(uint8_t value);
void ram_remove(void);

/* The process that writes so many bytes from now on ends at the last of them,
 * unwritten, with status RAM_DEATH. 0: it does not. */
extern unsigned ram_deadly;
#define RAM_DEATH 77
