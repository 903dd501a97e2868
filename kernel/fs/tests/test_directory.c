/*
 * Directories of the RAM file system: links, removing, renaming, listing.
 */
#include "kernel/fs/tests/fs_test.h"
#include "mm/inspect/kmem_stat.h"

static size_t nodes(void)
{
    struct kmem_cache_stat stat;

    kmem_cache_stat(kmem_cache_find("ramfs_node"), &stat);
    return stat.stat_inuse;
}

static uint32_t links(const char *path)
{
    struct inode *inode = fs_test_get(path);
    uint32_t n = inode->inode_nlink;

    inode_put(inode);
    return n;
}

static int make(const char *path)
{
    return fs_test_file(path, path);
}

/* ---- making ------------------------------------------------------------- */

KTEST(directory, an_existing_name_is_refused)
{
    struct inode *inode;

    fs_test_begin();
    KT_EQ(make(T "/f"), 0);
    KT_EQ(fs_mkdir(T "/d", NULL), 0);
    KT_EQ(fs_mkdir(T "/d/", NULL), -EEXIST);
    KT_EQ(fs_mkdir(T "/f", NULL), -EEXIST);
    KT_EQ(fs_mkdir("/", NULL), -EEXIST);
    KT_EQ(fs_mkdir(T "/d/.", NULL), -EEXIST);
    KT_EQ(fs_mkdir(T "/d/..", NULL), -EEXIST);
    KT_EQ(fs_mkdir(T "/none/d", NULL), -ENOENT);
    KT_EQ(fs_mkdir(T "/f/d", NULL), -ENOTDIR);
    KT_EQ(fs_mkdir("", NULL), -ENOENT);
    KT_EQ(make(T "/f"), -EEXIST);
    KT_EQ(make("/"), -EEXIST);
    KT_EQ(make(T "/d/."), -EEXIST);
    KT_EQ(make(T "/new/"), -EISDIR);
    KT_EQ(fs_mknod(T "/new/", NULL, FILE_DEVICE, 1), -ENOENT);
    KT_REQUIRE(fs_create_file(T "/f", NULL, 0, &inode) == 0);
    inode_put(inode);
    KT_REQUIRE(fs_create_file(T "/d", NULL, 0, &inode) == 0);
    KT_EQ(inode->inode_type, FILE_DIRECTORY);
    inode_put(inode);
    KT_REQUIRE(fs_create_file("/", NULL, 0, &inode) == 0);
    KT_TRUE(inode == path_root());
    inode_put(inode);
    fs_test_end();
}

/* ---- links -------------------------------------------------------------- */

KTEST(directory, hard_links)
{
    size_t before = nodes();

    fs_test_begin();
    KT_EQ(fs_mkdir(T "/d", NULL), 0);
    KT_EQ(make(T "/f"), 0);
    KT_EQ(fs_link(T "/f", T "/d/g", NULL), 0);
    KT_EQ(links(T "/f"), 2);
    KT_EQ(nodes(), before + 3);
    KT_EQ(fs_link(T "/f", T "/d/g", NULL), -EEXIST);
    KT_EQ(fs_link(T "/f", T "/d", NULL), -EEXIST);
    KT_EQ(fs_link(T "/f", T "/d/", NULL), -EEXIST);
    KT_EQ(fs_link(T "/f", T "/h/", NULL), -ENOENT);
    KT_EQ(fs_link(T "/d", T "/h", NULL), -EPERM);
    KT_EQ(fs_link(T "/none", T "/h", NULL), -ENOENT);
    KT_EQ(fs_link(T "/f", T "/none/h", NULL), -ENOENT);
    KT_EQ(fs_link(T "/f", "/", NULL), -EEXIST);
    KT_EQ(fs_unlink(T "/f", NULL), 0);
    KT_EQ(links(T "/d/g"), 1);
    KT_TRUE(fs_test_has(T "/d/g", T "/f"));
    KT_EQ(fs_unlink(T "/d/g", NULL), 0);
    KT_EQ(nodes(), before + 2);
    fs_test_end();
}

