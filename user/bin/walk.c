/*
 * walk: the paper's `find`, which touches every inode: walks a directory tree
 * and reads the attributes of every file.
 *
 *     walk [-r ROUNDS] [PATH]
 */
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/tree.h"
#include "user/lib/unistd.h"

static struct counts {
    unsigned directories;
    unsigned files;
    unsigned others;
    unsigned failures;
    uint64_t bytes;
} c;

static bool visit(const char *path, uint8_t type)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        warn("%s", path);
        c.failures++;
        return false;
    }
    if (type == FILE_DIRECTORY) {
        c.directories++;
    } else if (type == FILE_REGULAR) {
        c.files++;
        c.bytes += st.st_size;
    } else {
        c.others++;
    }
    return true;
}

int main(int argc, char **argv)
{
    char path[PATH_MAX];
    const char *from;
    uint32_t rounds = 1;
    uint32_t start = uptime_ms();
    struct stat st;
    unsigned unread;
    int option;

    while ((option = getopt(argc, argv, "r:")) != -1) {
        if (option != 'r')
            usage("[-r ROUNDS] [PATH]");
        rounds = number_between(optarg, 1, 1000000);
    }
    from = optind < argc ? argv[optind] : "/";
    if (*from == 0 || strlcpy(path, from, sizeof(path)) >= sizeof(path) - 1)
        errx(1, "%s: not a path", from);
    if (stat(path, &st) < 0) /* visit says so */
        st.st_type = FILE_REGULAR;
    for (uint32_t i = 0; i < rounds; i++) {
        c = (struct counts){0};
        strlcpy(path, from, sizeof(path));
        unread = tree_walk(path, (uint8_t)st.st_type, visit);
        c.failures += unread;
    }
    printf("walk: %u files, %u directories, %u others, %llu KiB, %u failures; "
           "%u times in %u ms\n",
           c.files, c.directories, c.others,
           (unsigned long long)(c.bytes / 1024), c.failures, (unsigned)rounds,
           (unsigned)uptime_diff(uptime_ms(), start));
    return c.failures == 0 ? 0 : 1;
}
