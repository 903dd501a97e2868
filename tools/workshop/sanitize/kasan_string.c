/*
 * Functions that touch ranges of memory: those of kernel/lib/string.h for the
 * files that begin with tools/workshop/sanitize/string.h, and the copies from
 * and to programs, whose kernel side is checked (kernel/x86/copy.h, by --wrap).
 *
 * Each checks the bytes that it must read or write, then calls the real one.
 * Of two strings that differ, these are the bytes up to the difference.
 */
#include "kernel/lib/string.h"
#include "tools/workshop/sanitize/kasan.h"
#include "tools/workshop/sanitize/string.h"

#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef strlen
#undef strnlen
#undef strcmp
#undef strncmp
#undef strchr
#undef strstr
#undef strlcpy

int __real_copy_bytes(void *dst, const void *src, size_t n);
int __real_copy_zero(void *dst, size_t n);
int __real_copy_string(char *dst, const char *src, size_t max);

#define READS(p, n)  kasan_check((uintptr_t)(p), n, false, CALLER)
#define WRITES(p, n) kasan_check((uintptr_t)(p), n, true, CALLER)

void *kasan_memcpy(void *dst, const void *src, size_t n)
{
    READS(src, n);
    WRITES(dst, n);
    return memcpy(dst, src, n);
}

void *kasan_memmove(void *dst, const void *src, size_t n)
{
    READS(src, n);
    WRITES(dst, n);
    return memmove(dst, src, n);
}

void *kasan_memset(void *dst, int c, size_t n)
{
    WRITES(dst, n);
    return memset(dst, c, n);
}

int kasan_memcmp(const void *a, const void *b, size_t n)
{
    READS(a, n);
    READS(b, n);
    return memcmp(a, b, n);
}

size_t kasan_strlen(const char *s)
{
    size_t n = strlen(s);

    READS(s, n + 1);
    return n;
}

size_t kasan_strnlen(const char *s, size_t max)
{
    size_t n = strnlen(s, max);

    READS(s, MIN(n + 1, max));
    return n;
}

/* How many bytes tell the first `max` of two strings apart, or that they are
 * the same. */
static size_t compared(const char *a, const char *b, size_t max)
{
    size_t n = 0;

    while (n < max && a[n] == b[n] && a[n] != 0)
        n++;
    return MIN(n + 1, max);
}

int kasan_strcmp(const char *a, const char *b)
{
    size_t n = compared(a, b, SIZE_MAX);

    READS(a, n);
    READS(b, n);
    return strcmp(a, b);
}

int kasan_strncmp(const char *a, const char *b, size_t max)
{
    size_t n = compared(a, b, max);

    READS(a, n);
    READS(b, n);
    return strncmp(a, b, max);
}

char *kasan_strchr(const char *s, int c)
{
    char *found = strchr(s, c);

    READS(s, found != NULL ? (size_t)(found - s) + 1 : strlen(s) + 1);
    return found;
}

char *kasan_strstr(const char *s, const char *what)
{
    char *found = strstr(s, what);
    size_t n = strlen(what);

    READS(what, n + 1);
    READS(s, found != NULL ? (size_t)(found - s) + n : strlen(s) + 1);
    return found;
}

size_t kasan_strlcpy(char *dst, const char *src, size_t size)
{
    size_t n = strlen(src);

    READS(src, n + 1);
    WRITES(dst, MIN(n + 1, size));
    return strlcpy(dst, src, size);
}

/* ---- programs ----------------------------------------------------------- */

int __wrap_copy_bytes(void *dst, const void *src, size_t n)
{
    READS(src, n);
    WRITES(dst, n);
    return __real_copy_bytes(dst, src, n);
}

int __wrap_copy_zero(void *dst, size_t n)
{
    WRITES(dst, n);
    return __real_copy_zero(dst, n);
}

/* The string must be read first: its length says how much is written. */
int __wrap_copy_string(char *dst, const char *src, size_t max)
{
    int n = __real_copy_string(dst, src, max);

    if (n >= 0)
        WRITES(dst, MIN((size_t)n + 1, max));
    return n;
}
