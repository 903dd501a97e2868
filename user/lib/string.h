/*
 * Strings: the kernel's functions (kernel/lib/string.h: memcpy memmove memset
 * memcmp strlen strnlen strcmp strncmp strchr strstr strlcpy) and others that
 * programs use, all with the standard's meaning.
 */
#pragma once

#include "kernel/abi/types.h"
#include "kernel/lib/string.h"

void *memchr(const void *s, int c, size_t n);
char *strrchr(const char *s, int c);
char *strpbrk(const char *s, const char *set);
size_t strspn(const char *s, const char *set);
size_t strcspn(const char *s, const char *set);
char *strcpy(char *dst, const char *src);
size_t strlcat(char *dst, const char *src, size_t size);
char *strtok_r(char *s, const char *separators, char **save);
int strcasecmp(const char *a, const char *b);

/* A copy allocated with malloc, or NULL. */
char *strdup(const char *s);

/* The text of an error number. */
const char *strerror(int error);

/* The part of a path after its last '/'. */
const char *path_name(const char *path);

/* The last name in a path, copied to `buf` if slashes follow it; "" if there is
 * no name, as in "/". */
const char *path_last(const char *path, char buf[PATH_MAX]);

/* Whether it is "." or "..". */
bool is_dots(const char *name);

/* "dir/name" in `out`; false if it does not fit (ENAMETOOLONG). `out` may be
 * `dir`. */
bool path_join(char *out, size_t size, const char *dir, const char *name);
