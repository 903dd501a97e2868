/*
 * What the tests want of the machine that they run on. Its headers and
 * Slate's do not mix: host.c has the first, everybody else the second.
 */
#pragma once

#include "kernel/lib/types.h"

/* A whole file, out of malloc; ends the program if it cannot be read. */
uint8_t *host_load(const char *path, size_t *size);
void host_save(const char *path, const void *data, size_t size);

void host_print(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* On standard error; ends the program with status 1. */
void host_fail(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn));

/* Ends the program, naming seed and number, if it is not called again within so
 * many seconds. */
void host_watch(uint32_t seconds, uint32_t seed, uint32_t number);

/* The next line of standard input without newline; false at the end. */
bool host_line(char *line, size_t size);

/* Runs `e2fsck OPTIONS FILE`: its exit status; what it said in `out`. */
int host_e2fsck(const char *options, const char *path, char *out, size_t size);
