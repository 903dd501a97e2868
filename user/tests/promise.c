/*
 * promise: is promised memory, waits, and uses it.
 *
 *     promise [-u] KIB [SECONDS]
 *
 * Asks for the memory without touching it and prints /proc/meminfo. After the
 * seconds (default 0) it writes to every page with -u. Ends with 1 if the
 * memory is refused.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

int main(int argc, char **argv)
{
    bool use = argc > 1 && strcmp(argv[1], "-u") == 0;
    uint32_t kib, seconds;
    volatile char *p;

    argc -= use;
    argv += use;
    if (argc < 2 || argc > 3)
        usage("[-u] KIB [SECONDS]");
    kib = number_between(argv[1], 1, UINT32_MAX / 1024);
    seconds = argc == 3 ? number_between(argv[2], 0, 1000000) : 0;
    p = mmap(kib * 1024, PROT_READ | PROT_WRITE);
    if (p == MAP_FAILED)
        err(1, "%u KiB", (unsigned)kib);
    if (!copy_file("/proc/meminfo"))
        return 1;
    sleep_ms(seconds * 1000);
    for (size_t at = 0; use && at < kib * 1024; at += PAGE_SIZE)
        p[at] = 1;
    return 0;
}
