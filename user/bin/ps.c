/*
 * ps: the tasks, as the kernel lists them in /proc/tasks.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"

int main(int argc, char **argv)
{
    (void)argv;
    if (argc != 1)
        usage("");
    return !copy_file("/proc/tasks");
}
