/*
 * String functions that programs use and the kernel does not. Plain loops: the
 * fast ones are in kernel/lib/string.c, which programs link too.
 */
#include "user/lib/string.h"
#include "user/lib/ctype.h"
#include "user/lib/errno.h"
#include "user/lib/stdlib.h"

void *memchr(const void *s, int c, size_t n)
{
    const uint8_t *at = s;

    for (; n > 0; n--, at++)
        if (*at == (uint8_t)c)
            return (void *)at;
    return NULL;
}

char *strrchr(const char *s, int c)
{
    const char *found = NULL;

    for (;; s++) {
        if (*s == (char)c)
            found = s;
        if (*s == 0)
            return (char *)found;
    }
}

static bool in_set(char c, const char *set)
{
    for (; *set != 0; set++)
        if (*set == c)
            return true;
    return false;
}

size_t strspn(const char *s, const char *set)
{
    size_t n = 0;

    while (s[n] != 0 && in_set(s[n], set))
        n++;
    return n;
}

size_t strcspn(const char *s, const char *set)
{
    size_t n = 0;

    while (s[n] != 0 && !in_set(s[n], set))
        n++;
    return n;
}

char *strpbrk(const char *s, const char *set)
{
    s += strcspn(s, set);
    return *s != 0 ? (char *)s : NULL;
}

char *strcpy(char *dst, const char *src)
{
    return memcpy(dst, src, strlen(src) + 1);
}

size_t strlcat(char *dst, const char *src, size_t size)
{
    size_t n = strnlen(dst, size);

    return n + strlcpy(dst + n, src, size - n);
}

char *strtok_r(char *s, const char *separators, char **save)
{
    char *end;

    if (s == NULL)
        s = *save;
    s += strspn(s, separators);
    *save = s;
    if (*s == 0)
        return NULL;
    end = s + strcspn(s, separators);
    *save = end;
    if (*end != 0) {
        *end = 0;
        *save = end + 1;
    }
    return s;
}

int strcasecmp(const char *a, const char *b)
{
    while (*a != 0 && tolower((uint8_t)*a) == tolower((uint8_t)*b)) {
        a++;
        b++;
    }
    return tolower((uint8_t)*a) - tolower((uint8_t)*b);
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

const char *path_last(const char *path, char buf[PATH_MAX])
{
    const char *name = path_name(path);
    size_t n = (size_t)(name - path);

    if (*name != 0)
        return name;
    while (n > 0 && path[n - 1] == '/')
        n--;
    strlcpy(buf, path, MIN(n + 1, PATH_MAX));
    return path_name(buf);
}

bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

bool path_join(char *out, size_t size, const char *dir, const char *name)
{
    size_t n = strlen(dir);
    bool slash = n > 0 && dir[n - 1] != '/';

    if (n + slash + strlen(name) >= size) {
        errno = ENAMETOOLONG;
        return false;
    }
    memmove(out, dir, n);
    if (slash)
        out[n++] = '/';
    strcpy(out + n, name);
    return true;
}
