/*
 * ln FILE NAME: creates another name for a file.
 */
#include "user/lib/err.h"
#include "user/lib/unistd.h"

int main(int argc, char **argv)
{
    if (getopt(argc, argv, "") != -1 || argc - optind != 2)
        usage("FILE NAME");
    if (link(argv[optind], argv[optind + 1]) < 0)
        err(1, "%s to %s", argv[optind], argv[optind + 1]);
    return 0;
}
