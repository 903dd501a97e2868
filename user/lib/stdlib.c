/*
 * Numbers, sorting, random numbers, the environment.
 */
#include "user/lib/stdlib.h"
#include "user/lib/ctype.h"
#include "user/lib/errno.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

void abort(void)
{
    __builtin_trap();
}

int abs(int n)
{
    return n < 0 ? -n : n;
}

/* ---- numbers ------------------------------------------------------------ */

/* The value of a digit or letter; 36 if it is neither. */
static unsigned digit_of(char c)
{
    if (isdigit(c))
        return (unsigned)(c - '0');
    if (isalpha(c))
        return (unsigned)(tolower(c) - 'a') + 10;
    return 36;
}

/* Determines base 0, and skips the 0x allowed in base 16. */
static const char *skip_prefix(const char *s, unsigned *base)
{
    bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X') &&
               digit_of(s[2]) < 16 && (*base == 0 || *base == 16);

    if (*base == 0)
        *base = hex ? 16 : s[0] == '0' ? 8 : 10;
    return hex ? s + 2 : s;
}

/* Skips blanks and a sign. */
static const char *skip_sign(const char *s, bool *negative)
{
    while (isspace(*s))
        s++;
    *negative = *s == '-';
    return *s == '-' || *s == '+' ? s + 1 : s;
}

/* Parses the number at `s`. The limit for its digits is `most`, or `least`
 * after a minus sign; if they exceed it, returns the limit, with ERANGE. *end
 * is the end of the number, or `s` if there is no number. */
static unsigned long parse(const char *s, char **end, unsigned base,
                           unsigned long most, unsigned long least)
{
    unsigned long n = 0;
    bool over = false;
    bool negative;
    const char *first = skip_prefix(skip_sign(s, &negative), &base);
    const char *at = first;
    unsigned long limit = negative ? least : most;

    for (unsigned digit; (digit = digit_of(*at)) < base; at++) {
        over |= digit > limit || n > (limit - digit) / base;
        n = n * base + digit;
    }
    if (end != NULL)
        *end = (char *)(at == first ? s : at);
    if (!over)
        return negative ? -n : n;
    errno = ERANGE;
    return limit;
}

long strtol(const char *s, char **end, int base)
{
    return (long)parse(s, end, (unsigned)base, 0x7fffffffUL, 0x80000000UL);
}

unsigned long strtoul(const char *s, char **end, int base)
{
    return parse(s, end, (unsigned)base, 0xffffffffUL, 0xffffffffUL);
}

int atoi(const char *s)
{
    return (int)strtol(s, NULL, 10);
}

/* ---- arrays ------------------------------------------------------------- */

static void swap(char *a, char *b, size_t size)
{
    while (size-- > 0) {
        char c = a[size];

        a[size] = b[size];
        b[size] = c;
    }
}

/* Sifts element `i` down until no child among the first `n` is greater. */
static void sink(char *base, size_t i, size_t n, size_t size,
                 compare_t *compare)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n &&
            compare(base + child * size, base + (child + 1) * size) < 0)
            child++;
        if (compare(base + i * size, base + child * size) >= 0)
            return;
        swap(base + i * size, base + child * size, size);
    }
}

void qsort(void *base, size_t n, size_t size, compare_t *compare)
{
    for (size_t i = n / 2; i-- > 0;)
        sink(base, i, n, size, compare);
    while (n > 1) {
        swap(base, (char *)base + --n * size, size);
        sink(base, 0, n, size, compare);
    }
}

void *bsearch(const void *key, const void *base, size_t n, size_t size,
              compare_t *compare)
{
    const char *low = base;

    while (n > 0) {
        const char *middle = low + n / 2 * size;
        int order = compare(key, middle);

        if (order == 0)
            return (void *)middle;
        if (order > 0) {
            low = middle + size;
            n--;
        }
        n /= 2;
    }
    return NULL;
}

/* ---- random numbers ----------------------------------------------------- */

static unsigned random_state = 2463534242u;

/* xorshift never leaves the state 0, so it is not allowed. */
void srand(unsigned seed)
{
    random_state = seed != 0 ? seed : 1;
}

int rand(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return (int)(random_state & RAND_MAX);
}

/* ---- environment -------------------------------------------------------- */

char *getenv(const char *name)
{
    size_t n = strlen(name);

    for (char **e = environ; e != NULL && *e != NULL; e++)
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
            return *e + n + 1;
    return NULL;
}
