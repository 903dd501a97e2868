/*
 * beat: the rhythm of a PC's clock chip (Motorola MC146818 data sheet), as a
 * program. It is the chip's other interrupt: rtc tells the time, this one beats
 * it. Both want line 8, so one of them runs at a time.
 *
 *     main.c      puts the parts together
 *     chip.c      the registers, and the interrupt
 *     ram.c       those bytes of the chip that keep what is written there
 *     loop.c      receives: what is a request, what a notification
 *     service.c   requests, beats, and their numbers
 *     clients.c   those who wait
 *     keep.c      the number outlives the driver
 *
 *                  request ──> service_request ──> answer
 *     port ─ loop ─┤                └─> clients_add ──> waiting
 *                  notification ──> chip_beat ──> service_beat      │
 *                                                   ├─> keep_save   v
 *                                                   └─> clients_answer ──> all
 *                                                       whose beat it is
 */
#pragma once

#include "docs/labs/08-messages/bin/tempo/beat.h"
#include "user/lib/ipc.h"

/* ---- chip.c ------------------------------------------------------------- */

#define CHIP_IRQ 8
#define CHIP_BIT 0 /* of the port's notification */

/* Binds the interrupt line to the port, then looks whether there is a chip
 * (ENODEV) and sets it up: BEAT_HZ, and silent. 0, or -1 with errno. A line
 * that it may not have is refused before a register is touched. */
int chip_open(int port);

/* From now on it interrupts at each beat, or does not any more. A beat that was
 * before chip_start does not count. */
void chip_start(void);
void chip_stop(void);

/* A notification has come. Whether it was a beat: only the chip knows. Then the
 * line is open for the next one. */
bool chip_beat(void);

/* ---- ram.c -------------------------------------------------------------- */

/* Bytes that belong to this driver. They keep their contents when it dies, and
 * when the machine is reset. */
#define RAM_BYTES 16

uint8_t ram_get(unsigned i);
void ram_put(unsigned i, uint8_t value);

/* ---- loop.c ------------------------------------------------------------- */

/* Receives for ever. `request` gets a request and leaves its answer there; or
 * false, and somebody will answer the client later by ipc_reply. `notified`
 * gets the bits of a notification. Bytes and handles are refused. */
void loop(int port, bool (*request)(struct message *m),
          void (*notified)(uint32_t bits)) __attribute__((noreturn));

/* ---- service.c ---------------------------------------------------------- */

/* Goes on with the numbers where the predecessor ended. */
void service_begin(void);

/* As loop() wants it. */
bool service_request(struct message *m);

/* There was a beat: the next number. */
void service_beat(void);

/* ---- clients.c ---------------------------------------------------------- */

/* A client is to be answered at beat `due`. 0 or ENOMEM. */
int clients_add(uint32_t client, uint32_t due);

/* It is beat `now`: answers all whose beat it is, or has been, with the number
 * of the beat that they waited for. Beats are compared as if their numbers
 * never ended: behind 2^32 - 1 comes 0. */
void clients_answer(uint32_t now);

/* How many wait. */
size_t clients_waiting(void);

/* ---- keep.c ------------------------------------------------------------- */

/* The number that was saved last; 0 if none ever was. If the driver died while
 * it saved one, that one or the one before. */
uint32_t keep_load(void);
void keep_save(uint32_t number);
