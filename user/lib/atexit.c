/*
 * Functions that exit() calls. In a file of its own, so that programs without
 * any do not link it.
 */
#include "user/lib/errno.h"
#include "user/lib/stdlib.h"

#define ATEXIT_MAX 8

static void (*functions[ATEXIT_MAX])(void);
static unsigned count;

void atexit_run(void);

int atexit(void (*f)(void))
{
    if (count == ATEXIT_MAX) {
        errno = ENOMEM;
        return -1;
    }
    functions[count++] = f;
    return 0;
}

/* If one calls exit(), the remaining ones still run. */
void atexit_run(void)
{
    while (count > 0)
        functions[--count]();
}
