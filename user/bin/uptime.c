/*
 * uptime: time since boot.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"

int main(int argc, char **argv)
{
    uint32_t ms = uptime_ms();
    uint32_t s = ms / 1000;

    (void)argv;
    if (argc != 1)
        usage("");
    printf("up %u day%s %02u:%02u:%02u.%03u\n", s / 86400,
           s / 86400 == 1 ? "" : "s", s / 3600 % 24, s / 60 % 60, s % 60,
           ms % 1000);
    return 0;
}
