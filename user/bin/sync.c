/*
 * sync [FILE…]: returns when all writes, or those to these files, are on disk.
 */
#include "user/lib/err.h"
#include "user/lib/unistd.h"

static bool sync_file(const char *path)
{
    int handle = open(path, O_RDONLY);
    int result = handle < 0 ? -1 : fsync(handle);

    if (result < 0)
        warn("%s", path);
    if (handle >= 0)
        close(handle);
    return result == 0;
}

int main(int argc, char **argv)
{
    int status = 0;

    if (getopt(argc, argv, "") != -1)
        usage("[FILE...]");
    if (optind == argc && sync() < 0)
        err(1, "sync");
    for (; optind < argc; optind++)
        if (!sync_file(argv[optind]))
            status = 1;
    return status;
}
