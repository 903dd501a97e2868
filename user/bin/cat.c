/*
 * cat [FILE…]: prints files, or its input.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/unistd.h"

int main(int argc, char **argv)
{
    bool good = true;

    if (getopt(argc, argv, "") != -1)
        usage("[FILE...]");
    if (optind == argc)
        return !copy_file("-");
    for (; optind < argc; optind++)
        good &= copy_file(argv[optind]);
    return !good;
}
