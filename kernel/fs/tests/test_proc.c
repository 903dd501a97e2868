/*
 * /proc (kernel/fs/proc.c).
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/tests/fs_test.h"
#include "kernel/fs/file.h"
#include "kernel/fs/proc.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/page.h"

static char *const text = fs_test_bytes;

/* The text of a file, read in pieces of `piece` bytes; its length. */
static size_t slurp(struct file *f, size_t piece)
{
    size_t len = 0;
    ssize_t n = 1;

    while (n > 0 && len < sizeof(fs_test_bytes) - 1) {
        n = file_read(f, text + len,
                      MIN(piece, sizeof(fs_test_bytes) - 1 - len));
        if (n > 0)
            len += (size_t)n;
    }
    KT_EQ(n, 0);
    text[len] = '\0';
    return len;
}

static struct file *open(const char *path)
{
    struct file *f = NULL;

    KT_EQ(file_open(path, NULL, O_RDONLY, &f), 0);
    return f;
}

/* The text of the file at `path`; "" after a failed expectation. */
static const char *read_all(const char *path)
{
    struct file *f = open(path);

    text[0] = '\0';
    if (f != NULL) {
        slurp(f, sizeof(fs_test_bytes));
        object_put(&f->file_object);
    }
    return text;
}

static unsigned count_lines(const char *s)
{
    unsigned lines = 0;

    for (; *s != '\0'; s++)
        lines += *s == '\n';
    return lines;
}

/* The column `n` (0 …) of the line that begins with `name` and a blank. */
static uint32_t column(const char *s, const char *name, unsigned n)
{
    char word[16];
    uint32_t value = UINT32_MAX;
    size_t len;

    while (s != NULL &&
           (strncmp(s, name, strlen(name)) != 0 || s[strlen(name)] != ' ')) {
        s = strchr(s, '\n');
        s = s == NULL ? NULL : s + 1;
    }
    if (s == NULL)
        return value;
    for (; n > 0; n--) {
        s = strchr(s, ' ');
        while (s != NULL && *s == ' ')
            s++;
        if (s == NULL)
            return value;
    }
    for (len = 0; s[len] != ' ' && s[len] != '\n' && len < 15; len++)
        word[len] = s[len];
    word[len] = '\0';
    parse_u32(word, &value);
    return value;
}

KTEST(proc, kmastat_has_every_cache)
{
    const char *s = read_all("/proc/kmastat");
    struct kmem_cache_stat st;
    size_t n = 0;

    KT_EQ(strncmp(s, "CACHE ", 6), 0);
    for (; kmem_cache_stat_number(n, &st); n++)
        KT_EQ(column(s, st.stat_name, 1), st.stat_size);
    KT_EQ(count_lines(s), n + 1);
}

static void put(void *arg)
{
    struct file **f = arg;

    if (*f != NULL)
        object_put(&(*f)->file_object);
    *f = NULL;
}

KTEST(proc, kmastat_shows_one_moment)
{
    struct file *f = open("/proc/kmastat");
    struct file *pipe[2] = {NULL, NULL};
    uint32_t before;

    ktest_undo(put, &pipe[0]);
    ktest_undo(put, &pipe[1]);
    ktest_undo(put, &f);
    KT_REQUIRE(f != NULL);
    KT_REQUIRE(pipe_create(&pipe[0], &pipe[1]) == 0);
    slurp(f, 100);
    before = column(text, "pipe", 3);
    put(&f);
    f = open("/proc/kmastat");
    KT_REQUIRE(f != NULL);
    slurp(f, 1);
    KT_EQ(column(text, "pipe", 3), before + 1);
    object_put(&f->file_object);
    object_put(&pipe[0]->file_object);
    object_put(&pipe[1]->file_object);
}

KTEST(proc, memory)
{
    const char *s = read_all("/proc/meminfo");
    uint32_t buddy = column(s, "    buddy", 2);

    KT_EQ(column(s, "frames", 1), page_count);
    KT_EQ(column(s, "  reserved", 2) + column(s, "  usable", 2), page_count);
    KT_EQ(column(s, "    kernel", 2) + buddy, column(s, "  usable", 2));
    KT_LE(column(s, "      free", 2) + column(s, "      slab", 2) +
              column(s, "      user", 2),
          buddy);
    KT_EQ(column(s, "limit", 2), 4 * column(s, "limit", 1));
    s = read_all("/proc/buddyinfo");
    KT_EQ(count_lines(s), 12);
}

KTEST(proc, tasks_has_this_one)
{
    const char *s = read_all("/proc/tasks");

    KT_TRUE(strstr(s, "running") != NULL);
    KT_TRUE(strstr(s, task_self()->task_name) != NULL);
    KT_TRUE(count_lines(s) >= 3);
}

KTEST(proc, mounts_and_uptime)
{
    const char *s = read_all("/proc/mounts");

    KT_TRUE(strstr(s, "/proc\n") != NULL);
    KT_EQ(count_lines(s), 3);
    s = read_all("/proc/uptime");
    KT_EQ(count_lines(s), 1);
    KT_TRUE(strchr(s, '.') != NULL);
}

KTEST(proc, status_and_position)
{
    struct file *f = open("/proc/buddyinfo");
    struct stat st;
    size_t len;

    KT_REQUIRE(f != NULL);
    len = slurp(f, 7);
    file_stat(f, &st);
    KT_EQ(st.st_type, FILE_REGULAR);
    KT_EQ(st.st_size, len);
    KT_EQ(file_seek(f, -1, SEEK_END), len - 1);
    KT_EQ(file_read(f, text, 10), 1);
    KT_EQ(text[0], '\n');
    KT_EQ(file_seek(f, INT32_MAX, SEEK_SET), INT32_MAX);
    KT_EQ(file_read(f, text, 10), 0);
    object_put(&f->file_object);
}

KTEST(proc, directory)
{
    struct file *f = open("/proc");
    unsigned entries = 0;
    char buf[40];
    ssize_t n;

    KT_REQUIRE(f != NULL);
    KT_EQ(file_getdents(f, buf, 8), -EINVAL);
    while ((n = file_getdents(f, buf, sizeof(buf))) > 0)
        for (ssize_t at = 0; at < n; entries++)
            at += ((const struct dirent *)(buf + at))->d_reclen;
    KT_EQ(n, 0);
    KT_EQ(entries, 10);
    object_put(&f->file_object);
}

/* All of an entry is copied to the program, also the padding after its name. */
KTEST(proc, entries_end_in_zeroes)
{
    char buf[512] __attribute__((aligned(4)));
    uint32_t offset = 0;
    unsigned dirty = 0;
    ssize_t n;

    memset(buf, 0xff, sizeof(buf));
    n = proc_fs.fs_ops->fs_getdents(NULL, &offset, buf, sizeof(buf));
    KT_GE(n, 1);
    for (ssize_t at = 0; at < n;) {
        const struct dirent *d = (const struct dirent *)(buf + at);

        for (size_t i = d->d_namlen; i < d->d_reclen - sizeof(*d); i++)
            dirty += d->d_name[i] != 0;
        at += d->d_reclen;
    }
    KT_EQ(dirty, 0);
}
