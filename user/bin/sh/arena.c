/*
 * The memory of one line: allocated from the front of one array, freed all at
 * once. exec accepts far less (ARG_MAX), so a line that does not fit could not
 * be run either; and a shell that uses little memory forks quickly.
 */
#include "user/bin/sh/sh.h"
#include "user/lib/string.h"

#define ARENA_SIZE (96 * 1024)

static char arena[ARENA_SIZE] __attribute__((aligned(8)));
static size_t used;  /* a multiple of 8 */
static size_t built; /* bytes after it added by arena_put */
static bool full;    /* some of these were lost */

void *arena_alloc(size_t size)
{
    void *p = arena + used;

    size = ROUND_UP(size, 8u);
    if (size > ARENA_SIZE - used) {
        errno = E2BIG;
        return NULL;
    }
    used += size;
    return p;
}

char *arena_string(const char *s, size_t n)
{
    char *copy = arena_alloc(n + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, s, n);
    copy[n] = 0;
    return copy;
}

size_t arena_mark(void)
{
    return used;
}

void arena_release(size_t mark)
{
    used = mark;
}

bool arena_put(char c)
{
    if (built == ARENA_SIZE - used) {
        full = true;
        return false;
    }
    arena[used + built++] = c;
    return true;
}

char *arena_finish(void)
{
    char *text = arena + used;
    bool lost = !arena_put(0) || full;

    if (lost)
        errno = E2BIG;
    else
        used += ROUND_UP(built, 8u);
    built = 0;
    full = false;
    return lost ? NULL : text;
}
