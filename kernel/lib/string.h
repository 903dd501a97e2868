/*
 * The part of <string.h> that the kernel uses, with the standard meaning.
 * GCC emits calls to the first four by itself, so they must exist.
 */
#pragma once

#include "kernel/lib/types.h"

void *memcpy(void *dst, const void *src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);

size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
char *strstr(const char *s, const char *what);

/* Copies at most size - 1 characters and always ends dst with a NUL.
 * Returns strlen(src): a result >= size means that it was truncated. */
size_t strlcpy(char *dst, const char *src, size_t size);

/* Replaces each character that is not printable ASCII by '?'. Names that
 * programs choose are printed so. */
void make_printable(char *s);

/* The room for `n` bytes of a string, escaped. */
#define ESCAPED_SIZE(n) (4 * (n))

/* Copies a string as one word of printable ASCII, for a column of a table: any
 * other character, a blank and a backslash become a backslash and the three
 * octal digits of the character. unescape reverses it, in place. */
void escape(char *to, const char *s);
void unescape(char *s);

/* Reads an unsigned number at *s, decimal or hexadecimal after 0x, and moves *s
 * past it. False: there is none, or it does not fit in 32 bits. */
bool scan_u32(const char **s, uint32_t *value);

/* The same if all of `s` is the number; else *value is unchanged. */
bool parse_u32(const char *s, uint32_t *value);

/* The same for a number of bytes as output prints them: 4096, 0x1000, 4k, 4K,
 * 4KiB; M and MiB likewise. */
bool parse_size(const char *s, uint32_t *bytes);

/* Whether all of `name` matches: * is any characters, ? is one, [a-z] one of a
 * set and [!a-z] one not in the set; a backslash makes the next character
 * ordinary. */
bool glob_match(const char *pattern, const char *name);
