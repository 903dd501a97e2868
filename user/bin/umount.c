/*
 * umount PATH…: unmounts file systems. Their servers first write everything to
 * disk.
 */
#include "user/lib/err.h"
#include "user/lib/unistd.h"

/* Warns about the last error. */
static void failed(const char *path)
{
    if (errno == EINVAL)
        warnx("%s: no server's file system is mounted there", path);
    else if (errno == EPERM)
        warnx("%s: another session mounted it; at slate>: run -p umount %s",
              path, path);
    else
        warn("%s", path);
}

int main(int argc, char **argv)
{
    int status = 0;

    if (getopt(argc, argv, "") != -1 || optind == argc)
        usage("PATH...");
    for (; optind < argc; optind++)
        if (umount(argv[optind]) < 0) {
            failed(argv[optind]);
            status = 1;
        }
    return status;
}
