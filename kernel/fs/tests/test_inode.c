/*
 * The inode cache and the hash table below it.
 *
 * Tests: kernel/fs/inode.c, kernel/fs/fs.c, kernel/fs/hash.c
 */
#include "kernel/fs/tests/fs_test.h"
#include "kernel/x86/cpu.h"
#include "mm/buddy.h"
#include "mm/inspect/kmem_stat.h"

/* ---- the hash table ----------------------------------------------------- */

#define LINKS 1000u

static struct spinlock table_lock = SPINLOCK_INIT("t_hash", 1);
static struct hash table;

static void add(struct hash_link *l, uint32_t hash)
{
    l->link_hash = hash;
    spin_lock(&table_lock);
    hash_insert(&table, l);
    spin_unlock(&table_lock);
}

static void drop(struct hash_link *l)
{
    spin_lock(&table_lock);
    hash_remove(&table, l);
    spin_unlock(&table_lock);
}

static bool contains(const struct hash_link *l)
{
    const struct hash_link *at = *hash_bucket(&table, l->link_hash);

    while (at != NULL && at != l)
        at = at->link_next;
    return at == l;
}

static unsigned contained(const struct hash_link *links, unsigned from)
{
    unsigned n = 0;

    for (unsigned i = from; i < LINKS; i++)
        n += contains(&links[i]);
    return n;
}

KTEST(hash, an_entry_is_found_until_it_is_removed)
{
    struct hash_link *links = kmem_alloc(LINKS * sizeof(*links), KM_SLEEP);

    for (uint32_t i = 0; i < LINKS; i++) {
        add(&links[i], i * 0x9e3779b1u >> 7);
        KT_EQ(table.hash_count, i + 1);
        if (i % 97 == 0)
            KT_TRUE(hash_verify(&table) == NULL);
    }
    KT_EQ(contained(links, 0), LINKS);
    for (uint32_t i = 0; i < LINKS; i++) {
        drop(&links[i]);
        if (i % 97 == 0) {
            KT_TRUE(hash_verify(&table) == NULL);
            KT_EQ(contained(links, 0), LINKS - 1 - i);
        }
    }
    KT_EQ(table.hash_count, 0);
    kmem_free(links, LINKS * sizeof(*links));
}

KTEST(hash, equal_hashes_share_a_bucket)
{
    struct hash_link links[LINKS / 8];

    for (uint32_t i = 0; i < ARRAY_SIZE(links); i++)
        add(&links[i], 42);
    KT_TRUE(hash_verify(&table) == NULL);
    for (uint32_t i = 0; i < ARRAY_SIZE(links); i++) {
        KT_TRUE(contains(&links[i]));
        drop(&links[i]);
        KT_TRUE(!contains(&links[i]));
    }
    KT_TRUE(hash_verify(&table) == NULL);
}

KTEST(hash, the_verifier_finds_each_fault)
{
    struct hash_link first, second;

    add(&first, 42);
    add(&second, 42);
    second.link_hash = 43;
    KT_TRUE(hash_verify(&table) != NULL);
    second.link_hash = 42;
    first.link_next = &second;
    KT_TRUE(hash_verify(&table) != NULL);
    first.link_next = NULL;
    table.hash_count = 3;
    KT_TRUE(hash_verify(&table) != NULL);
    table.hash_count = 2;
    KT_TRUE(hash_verify(&table) == NULL);
    drop(&first);
    drop(&second);
}

/* ---- finding and keeping ------------------------------------------------ */

static struct inode *get(uint32_t number)
{
    struct inode *inode = NULL;

    KT_REQUIRE(inode_get(&test_fs, number, &inode) == 0);
    return inode;
}

KTEST(inode, a_file_has_one_inode)
{
    struct inode *a, *b;

    test_fs_begin();
    a = get(7);
    b = get(7);
    KT_TRUE(a == b);
    KT_EQ(a->inode_refs, 2);
    KT_EQ(a->inode_size, 7);
    KT_EQ(test_fs_log.reads, 1);
    inode_put(a);
    inode_put(b);
    KT_TRUE(test_fs_end());
}

KTEST(inode, every_file_without_a_link_is_dropped)
{
    struct inode *inodes[200];

    test_fs_begin();
    for (uint32_t i = 0; i < ARRAY_SIZE(inodes); i++) {
        inodes[i] = get(i + 100);
        inodes[i]->inode_nlink = i % 8 == 0;
    }
    inode_drop_unlinked(&test_fs);
    for (uint32_t i = 0; i < ARRAY_SIZE(inodes); i++) {
        KT_EQ(inodes[i]->inode_state, i % 8 == 0 ? INODE_READY : INODE_GONE);
        inode_put(inodes[i]);
    }
    KT_TRUE(test_fs_end());
}

