/*
 * Functions of the host for the tests. The host's headers and Slate's cannot be
 * mixed: host.c includes the former, all other files the latter.
 */
#pragma once

#include "kernel/lib/types.h"

/* Reads a whole file into memory of malloc; ends the program if that fails. */
uint8_t *host_load(const char *path, size_t *size);
void host_save(const char *path, const void *data, size_t size);

void host_print(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Prints to standard error and ends the program with status 1. */
void host_fail(const char *fmt, ...) PRINTF_LIKE(1, 2)
    __attribute__((noreturn));

/* The next line of standard input without newline; false at the end. */
bool host_line(char *line, size_t size);

/* Runs `e2fsck OPTIONS FILE`: returns its exit status; `out` gets its
 * output. */
int host_e2fsck(const char *options, const char *path, char *out, size_t size);
