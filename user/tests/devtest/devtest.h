/*
 * devtest: the drivers rtc and uart, from where their clients stand.
 *
 *     run -s devtest rtc      with the clock's ports, to set it; ends rtc
 *     run devtest uart        the line must be there; ends uart
 *
 *     main.c   checks, children, who is who
 *     rtc.c    the clock: formats, seconds that begin, who waits
 *     uart.c   the line in loop mode: interrupts, order, what is lost
 */
#pragma once

#include "user/lib/ipc.h"

/* Prints "good: WHAT" or "BAD: WHAT: …"; both count. */
void check(bool good, const char *what);

/* A child that runs `fn` and ends with what it returns, or the number of its
 * errno if that is negative; it has begun to wait when this returns, if it does
 * so within 50 ms. */
pid_t begin(int (*fn)(void));

/* How a child has ended: that number; waits for it. */
int ended(pid_t pid);

/* Ends the task of that name (the driver) and waits until it is gone. */
void end_task(const char *name);

/* A request that the library would not make; what the server answered, or
 * minus errno of the call. */
int request(int port, uint32_t tag, uint32_t word, struct ipc_buffer *b);

void test_rtc(void);
void test_uart(void);
