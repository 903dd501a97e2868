/*
 * sleep SECONDS: waits. A decimal point is allowed.
 */
#include "user/lib/ctype.h"
#include "user/lib/err.h"
#include "user/lib/stdlib.h"
#include "user/lib/unistd.h"

/* Milliseconds of a text like 1.25, or -1. */
static int32_t read_time(const char *s)
{
    char *end;
    unsigned long ms;
    unsigned scale = 100;

    if (!isdigit(*s) && *s != '.')
        return -1;
    ms = strtoul(s, &end, 10);
    if (ms > INT32_MAX / 1000 - 1)
        return -1;
    ms *= 1000;
    if (*end == '.')
        for (end++; isdigit(*end); end++, scale /= 10)
            ms += (unsigned)(*end - '0') * scale;
    return *end == 0 ? (int32_t)ms : -1;
}

int main(int argc, char **argv)
{
    int32_t ms = argc == 2 ? read_time(argv[1]) : -1;

    if (ms < 0)
        usage("SECONDS");
    if (sleep_ms((uint32_t)ms) < 0)
        err(1, "%s", argv[1]);
    return 0;
}
