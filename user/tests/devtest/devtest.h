/*
 * devtest: tests of the drivers rtc and uart, as their clients see them.
 *
 *     run -s devtest rtc      with the clock's ports, to set it; ends rtc
 *     run devtest uart        the line must be there; ends uart
 *
 *     check.c  checks, children, requests
 *     rtc.c    the clock: formats, seconds that begin, who waits
 *     uart.c   the line in loop mode: interrupts, order, what is lost
 */
#pragma once

#include "user/lib/ipc.h"

/* Prints "good: WHAT" or "BAD: WHAT"; both count. */
#define check(good, what) check_at(good, what, __FILE__, __LINE__)
void check_at(bool good, const char *what, const char *file, int line);

/* A child that runs `fn` and ends with what it returns, or the number of its
 * errno if that is negative. After begin() it waits for something, if it has
 * come that far within 50 ms. */
pid_t child(int (*fn)(void));
pid_t begin(int (*fn)(void));

/* How a child has ended: that number; waits for it. A negative one: by that
 * signal, or it is no child any more. */
int ended(pid_t pid);

/* Ends the task of that name (the driver) and waits until it is gone. */
void end_task(const char *name);

/* A request that the library would not make; what the server answered, or
 * minus errno of the call. */
int request(int port, uint32_t tag, uint32_t word, struct ipc_buffer *b);

/* Prints how many checks failed; the exit status of the program. */
int check_report(const char *program);

void test_rtc(void);
void test_uart(void);
