/*
 * Directories: paths; creating, moving and removing entries; listing.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/dirent.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

static void expect_same(const char *a, const char *b)
{
    EQUAL(stat_of(a).st_ino, stat_of(b).st_ino);
    EQUAL(stat_of(a).st_fs, stat_of(b).st_fs);
}

/* ---- paths -------------------------------------------------------------- */

TEST(tree, path_errors)
{
    static char path[PATH_MAX + 100];
    struct stat st;

    FAILS(stat("", &st), ENOENT);
    FAILS(stat("nothing", &st), ENOENT);
    FAILS(stat("nothing/x", &st), ENOENT);
    make_file("f", "");
    FAILS(stat("f/x", &st), ENOTDIR);
    FAILS(stat("f/", &st), ENOTDIR);
    FAILS(stat("f/.", &st), ENOTDIR);
    FAILS(chdir("f"), ENOTDIR);
    FAILS(chdir("nothing"), ENOENT);
    memset(path, 'x', sizeof(path));
    path[NAME_MAX + 1] = 0;
    FAILS(stat(path, &st), ENAMETOOLONG);
    FAILS(mkdir(path), ENAMETOOLONG);
    FAILS(open(path, O_WRONLY | O_CREAT), ENAMETOOLONG);
    path[NAME_MAX] = 0;
    FAILS(stat(path, &st), ENOENT);
    make_file(path, "longest");
    CHECK(has_text(path, "longest"));
}

TEST(tree, path_length)
{
    static char path[PATH_MAX + 2];
    struct stat st;

    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 ? '/' : '.';
    path[PATH_MAX - 1] = 0;
    EQUAL(stat(path, &st), 0);
    path[PATH_MAX - 1] = '/';
    path[PATH_MAX] = 0;
    FAILS(stat(path, &st), ENAMETOOLONG);
    FAILS(open(path, O_RDONLY), ENAMETOOLONG);
    FAILS(chdir(path), ENAMETOOLONG);
    FAILS(mkdir(path), ENAMETOOLONG);
}

TEST(tree, dots)
{
    EQUAL(mkdir("d"), 0);
    expect_same("d/.././d//.", "d");
    expect_same("/", "/..");
    expect_same("/", "/../../bin/..");
    expect_same("/", "/proc/..");
}

/* ---- the working directory ---------------------------------------------- */

TEST(tree, getcwd)
{
    char before[PATH_MAX], path[PATH_MAX];
    int n = getcwd(before, sizeof(before));

    EQUAL(n, strlen(before));
    EQUAL(mkdir("d"), 0);
    EQUAL(chdir("d"), 0);
    EQUAL(getcwd(path, sizeof(path)), n + 2);
    EQUAL(memcmp(path, before, (size_t)n), 0);
    EQUAL(strcmp(path + n, "/d"), 0);
    EQUAL(getcwd(path, (size_t)n + 3), n + 2);
    FAILS(getcwd(path, (size_t)n + 2), ERANGE);
    FAILS(getcwd(path, 0), ERANGE);
    EQUAL(chdir("/"), 0);
    EQUAL(getcwd(path, 2), 1);
    EQUAL(strcmp(path, "/"), 0);
    EQUAL(chdir("/proc"), 0);
    EQUAL(getcwd(path, sizeof(path)), 5);
    EQUAL(strcmp(path, "/proc"), 0);
}

TEST(tree, cwd_removed)
{
    char path[PATH_MAX];
    struct stat st;

    EQUAL(mkdir("d"), 0);
    EQUAL(chdir("d"), 0);
    EQUAL(rmdir("../d"), 0);
    FAILS(getcwd(path, sizeof(path)), ENOENT);
    FAILS(open("f", O_WRONLY | O_CREAT), ENOENT);
    FAILS(mkdir("e"), ENOENT);
    FAILS(stat("f", &st), ENOENT);
    EQUAL(stat_of(".").st_nlink, 0);
    EQUAL(chdir("/"), 0);
}

/* A child starts in its parent's directory, and can change its own. */
TEST(tree, cwd_of_child)
{
    char before[PATH_MAX], after[PATH_MAX];
    pid_t child;

    getcwd(before, sizeof(before));
    child = fork();
    if (child == 0) {
        getcwd(after, sizeof(after));
        EQUAL(strcmp(before, after), 0);
        EQUAL(chdir("/"), 0);
        _exit(0);
    }
    expect_exit(child, 0);
    getcwd(after, sizeof(after));
    EQUAL(strcmp(before, after), 0);
}

/* ---- making and removing ------------------------------------------------ */

TEST(tree, mkdir_errors)
{
    EQUAL(mkdir("d"), 0);
    EQUAL(stat_of("d").st_nlink, 2);
    EQUAL(mkdir("d/e/"), 0);
    EQUAL(stat_of("d").st_nlink, 3);
    FAILS(mkdir("d"), EEXIST);
    FAILS(mkdir("d/"), EEXIST);
    FAILS(mkdir("/"), EEXIST);
    FAILS(mkdir("."), EEXIST);
    FAILS(mkdir("d/.."), EEXIST);
    FAILS(mkdir(""), ENOENT);
    FAILS(mkdir("nothing/d"), ENOENT);
    make_file("f", "");
    FAILS(mkdir("f"), EEXIST);
    FAILS(mkdir("f/d"), ENOTDIR);
}

