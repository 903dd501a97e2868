/*
 * Files: opening, reading and writing, size, removed names.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/string.h"

static int open_new(const char *path)
{
    int h = open(path, O_RDWR | O_CREAT | O_EXCL);

    CHECK(h >= 0);
    return h;
}

static uint32_t size_of(int h)
{
    struct stat st;

    EQUAL(fstat(h, &st), 0);
    return st.st_size;
}

/* ---- open --------------------------------------------------------------- */

TEST(file, open_flags)
{
    int h;

    FAILS(open("f", O_RDONLY), ENOENT);
    FAILS(open("f", O_RDWR | O_TRUNC), ENOENT);
    h = open("f", O_WRONLY | O_CREAT);
    CHECK(h >= 0);
    EQUAL(write(h, "hello", 5), 5);
    FAILS(open("f", O_RDWR | O_CREAT | O_EXCL), EEXIST);
    FAILS(open("f", 3), EINVAL);
    FAILS(open("f", 0x80000000u), EINVAL);
    FAILS(open("f", O_RDONLY | O_TRUNC), EINVAL);
    FAILS(open("f", O_RDONLY | O_DIRECTORY), ENOTDIR);
    FAILS(open("f", O_CREAT | O_DIRECTORY), EINVAL);
    FAILS(open("nothing/f", O_WRONLY | O_CREAT), ENOENT);
    FAILS(open("new/", O_WRONLY | O_CREAT), EISDIR);
    EQUAL(close(open("f", O_RDWR | O_CREAT)), 0);
    CHECK(has_text("f", "hello"));
    EQUAL(close(open("f", O_WRONLY | O_TRUNC)), 0);
    CHECK(has_text("f", ""));
}

TEST(file, open_directory)
{
    char buf[8];
    int h;

    EQUAL(mkdir("d"), 0);
    FAILS(open("d", O_WRONLY), EISDIR);
    FAILS(open("d", O_RDWR), EISDIR);
    FAILS(open("d", O_RDWR | O_TRUNC), EISDIR);
    FAILS(open("d", O_RDONLY | O_CREAT), EISDIR);
    FAILS(open("/", O_RDONLY | O_CREAT), EISDIR);
    FAILS(open("d", O_RDONLY | O_CREAT | O_EXCL), EEXIST);
    FAILS(open("d/.", O_RDONLY | O_CREAT | O_EXCL), EEXIST);
    FAILS(open("/", O_RDONLY | O_CREAT | O_EXCL), EEXIST);
    h = open("d", O_RDONLY);
    CHECK(h >= 0);
    FAILS(read(h, buf, sizeof(buf)), EISDIR);
    FAILS(write(h, buf, 1), EBADF);
    FAILS(ftruncate(h, 0), EBADF);
    EQUAL(close(h), 0);
    EQUAL(close(open("d", O_RDONLY | O_DIRECTORY)), 0);
}

TEST(file, access_mode)
{
    char c = 'x';
    int r, w;

    make_file("f", "abc");
    r = open("f", O_RDONLY);
    w = open("f", O_WRONLY);
    FAILS(write(r, &c, 1), EBADF);
    FAILS(read(w, &c, 1), EBADF);
    FAILS(ftruncate(r, 0), EBADF);
    EQUAL(write(w, &c, 1), 1);
    EQUAL(read(r, &c, 1), 1);
    EQUAL(c, 'x');
}

/* ---- the offset --------------------------------------------------------- */

TEST(file, lseek)
{
    char c;
    int h;

    make_file("f", "0123456789");
    h = open("f", O_RDONLY);
    EQUAL(lseek(h, 3, SEEK_SET), 3);
    EQUAL(read(h, &c, 1), 1);
    EQUAL(c, '3');
    EQUAL(lseek(h, 2, SEEK_CUR), 6);
    EQUAL(lseek(h, -1, SEEK_END), 9);
    EQUAL(read(h, &c, 1), 1);
    EQUAL(c, '9');
    EQUAL(read(h, &c, 1), 0);
    EQUAL(lseek(h, 100, SEEK_END), 110);
    EQUAL(read(h, &c, 1), 0);
    FAILS(lseek(h, -1, SEEK_SET), EINVAL);
    FAILS(lseek(h, -111, SEEK_CUR), EINVAL);
    FAILS(lseek(h, -11, SEEK_END), EINVAL);
    FAILS(lseek(h, 0, 3), EINVAL);
    FAILS(lseek(h, 0, -1), EINVAL);
    EQUAL(lseek(h, INT32_MAX, SEEK_SET), INT32_MAX);
    FAILS(lseek(h, 1, SEEK_CUR), EINVAL);
    EQUAL(lseek(h, 0, SEEK_CUR), INT32_MAX);
    EQUAL(read(h, &c, 1), 0);
}

