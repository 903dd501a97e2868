/*
 * See kernel/fs/tests/fs_test.h.
 */
#include "kernel/fs/tests/fs_test.h"
#include "mm/kmem.h"

static void restore(void *unused);

/* ---- if the case is stopped --------------------------------------------- */

#define NOTED_MAX 128

static struct inode_stat noted[NOTED_MAX]; /* the inodes at fs_test_note */
static size_t noted_count;

void fs_test_note(void)
{
    struct inode_stat st = {.stat_fs_id = 0};

    for (noted_count = 0; inode_next(&st); noted_count++) {
        KT_REQUIRE(noted_count < NOTED_MAX);
        noted[noted_count] = st;
    }
    ktest_undo(restore, NULL);
}

static uint32_t refs_noted(const struct inode_stat *st)
{
    for (size_t i = 0; i < noted_count; i++)
        if (noted[i].stat_fs_id == st->stat_fs_id &&
            noted[i].stat_number == st->stat_number)
            return noted[i].stat_refs;
    return 0;
}

/* Drops the references that the case has. */
static void put_held(struct fs *fs)
{
    struct inode_stat st = {.stat_fs_id = 0};
    struct inode *inode;

    while (inode_next(&st)) {
        if (st.stat_fs_id != fs->fs_id || st.stat_refs <= refs_noted(&st) ||
            inode_get(fs, st.stat_number, &inode) != 0)
            continue;
        for (uint32_t n = refs_noted(&st); n < st.stat_refs; n++)
            inode_put(inode);
        inode_put(inode);
    }
}

static void restore(void *unused)
{
    struct inode *inode;

    (void)unused;
    put_held(&test_fs);
    put_held(path_root()->inode_fs);
    if (test_fs.fs_covers != NULL) {
        inode = inode_ref(test_fs.fs_root_inode);
        KT_EQ(fs_unmount(inode, false), 0);
        inode_put(inode);
    }
    KT_TRUE(inode_flush(&test_fs));
    if (path_lookup(T, NULL, &inode) == 0) {
        inode_put(inode);
        fs_test_end();
    }
}

void fs_test_begin(void)
{
    fs_test_note();
    KT_REQUIRE(fs_mkdir(T, NULL) == 0);
}

void fs_test_end(void)
{
    FS_VERIFY();
    fs_test_empty(T);
    KT_EQ(fs_rmdir(T, NULL), 0);
    FS_VERIFY();
}

/* ---- one call ----------------------------------------------------------- */

int fs_test_look(const char *path)
{
    struct inode *inode;
    int r = path_lookup(path, NULL, &inode);

    if (r == 0)
        inode_put(inode);
    return r;
}

struct inode *fs_test_get(const char *path)
{
    struct inode *inode;
    int r = path_lookup(path, NULL, &inode);

    KT_REQUIRE(r == 0);
    return inode;
}

ssize_t fs_test_write(struct inode *inode, uint32_t offset, const void *buf,
                      size_t n)
{
    ssize_t r;

    KT_REQUIRE(inode_lock(inode) == 0);
    r = inode->inode_fs->fs_ops->fs_write(inode, offset, buf, n);
    inode_unlock(inode);
    return r;
}

int fs_test_truncate(struct inode *inode, uint32_t size)
{
    int r;

    KT_REQUIRE(inode_lock(inode) == 0);
    r = inode->inode_fs->fs_ops->fs_truncate(inode, size);
    inode_unlock(inode);
    return r;
}

ssize_t fs_test_getdents(struct inode *dir, uint32_t *offset, void *buf,
                         size_t n)
{
    ssize_t r;

    KT_REQUIRE(inode_lock(dir) == 0);
    r = dir->inode_fs->fs_ops->fs_getdents(dir, offset, buf, n);
    inode_unlock(dir);
    return r;
}

int fs_test_file(const char *path, const char *text)
{
    struct inode *inode;
    size_t n = strlen(text);
    int r = fs_create_file(path, NULL, O_EXCL, &inode);

    if (r < 0)
        return r;
    KT_EQ(fs_test_write(inode, 0, text, n), n);
    inode_put(inode);
    return 0;
}

