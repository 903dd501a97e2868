/*
 * Directories of the RAM file system that change while they are listed, and
 * under many tasks. What each call does is tested by usertests (t_tree.c).
 */
#include "kernel/fs/tests/fs_test.h"

/* ---- listing ------------------------------------------------------------ */

#define LISTED 100u

static unsigned number_of(const struct dirent *d)
{
    uint32_t n = 0;

    return d->d_name[0] == 'n' && parse_u32(d->d_name + 1, &n) ? n : LISTED;
}

/* Notes in seen[] the entries that fit into so many bytes. False at the end. */
static bool list_some(struct inode *dir, uint32_t *offset, size_t bytes,
                      uint8_t *seen)
{
    _Alignas(struct dirent) char buf[512];
    ssize_t got = fs_test_getdents(dir, offset, buf, bytes);

    for (ssize_t at = 0; at < got;) {
        const struct dirent *d = (const struct dirent *)(buf + at);
        unsigned n = number_of(d);

        KT_EQ(d->d_namlen, strlen(d->d_name));
        KT_EQ(d->d_reclen % 4, 0);
        if (n < LISTED)
            seen[n]++;
        at += d->d_reclen;
    }
    return got > 0;
}

static struct inode *begin_list(void)
{
    char name[16];

    fs_test_begin();
    for (unsigned i = 0; i < LISTED; i++) {
        snprintf(name, sizeof(name), T "/n%u", i);
        KT_EQ(fs_mknod(name, NULL, FILE_REGULAR, 0), 0);
    }
    return fs_test_get(T);
}

/* Entries before and after the reader's position are removed. */
KTEST(directory, a_list_stays_good_while_entries_go)
{
    struct inode *dir = begin_list();
    uint8_t seen[LISTED] = {0};
    uint32_t offset = 0;
    char name[16];

    KT_REQUIRE(dir != NULL);
    for (unsigned i = 0; list_some(dir, &offset, 100, seen); i++) {
        snprintf(name, sizeof(name), "n%u", i * 37 % LISTED);
        KT_EQ(fs_unlink(name, dir), 0);
        KT_EQ(fs_mknod(name, dir, FILE_REGULAR, 0), 0); /* as a new entry */
        KT_LE(i, 60);
        if (i >= 20)
            break;
    }
    while (list_some(dir, &offset, 512, seen))
        ;
    for (unsigned i = 0; i < LISTED; i++) {
        bool touched = false;

        for (unsigned j = 0; j <= 20; j++)
            touched |= j * 37 % LISTED == i;
        if (!touched)
            KT_EQ(seen[i], 1);
    }
    inode_put(dir);
    fs_test_end();
}

/* ---- many at once ------------------------------------------------------- */

static const struct fs_ops *real_ops;
static struct fs_ops slow_ops;
static volatile unsigned wrong;

/* Lets another task run while the directory is locked. */
static int slow_lookup(struct inode *dir, const char *name, uint32_t *ino)
{
    sched_yield();
    return real_ops->fs_lookup(dir, name, ino);
}

/* Moves directories around, each task in its own order. */
static void shuffle(void *arg)
{
    static const char *const path[] = {T "/a/x", T "/b/x", T "/a/b",
                                       T "/b/a", T "/a",   T "/b"};
    uint32_t state = (uintptr_t)arg;

    for (unsigned i = 0; i < 300; i++) {
        int r;

        state = state * 1664525u + 1013904223u;
        r = fs_rename(path[(state >> 8) % 6], path[(state >> 16) % 6], NULL);
        wrong += r != 0 && r != -ENOENT && r != -EINVAL && r != -ENOTEMPTY;
        r = i % 3 != 0 ? fs_mkdir(path[(state >> 20) % 6], NULL)
                       : fs_rmdir(path[(state >> 24) % 6], NULL);
        wrong += r != 0 && r != -ENOENT && r != -EEXIST && r != -ENOTEMPTY;
    }
}

/* If directories were locked in any other order than from the top, the tasks
 * would deadlock. */
KTEST(directory, renames_of_many_tasks)
{
    int status;

    fs_test_begin();
    real_ops = ramfs.fs_ops;
    slow_ops = *real_ops;
    slow_ops.fs_lookup = slow_lookup;
    ramfs.fs_ops = &slow_ops;
    wrong = 0;
    for (uintptr_t i = 1; i <= 4; i++)
        KT_TRUE(task_create("shuffle", shuffle, (void *)i, PRIORITY_KERNEL) !=
                NULL);
    for (unsigned i = 0; i < 4; i++)
        KT_GE(task_wait(-1, &status, 0), 1);
    ramfs.fs_ops = real_ops;
    KT_EQ(wrong, 0);
    fs_test_end();
}
