/*
 * Open files: opening, reading and writing, position, directories, devices
 * (kernel/fs/file.c, device.c). All happens in a directory of its own.
 *
 * Tests: kernel/fs/file.c, kernel/fs/device.c
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/device.h"
#include "kernel/fs/directory.h"
#include "kernel/fs/path.h"
#include "kernel/fs/tty.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/vm/user.h"

#define DIR  "/tmp/test_file"
#define PATH DIR "/a"

static struct file *opened[2];

static void close(struct file *f)
{
    for (size_t i = 0; i < ARRAY_SIZE(opened); i++)
        if (opened[i] == f)
            opened[i] = NULL;
    object_put(&f->file_object);
}

/* What a stopped case leaves. */
static void clean_up(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_SIZE(opened); i++)
        if (opened[i] != NULL)
            close(opened[i]);
    fs_unlink(PATH, NULL);
    fs_rmdir(DIR, NULL);
}

static struct file *open(const char *path, uint32_t flags)
{
    size_t i = opened[0] == NULL ? 0 : 1;

    ktest_undo(clean_up, NULL);
    KT_REQUIRE(opened[i] == NULL);
    KT_REQUIRE(file_open(path, NULL, flags, &opened[i]) == 0);
    return opened[i];
}

/* The error of opening the file; 0 if there is none. */
static int refused(const char *path, uint32_t flags)
{
    struct file *f;
    int error = file_open(path, NULL, flags, &f);

    if (error == 0)
        close(f);
    return -error;
}

/* A new file at PATH with this text. */
static void make(const char *text)
{
    size_t n = strlen(text);
    struct file *f;

    KT_REQUIRE(fs_mkdir(DIR, NULL) == 0);
    f = open(PATH, O_WRONLY | O_CREAT | O_EXCL);
    KT_REQUIRE(file_write(f, text, n) == (ssize_t)n);
    close(f);
}

static void clean(void)
{
    KT_EQ(fs_unlink(PATH, NULL), 0);
    KT_EQ(fs_rmdir(DIR, NULL), 0);
}

/* The file's text as far as it fits, read through another open file. */
static const char *contents(void)
{
    static char text[64];
    struct file *f = open(PATH, O_RDONLY);
    ssize_t n = file_read(f, text, sizeof(text) - 1);

    text[MAX(n, 0)] = '\0';
    close(f);
    return text;
}

#define KT_CONTENTS(want)                                                      \
    do {                                                                       \
        const char *kt_got = contents();                                       \
        if (strcmp(kt_got, want) != 0)                                         \
            KT_FAIL("contents \"%s\", want \"%s\"", kt_got, want);             \
    } while (0)

/* ---- opening ------------------------------------------------------------ */

KTEST(file, open_errors)
{
    make("x");
    KT_EQ(refused(DIR "/b", O_RDONLY), ENOENT);
    KT_EQ(refused(PATH "/b", O_RDONLY), ENOTDIR);
    KT_EQ(refused(DIR "/no/b", O_WRONLY | O_CREAT), ENOENT);
    KT_EQ(refused("", O_RDONLY), ENOENT);
    KT_EQ(refused(PATH, O_RDWR | O_CREAT | O_EXCL), EEXIST);
    KT_EQ(refused(PATH, O_ACCMODE), EINVAL);
    KT_EQ(refused(PATH, O_RDONLY | O_TRUNC), EINVAL);
    KT_EQ(refused(PATH, 0x80000000u), EINVAL);
    KT_EQ(refused(PATH, O_CREAT | O_DIRECTORY), EINVAL);
    KT_EQ(refused(PATH, O_DIRECTORY), ENOTDIR);
    KT_EQ(refused(DIR, O_WRONLY), EISDIR);
    KT_EQ(refused(DIR, O_RDONLY | O_CREAT), EISDIR);
    KT_EQ(refused(DIR, O_RDWR | O_TRUNC), EISDIR);
    KT_EQ(refused(DIR, O_RDONLY | O_DIRECTORY), 0);
    KT_EQ(refused("/proc/uptime", O_RDWR), EROFS);
    KT_CONTENTS("x");
    clean();
}

KTEST(file, create_and_truncate)
{
    make("hello");
    KT_EQ(refused(PATH, O_WRONLY | O_CREAT), 0);
    KT_CONTENTS("hello");
    KT_EQ(refused(PATH, O_WRONLY | O_CREAT | O_TRUNC), 0);
    KT_CONTENTS("");
    clean();
}

