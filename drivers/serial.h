/*
 * The first serial port, a 16550 at 0x3F8: 115200 baud, 8 data bits, no
 * parity, 1 stop bit.
 *
 * All functions are called with interrupts disabled, one at a time.
 */
#pragma once

#include "kernel/lib/types.h"

/* Sets the port up for polled use. False if there is none; the other
 * functions then do nothing. */
bool serial_init(void);

/* Where received bytes go: `ready` says whether there is room for one more,
 * `sink` takes it. While there is no room, bytes stay in the port's FIFO and
 * the other side is asked to wait. */
void serial_set_sink(bool (*ready)(void), void (*sink)(uint8_t byte));

/* From polled to interrupt-driven. Output then goes through a ring, and a
 * full ring makes the writer wait. */
void serial_enable_interrupts(void);

/* Back to polling, after what the ring holds has left. */
void serial_disable_interrupts(void);

/* Sends text; \n becomes CR LF. */
void serial_write(const char *text, size_t n);

/* Passes on what has been received; also called when there is room again. */
void serial_receive(void);

/* Waits until the last bit has left the port. */
void serial_drain(void);