KTEST(inode, an_unused_inode_is_found_again)
{
    struct inode_totals before, after;
    struct inode *a;

    test_fs_begin();
    a = get(7);
    inode_totals(&before);
    inode_put(a);
    inode_totals(&after);
    KT_EQ(after.total_unused, before.total_unused + 1);
    KT_TRUE(get(7) == a);
    inode_totals(&after);
    KT_EQ(after.total_unused, before.total_unused);
    KT_EQ(after.total_hits, before.total_hits + 1);
    KT_EQ(test_fs_log.reads, 1);
    KT_EQ(test_fs_log.evictions, 0);
    inode_put(a);
    KT_TRUE(test_fs_end());
    KT_EQ(test_fs_log.evictions, 1);
}

KTEST(inode, the_least_recently_used_goes_first)
{
    struct inode *a, *b, *c;

    test_fs_begin();
    a = get(2);
    b = get(3);
    c = get(4);
    inode_put(b);
    inode_put(a);
    inode_put(c);
    KT_TRUE(get(3) == b); /* used again: now the youngest */
    inode_put(b);
    KT_EQ(inode_reclaim(1), 1);
    KT_EQ(test_fs_log.evicted, 2);
    KT_EQ(inode_reclaim(1), 1);
    KT_EQ(test_fs_log.evicted, 4);
    KT_EQ(inode_reclaim(5), 1);
    KT_EQ(test_fs_log.evicted, 3);
    KT_TRUE(test_fs_end());
}

KTEST(inode, references_keep_it)
{
    struct inode *a, *b;

    test_fs_begin();
    a = get(2);
    b = inode_ref(a);
    inode_put(a);
    KT_EQ(inode_reclaim(SIZE_MAX), 0);
    KT_TRUE(!inode_flush(&test_fs));
    KT_EQ(b->inode_number, 2);
    inode_put(b);
    inode_put(NULL);
    KT_TRUE(test_fs_end());
}

KTEST(inode, without_links_it_goes_with_its_last_reference)
{
    struct inode *a;

    test_fs_begin();
    a = get(2);
    inode_ref(a);
    a->inode_nlink = 0;
    inode_put(a);
    KT_EQ(test_fs_log.evictions, 0);
    inode_put(a);
    KT_EQ(test_fs_log.evictions, 1);
    KT_EQ(test_fs.fs_inodes, 0);
    KT_TRUE(test_fs_end());
}

static unsigned freed, freed_too_early;

static int read_any(struct inode *inode)
{
    inode->inode_type = FILE_REGULAR;
    inode->inode_nlink = 1;
    return 0;
}

static bool ends_meanwhile(struct inode *inode)
{
    inode_end(inode->inode_fs);
    freed_too_early += freed;
    return false;
}

static void count_freed(struct fs *fs)
{
    KT_EQ(fs->fs_inodes, 0);
    freed++;
}

static const struct fs_ops ending_ops = {
    .fs_read_inode = read_any,
    .fs_evict = ends_meanwhile,
    .fs_free = count_freed,
};
static struct fs ending = {.fs_ops = &ending_ops, .fs_name = "ending"};

/* Its last inode is being evicted while it ends: it lives until that is
 * done. */
KTEST(inode, a_file_system_is_freed_once_and_last)
{
    struct inode *inode;

    ending.fs_id = fs_new_id();
    ending.fs_ended = false;
    freed = freed_too_early = 0;
    KT_REQUIRE(inode_get(&ending, 2, &inode) == 0);
    inode_put(inode);
    KT_EQ(freed, 0);
    inode_flush(&ending);
    KT_EQ(freed_too_early, 0);
    KT_EQ(freed, 1);
    inode_end(&ending); /* it has no inode */
    KT_EQ(freed, 2);
}

KTEST(inode, an_unneeded_blank_inode_is_freed)
{
    struct inode *a, *b, *blank;

    test_fs_begin();
    a = get(2);
    blank = inode_blank();
    KT_REQUIRE(blank != NULL);
    KT_REQUIRE(inode_get_with(&test_fs, 2, blank, &b) == 0);
    KT_TRUE(a == b);
    blank = inode_blank();
    KT_REQUIRE(blank != NULL);
    inode_put(b);
    KT_REQUIRE(inode_get_with(&test_fs, 3, blank, &b) == 0);
    KT_TRUE(b == blank);
    inode_put(a);
    inode_put(b);
    KT_TRUE(test_fs_end());
}

