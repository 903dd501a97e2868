/*
 * Buffered input and output: the supported part of the standard's.
 *
 * The three standard streams are static, so a program that opens no other does
 * not use malloc. stdout is flushed at the end of each line if it is the
 * console, else when its buffer is full; stderr at once.
 *
 * A program whose stdout has no reader any more (EPIPE) exits silently with
 * status 1, as `find / | head` needs. write() does not do that. If stdout could
 * not be written for another reason, exit() prints it, and the status is not 0.
 */
#pragma once

#include "kernel/lib/printf.h"
#include "user/lib/unistd.h"

#define EOF    (-1)
#define BUFSIZ 1024

typedef struct file FILE;

extern FILE *const stdin;
extern FILE *const stdout;
extern FILE *const stderr;

/* Modes: r w a r+ w+ a+. NULL and errno on failure. */
FILE *fopen(const char *path, const char *mode);
FILE *fdopen(int handle, const char *mode);
int fclose(FILE *f); /* flushes; 0 or EOF; frees the FILE in any case */
int fflush(FILE *f); /* NULL: all of them */
int fileno(const FILE *f);
int feof(const FILE *f);
int ferror(const FILE *f); /* errno of the first failure, 0: none */
void clearerr(FILE *f);

size_t fread(void *buf, size_t size, size_t n, FILE *f);
size_t fwrite(const void *buf, size_t size, size_t n, FILE *f);

int fgetc(FILE *f);
int ungetc(int c, FILE *f); /* one is always possible */
char *fgets(char *buf, int size, FILE *f);
int fputc(int c, FILE *f);
int fputs(const char *s, FILE *f);
int puts(const char *s);

/* As fputs(name, stdout), but on a terminal each character that is not
 * printable ASCII appears as '?': a file's name may hold control characters. */
void putname(const char *name);

int getchar(void);
int putchar(int c);

/* Reads a line of any length, with its newline, into *line, memory of malloc
 * that grows (NULL and 0 at first; free it at the end). Returns the length, or
 * -1 at the end of the file, or if ferror(f): without memory too. */
ssize_t getline(char **line, size_t *size, FILE *f);

/* Conversions as in kernel/lib/printf.h. One call prints at most 64 KiB; more
 * fails with E2BIG. */
int printf(const char *fmt, ...) PRINTF_LIKE(1, 2);
int fprintf(FILE *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
int vprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);
int vfprintf(FILE *f, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

/* Prints "what: the text of errno" on stderr. */
void perror(const char *what);
