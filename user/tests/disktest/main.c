/*
 * disktest: tests of a disk's file system through system calls.
 *
 *     disktest DIRECTORY [NAME …]     all tests, or those named
 *
 * Each test leaves the directory as it was, with all blocks and files free,
 * except `keep`, which leaves files for other tests
 * (tools/test/disk/test_ext2_disk.py). Prints a line for each; the exit status
 * is the number of failures.
 */
#include "user/lib/dirent.h"
#include "user/lib/err.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/unistd.h"

#define PIECE 8192u
#define NAMES 3000u /* in one directory */

static const char *directory;
static uint8_t buf[PIECE];
static const char *wrong; /* the failed check of the running test, or NULL */

#define CHECK(e) ((void)((e) || (wrong = wrong != NULL ? wrong : #e)))

/* A path below the directory; four may be in use at a time. */
static const char *at(const char *format, unsigned number)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];
    size_t n;

    snprintf(path, PATH_MAX, "%s/", directory);
    n = strlen(path);
    snprintf(path + n, PATH_MAX - n, format, number);
    return path;
}

static uint8_t byte_at(uint32_t place)
{
    return (uint8_t)(place * 31 + (place >> 9));
}

static int make(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC);

    CHECK(file >= 0);
    return file;
}

/* Bytes that follow from their position. */
static void put(int file, uint32_t place, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        buf[i] = byte_at(place + i);
    CHECK(lseek(file, (off_t)place, SEEK_SET) == (off_t)place);
    CHECK(write(file, buf, n) == (ssize_t)n);
}