/* Two handles append in turn, whatever their offsets were before. */
TEST(file, append)
{
    int a = open("f", O_WRONLY | O_CREAT | O_APPEND);
    int b = open("f", O_WRONLY | O_APPEND);

    EQUAL(write(a, "1", 1), 1);
    EQUAL(write(b, "2", 1), 1);
    EQUAL(lseek(a, 0, SEEK_SET), 0);
    EQUAL(write(a, "3", 1), 1);
    EQUAL(lseek(a, 0, SEEK_CUR), 3);
    CHECK(has_text("f", "123"));
}

static void append_many(int letter)
{
    int h = open("f", O_WRONLY | O_APPEND);
    char text[37];

    memset(text, letter, sizeof(text));
    for (int i = 0; i < 50; i++)
        EQUAL(write(h, text, sizeof(text)), sizeof(text));
}

/* Pieces that several processes append at once are all there, and whole. */
TEST(file, append_together)
{
    char text[37];
    int h = open_new("f");

    for (int i = 0; i < 4; i++)
        spawn(append_many, 'a' + i);
    for (int i = 0; i < 4; i++) {
        int status;

        CHECK(wait(&status) > 0);
        EQUAL(status, 0);
    }
    EQUAL(size_of(h), 4 * 50 * sizeof(text));
    for (int i = 0; i < 200; i++) {
        EQUAL(read(h, text, sizeof(text)), sizeof(text));
        for (size_t k = 1; k < sizeof(text); k++)
            EQUAL(text[k], text[0]);
    }
}

/* ---- contents ----------------------------------------------------------- */

static uint8_t pattern(uint32_t i)
{
    return (uint8_t)(i * 31 + (i >> 8) * 7);
}

/* Pieces of odd sizes, over many pages. */
TEST(file, contents)
{
    static uint8_t buf[1777];
    const uint32_t size = 100 * sizeof(buf);
    uint32_t at = 0;
    int h = open_new("f");

    for (; at < size; at += sizeof(buf)) {
        for (size_t i = 0; i < sizeof(buf); i++)
            buf[i] = pattern(at + (uint32_t)i);
        EQUAL(write(h, buf, sizeof(buf)), sizeof(buf));
    }
    EQUAL(size_of(h), size);
    EQUAL(lseek(h, 0, SEEK_SET), 0);
    for (at = 0; at < size;) {
        ssize_t n = read(h, buf, 1234);

        CHECK(n > 0);
        for (ssize_t i = 0; i < n; i++, at++)
            EQUAL(buf[i], pattern(at));
    }
    EQUAL(read(h, buf, 1), 0);
}

/* Holes read as zeroes. */
TEST(file, sparse)
{
    char buf[8] = "........";
    int h = open_new("f");

    EQUAL(lseek(h, 500000, SEEK_SET), 500000);
    EQUAL(write(h, "end", 3), 3);
    EQUAL(size_of(h), 500003);
    EQUAL(lseek(h, 499998, SEEK_SET), 499998);
    EQUAL(read(h, buf, sizeof(buf)), 5);
    EQUAL(memcmp(buf, "\0\0end", 5), 0);
    EQUAL(lseek(h, 4094, SEEK_SET), 4094);
    EQUAL(read(h, buf, 4), 4);
    EQUAL(memcmp(buf, "\0\0\0\0", 4), 0);
}

TEST(file, truncate)
{
    char buf[8];
    int h = open_new("f");

    EQUAL(write(h, "abcdefgh", 8), 8);
    EQUAL(ftruncate(h, 3), 0);
    EQUAL(size_of(h), 3);
    EQUAL(ftruncate(h, 8), 0);
    EQUAL(lseek(h, 0, SEEK_SET), 0);
    EQUAL(read(h, buf, sizeof(buf)), 8);
    EQUAL(memcmp(buf, "abc\0\0\0\0\0", 8), 0);
    EQUAL(ftruncate(h, 0), 0);
    EQUAL(size_of(h), 0);
    /* The offset stays beyond the end; the next write leaves a hole. */
    EQUAL(write(h, "x", 1), 1);
    EQUAL(size_of(h), 9);
    FAILS(ftruncate(h, 0x80000000u), EINVAL);
    EQUAL(size_of(h), 9);
}

