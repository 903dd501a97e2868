/*
 * Included in front of every file that the address sanitizer looks after: the
 * functions of kernel/lib/string.h by other names, which check what they are
 * asked to touch. (kernel/lib/string.c itself reads words where strings have
 * bytes; and the allocator uses it where only the allocator may.)
 */
#pragma once

#include "kernel/lib/string.h"

void *kasan_memcpy(void *dst, const void *src, size_t n);
void *kasan_memmove(void *dst, const void *src, size_t n);
void *kasan_memset(void *dst, int c, size_t n);
int kasan_memcmp(const void *a, const void *b, size_t n);
size_t kasan_strlen(const char *s);
size_t kasan_strnlen(const char *s, size_t max);
int kasan_strcmp(const char *a, const char *b);
int kasan_strncmp(const char *a, const char *b, size_t n);
char *kasan_strchr(const char *s, int c);
char *kasan_strstr(const char *s, const char *what);
size_t kasan_strlcpy(char *dst, const char *src, size_t size);

#define memcpy(d, s, n)  kasan_memcpy(d, s, n)
#define memmove(d, s, n) kasan_memmove(d, s, n)
#define memset(d, c, n)  kasan_memset(d, c, n)
#define memcmp(a, b, n)  kasan_memcmp(a, b, n)
#define strlen(s)        kasan_strlen(s)
#define strnlen(s, n)    kasan_strnlen(s, n)
#define strcmp(a, b)     kasan_strcmp(a, b)
#define strncmp(a, b, n) kasan_strncmp(a, b, n)
#define strchr(s, c)     kasan_strchr(s, c)
#define strstr(s, w)     kasan_strstr(s, w)
#define strlcpy(d, s, n) kasan_strlcpy(d, s, n)