KTEST(inode, a_blank_one_has_nothing_of_another_file)
{
    struct inode *blank;

    test_fs_begin();
    inode_put(get(77));
    KT_TRUE(test_fs_end());
    blank = inode_blank();
    KT_REQUIRE(blank != NULL);
    KT_EQ(strcmp(inode_type_name(blank), "new"), 0);
    KT_EQ(blank->inode_size, 0);
    KT_EQ(blank->inode_nlink, 0);
    inode_free(blank);
}

KTEST(inode, thousands_leave_nothing)
{
    struct inode_totals totals;
    struct kmem_cache_stat stat;
    size_t before;

    test_fs_begin();
    inode_totals(&totals);
    before = totals.total_cached;
    for (uint32_t n = 2; n < 2002; n++)
        inode_put(get(n));
    inode_totals(&totals);
    KT_EQ(totals.total_cached, before + 2000);
    KT_EQ(totals.total_unused, 2000);
    kmem_cache_stat(kmem_cache_find("inode"), &stat);
    KT_EQ(stat.stat_inuse, before + 2000);
    FS_VERIFY();
    KT_EQ(inode_reclaim(500), 500);
    FS_VERIFY();
    for (uint32_t n = 2; n < 2002; n++)
        inode_put(get(n));
    KT_EQ(test_fs_log.reads, 2500);
    KT_TRUE(test_fs_end());
    kmem_cache_stat(kmem_cache_find("inode"), &stat);
    KT_EQ(stat.stat_inuse, before);
}

/* ---- at the same moment ------------------------------------------------- */

static struct inode *got[4];
static int result[4];

static void get_nine(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg;

    result[i] = inode_get(&test_fs, 9, &got[i]);
}

static void all_get_nine(void)
{
    int status;

    for (uintptr_t i = 0; i < ARRAY_SIZE(got); i++) {
        got[i] = NULL;
        KT_TRUE(task_create("getter", get_nine, (void *)i, PRIORITY_KERNEL) !=
                NULL);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(got); i++)
        KT_GE(task_wait(-1, &status, 0), 1);
}

KTEST(inode, tasks_that_ask_at_the_same_moment_get_one)
{
    struct inode_totals before, after;

    test_fs_begin();
    test_fs_log.sleep_ms = 20;
    inode_totals(&before);
    all_get_nine();
    inode_totals(&after);
    KT_EQ(test_fs_log.reads, 1);
    KT_EQ(after.total_hits - before.total_hits, 3); /* three waited */
    for (unsigned i = 0; i < ARRAY_SIZE(got); i++) {
        KT_EQ(result[i], 0);
        KT_REQUIRE(got[i] != NULL && got[i] == got[0]);
        KT_EQ(got[i]->inode_size, 9);
        inode_put(got[i]);
    }
    KT_TRUE(test_fs_end());
}

KTEST(inode, one_that_cannot_be_read_leaves_nothing)
{
    struct inode *a;

    test_fs_begin();
    test_fs_log.fail = 9;
    KT_EQ(inode_get(&test_fs, 9, &a), -EIO);
    KT_EQ(test_fs.fs_inodes, 0);
    test_fs_log.sleep_ms = 20;
    all_get_nine();
    for (unsigned i = 0; i < ARRAY_SIZE(got); i++)
        KT_EQ(result[i], -EIO);
    KT_EQ(test_fs.fs_inodes, 0);
    KT_EQ(test_fs_log.evictions, 0);
    KT_TRUE(test_fs_end());
}

/* ---- memory pressure ---------------------------------------------------- */

/* Allocates three pages at a time until there are no more, and frees all.
 * Returns the number of allocations. */
static size_t take_all_pages(void)
{
    void **last = NULL;
    size_t n = 0;
    void **page;

    while ((page = kmem_alloc(3 * PAGE_SIZE, KM_NOSLEEP)) != NULL) {
        *page = last;
        last = page;
        n++;
    }
    while (last != NULL) {
        page = last;
        last = *page;
        kmem_free(page, 3 * PAGE_SIZE);
    }
    return n;
}

KTEST(inode, memory_pressure_takes_the_unused)
{
    struct inode_totals before, after;
    struct inode *kept;

    test_fs_begin();
    inode_totals(&before);
    kept = get(5);
    for (uint32_t n = 10; n < 1010; n++)
        inode_put(get(n));
    KT_NE(take_all_pages(), 0);
    inode_totals(&after);
    KT_EQ(after.total_unused, 0);
    KT_EQ(after.total_reclaimed, before.total_reclaimed + 1000);
    KT_EQ(test_fs_log.evictions, 1000);
    KT_TRUE(get(5) == kept);
    inode_put(kept);
    inode_put(kept);
    KT_TRUE(test_fs_end());
}

