/*
 * Random operations, compared with a model: the tree of names as an array of
 * nodes, the contents of a file as an array of bytes.
 *
 * Tests: kernel/fs/ramfs*.c
 */
#include "kernel/fs/tests/fs_test.h"
#include "mm/kmem.h"

static uint32_t state;

/* 0 … n - 1 */
static uint32_t pick(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

/* ---- names -------------------------------------------------------------- */

#define NAMES 4  /* a b c d */
#define NODES 64 /* node 0 is T */
#define DEPTH 3

struct node {
    bool dir;
    unsigned links; /* of files: entries; of directories: 0 or 1 */
    int child[NAMES];
    int parent;
};

static struct node node[NODES];

struct path {
    unsigned n; /* names, at least 1 */
    unsigned name[DEPTH];
    char text[sizeof(T) + 2 * DEPTH];
};

static void model_begin(void)
{
    for (unsigned i = 0; i < NODES; i++)
        node[i].links = 0;
    node[0].dir = true;
    node[0].links = 1;
    node[0].parent = -1;
    for (unsigned i = 0; i < NAMES; i++)
        node[0].child[i] = -1;
}

static void random_path(struct path *p)
{
    char *to = p->text;

    strlcpy(to, T, sizeof(p->text));
    to += sizeof(T) - 1;
    p->n = 1 + pick(DEPTH);
    for (unsigned i = 0; i < p->n; i++) {
        p->name[i] = pick(NAMES);
        *to++ = '/';
        *to++ = (char)('a' + p->name[i]);
    }
    *to = '\0';
}

/* The node that the first n names lead to, or an error. */
static int find(const struct path *p, unsigned n)
{
    int at = 0;

    for (unsigned i = 0; i < n; i++) {
        if (!node[at].dir)
            return -ENOTDIR;
        at = node[at].child[p->name[i]];
        if (at < 0)
            return -ENOENT;
    }
    return at;
}

/* The node of the directory that the last name is in, or an error. */
static int find_dir(const struct path *p)
{
    int dir = find(p, p->n - 1);

    return dir >= 0 && !node[dir].dir ? -ENOTDIR : dir;
}

static int *slot(const struct path *p, int dir)
{
    return &node[dir].child[p->name[p->n - 1]];
}

static bool is_empty(int dir)
{
    for (unsigned i = 0; i < NAMES; i++)
        if (node[dir].child[i] >= 0)
            return false;
    return true;
}

/* Whether `a` is `b` or above it. */
static bool above(int a, int b)
{
    for (; b >= 0; b = node[b].parent)
        if (a == b)
            return true;
    return false;
}

static int model_make(const struct path *p, bool is_dir)
{
    int dir = find_dir(p);
    int i = 1;

    if (dir < 0)
        return dir;
    if (*slot(p, dir) >= 0)
        return -EEXIST;
    while (node[i].links != 0)
        i++;
    node[i].dir = is_dir;
    node[i].links = 1;
    node[i].parent = dir;
    for (unsigned n = 0; n < NAMES; n++)
        node[i].child[n] = -1;
    *slot(p, dir) = i;
    return 0;
}

static int model_remove(const struct path *p, bool is_dir)
{
    int dir = find_dir(p);
    int i = dir < 0 ? dir : *slot(p, dir);

    if (i < 0)
        return dir < 0 ? dir : -ENOENT;
    if (node[i].dir != is_dir)
        return is_dir ? -ENOTDIR : -EISDIR;
    if (is_dir && !is_empty(i))
        return -ENOTEMPTY;
    node[i].links--;
    *slot(p, dir) = -1;
    return 0;
}

static int model_link(const struct path *p, const struct path *to)
{
    int i = find(p, p->n);
    int dir = find_dir(to);

    if (i < 0)
        return i;
    if (node[i].dir)
        return -EPERM;
    if (dir < 0)
        return dir;
    if (*slot(to, dir) >= 0)
        return -EEXIST;
    *slot(to, dir) = i;
    node[i].links++;
    return 0;
}

static int check_target(int i, int target, int from)
{
    if (node[i].dir != node[target].dir)
        return node[i].dir ? -ENOTDIR : -EISDIR;
    if (node[i].dir && (above(target, from) || !is_empty(target)))
        return -ENOTEMPTY;
    return 0;
}

static int model_rename(const struct path *p, const struct path *to)
{
    int from = find_dir(p);
    int dir = find_dir(to);
    int i, target, r = 0;

    if (from < 0 || dir < 0)
        return from < 0 ? from : dir;
    i = *slot(p, from);
    target = *slot(to, dir);
    if (i < 0)
        return -ENOENT;
    if (i == target)
        return 0;
    if (node[i].dir && above(i, dir))
        return -EINVAL;
    if (target >= 0)
        r = check_target(i, target, from);
    if (r < 0)
        return r;
    if (target >= 0)
        node[target].links--;
    *slot(p, from) = -1;
    *slot(to, dir) = i;
    if (node[i].dir)
        node[i].parent = dir;
    return 0;
}

/* ---- both together ------------------------------------------------------ */

static void both_make(const struct path *p, bool is_dir)
{
    KT_EQ(fs_mknod(p->text, NULL, is_dir ? FILE_DIRECTORY : FILE_REGULAR, 0),
          model_make(p, is_dir));
}

static void both_step(void)
{
    struct path p, to;

    random_path(&p);
    random_path(&to);
    switch (pick(8)) {
    case 0:
    case 1:
        both_make(&p, true);
        break;
    case 2:
        both_make(&p, false);
        break;
    case 3:
        KT_EQ(fs_unlink(p.text, NULL), model_remove(&p, false));
        break;
    case 4:
        KT_EQ(fs_rmdir(p.text, NULL), model_remove(&p, true));
        break;
    case 5:
        KT_EQ(fs_link(p.text, to.text, NULL), model_link(&p, &to));
        break;
    default:
        KT_EQ(fs_rename(p.text, to.text, NULL), model_rename(&p, &to));
        break;
    }
}

static void compare(struct inode *dir, int i);

static void compare_child(struct inode *dir, unsigned name, int i)
{
    const char text[] = {(char)('a' + name), '\0'};
    struct inode *inode;
    int r = path_lookup(text, dir, &inode);

    KT_EQ(r, i < 0 ? -ENOENT : 0);
    if (r < 0)
        return;
    KT_EQ(inode->inode_type == FILE_DIRECTORY, node[i].dir);
    if (node[i].dir)
        compare(inode, i);
    else
        KT_EQ(inode->inode_nlink, node[i].links);
    inode_put(inode);
}

static void compare(struct inode *dir, int i)
{
    unsigned n = 2;

    for (unsigned name = 0; name < NAMES; name++) {
        n += node[i].child[name] >= 0;
        compare_child(dir, name, node[i].child[name]);
    }
    KT_EQ(fs_test_count(dir, 64), n);
}

KTEST(ramfs_model, names)
{
    struct inode *dir;

    fs_test_begin();
    dir = fs_test_get(T);
    for (uint32_t seed = 1; seed <= 5; seed++) {
        state = seed;
        model_begin();
        for (unsigned i = 0; i < 400; i++) {
            both_step();
            if (i % 20 == 0)
                compare(dir, 0);
            if (i % 50 == 0)
                inode_reclaim(pick(10));
        }
        compare(dir, 0);
        FS_VERIFY();
        fs_test_empty(T);
    }
    inode_put(dir);
    fs_test_end();
}

/* ---- contents ----------------------------------------------------------- */

#define BYTES 40000u

static char *model; /* BYTES, zero after the end */
static char *scratch;

static void write_both(struct inode *f, uint32_t *size)
{
    uint32_t offset = pick(BYTES);
    uint32_t n = pick(2) == 0 ? pick(100) : pick(9000);

    n = MIN(n, BYTES - offset);
    for (uint32_t i = 0; i < n; i++)
        scratch[i] = (char)pick(256);
    KT_EQ(fs_test_write(f, offset, scratch, n), n);
    memcpy(model + offset, scratch, n);
    if (n != 0)
        *size = MAX(*size, offset + n);
}

static void truncate_both(struct inode *f, uint32_t *size)
{
    uint32_t to = pick(BYTES);

    KT_EQ(fs_test_truncate(f, to), 0);
    if (to < *size)
        memset(model + to, 0, *size - to);
    *size = to;
}

static void compare_bytes(struct inode *f, uint32_t size)
{
    uint32_t offset = pick(BYTES);
    uint32_t n = pick(BYTES);
    uint32_t want = offset < size ? MIN(n, size - offset) : 0;

    KT_EQ(f->inode_size, size);
    KT_EQ(inode_read(f, offset, scratch, n), want);
    KT_EQ(memcmp(scratch, model + offset, want), 0);
}

/* At first the contents of `f` are in an archive. */
static void run_contents(struct inode *f)
{
    uint32_t size = 20000;

    for (unsigned i = 0; i < 300; i++) {
        uint32_t what = pick(8);

        if (what < 3)
            write_both(f, &size);
        else if (what == 3)
            truncate_both(f, &size);
        else
            compare_bytes(f, size);
    }
}

static char *archived;

static void free_bytes(void *unused)
{
    (void)unused;
    kmem_free(scratch, BYTES);
    kmem_free(model, BYTES);
    kmem_free(archived, BYTES);
}

KTEST(ramfs_model, contents)
{
    struct inode *f;

    archived = kmem_alloc(BYTES, KM_SLEEP);
    model = kmem_zalloc(BYTES, KM_SLEEP);
    scratch = kmem_alloc(BYTES, KM_SLEEP);
    ktest_undo(free_bytes, NULL);
    fs_test_begin();
    for (state = 1; state <= 4; state++) {
        uint32_t seed = state;

        for (unsigned i = 0; i < BYTES; i++)
            archived[i] = (char)pick(256);
        memset(model, 0, BYTES);
        memcpy(model, archived, 20000);
        KT_REQUIRE(fs_mknod(T "/f", NULL, FILE_REGULAR, 0) == 0);
        ramfs_file_archived(
            ramfs_find(ramfs_find(ramfs_find(ramfs_root(), "tmp", 3), "t", 1),
                       "f", 1),
            archived, 20000);
        f = fs_test_get(T "/f");
        KT_REQUIRE(f != NULL);
        run_contents(f);
        inode_put(f);
        KT_EQ(fs_unlink(T "/f", NULL), 0);
        FS_VERIFY();
        state = seed;
    }
    fs_test_end();
    free_bytes(NULL);
}
