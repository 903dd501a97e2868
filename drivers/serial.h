/*
 * The first serial port, a 16550 at 0x3F8: 115200 baud, 8 data bits, no
 * parity, 1 stop bit.
 *
 * All functions are called with console_lock held (drivers/console.h), at boot
 * and in a panic without it.
 */
#pragma once

#include "kernel/lib/types.h"

/* Configures the port for polling. False: there is none; the other functions
 * then do nothing. */
bool serial_init(void);

/* Sets the functions for input: `ready` says whether there is room for a byte,
 * `sink` takes it. Without room, bytes stay in the port's FIFO and the other
 * side has to wait. */
void serial_set_sink(bool (*ready)(void), void (*sink)(uint8_t byte));

/* Switches from polling to interrupts. Output then goes through a ring; a
 * writer waits while it is full. */
void serial_enable_interrupts(void);

/* Returns to polling after the ring is sent. A byte that arrives still ends a
 * halt. */
void serial_disable_interrupts(void);

/* Sends text; \n becomes CR LF. */
void serial_write(const char *text, size_t n);

/* Bytes since boot, modulo 2^32: passed to the sink, and given to the port or
 * its ring. */
struct serial_count {
    uint32_t count_read;
    uint32_t count_written;
};

struct serial_count serial_count(void);

/* Passes received bytes to the sink; also called when there is room again. */
void serial_receive(void);

/* Waits until the last bit has left the port. */
void serial_drain(void);