KTEST(file, access_as_opened)
{
    struct file *r, *w;
    char c = 'y';

    make("x");
    r = open(PATH, O_RDONLY);
    w = open(PATH, O_WRONLY);
    KT_EQ(file_write(r, &c, 1), -EBADF);
    KT_EQ(file_truncate(r, 0), -EBADF);
    KT_EQ(file_read(w, &c, 1), -EBADF);
    KT_EQ(file_write(w, &c, 1), 1);
    KT_EQ(file_read(r, &c, 1), 1);
    KT_EQ(c, 'y');
    close(r);
    close(w);
    clean();
}

/* ---- position ----------------------------------------------------------- */

KTEST(file, each_open_file_has_its_own_position)
{
    struct file *a, *b;
    char c = 0;

    make("abc");
    a = open(PATH, O_RDONLY);
    b = open(PATH, O_RDONLY);
    KT_EQ(file_read(a, &c, 1), 1);
    KT_EQ(file_read(a, &c, 1), 1);
    KT_EQ(c, 'b');
    KT_EQ(file_read(b, &c, 1), 1);
    KT_EQ(c, 'a');
    close(a);
    close(b);
    clean();
}

KTEST(file, seek)
{
    struct file *f;
    char c = 0;

    make("abcdef");
    f = open(PATH, O_RDWR);
    KT_EQ(file_seek(f, 2, SEEK_SET), 2);
    KT_EQ(file_seek(f, 1, SEEK_CUR), 3);
    KT_EQ(file_read(f, &c, 1), 1);
    KT_EQ(c, 'd');
    KT_EQ(file_seek(f, -1, SEEK_END), 5);
    KT_EQ(file_seek(f, -6, SEEK_CUR), -EINVAL);
    KT_EQ(file_seek(f, INT32_MAX, SEEK_CUR), -EINVAL);
    KT_EQ(file_seek(f, 0, 3), -EINVAL);
    KT_EQ(file_seek(f, 0, SEEK_CUR), 5);
    KT_EQ(file_seek(f, 8, SEEK_SET), 8);
    KT_EQ(file_read(f, &c, 1), 0);
    KT_EQ(file_write(f, "x", 1), 1);
    KT_EQ(file_seek(f, 0, SEEK_END), 9);
    KT_EQ(file_seek(f, INT32_MAX, SEEK_SET), INT32_MAX);
    KT_EQ(file_write(f, "x", 1), -EFBIG);
    close(f);
    clean();
}

KTEST(file, append_goes_to_the_end)
{
    struct file *a, *b;

    make("a");
    a = open(PATH, O_WRONLY | O_APPEND);
    b = open(PATH, O_WRONLY | O_APPEND);
    KT_EQ(file_write(a, "b", 1), 1);
    KT_EQ(file_write(b, "c", 1), 1);
    KT_EQ(file_seek(a, 0, SEEK_SET), 0);
    KT_EQ(file_write(a, "d", 1), 1);
    KT_EQ(file_seek(a, 0, SEEK_CUR), 4);
    close(a);
    close(b);
    KT_CONTENTS("abcd");
    clean();
}

KTEST(file, truncate_and_stat)
{
    struct file *f;
    struct stat st;

    make("abcdef");
    f = open(PATH, O_RDWR);
    KT_EQ(file_truncate(f, 2), 0);
    KT_CONTENTS("ab");
    KT_EQ(file_truncate(f, PAGE_SIZE + 1), 0);
    KT_EQ(file_truncate(f, 0x80000000u), -EINVAL);
    file_stat(f, &st);
    KT_EQ(st.st_type, FILE_REGULAR);
    KT_EQ(st.st_size, PAGE_SIZE + 1);
    KT_EQ(st.st_blocks, 2);
    KT_EQ(st.st_nlink, 1);
    KT_EQ(st.st_fs, path_root()->inode_fs->fs_id);
    close(f);
    clean();
}

KTEST(file, a_bad_buffer_moves_nothing)
{
    void *bad = (void *)(USER_TOP - PAGE_SIZE);
    struct file *f;
    char c = 0;

    make("abc");
    f = open(PATH, O_RDWR);
    KT_EQ(file_read(f, bad, 3), -EFAULT);
    KT_EQ(file_write(f, bad, 3), -EFAULT);
    KT_EQ(file_read(f, &c, 1), 1);
    KT_EQ(c, 'a');
    close(f);
    KT_CONTENTS("abc");
    clean();
}

/* ---- directories -------------------------------------------------------- */

