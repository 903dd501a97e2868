/*
 * Tests of lab 5, "Reaping", task 5.6: the inode cache as a client
 * (kernel/fs/inode.c), on the small file system of the tests, which counts its
 * calls.
 */
#include "tools/workshop/labs/guard.h"
#include "tools/workshop/labs/lab.h"
#include "kernel/lib/symbol.h"
#include "kernel/fs/tests/fs_test.h"
#include "mm/inspect/kmem_stat.h"

static struct inode *get(uint32_t number)
{
    struct inode *inode = NULL;

    if (inode_get(&test_fs, number, &inode) != 0)
        KT_FAIL("there is no inode %u", number);
    return inode;
}

static struct inode_totals totals(void)
{
    struct inode_totals t;

    inode_totals(&t);
    return t;
}

static size_t unused(void)
{
    return totals().total_unused;
}

/* The head of the list of unused inodes. */
static void guard_list(void)
{
    const struct list *lru = (const struct list *)symbol_address("inode_lru");

    if (lru == NULL)
        return;
    lab_guard("inode_lru.next", &lru->next, lab_spin_held);
    lab_guard("inode_lru.prev", &lru->prev, lab_spin_held);
}

/* Leaves an unused inode of another file system. */
static void leave_other(void)
{
    inode_put(fs_test_get("/home"));
}

LAB_TEST(5, again, LAB_UP)
{
    struct inode *a, *b;

    leave_other(); /* for test_fs_begin to reclaim */
    test_fs_begin();
    guard_list();
    a = get(7);
    KT_EQ(unused(), 0);
    inode_put(a);
    KT_EQ(unused(), 1);
    b = get(7);
    if (b != a || test_fs_log.reads != 1)
        KT_FAIL("file 7 was in use, unused, in use again: its file system had "
                "to read its inode %u times, not once",
                test_fs_log.reads);
    KT_EQ(unused(), 0);
    KT_EQ(inode_reclaim(SIZE_MAX), 0); /* it is in use */
    FS_VERIFY();
    b->inode_nlink = 0; /* it has no name any more: it cannot be needed again */
    inode_put(b);
    KT_EQ(unused(), 0);
    KT_EQ(test_fs_log.evictions, 1);
    KT_TRUE(test_fs_end());
}

/* A file system of its own, of which no file can be read while `broken`. */
static struct {
    bool broken;
    struct inode *last; /* that it read, or could not read */
    unsigned freed;
} own_log;

static int read_own(struct inode *inode)
{
    inode->inode_type = FILE_REGULAR;
    inode->inode_nlink = 1;
    own_log.last = inode;
    return own_log.broken ? -EIO : 0;
}

static void free_own(struct fs *fs)
{
    KT_EQ(fs->fs_inodes, 0);
    own_log.freed++;
}

static const struct fs_ops own_ops = {
    .fs_read_inode = read_own,
    .fs_free = free_own,
};
static struct fs own = {.fs_ops = &own_ops, .fs_name = "own"};

/* An inode that could not be read was kept. As it is not in the table, only
 * this removes it from the list; the kernel would fault. */
static void remove_failed(void)
{
    list_remove(&own_log.last->inode_lru_link);
    list_init(&own_log.last->inode_lru_link);
    inode_free(own_log.last);
    own.fs_inodes--;
}

LAB_TEST(5, gone, LAB_UP)
{
    struct inode *inode;

    test_fs_begin();
    own.fs_id = fs_new_id();
    KT_REQUIRE(inode_get(&own, 2, &inode) == 0);
    inode_put(inode);
    KT_EQ(unused(), 1);
    own_log.broken = true;
    KT_EQ(inode_get(&own, 3, &inode), -EIO);
    if (unused() != 1) {
        KT_FAIL("a file could not be read, and its inode was kept");
        remove_failed();
        return;
    }
    own_log.broken = false;
    KT_REQUIRE(inode_get(&own, 5, &inode) == 0);
    inode->inode_unsure = true;
    inode_put(inode);
    if (unused() != 1)
        KT_FAIL("a file may have changed, and its inode was kept");
    KT_REQUIRE(inode_get(&own, 4, &inode) == 0);
    inode_end(&own);
    KT_EQ(unused(), 0);
    KT_EQ(own_log.freed, 0); /* file 4 is in use */
    inode_put(inode);
    if (unused() != 0)
        KT_FAIL("a file was in use when its file system was unmounted; later "
                "it was released, and its inode was kept");
    else
        KT_EQ(own_log.freed, 1);
    KT_TRUE(test_fs_end());
}

/* Releases the inodes of files 3, 2 and 4 in this order, and uses 3 again: the
 * least recently used is 2, then 4, then 3. */
static void use_three(void)
{
    struct inode *a = get(2), *b = get(3), *c = get(4);

    FS_VERIFY(); /* in use, they are on no list */
    inode_put(b);
    inode_put(a);
    inode_put(c);
    inode_put(get(3));
}

LAB_TEST(5, oldest, LAB_UP)
{
    static const uint32_t want[] = {2, 4, 3};
    size_t reclaimed, others;

    test_fs_begin();
    guard_list();
    reclaimed = totals().total_reclaimed;
    use_three();
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        KT_EQ(inode_reclaim(1), 1);
        if (test_fs_log.evicted != want[i])
            KT_FAIL("dropped as number %zu was the inode of file %u, not of %u",
                    i + 1, test_fs_log.evicted, want[i]);
    }
    KT_EQ(inode_reclaim(1), 0);
    KT_EQ(totals().total_reclaimed, reclaimed + 3);
    use_three();
    KT_EQ(test_fs_log.reads, 6); /* none was still in the table */
    KT_EQ(inode_reclaim(2), 2);
    KT_EQ(unused(), 1);
    FS_VERIFY();
    leave_other(); /* which may stay, between files 3 and 2 */
    inode_put(get(2));
    others = unused() - 2;
    if (!test_fs_end()) /* by inode_flush */
        KT_FAIL("take_oldest found %u of the 2 unused inodes of a file system "
                "that is unmounted; one of another is on the list between them",
                test_fs_log.evictions - 5);
    KT_EQ(test_fs_log.evictions, 7);
    KT_EQ(unused(), others);
}

/* Allocates all memory, page by page, and frees it. Returns the number of
 * pages. */
static size_t take_all(void)
{
    void **last = NULL, **page;
    size_t n = 0;

    for (; (page = kmem_alloc(3 * PAGE_SIZE, KM_NOSLEEP)) != NULL; n += 3) {
        *page = last;
        last = page;
    }
    while ((page = last) != NULL) {
        last = *page;
        kmem_free(page, 3 * PAGE_SIZE);
    }
    return n;
}

LAB_TEST(5, squeeze, LAB_UP)
{
    struct kmem_cache_stat stat;
    struct inode *kept;
    size_t before;

    test_fs_begin();
    kmem_cache_stat(kmem_cache_find("inode"), &stat);
    before = stat.stat_inuse;
    kept = get(5);
    for (uint32_t n = 10; n < 1010; n++)
        inode_put(get(n));
    KT_EQ(unused(), 1000);
    KT_NE(take_all(), 0);
    KT_EQ(unused(), 0);
    KT_EQ(test_fs_log.evictions, 1000);
    KT_TRUE(get(5) == kept);
    kmem_cache_stat(kmem_cache_find("inode"), &stat);
    KT_EQ(stat.stat_inuse, before + 1);
    KT_EQ(stat.stat_free_slabs, 0); /* their slabs were released too */
    inode_put(kept);
    inode_put(kept);
    KT_TRUE(test_fs_end());
}
