/*
 * devtest: tests of the drivers rtc and uart, as their clients see them.
 *
 *     run -s devtest rtc      with the clock's ports, to set it
 *     run -p devtest end rtc  kills rtc, which takes a privilege
 *     run -p devtest uart     the line must be there; kills uart
 *
 *     check.c  checks, children, requests
 *     rtc.c    the clock: formats, starts of seconds, waiting clients
 *     uart.c   the line in loop mode: interrupts, order, lost bytes
 */
#pragma once

#include "user/lib/ipc.h"

/* Prints "good: WHAT" or "BAD: WHAT"; both count. */
#define check(good, what) check_at(good, what, __FILE__, __LINE__)
void check_at(bool good, const char *what, const char *file, int line);

/* Forks a child that runs `fn` and exits with its result, or its errno if that
 * is negative. begin() also waits until the child blocks, at most 50 ms. */
pid_t child(int (*fn)(void));
pid_t begin(int (*fn)(void));

/* Waits for a child and returns its exit code; negative: its signal, or it is
 * not a child. */
int ended(pid_t pid);

/* Ends the task of that name (the driver) and waits until it has ended. */
void end_task(const char *name);

/* Sends a request that the library would not send; returns the result in the
 * reply, or minus errno of the call. */
int request(int port, uint32_t tag, uint32_t word, struct ipc_buffer *b);

/* Prints how many checks failed; the exit status of the program. */
int check_report(const char *program);

void test_rtc(void);
void test_rtc_end(void);
void test_uart(void);