TEST(tree, rmdir_errors)
{
    EQUAL(mkdir("d"), 0);
    EQUAL(mkdir("d/e"), 0);
    make_file("f", "");
    FAILS(rmdir("d"), ENOTEMPTY);
    FAILS(rmdir("f"), ENOTDIR);
    FAILS(rmdir("nothing"), ENOENT);
    FAILS(rmdir("d/."), EINVAL);
    FAILS(rmdir("d/.."), EINVAL);
    FAILS(rmdir("/"), EBUSY);
    FAILS(rmdir("/proc"), EBUSY);
    FAILS(unlink("d"), EISDIR);
    FAILS(unlink("/proc"), EISDIR);
    FAILS(unlink("nothing"), ENOENT);
    FAILS(unlink(""), ENOENT);
    FAILS(unlink("f/"), ENOTDIR);
    FAILS(unlink("/"), EBUSY);
    FAILS(unlink("d/."), EINVAL);
    EQUAL(rmdir("d/e/"), 0);
    EQUAL(stat_of("d").st_nlink, 2);
    make_file("d/f", "");
    FAILS(rmdir("d"), ENOTEMPTY);
    EQUAL(unlink("d/f"), 0);
    EQUAL(rmdir("d"), 0);
    CHECK(!exists("d"));
}

/* ---- renaming ----------------------------------------------------------- */

TEST(tree, rename)
{
    EQUAL(mkdir("d"), 0);
    make_file("a", "a");
    EQUAL(rename("a", "b"), 0);
    CHECK(!exists("a") && has_text("b", "a"));
    EQUAL(rename("b", "d/b"), 0);
    CHECK(!exists("b") && has_text("d/b", "a"));
    make_file("c", "c");
    EQUAL(rename("c", "d/b"), 0); /* over an existing one */
    CHECK(has_text("d/b", "c"));
    EQUAL(stat_of("d/b").st_nlink, 1);
    EQUAL(rename("d/b", "d/b"), 0);
    EQUAL(link("d/b", "again"), 0);
    EQUAL(rename("d/b", "again"), 0); /* the same file: nothing happens */
    CHECK(exists("d/b") && exists("again"));
}

TEST(tree, rename_directory)
{
    EQUAL(mkdir("a"), 0);
    EQUAL(mkdir("a/sub"), 0);
    make_file("a/sub/f", "deep");
    EQUAL(mkdir("b"), 0);
    EQUAL(rename("a/sub", "b/moved"), 0);
    CHECK(has_text("b/moved/f", "deep"));
    expect_same("b/moved/..", "b");
    EQUAL(stat_of("b").st_nlink, 3);
    EQUAL(stat_of("b/moved").st_nlink, 2); /* a file is no link */
    EQUAL(stat_of("a").st_nlink, 2);
    EQUAL(rename("b/", "c/"), 0);
    EQUAL(rename("c", "a"), 0); /* over an empty one */
    CHECK(has_text("a/moved/f", "deep") && !exists("b") && !exists("c"));
    EQUAL(rename("a/moved", "moved"), 0); /* upwards */
    CHECK(has_text("moved/f", "deep") && !exists("a/moved"));
}

TEST(tree, rename_errors)
{
    EQUAL(mkdir("d"), 0);
    EQUAL(mkdir("d/e"), 0);
    EQUAL(mkdir("d/e/c"), 0);
    EQUAL(mkdir("x"), 0);
    make_file("f", "");
    make_file("d/e/f", "");
    FAILS(rename("nothing", "g"), ENOENT);
    FAILS(rename("f", "nothing/g"), ENOENT);
    FAILS(rename("f", "f/g"), ENOTDIR);
    FAILS(rename("d", "d/e/d"), EINVAL);
    FAILS(rename("d", "d/d"), EINVAL);
    FAILS(rename("d", "d/e"), EINVAL);
    FAILS(rename("x", "d"), ENOTEMPTY);
    FAILS(rename("d/e", "d"), ENOTEMPTY);
    FAILS(rename("d/e/c", "d"), ENOTEMPTY);
    FAILS(rename("d/e/f", "d"), EISDIR);
    FAILS(rename("f", "x"), EISDIR);
    FAILS(rename("x", "f"), ENOTDIR);
    FAILS(rename("f", "g/"), ENOTDIR);
    FAILS(rename("f/", "g"), ENOTDIR);
    FAILS(rename("f", "/proc/f"), EXDEV);
    FAILS(rename("d/.", "y"), EINVAL);
    FAILS(rename("d", "x/.."), EINVAL);
    FAILS(rename("/", "y"), EBUSY);
    FAILS(rename("d", "/"), EBUSY);
    FAILS(rename("/proc", "/y"), EBUSY);
    CHECK(exists("d/e/c") && exists("d/e/f") && exists("x") && exists("f"));
}

