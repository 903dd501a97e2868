/*
 * strdup, in a file of its own because it needs malloc.
 */
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

char *strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = malloc(n);

    return copy == NULL ? NULL : memcpy(copy, s, n);
}
