/*
 * mm/platform.h for programs: clock, printing, panic.
 */
#include "kernel/lib/printf.h"
#include "mm/platform.h"
#include "user/lib/err.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

uint64_t mm_clock_ms(void)
{
    return uptime_ms();
}

/* A program is one task: while it waits, nothing can be freed. */
bool mm_wait_for_memory(void)
{
    return false;
}

bool mm_wait_for_task(void)
{
    return false;
}

void mm_wake_waiters(void)
{
}

void mm_print(const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    write_all(STDERR_FILENO, text, strlen(text));
}

void mm_panic(const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    warnx("%s", text);
    abort();
}
