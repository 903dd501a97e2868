/*
 * walk: the paper's `find`, which touches every inode: walks a directory tree
 * and reads the attributes of every file.
 *
 *     walk [-r ROUNDS] [PATH]
 */
#include "user/lib/dirent.h"
#include "user/lib/err.h"
#include "user/lib/number.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

static char path[PATH_MAX];

struct counts {
    unsigned directories;
    unsigned files;
    unsigned others;
    unsigned failures;
    uint64_t bytes;
};

static void failed(struct counts *c)
{
    warn("%s", path);
    c->failures++;
}

static void walk_directory(struct counts *c);

/* Visits the path. */
static void walk(struct counts *c)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        failed(c);
    } else if (st.st_type == FILE_DIRECTORY) {
        c->directories++;
        walk_directory(c);
    } else if (st.st_type == FILE_REGULAR) {
        c->files++;
        c->bytes += st.st_size;
    } else {
        c->others++;
    }
}

static void walk_directory(struct counts *c)
{
    size_t length = strlen(path);
    DIR *d = opendir(path);
    const struct dirent *entry;

    if (d == NULL) {
        failed(c);
        return;
    }
    while ((entry = readdir(d)) != NULL) {
        if (is_dots(entry->d_name))
            continue;
        if (path_join(path, sizeof(path), path, entry->d_name))
            walk(c);
        else
            failed(c);
        path[length] = 0;
    }
    if (closedir(d) < 0)
        failed(c);
}

int main(int argc, char **argv)
{
    const char *from;
    uint32_t rounds = 1;
    uint32_t start = uptime_ms();
    struct counts c = {0};
    int option;

    while ((option = getopt(argc, argv, "r:")) != -1) {
        if (option != 'r')
            usage("[-r ROUNDS] [PATH]");
        rounds = number_between(optarg, 1, 1000000);
    }
    from = optind < argc ? argv[optind] : "/";
    if (*from == 0 || strlcpy(path, from, sizeof(path)) >= sizeof(path) - 1)
        errx(1, "%s: not a path", from);
    for (uint32_t i = 0; i < rounds; i++) {
        c = (struct counts){0};
        strlcpy(path, from, sizeof(path));
        walk(&c);
    }
    printf("walk: %u files, %u directories, %u others, %llu KiB, %u failures; "
           "%u times in %u ms\n",
           c.files, c.directories, c.others,
           (unsigned long long)(c.bytes / 1024), c.failures, (unsigned)rounds,
           (unsigned)uptime_diff(uptime_ms(), start));
    return c.failures == 0 ? 0 : 1;
}
