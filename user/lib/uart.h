/*
 * The second serial line: requests to the driver `uart`
 * (drivers/servers/uart.c), which publishes its port under that name.
 *
 * A request is one call of the port. The reply's label is 0, its word 0 the
 * result: 0, or a negated error number (EINVAL: invalid request; ENOMEM).
 *
 *                   word 0   word 1  bytes
 *     UART_WRITE    -        -       up to UART_MAX; reply when the line's
 *                                    FIFO has taken them all
 *     UART_READ     most     -       -; reply when there is something to
 *                                    read: bytes, one or more; word 1:
 *                                    input errors since the last reply,
 *                                    UART_OVERRUN …
 *     UART_SETUP    baud     flags   -; reply at once. Bytes in transfer
 *                                    may be damaged.
 *     UART_STATUS   -        -       -; reply's bytes: struct uart_status
 *
 * Writes are executed in order, and so are reads. A reader that dies consumes
 * nothing.
 */
#pragma once

#include "user/lib/unistd.h"

#define UART_MAX  4096u  /* bytes in one request */
#define UART_RING 4096u  /* bytes buffered for readers */
#define UART_BAUD 115200 /* default, and the maximum; others divide it */

enum uart_request {
    UART_WRITE = 1,
    UART_READ,
    UART_SETUP,
    UART_STATUS,
};

/* A flag of UART_SETUP: loopback. The line is cut off; on some machines, though
 * not in QEMU, the interrupt too. */
#define UART_LOOPBACK 1

/* Input errors. */
#define UART_OVERRUN 1 /* bytes were lost: the driver was too slow */
#define UART_PARITY  2
#define UART_FRAMING 4
#define UART_BREAK   8

struct uart_status {
    uint32_t uart_baud;
    uint32_t uart_flags;
    uint32_t uart_sent;     /* bytes, since the driver started */
    uint32_t uart_received; /* including those not read yet */
    uint32_t uart_waiting;  /* received and not read yet */
    uint32_t uart_interrupts;
    uint32_t uart_spurious; /* of these, the device had no cause */
    uint32_t uart_overruns; /* times that the device lost bytes */
    uint32_t uart_errors;   /* damaged bytes and breaks */
};

/* A handle to the driver, for close(). -1 with errno: ENOENT (none). */
int uart_open(void);

/* All return -1 with errno on an error; EPIPE: the driver died meanwhile. */

/* Sends `n` bytes, any number. Returns `n`. */
ssize_t uart_write(int port, const void *buf, size_t n);

/* Waits for at least one byte; returns how many came, at most `n`. *errors (may
 * be NULL): input errors since the last reply. */
ssize_t uart_read(int port, void *buf, size_t n, uint32_t *errors);

int uart_setup(int port, uint32_t baud, uint32_t flags);
int uart_status(int port, struct uart_status *status);
