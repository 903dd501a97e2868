/*
 * df [PATH…]: used and free space of file systems; of all without operands,
 * which waits for their servers at most five seconds together.
 */
#include "user/lib/copy.h"
#include "user/lib/err.h"
#include "user/lib/mounts.h"

/* `part` of `whole` in percent, rounded up. */
static uint32_t percent(uint32_t part, uint32_t whole)
{
    return whole == 0 ? 0
                      : (uint32_t)(((uint64_t)part * 100 + whole - 1) / whole);
}

static void print_row(const char *path, const struct fs_stat *st)
{
    uint32_t used = st->fs_blocks - st->fs_blocks_free;

    printf("%-8s %7u %10u %10u %3u%% %9u %9u ", st->fs_kind, st->fs_block_size,
           st->fs_blocks, st->fs_blocks_free, percent(used, st->fs_blocks),
           st->fs_files, st->fs_files_free);
    putname(path);
    putchar('\n');
}

static bool print_one(const char *path)
{
    struct fs_stat st;

    if (statfs(path, &st) < 0) {
        warn("%s", path);
        return false;
    }
    print_row(path, &st);
    return true;
}

static bool print_all(FILE *f, const char *name)
{
    char path[PATH_MAX];
    struct fs_stat st;
    bool good = true;
    bool replied;

    (void)name;
    while (statfs_next(f, path, &st, &replied)) {
        good &= replied;
        if (replied)
            print_row(path, &st);
        else
            warnx("%s: its server does not reply", path);
    }
    return good;
}

int main(int argc, char **argv)
{
    static char *const all[] = {"/proc/statfs", NULL};
    bool good = true;

    if (getopt(argc, argv, "") != -1)
        usage("[PATH...]");
    printf("%-8s %7s %10s %10s %4s %9s %9s %s\n", "FS", "BLOCK/B", "BLOCKS",
           "FREE", "USED", "FILES", "FREE", "ON");
    if (optind == argc)
        good = for_each_file(all, print_all);
    for (; optind < argc; optind++)
        good &= print_one(argv[optind]);
    return !good;
}