/* The number of entries of that name that `f` lists. */
static unsigned count_entries(struct file *f, const char *name, size_t room)
{
    static char buf[256];
    unsigned count = 0;
    ssize_t n;

    while ((n = file_getdents(f, buf, room)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent *d = (const void *)(buf + at);

            count += strcmp(d->d_name, name) == 0;
            at += d->d_reclen;
        }
    KT_EQ(n, 0);
    return count;
}

KTEST(file, directories)
{
    struct file *f;
    char c;

    make("");
    f = open(DIR, O_RDONLY);
    KT_EQ(file_read(f, &c, 1), -EISDIR);
    KT_EQ(file_getdents(f, &c, 0), -EINVAL);
    KT_EQ(file_getdents(f, &c, 1), -EINVAL);
    KT_EQ(file_getdents(f, (void *)(USER_TOP - PAGE_SIZE), 64), -EFAULT);
    KT_EQ(count_entries(f, "a", 256), 1);
    KT_EQ(count_entries(f, "a", 256), 0);
    KT_EQ(file_seek(f, 0, SEEK_SET), 0);
    KT_EQ(count_entries(f, "a", 16), 1);
    KT_EQ(file_seek(f, 0, SEEK_SET), 0);
    KT_EQ(count_entries(f, ".", 256), 1);
    KT_EQ(file_seek(f, 1000, SEEK_SET), -EINVAL);
    KT_TRUE(file_seek(f, 0, SEEK_CUR) >= 0);
    close(f);
    f = open(PATH, O_RDONLY);
    KT_EQ(file_getdents(f, &c, 1), -ENOTDIR);
    close(f);
    clean();
}

/* ---- devices ------------------------------------------------------------ */

KTEST(file, null_and_zero)
{
    struct file *null = open("/dev/null", O_RDWR);
    struct file *zero = open("/dev/zero", O_RDWR);
    char text[4] = "abc";
    struct stat st;

    KT_EQ(file_write(null, text, 3), 3);
    KT_EQ(file_read(null, text, 3), 0);
    KT_EQ(file_write(zero, text, 3), 3);
    KT_EQ(file_read(zero, text, 3), 3);
    KT_EQ(memcmp(text, "\0\0\0\0", 4), 0);
    KT_EQ(file_read(zero, (void *)(USER_TOP - PAGE_SIZE), 1), -EFAULT);
    KT_EQ(file_seek(null, 0, SEEK_SET), -ESPIPE);
    KT_EQ(file_truncate(null, 0), -EINVAL);
    file_stat(null, &st);
    KT_EQ(st.st_type, FILE_DEVICE);
    KT_EQ(st.st_device, DEVICE_NULL);
    KT_EQ(st.st_blocks, 0);
    close(null);
    close(zero);
}

/* A task that must end stops in the middle, and says how far it came. */
KTEST(file, a_kill_ends_a_long_transfer)
{
    static char page[PAGE_SIZE];
    struct file *zero, *f;

    make("");
    zero = open("/dev/zero", O_RDWR);
    f = open(PATH, O_RDWR);
    KT_EQ(file_write(f, page, sizeof(page)), sizeof(page));
    KT_EQ(file_seek(f, 0, SEEK_SET), 0);
    task_self()->task_pending |= PENDING_KILL;
    KT_EQ(file_read(zero, page, sizeof(page)), 0);
    KT_EQ(file_read(f, page, sizeof(page)), 0);
    KT_EQ(file_write(f, page, sizeof(page)), 0);
    task_self()->task_pending &= ~PENDING_KILL;
    KT_EQ(file_read(zero, page, sizeof(page)), sizeof(page));
    KT_EQ(file_read(f, page, sizeof(page)), sizeof(page));
    close(zero);
    close(f);
    clean();
}

KTEST(file, debug_lines)
{
    struct file *f = open("/dev/debug", O_WRONLY);
    static char longest[1200];

    KT_EQ(file_write(f, "{\"event\":\"debug\"}\n", 18), 18);
    KT_EQ(file_write(f, "{\"a\":1}\n{\"b\":2}", 15), 15);
    memset(longest, 'x', sizeof(longest));
    longest[511] = '\n';
    KT_EQ(file_write(f, longest, 512), 512);
    KT_EQ(file_write(f, longest, sizeof(longest)), 512);
    KT_EQ(file_write(f, longest + 512, 512), -EMSGSIZE);
    KT_EQ(file_write(f, (void *)(USER_TOP - PAGE_SIZE), 1), -EFAULT);
    close(f);
}

KTEST(file, console_and_unknown_devices)
{
    struct file *f = open("/dev/console", O_RDWR);

    KT_TRUE(tty_is(f));
    close(f);
    KT_EQ(fs_mknod("/tmp/test_device", NULL, FILE_DEVICE, 99), 0);
    KT_EQ(refused("/tmp/test_device", O_RDONLY), ENODEV);
    KT_EQ(fs_unlink("/tmp/test_device", NULL), 0);
}