KTEST(directory, links_of_directories_count_their_directories)
{
    fs_test_begin();
    KT_EQ(links(T), 2);
    KT_EQ(fs_mkdir(T "/d", NULL), 0);
    KT_EQ(fs_mkdir(T "/e", NULL), 0);
    KT_EQ(make(T "/f"), 0);
    KT_EQ(links(T), 4);
    KT_EQ(fs_rename(T "/d", T "/e/d", NULL), 0);
    KT_EQ(links(T), 3);
    KT_EQ(links(T "/e"), 3);
    KT_EQ(fs_rmdir(T "/e/d", NULL), 0);
    KT_EQ(links(T "/e"), 2);
    fs_test_end();
}

/* ---- removing ----------------------------------------------------------- */

KTEST(directory, removals_that_are_refused)
{
    fs_test_begin();
    KT_EQ(make(T "/f"), 0);
    KT_EQ(fs_mkdir(T "/d", NULL), 0);
    KT_EQ(make(T "/d/f"), 0);
    KT_EQ(fs_unlink(T "/d", NULL), -EISDIR);
    KT_EQ(fs_unlink(T "/f/", NULL), -ENOTDIR);
    KT_EQ(fs_unlink(T "/none", NULL), -ENOENT);
    KT_EQ(fs_unlink("/", NULL), -EBUSY);
    KT_EQ(fs_unlink(T "/d/.", NULL), -EINVAL);
    KT_EQ(fs_rmdir(T "/f", NULL), -ENOTDIR);
    KT_EQ(fs_rmdir(T "/d", NULL), -ENOTEMPTY);
    KT_EQ(fs_rmdir(T "/none", NULL), -ENOENT);
    KT_EQ(fs_rmdir("/", NULL), -EBUSY);
    KT_EQ(fs_rmdir("/proc", NULL), -EBUSY);
    KT_EQ(fs_rmdir(T "/d/.", NULL), -EINVAL);
    KT_EQ(fs_rmdir(T "/d/..", NULL), -EINVAL);
    KT_EQ(fs_unlink(T "/d/f", NULL), 0);
    KT_EQ(fs_rmdir(T "/d/", NULL), 0);
    fs_test_end();
}

KTEST(directory, an_open_file_outlives_its_name)
{
    size_t before = nodes();
    struct inode *f, *g;
    char buf[8];

    fs_test_begin();
    KT_EQ(fs_test_file(T "/f", "hello"), 0);
    f = fs_test_get(T "/f");
    KT_EQ(fs_unlink(T "/f", NULL), 0);
    KT_EQ(f->inode_nlink, 0);
    KT_EQ(inode_read(f, 0, buf, 5), 5);
    KT_EQ(memcmp(buf, "hello", 5), 0);
    KT_EQ(fs_test_file(T "/f", "other"), 0);
    g = fs_test_get(T "/f");
    KT_TRUE(f != g);
    inode_put(g);
    KT_EQ(nodes(), before + 3);
    inode_put(f);
    KT_EQ(nodes(), before + 2);
    fs_test_end();
    KT_EQ(nodes(), before);
}

/* ---- renaming ----------------------------------------------------------- */

