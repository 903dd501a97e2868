/*
 * mount [NAME PATH]: mounts the file server registered as NAME on the directory
 * PATH; without operands prints the mounts. (Most servers mount themselves.)
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/ipc.h"

int main(int argc, char **argv)
{
    int port;

    if (getopt(argc, argv, "") != -1 || (argc != optind && argc != optind + 2))
        usage("[NAME PATH]");
    if (argc == optind)
        return !copy_file("/proc/mounts");
    port = name_lookup(argv[optind]);
    if (port < 0 && errno == ENOENT)
        errx(1, "no server is registered as %s", argv[optind]);
    if (port < 0)
        err(1, "%s", argv[optind]);
    if (mount(port, argv[optind + 1]) < 0)
        err(1, "%s", argv[optind + 1]);
    return 0;
}
