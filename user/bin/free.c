/*
 * free: use of memory, from /proc/meminfo.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"

int main(int argc, char **argv)
{
    (void)argv;
    if (argc != 1)
        usage("");
    return !copy_file("/proc/meminfo");
}