KTEST(directory, rename_moves_and_replaces)
{
    size_t before = nodes();

    fs_test_begin();
    KT_EQ(fs_mkdir(T "/d", NULL), 0);
    KT_EQ(fs_mkdir(T "/e", NULL), 0);
    KT_EQ(make(T "/f"), 0);
    KT_EQ(make(T "/g"), 0);
    KT_EQ(fs_rename(T "/f", T "/h", NULL), 0);
    KT_EQ(fs_test_look(T "/f"), -ENOENT);
    KT_EQ(fs_rename(T "/h", T "/d/h", NULL), 0);
    KT_TRUE(fs_test_has(T "/d/h", T "/f"));
    KT_EQ(fs_rename(T "/d/h", T "/g", NULL), 0);
    KT_TRUE(fs_test_has(T "/g", T "/f"));
    KT_EQ(nodes(), before + 4); /* the old g is freed */
    KT_EQ(fs_rename(T "/d", T "/e", NULL), 0);
    KT_EQ(nodes(), before + 3);
    KT_EQ(fs_rename(T "/e", T "/e", NULL), 0);
    KT_EQ(fs_rename(T "/e/", T "/x/", NULL), 0);
    KT_EQ(fs_link(T "/g", T "/i", NULL), 0);
    KT_EQ(fs_rename(T "/g", T "/i", NULL), 0); /* one file: nothing to do */
    KT_EQ(links(T "/g"), 2);
    fs_test_end();
}

KTEST(directory, renames_that_are_refused)
{
    fs_test_begin();
    KT_EQ(fs_mkdir(T "/a", NULL), 0);
    KT_EQ(fs_mkdir(T "/a/b", NULL), 0);
    KT_EQ(fs_mkdir(T "/a/b/c", NULL), 0);
    KT_EQ(fs_mkdir(T "/d", NULL), 0);
    KT_EQ(make(T "/f"), 0);
    KT_EQ(make(T "/a/b/g"), 0);
    KT_EQ(fs_rename(T "/none", T "/x", NULL), -ENOENT);
    KT_EQ(fs_rename(T "/f", T "/none/x", NULL), -ENOENT);
    KT_EQ(fs_rename(T "/f", T "/d", NULL), -EISDIR);
    KT_EQ(fs_rename(T "/d", T "/f", NULL), -ENOTDIR);
    KT_EQ(fs_rename(T "/f", T "/x/", NULL), -ENOTDIR);
    KT_EQ(fs_rename(T "/f/", T "/x", NULL), -ENOTDIR);
    KT_EQ(fs_rename(T "/d", T "/a", NULL), -ENOTEMPTY);
    KT_EQ(fs_rename(T "/a", T "/a/x", NULL), -EINVAL);
    KT_EQ(fs_rename(T "/a", T "/a/b/c/x", NULL), -EINVAL);
    KT_EQ(fs_rename(T "/a", T "/a/b", NULL), -EINVAL);
    KT_EQ(fs_rename(T "/a/b/c", T "/a", NULL), -ENOTEMPTY);
    KT_EQ(fs_rename(T "/a/b", T "/a", NULL), -ENOTEMPTY);
    KT_EQ(fs_rename(T "/a/b/g", T "/a", NULL), -EISDIR);
    KT_EQ(fs_rename("/", T "/x", NULL), -EBUSY);
    KT_EQ(fs_rename(T "/d", "/", NULL), -EBUSY);
    KT_EQ(fs_rename(T "/d/.", T "/x", NULL), -EINVAL);
    KT_EQ(fs_rename(T "/d", T "/x/..", NULL), -ENOENT);
    KT_EQ(fs_rename(T "/a/b/c", T "/c", NULL), 0); /* up is allowed */
    fs_test_end();
}

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

KTEST(directory, list_buffers)
{
    struct inode *dir = begin_list();
    char buf[64];
    uint32_t offset = 0;

    KT_REQUIRE(dir != NULL);
    KT_EQ(fs_test_getdents(dir, &offset, buf, 11), -EINVAL);
    KT_EQ(offset, 0);
    KT_EQ(fs_test_getdents(dir, &offset, buf, 12), 12); /* "." */
    KT_EQ(offset, 1);
    KT_EQ(fs_test_getdents(dir, &offset, buf, 24), 24); /* ".." and one */
    KT_EQ(fs_test_count(dir, 12), LISTED + 2);
    KT_EQ(fs_test_count(dir, 4096), LISTED + 2);
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
