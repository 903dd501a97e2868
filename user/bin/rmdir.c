/*
 * rmdir DIRECTORY…: removes empty directories.
 */
#include "user/lib/err.h"
#include "user/lib/unistd.h"

int main(int argc, char **argv)
{
    int status = 0;

    if (getopt(argc, argv, "") != -1 || optind == argc)
        usage("DIRECTORY...");
    for (; optind < argc; optind++)
        if (rmdir(argv[optind]) < 0) {
            warn("%s", argv[optind]);
            status = 1;
        }
    return status;
}
