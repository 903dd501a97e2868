/*
 * Error messages of a program, on stderr, after its name:
 *
 *     warn("%s", path)     cat: /nowhere: no such file or directory
 *     warnx("no input")    cat: no input
 *     tellx("…")           the same, never waiting
 *     err, errx            the same, then exit(status)
 *     usage("[-n] FILE")   usage: cat [-n] FILE           then exit(2)
 *
 * Names and behaviour are BSD's, but a character that is not printable ASCII
 * appears as '?'.
 */
#pragma once

#include "user/lib/errno.h"
#include "kernel/lib/types.h"

extern const char *program_name; /* last component of argv[0] */

void warn(const char *fmt, ...) PRINTF_LIKE(1, 2);
void warnx(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* As warnx, but does not wait while another task owns the console: a child
 * prints it. For servers, whose clients must not wait for a user. */
void tellx(const char *fmt, ...) PRINTF_LIKE(1, 2);
void err(int status, const char *fmt, ...) PRINTF_LIKE(2, 3)
    __attribute__((noreturn));
void errx(int status, const char *fmt, ...) PRINTF_LIKE(2, 3)
    __attribute__((noreturn));
void usage(const char *arguments) __attribute__((noreturn));