TEST(file, too_large)
{
    int h = open_new("f");

    EQUAL(lseek(h, INT32_MAX, SEEK_SET), INT32_MAX);
    FAILS(write(h, "xy", 2), EFBIG);
    EQUAL(size_of(h), 0);
}

/* A file of the archive can be changed. */
TEST(file, initrd_is_writable)
{
    char before[16], after[16];
    int h = open("/etc/motd", O_RDWR);

    CHECK(h >= 0);
    EQUAL(read(h, before, sizeof(before)), sizeof(before));
    EQUAL(lseek(h, 0, SEEK_SET), 0);
    EQUAL(write(h, "#", 1), 1);
    EQUAL(lseek(h, 0, SEEK_SET), 0);
    EQUAL(read(h, after, sizeof(after)), sizeof(after));
    EQUAL(after[0], '#');
    EQUAL(memcmp(before + 1, after + 1, sizeof(after) - 1), 0);
    EQUAL(lseek(h, 0, SEEK_SET), 0);
    EQUAL(write(h, before, 1), 1);
}

/* A file takes all memory: ENOMEM or ENOSPC; afterwards there is room again. */
TEST(file, exhaustion)
{
    static char block[16384];
    ssize_t n = 0;
    int h = open_new("f");
    int other;

    errno = 0; /* from here on the page is private to this process */
    for (int i = 0; i < 100000 && n >= 0; i++)
        n = write(h, block, sizeof(block));
    EQUAL(n, -1);
    CHECK(errno == ENOMEM || errno == ENOSPC || errno == EFBIG);
    EQUAL(ftruncate(h, 0), 0);
    other = open_new("g");
    EQUAL(write(other, block, sizeof(block)), sizeof(block));
}

/* ---- names -------------------------------------------------------------- */

/* A file without a name exists until its last handle is closed. */
TEST(file, unlinked)
{
    struct stat st;
    char c;
    int h = open_new("f");

    EQUAL(write(h, "abc", 3), 3);
    EQUAL(unlink("f"), 0);
    FAILS(stat("f", &st), ENOENT);
    FAILS(unlink("f"), ENOENT);
    EQUAL(fstat(h, &st), 0);
    EQUAL(st.st_nlink, 0);
    EQUAL(lseek(h, 1, SEEK_SET), 1);
    EQUAL(read(h, &c, 1), 1);
    EQUAL(c, 'b');
    EQUAL(write(h, "more", 4), 4);
    EQUAL(close(open_new("f")), 0);
    EQUAL(size_of(h), 6);
}

TEST(file, links)
{
    struct stat a, b;

    make_file("a", "one file");
    EQUAL(link("a", "b"), 0);
    EQUAL(stat("a", &a), 0);
    EQUAL(stat("b", &b), 0);
    EQUAL(a.st_ino, b.st_ino);
    EQUAL(a.st_nlink, 2);
    make_file("b", "changed");
    CHECK(has_text("a", "changed"));
    EQUAL(unlink("a"), 0);
    EQUAL(stat("b", &b), 0);
    EQUAL(b.st_nlink, 1);
    CHECK(has_text("b", "changed"));
}

TEST(file, link_errors)
{
    EQUAL(mkdir("d"), 0);
    make_file("f", "");
    FAILS(link("d", "e"), EPERM);
    FAILS(link("f", "f"), EEXIST);
    FAILS(link("f", "d"), EEXIST);
    FAILS(link("f", "d/"), EEXIST);
    FAILS(link("f", "/"), EEXIST);
    FAILS(link("nothing", "g"), ENOENT);
    FAILS(link("f", "nothing/g"), ENOENT);
    FAILS(link("f", "f/g"), ENOTDIR);
    FAILS(link("f", ""), ENOENT);
    FAILS(link("f", "/proc/f"), EXDEV);
    FAILS(link("f", "g/"), ENOENT);
}

TEST(file, stat)
{
    struct stat st, other;

    make_file("f", "12345");
    EQUAL(stat("f", &st), 0);
    EQUAL(st.st_type, FILE_REGULAR);
    EQUAL(st.st_size, 5);
    EQUAL(st.st_nlink, 1);
    EQUAL(st.st_blocks, 1);
    EQUAL(stat(".", &other), 0);
    EQUAL(other.st_type, FILE_DIRECTORY);
    EQUAL(other.st_fs, st.st_fs);
    CHECK(other.st_ino != st.st_ino);
    EQUAL(stat("/proc", &other), 0);
    CHECK(other.st_fs != st.st_fs);
}