/* With no page left and no object free, all are in use: there is no inode. */
KTEST(inode, without_memory_there_is_an_error_and_nothing_else)
{
    struct inode **list = kmem_zalloc(9000 * sizeof(*list), KM_SLEEP);
    void **last = NULL, **page;
    uint32_t n = 2;
    int r = 0;

    test_fs_begin();
    while ((page = kmem_alloc(PAGE_SIZE, KM_NOSLEEP)) != NULL) {
        *page = last;
        last = page;
    }
    for (; r == 0 && n < 9000; n++)
        r = inode_get(&test_fs, n, &list[n]);
    KT_EQ(r, -ENOMEM);
    FS_VERIFY();
    for (; (page = last) != NULL; kmem_free(page, PAGE_SIZE))
        last = *page;
    for (uint32_t i = 2; i < n; i++)
        inode_put(list[i]);
    KT_TRUE(test_fs_end());
    kmem_free(list, 9000 * sizeof(*list));
}

/* ---- numbers chosen to collide ------------------------------------------ */

#define CHOSEN 1024u

static uint32_t ordinary_number(uint32_t i)
{
    return 2 + i;
}

/* Number i of those whose lowest 22 bits are equal after a multiplication by
 * 0x9e3779b1, whose inverse this is, and h ^= h >> 16. */
static uint32_t inverted_number(uint32_t i)
{
    uint32_t h = i << 22 | 0x12345;

    return (h ^ h >> 16) * 0x0e8b2f51u ^ test_fs.fs_id << 24;
}

/* Ticks that it takes to find each of CHOSEN inodes. */
static uint64_t time_of_numbers(uint32_t (*number)(uint32_t i))
{
    uint64_t ticks = 0;

    test_fs_begin();
    for (uint32_t i = 0; i < CHOSEN; i++)
        get(number(i));
    for (uint32_t i = 0; i < CHOSEN; i++) {
        uint64_t start = rdtsc();
        struct inode *inode = get(number(i));

        ticks += rdtsc() - start;
        inode_put(inode);
        inode_put(inode);
    }
    KT_TRUE(test_fs_end());
    return ticks;
}

/* A server's numbers are found as fast as others. */
KTEST(inode, numbers_cannot_be_chosen_to_collide)
{
    uint64_t ordinary;

    KT_NEEDS(KIB(512));
    KT_NEEDS_COUNTING();
    ordinary = time_of_numbers(ordinary_number);
    KT_LE(time_of_numbers(inverted_number), 2 * ordinary);
}

/* ---- the rest ----------------------------------------------------------- */

/* Every inode comes once, in order. */
KTEST(inode, snapshots_show_each_inode)
{
    struct inode_stat st = {.stat_fs_id = 0}, last = st;
    struct inode_totals all;
    bool seen = false;
    struct inode *a;
    size_t shown;
    char byte;

    test_fs_begin();
    a = get(77);
    inode_totals(&all);
    for (shown = 0; inode_next(&st); shown++) {
        KT_TRUE(st.stat_fs_id > last.stat_fs_id ||
                (st.stat_fs_id == last.stat_fs_id &&
                 st.stat_number > last.stat_number));
        last = st;
        seen |= strcmp(st.stat_fs, "test") == 0 && st.stat_number == 77 &&
                st.stat_refs == 1;
    }
    KT_EQ(shown, all.total_cached);
    KT_TRUE(seen);
    KT_EQ(inode_read(a, 0, &byte, 1), -EINVAL);
    KT_EQ(inode_read(path_root(), 0, &byte, 1), -EISDIR);
    inode_put(a);
    KT_TRUE(test_fs_end());
}

KTEST(inode, the_verifier_finds_each_fault)
{
    const char *where;
    struct inode *a;

    test_fs_begin();
    a = get(2);
    a->inode_number = 3;
    KT_TRUE(inode_verify(&where) != NULL);
    a->inode_number = 2;
    inode_put(a);
    KT_SOUND(inode_verify);
    a->inode_refs = 1;
    KT_TRUE(inode_verify(&where) != NULL);
    a->inode_refs = 0;
    a->inode_nlink = 0;
    KT_TRUE(inode_verify(&where) != NULL);
    a->inode_nlink = 1;
    KT_TRUE(test_fs_end());
}