static void rename_often(int way)
{
    char *names[2] = {"one/x", "two/y"};

    for (int i = 0; i < 200; i++)
        rename(names[way], names[!way]);
}

/* Two processes move the same file back and forth, and never lose it. */
TEST(tree, rename_race)
{
    pid_t a, b;

    EQUAL(mkdir("one"), 0);
    EQUAL(mkdir("two"), 0);
    make_file("one/x", "here");
    a = spawn(rename_often, 0);
    b = spawn(rename_often, 1);
    expect_exit(a, 0);
    expect_exit(b, 0);
    CHECK(exists("one/x") != exists("two/y"));
}

/* ---- listing ------------------------------------------------------------ */

#define ENTRIES 60

/* Names are n0 … n59; counts in `seen`. */
static void make_entries(void)
{
    char name[8];

    for (int i = 0; i < ENTRIES; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        make_file(name, "");
    }
}

static void note_entry(const struct dirent *d, uint8_t *seen)
{
    uint32_t n;

    EQUAL(d->d_namlen, strlen(d->d_name));
    EQUAL(d->d_reclen % 4, 0);
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0) {
        EQUAL(d->d_type, FILE_DIRECTORY);
        seen[ENTRIES + d->d_namlen - 1]++;
        return;
    }
    CHECK(d->d_name[0] == 'n' && parse_u32(d->d_name + 1, &n) && n < ENTRIES);
    EQUAL(d->d_type, FILE_REGULAR);
    seen[n]++;
}

TEST(tree, getdents)
{
    uint8_t seen[ENTRIES + 2] = {0};
    struct stat st;
    DIR *d;
    const struct dirent *entry;

    make_entries();
    d = opendir(".");
    CHECK(d != NULL);
    while ((entry = readdir(d)) != NULL) {
        note_entry(entry, seen);
        EQUAL(stat(entry->d_name, &st), 0);
        EQUAL(st.st_ino, entry->d_ino);
    }
    closedir(d);
    for (int i = 0; i < ENTRIES + 2; i++)
        EQUAL(seen[i], 1);
}

/* With a buffer for one or two entries; every other one is removed after it was
 * seen. The remaining ones are seen once. */
TEST(tree, getdents_removal)
{
    uint8_t seen[ENTRIES + 2] = {0};
    uint8_t buf[32] __attribute__((aligned(4)));
    int h = open(".", O_RDONLY);
    ssize_t n;

    make_entries();
    while ((n = getdents(h, buf, sizeof(buf))) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent *d = (const struct dirent *)(buf + at);

            at += d->d_reclen;
            note_entry(d, seen);
            if (d->d_name[0] == 'n' && d->d_name[d->d_namlen - 1] % 2 == 0)
                EQUAL(unlink(d->d_name), 0);
        }
    EQUAL(n, 0);
    for (int i = 0; i < ENTRIES + 2; i++)
        EQUAL(seen[i], 1);
}

TEST(tree, getdents_errors)
{
    uint8_t buf[64];
    int file, dir;

    make_file("abc", "");
    file = open("abc", O_RDONLY);
    dir = open(".", O_RDONLY);
    FAILS(getdents(file, buf, sizeof(buf)), ENOTDIR);
    FAILS(getdents(dir, buf, 4), EINVAL);
    FAILS(getdents(dir, buf, 11), EINVAL);
    FAILS(getdents(dir, buf, 0), EINVAL);
    FAILS(getdents(dir, buf, UINT32_MAX), EINVAL);
    EQUAL(getdents(dir, buf, 12), 12); /* each entry has 12 bytes */
    EQUAL(getdents(dir, buf, 24), 24);
    EQUAL(getdents(dir, buf, sizeof(buf)), 0);
    FAILS(lseek(dir, 1000, SEEK_SET), EINVAL);
    CHECK(lseek(dir, 0, SEEK_CUR) > 0);
    EQUAL(lseek(dir, 0, SEEK_SET), 0);
    CHECK(getdents(dir, buf, sizeof(buf)) > 0);
}

/* A directory that has been removed is empty. */
TEST(tree, getdents_removed)
{
    uint8_t buf[64];
    ssize_t n;
    int dir;

    EQUAL(mkdir("d"), 0);
    dir = open("d", O_RDONLY);
    EQUAL(rmdir("d"), 0);
    n = getdents(dir, buf, sizeof(buf));
    CHECK(n == 0 || (n < 0 && errno == ENOENT));
}

/* As deep as the longest path. */
TEST(tree, deep)
{
    int depth = 0;

    while (depth < 200 && mkdir("x") == 0 && chdir("x") == 0)
        depth++;
    EQUAL(depth, 200);
    while (depth-- > 0) {
        EQUAL(chdir(".."), 0);
        EQUAL(rmdir("x"), 0);
    }
}
