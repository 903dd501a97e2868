/*
 * Memory and strings. The loops move words, not bytes, as the processor reads
 * and writes words at any address (Intel manual, volume 1, section 4.1.1).
 *
 * GCC may recognize such loops and replace them by calls of memcpy or memset,
 * which would then call themselves. The pragma prevents it.
 */
#include "kernel/lib/string.h"

#pragma GCC optimize("no-tree-loop-distribute-patterns")

typedef uint32_t word_t __attribute__((may_alias, aligned(1)));
typedef uint16_t half_t __attribute__((may_alias, aligned(1)));

#define WORD  sizeof(word_t)
#define BLOCK (4 * WORD) /* bytes moved by one turn of the main loops */

#define BYTE_ONES 0x01010101u

/* Each word is read before it or a later one is written, so this is also right
 * for overlapping memory if dst is below src. */
static inline void copy_up(char *dst, const char *src, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, dst += BLOCK, src += BLOCK) {
        ((word_t *)dst)[0] = ((const word_t *)src)[0];
        ((word_t *)dst)[1] = ((const word_t *)src)[1];
        ((word_t *)dst)[2] = ((const word_t *)src)[2];
        ((word_t *)dst)[3] = ((const word_t *)src)[3];
    }
    for (; n >= WORD; n -= WORD, dst += WORD, src += WORD)
        *(word_t *)dst = *(const word_t *)src;
    if (n & 2) {
        *(half_t *)dst = *(const half_t *)src;
        dst += 2;
        src += 2;
    }
    if (n & 1)
        *dst = *src;
}

/* From the end down, for dst above src. */
static void copy_down(char *dst, const char *src, size_t n)
{
    for (; n >= WORD; n -= WORD)
        *(word_t *)(dst + n - WORD) = *(const word_t *)(src + n - WORD);
    while (n-- > 0)
        dst[n] = src[n];
}

void *memcpy(void *dst, const void *src, size_t n)
{
    copy_up(dst, src, n);
    return dst;
}

void *memmove(void *dst, const void *src, size_t n)
{
    /* True also for dst below src: the difference wraps round. */
    if ((uintptr_t)dst - (uintptr_t)src >= n)
        copy_up(dst, src, n);
    else
        copy_down(dst, src, n);
    return dst;
}

void *memset(void *dst, int c, size_t n)
{
    uint32_t fill = (uint8_t)c * BYTE_ONES;
    char *at = dst;

    for (; n >= BLOCK; n -= BLOCK, at += BLOCK) {
        ((word_t *)at)[0] = fill;
        ((word_t *)at)[1] = fill;
        ((word_t *)at)[2] = fill;
        ((word_t *)at)[3] = fill;
    }
    for (; n >= WORD; n -= WORD, at += WORD)
        *(word_t *)at = fill;
    while (n-- > 0)
        *at++ = (char)c;
    return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const uint8_t *p = a;
    const uint8_t *q = b;

    for (; n >= WORD; n -= WORD, p += WORD, q += WORD)
        if (*(const word_t *)p != *(const word_t *)q)
            break;
    for (; n > 0; n--, p++, q++)
        if (*p != *q)
            return *p < *q ? -1 : 1;
    return 0;
}

size_t strlen(const char *s)
{
    return strnlen(s, SIZE_MAX);
}

size_t strnlen(const char *s, size_t max)
{
    size_t n = 0;

    while (n < max && s[n] != 0)
        n++;
    return n;
}

int strcmp(const char *a, const char *b)
{
    while (*a != 0 && *a == *b) {
        a++;
        b++;
    }
    return (uint8_t)*a - (uint8_t)*b;
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (; n > 0; n--, a++, b++)
        if (*a != *b || *a == 0)
            return (uint8_t)*a - (uint8_t)*b;
    return 0;
}

char *strchr(const char *s, int c)
{
    for (; *s != (char)c; s++)
        if (*s == 0)
            return NULL;
    return (char *)s;
}

char *strstr(const char *s, const char *what)
{
    size_t n = strlen(what);

    for (; strncmp(s, what, n) != 0; s++)
        if (*s == 0)
            return NULL;
    return (char *)s;
}

size_t strlcpy(char *dst, const char *src, size_t size)
{
    size_t n = strlen(src);

    if (size > 0) {
        size_t copied = MIN(n, size - 1);

        memcpy(dst, src, copied);
        dst[copied] = 0;
    }
    return n;
}

