/*
 * beat: the rhythm of a PC's clock chip (Motorola MC146818 data sheet), as a
 * program. It uses the chip's periodic interrupt; rtc uses another. Both need
 * line 8, so only one of them can run at a time.
 *
 *     main.c      puts the parts together
 *     chip.c      the registers, and the interrupt
 *     ram.c       the chip's bytes of RAM
 *     loop.c      receives requests and notifications
 *     service.c   requests, beats, and their numbers
 *     clients.c   the waiting clients
 *     keep.c      saves the number: it survives the driver
 *
 *                  request ──> service_request ──> reply
 *     port ─ loop ─┤                └─> clients_add ──> waiting
 *                  notification ──> chip_beat ──> service_beat      │
 *                                                   ├─> keep_save   v
 *                                                   └─> clients_reply ──> all
 *                                                       that are due
 */
#pragma once

#include "docs/labs/08-messages/bin/tempo/beat.h"
#include "user/lib/ipc.h"

/* ---- chip.c ------------------------------------------------------------- */

#define CHIP_IRQ 8
#define CHIP_BIT 0 /* of the port's notification */

/* Binds the interrupt line to the port, then tests whether there is a chip
 * (ENODEV) and sets it up: BEAT_HZ, without interrupts. 0, or -1 with errno.
 * Without the grant it fails before it accesses a register. */
int chip_open(int port);

/* Enables and disables the interrupts. A beat before chip_start does not
 * count. */
void chip_start(void);
void chip_stop(void);

/* Call after each notification: returns whether it was a beat, which only the
 * chip knows, and unmasks the line for the next one. */
bool chip_beat(void);

/* ---- ram.c -------------------------------------------------------------- */

/* Bytes that belong to this driver. They keep their contents when the driver
 * dies and when the machine is reset. */
#define RAM_BYTES 16

uint8_t ram_get(unsigned i);
void ram_put(unsigned i, uint8_t value);

/* ---- loop.c ------------------------------------------------------------- */

/* Receives for ever. `request` replaces a request by its reply and returns
 * true; or returns false if the client gets its reply later, by ipc_reply.
 * `notified` gets the bits of a notification. Bytes and handles are refused. */
void loop(int port, bool (*request)(struct message *m),
          void (*notified)(uint32_t bits)) __attribute__((noreturn));

/* ---- service.c ---------------------------------------------------------- */

/* Continues with the numbers where the predecessor ended. */
void service_begin(void);

/* The function `request` of loop(). */
bool service_request(struct message *m);

/* Call at each beat: takes the next number. */
void service_beat(void);

/* ---- clients.c ---------------------------------------------------------- */

/* Adds a client, which waits for beat `due`. 0 or ENOMEM. */
int clients_add(uint32_t client, uint32_t due);

/* Call at beat `now`: replies to each client whose beat is `now` or earlier
 * with the number of the beat that it waited for. Numbers wrap: after 2^32 - 1
 * comes 0. */
void clients_reply(uint32_t now);

/* The number of waiting clients. */
size_t clients_waiting(void);

/* ---- keep.c ------------------------------------------------------------- */

/* The number saved last; 0 if none was ever saved. If the driver died while it
 * saved a number, that number or the one before. */
uint32_t keep_load(void);
void keep_save(uint32_t number);
