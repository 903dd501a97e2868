/*
 * umount PATH…: unmounts file systems. Their servers first write everything to
 * disk.
 */
#include "user/lib/err.h"
#include "user/lib/unistd.h"

int main(int argc, char **argv)
{
    int status = 0;

    if (getopt(argc, argv, "") != -1 || optind == argc)
        usage("PATH...");
    for (; optind < argc; optind++)
        if (umount(argv[optind]) < 0) {
            warn("%s", argv[optind]);
            status = 1;
        }
    return status;
}