void make_printable(char *s)
{
    for (; *s; s++)
        if (*s < ' ' || *s > '~')
            *s = '?';
}

void escape(char *to, const char *s)
{
    for (; *s; s++) {
        uint8_t c = (uint8_t)*s;

        if (c > ' ' && c <= '~' && c != '\\') {
            *to++ = *s;
            continue;
        }
        *to++ = '\\';
        *to++ = (char)('0' + (c >> 6));
        *to++ = (char)('0' + (c >> 3 & 7));
        *to++ = (char)('0' + (c & 7));
    }
    *to = 0;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

void unescape(char *s)
{
    char *to = s;

    while (*s)
        if (*s == '\\' && is_octal(s[1]) && is_octal(s[2]) && is_octal(s[3])) {
            *to++ =
                (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 4;
        } else {
            *to++ = *s++;
        }
    *to = 0;
}

/* The value of a digit in base 10 or 16; 16 or more: not a digit. */
static uint32_t digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0');
    c |= 'a' ^ 'A';
    return c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10 : UINT32_MAX;
}

bool scan_u32(const char **s, uint32_t *value)
{
    uint32_t base = (*s)[0] == '0' && ((*s)[1] | 32) == 'x' ? 16 : 10;
    uint64_t result = 0;
    const char *first = base == 16 ? *s + 2 : *s;

    for (*s = first; digit_value(**s) < base && result <= UINT32_MAX; ++*s)
        result = result * base + digit_value(**s);
    *value = (uint32_t)result;
    return *s > first && result <= UINT32_MAX;
}

bool parse_u32(const char *s, uint32_t *value)
{
    uint32_t result;

    if (!scan_u32(&s, &result) || *s != 0)
        return false;
    *value = result;
    return true;
}

bool parse_size(const char *s, uint32_t *bytes)
{
    static const struct {
        const char *name;
        uint8_t shift;
    } units[] = {{"", 0},   {"k", 10}, {"K", 10},  {"KiB", 10},
                 {"m", 20}, {"M", 20}, {"MiB", 20}};
    uint32_t value;
    size_t i = 0;

    if (!scan_u32(&s, &value))
        return false;
    while (i < ARRAY_SIZE(units) && strcmp(s, units[i].name) != 0)
        i++;
    if (i == ARRAY_SIZE(units) || value > UINT32_MAX >> units[i].shift)
        return false;
    *bytes = value << units[i].shift;
    return true;
}

/* ---- patterns ----------------------------------------------------------- */

/* Whether `c` is in the set that starts with the '[' before `p`. *end gets its
 * end, or NULL if there is no ']': then it is not a set. */
static bool in_set(const char *p, char c, const char **end)
{
    bool inverted = p[1] == '!';
    const char *first = p + 1 + inverted;
    bool found = false;

    *end = NULL;
    for (p = first; *p != ']' || p == first; p++) {
        if (*p == '\\')
            p++;
        if (*p == 0)
            return false;
        if (p[1] == '-' && p[2] != ']' && p[2] != 0) {
            found |= p[0] <= c && c <= p[2];
            p += 2;
        } else {
            found |= *p == c;
        }
    }
    *end = p + 1;
    return found != inverted;
}

/* The pattern after its first element if that matches `c`, else NULL. */
static const char *glob_one(const char *p, char c)
{
    const char *end;

    if (*p == '[') {
        bool found = in_set(p, c, &end);

        if (end != NULL)
            return found ? end : NULL;
    }
    if (*p == '\\' && p[1] != 0)
        return p[1] == c ? p + 2 : NULL;
    return *p == '?' || *p == c ? p + 1 : NULL;
}

bool glob_match(const char *pattern, const char *name)
{
    const char *star = NULL; /* after the last star seen */
    const char *resume = NULL;

    while (*name != 0 || *pattern == '*') {
        const char *next;

        if (*pattern == '*') {
            star = ++pattern;
            resume = name;
            continue;
        }
        next = *pattern == 0 ? NULL : glob_one(pattern, *name);
        if (next == NULL && star == NULL)
            return false;
        pattern = next != NULL ? next : star;
        name = next != NULL ? name + 1 : ++resume;
    }
    return *pattern == 0;
}
