/*
 * stat PATH…: prints a file's attributes.
 */
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

static const char *const types[] = {
    [FILE_REGULAR] = "file",  [FILE_DIRECTORY] = "directory",
    [FILE_DEVICE] = "device", [FILE_PIPE] = "pipe",
    [FILE_PORT] = "port",
};

static void print_stat(const char *path, const struct stat *st)
{
    const char *type =
        st->st_type < ARRAY_SIZE(types) ? types[st->st_type] : NULL;

    putname(path);
    printf(": %s, inode %u of file system %u, %u link%s, %u bytes in %u "
           "page%s\n",
           type ? type : "?", st->st_ino, st->st_fs, st->st_nlink,
           st->st_nlink == 1 ? "" : "s", st->st_size, st->st_blocks,
           st->st_blocks == 1 ? "" : "s");
}

int main(int argc, char **argv)
{
    int status = 0;

    if (getopt(argc, argv, "") != -1 || optind == argc)
        usage("PATH...");
    for (; optind < argc; optind++) {
        struct stat st;

        if (stat(argv[optind], &st) == 0) {
            print_stat(argv[optind], &st);
        } else {
            warn("%s", argv[optind]);
            status = 1;
        }
    }
    return status;
}