static bool holds(int file, uint32_t place, uint32_t n, bool zeroes)
{
    if (lseek(file, (off_t)place, SEEK_SET) != (off_t)place ||
        read(file, buf, n) != (ssize_t)n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (buf[i] != (zeroes ? 0 : byte_at(place + i)))
            return false;
    return true;
}

/* ---- the tests ---------------------------------------------------------- */

/* Islands of data where the first indirect, doubly and triply indirect blocks
 * begin, for every block size. */
static void sparse(void)
{
    static const uint32_t islands[] = {0,       11000,   12288,    49152,
                                       274432,  4243456, 67383296, 70000000,
                                       1 << 28, 1 << 30};
    int file = make(at("sparse", 0));

    for (size_t i = 0; i < ARRAY_SIZE(islands); i++)
        put(file, islands[i] + 100, 1000);
    for (size_t i = 0; i < ARRAY_SIZE(islands); i++) {
        CHECK(holds(file, islands[i] + 100, 1000, false));
        if (i + 1 < ARRAY_SIZE(islands)) /* nothing after the last island */
            CHECK(holds(file, islands[i] + 1100, 150, true));
    }
    CHECK(ftruncate(file, 274432 + 600) == 0);
    CHECK(holds(file, 274432 + 100, 500, false));
    CHECK(read(file, buf, 1) == 0);
    CHECK(ftruncate(file, 274432 + 1100) == 0);
    CHECK(holds(file, 274432 + 600, 500, true));
    close(file);
    CHECK(unlink(at("sparse", 0)) == 0);
}

/* Counts the entries of a directory that begin with n; each must come once. */
static unsigned count(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    unsigned n = 0;

    while (d != NULL && (e = readdir(d)) != NULL)
        n += e->d_name[0] == 'n';
    CHECK(d != NULL && closedir(d) == 0);
    return n;
}

static void many(void)
{
    CHECK(mkdir(at("many", 0)) == 0);
    for (unsigned i = 0; i < NAMES; i++)
        close(make(at("many/n%u", i)));
    CHECK(count(at("many", 0)) == NAMES);
    for (unsigned i = 0; i < NAMES; i += 2)
        CHECK(unlink(at("many/n%u", i)) == 0);
    CHECK(count(at("many", 0)) == NAMES / 2);
    CHECK(rmdir(at("many", 0)) < 0 && errno == ENOTEMPTY);
    for (unsigned i = 1; i < NAMES; i += 2)
        CHECK(unlink(at("many/n%u", i)) == 0);
    CHECK(rmdir(at("many", 0)) == 0);
}

/* Fills the disk, then removes everything. */
static void full(void)
{
    int file = make(at("full", 0));
    uint32_t place = 0;
    ssize_t n;

    while ((n = write(file, buf, PIECE)) > 0)
        place += (uint32_t)n;
    CHECK(n < 0 && errno == ENOSPC && place > 0);
    CHECK(mkdir(at("nowhere", 0)) < 0 && errno == ENOSPC);
    CHECK(ftruncate(file, 0) == 0);
    put(file, 0, PIECE);
    CHECK(holds(file, 0, PIECE, false));
    close(file);
    CHECK(unlink(at("full", 0)) == 0);
}

static void inodes(void)
{
    unsigned n = 0;
    int file;

    CHECK(mkdir(at("inodes", 0)) == 0);
    while ((file = open(at("inodes/%u", n), O_WRONLY | O_CREAT)) >= 0) {
        close(file);
        n++;
    }
    CHECK(errno == ENOSPC && n > 0);
    while (n > 0)
        CHECK(unlink(at("inodes/%u", --n)) == 0);
    CHECK(rmdir(at("inodes", 0)) == 0);
}

/* An open file without a name still exists; names are added and replaced. In
 * its own directory, which may grow. */
static void names(void)
{
    struct stat st;
    int file;

    CHECK(mkdir(at("box", 0)) == 0);
    file = make(at("box/a", 0));
    put(file, 0, PIECE);
    CHECK(link(at("box/a", 0), at("box/b", 0)) == 0);
    CHECK(fstat(file, &st) == 0 && st.st_nlink == 2);
    CHECK(unlink(at("box/a", 0)) == 0);
    CHECK(rename(at("box/b", 0), at("box/c", 0)) == 0);
    close(make(at("box/d", 0)));
    CHECK(rename(at("box/d", 0), at("box/c", 0)) == 0);
    CHECK(fstat(file, &st) == 0 && st.st_nlink == 0);
    CHECK(holds(file, 0, PIECE, false));
    close(file);
    CHECK(mkdir(at("box/e", 0)) == 0 && mkdir(at("box/e/f", 0)) == 0);
    CHECK(rename(at("box/c", 0), at("box/e/f/g", 0)) == 0);
    CHECK(rename(at("box/e/f", 0), at("box/h", 0)) == 0);
    CHECK(rename(at("box/h", 0), at("box/h/i", 0)) < 0 && errno == EINVAL);
    CHECK(unlink(at("box/h/g", 0)) == 0 && rmdir(at("box/h", 0)) == 0);
    CHECK(rmdir(at("box/e", 0)) == 0 && rmdir(at("box", 0)) == 0);
}

/* Files that stay: one written backwards in pieces, one with a hole. */
static void keep(void)
{
    int file = make(at("kept", 0));

    for (uint32_t place = 64 * PIECE; place > 0;) {
        place -= PIECE;
        put(file, place, PIECE);
    }
    CHECK(fsync(file) == 0);
    close(file);
    file = make(at("hole", 0));
    put(file, 400000, PIECE);
    close(file);
    CHECK(sync() == 0);
}

/* ---- running them ------------------------------------------------------- */

static const struct test {
    const char *test_name;
    void (*test_run)(void);
    bool test_leaves;
} tests[] = {
    {"sparse", sparse, false}, {"many", many, false},   {"full", full, false},
    {"inodes", inodes, false}, {"names", names, false}, {"keep", keep, true},
};

static bool wanted(const char *name, char **names)
{
    if (*names == NULL)
        return true;
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Whether as much is free as before. Freed blocks may become free only after a
 * commit. */
static bool as_before(const struct fs_stat *before)
{
    struct fs_stat now;

    return sync() == 0 && statfs(directory, &now) == 0 &&
           now.fs_blocks_free == before->fs_blocks_free &&
           now.fs_files_free == before->fs_files_free;
}

int main(int argc, char **argv)
{
    unsigned failed = 0;

    if (argc < 2)
        usage("DIRECTORY [NAME...]");
    directory = argv[1];
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
        const struct test *t = &tests[i];
        struct fs_stat before;

        if (!wanted(t->test_name, argv + 2))
            continue;
        wrong = NULL;
        CHECK(sync() == 0 && statfs(directory, &before) == 0);
        t->test_run();
        if (!t->test_leaves)
            CHECK(as_before(&before));
        printf("%s: %s\n", t->test_name, wrong == NULL ? "good" : wrong);
        failed += wrong != NULL;
    }
    return (int)failed;
}