bool fs_test_has(const char *path, const char *text)
{
    struct inode *inode = fs_test_get(path);
    size_t n = strlen(text);
    char buf[64];
    bool same;

    same = inode_read(inode, 0, buf, sizeof(buf)) == (ssize_t)n &&
           inode->inode_size == n && memcmp(buf, text, n) == 0;
    inode_put(inode);
    return same;
}

unsigned fs_test_count(struct inode *dir, size_t n)
{
    char *buf = kmem_alloc(n, KM_SLEEP);
    uint32_t offset = 0;
    unsigned count = 0;
    ssize_t got;

    while ((got = fs_test_getdents(dir, &offset, buf, n)) > 0) {
        for (ssize_t at = 0; at < got; count++)
            at += ((const struct dirent *)(buf + at))->d_reclen;
    }
    KT_EQ(got, 0);
    kmem_free(buf, n);
    return count;
}

/* ---- removing a tree ---------------------------------------------------- */

static void empty(struct inode *dir);

static void remove_one(struct inode *dir, const struct dirent *d)
{
    struct inode *below;

    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return;
    if (d->d_type != FILE_DIRECTORY) {
        KT_EQ(fs_unlink(d->d_name, dir), 0);
        return;
    }
    if (path_lookup(d->d_name, dir, &below) == 0) {
        empty(below);
        inode_put(below);
    }
    KT_EQ(fs_rmdir(d->d_name, dir), 0);
}

static void empty(struct inode *dir)
{
    _Alignas(struct dirent) char buf[160];
    uint32_t offset = 0;
    ssize_t got;

    while ((got = fs_test_getdents(dir, &offset, buf, sizeof(buf))) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct dirent *d = (const struct dirent *)(buf + at);

            remove_one(dir, d);
            at += d->d_reclen;
        }
    }
}

void fs_test_empty(const char *path)
{
    struct inode *dir = fs_test_get(path);

    empty(dir);
    inode_put(dir);
}

/* ---- the small file system ---------------------------------------------- */

struct test_fs_log test_fs_log;
char fs_test_bytes[KIB(16) + 1];

static int test_read_inode(struct inode *inode)
{
    uint32_t n = inode->inode_number;

    test_fs_log.reads++;
    if (test_fs_log.sleep_ms != 0)
        sched_sleep_ms(test_fs_log.sleep_ms);
    if (n == test_fs_log.fail)
        return -EIO;
    inode->inode_type =
        n == 1 || n == TEST_FS_DIR ? FILE_DIRECTORY : FILE_REGULAR;
    inode->inode_nlink = 1;
    inode->inode_size = n;
    return 0;
}

static int test_lookup(struct inode *dir, const char *name, uint32_t *ino)
{
    *ino = 1;
    if (strcmp(name, "..") == 0)
        return 0;
    if (dir->inode_number == 1 && strcmp(name, "d") == 0) {
        *ino = TEST_FS_DIR;
        return 0;
    }
    return dir->inode_number == 1 && parse_u32(name, ino) && *ino >= 2 &&
                   *ino < TEST_FS_DIR
               ? 0
               : -ENOENT;
}

static int test_name(struct inode *inode, char *name)
{
    (void)inode;
    strlcpy(name, "d", NAME_MAX + 1);
    return 0;
}

static bool test_evict(struct inode *inode)
{
    test_fs_log.evictions++;
    test_fs_log.evicted = inode->inode_number;
    return false;
}

static const struct fs_ops test_fs_ops = {
    .fs_read_inode = test_read_inode,
    .fs_lookup = test_lookup,
    .fs_name = test_name,
    .fs_evict = test_evict,
};

struct fs test_fs = {
    .fs_ops = &test_fs_ops,
    .fs_name = "test",
    .fs_root = 1,
    .fs_rename = FS_RENAME_INIT(test_fs),
};

void test_fs_begin(void)
{
    inode_reclaim(SIZE_MAX);
    fs_test_note();
    test_fs.fs_ended = false; /* it may have been mounted before */
    test_fs_log = (struct test_fs_log){.reads = 0};
}

bool test_fs_end(void)
{
    FS_VERIFY();
    return inode_flush(&test_fs);
}
