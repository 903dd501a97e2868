/*
 * Open files: bad buffers, kills, devices. What each call does is tested by
 * usertests (t_file.c, t_device.c). The tests use a directory of their own.
 *
 * Tests: kernel/fs/file.c, kernel/fs/device.c
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/device.h"
#include "kernel/fs/directory.h"
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

KTEST(file, a_bad_buffer_moves_nothing)
{
    void *bad = (void *)(USER_TOP - PAGE_SIZE);
    struct file *f;
    char text[4];

    make("abc");
    f = open(PATH, O_RDWR);
    KT_EQ(file_read(f, bad, 3), -EFAULT);
    KT_EQ(file_write(f, bad, 3), -EFAULT);
    KT_EQ(file_read(f, text, sizeof(text)), 3);
    KT_EQ(memcmp(text, "abc", 3), 0);
    close(f);
    clean();
}

/* ---- devices ------------------------------------------------------------ */

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
    KT_EQ(file_open("/tmp/test_device", NULL, O_RDONLY, &f), -ENODEV);
    KT_EQ(fs_unlink("/tmp/test_device", NULL), 0);
}
