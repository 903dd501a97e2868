/*
 * Files of the RAM file system: contents, sizes, memory.
 */
#include "kernel/fs/tests/fs_test.h"
#include "kernel/vm/space.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"
#include "tools/workshop/stress/fail.h"
#include "mm/inspect/kmem_stat.h"

#define BAD ((void *)0x1000) /* nothing is mapped there */

static size_t inuse(const char *cache)
{
    struct kmem_cache_stat stat;

    kmem_cache_stat(kmem_cache_find(cache), &stat);
    return stat.stat_inuse;
}

/* T and in it an empty file f, with a reference. */
static struct inode *begin(void)
{
    struct inode *f = NULL;

    fs_test_begin();
    KT_REQUIRE(fs_create_file(T "/f", NULL, O_EXCL, &f) == 0);
    return f;
}

static void end(struct inode *f)
{
    inode_put(f);
    fs_test_end();
}

/* Whether bytes [from, to) of the file are all `c`. */
static bool all(struct inode *f, uint32_t from, uint32_t to, char c)
{
    char buf[256];

    while (from < to) {
        ssize_t n = inode_read(f, from, buf, MIN(sizeof(buf), to - from));

        if (n <= 0)
            return false;
        for (ssize_t i = 0; i < n; i++)
            if (buf[i] != c)
                return false;
        from += (uint32_t)n;
    }
    return true;
}

/* A page full of one character, for writing. */
static char *fill(char c, size_t n)
{
    memset(fs_test_bytes, c, n);
    return fs_test_bytes;
}

KTEST(ramfs, written_bytes_are_read)
{
    struct inode *f = begin();
    char buf[8];

    KT_EQ(inode_read(f, 0, buf, sizeof(buf)), 0);
    KT_EQ(fs_test_write(f, 0, "hello", 5), 5);
    KT_EQ(f->inode_size, 5);
    KT_EQ(inode_read(f, 0, buf, sizeof(buf)), 5);
    KT_EQ(memcmp(buf, "hello", 5), 0);
    KT_EQ(inode_read(f, 3, buf, 1), 1);
    KT_EQ(buf[0], 'l');
    KT_EQ(inode_read(f, 5, buf, 1), 0);
    KT_EQ(inode_read(f, UINT32_MAX, buf, 1), 0);
    KT_EQ(fs_test_write(f, 1, "", 0), 0);
    KT_EQ(fs_test_write(f, 9, "", 0), 0);
    KT_EQ(f->inode_size, 5);
    end(f);
}

KTEST(ramfs, across_pages)
{
    struct inode *f = begin();

    KT_EQ(fs_test_write(f, 0, fill('a', 10000), 10000), 10000);
    KT_EQ(fs_test_write(f, 4000, fill('b', 5000), 5000), 5000);
    KT_EQ(f->inode_size, 10000);
    KT_TRUE(all(f, 0, 4000, 'a'));
    KT_TRUE(all(f, 4000, 9000, 'b'));
    KT_TRUE(all(f, 9000, 10000, 'a'));
    KT_EQ(inuse("ramfs_page"), 3);
    end(f);
    KT_EQ(inuse("ramfs_page"), 0);
}

KTEST(ramfs, holes_are_zeroes_and_cost_nothing)
{
    struct inode *f = begin();

    KT_EQ(fs_test_write(f, MIB(2) + 5, "x", 1), 1);
    KT_EQ(f->inode_size, MIB(2) + 6);
    KT_EQ(inuse("ramfs_page"), 1);
    KT_TRUE(all(f, 0, 5000, 0));
    KT_TRUE(all(f, MIB(2) - 100, MIB(2) + 5, 0));
    KT_TRUE(all(f, MIB(2) + 5, MIB(2) + 6, 'x'));
    KT_EQ(inuse("ramfs_page"), 1); /* reading makes none */
    end(f);
}

KTEST(ramfs, longer_and_shorter)
{
    struct inode *f = begin();

    KT_EQ(fs_test_write(f, 0, fill('a', 9000), 9000), 9000);
    KT_EQ(fs_test_truncate(f, 5000), 0);
    KT_EQ(f->inode_size, 5000);
    KT_EQ(inuse("ramfs_page"), 2);
    KT_EQ(fs_test_truncate(f, 12000), 0);
    KT_TRUE(all(f, 0, 5000, 'a'));
    KT_TRUE(all(f, 5000, 12000, 0)); /* not the old bytes */
    KT_EQ(fs_test_truncate(f, PAGE_SIZE), 0);
    KT_EQ(inuse("ramfs_page"), 1);
    KT_TRUE(all(f, 0, PAGE_SIZE, 'a'));
    KT_EQ(fs_test_truncate(f, 0), 0);
    KT_EQ(inuse("ramfs_page"), 0);
    KT_TRUE(ramfs_node_of(f)->file_page == NULL);
    end(f);
}

KTEST(ramfs, the_largest_file)
{
    struct inode *f = begin();
    char buf[4];

    KT_EQ(fs_test_truncate(f, RAMFS_FILE_MAX), 0);
    KT_EQ(fs_test_truncate(f, RAMFS_FILE_MAX + 1), -EFBIG);
    KT_EQ(fs_test_write(f, RAMFS_FILE_MAX - 2, "abc", 3), 2);
    KT_EQ(fs_test_write(f, RAMFS_FILE_MAX, "a", 1), -EFBIG);
    KT_EQ(fs_test_write(f, UINT32_MAX, "a", 1), -EFBIG);
    KT_EQ(fs_test_write(f, RAMFS_FILE_MAX, "", 0), 0);
    KT_EQ(inode_read(f, RAMFS_FILE_MAX - 2, buf, 4), 2);
    KT_EQ(memcmp(buf, "ab", 2), 0);
    end(f);
}

/* ---- unmapped buffers --------------------------------------------------- */

KTEST(ramfs, a_bad_buffer_changes_nothing)
{
    struct inode *f = begin();

    KT_EQ(fs_test_write(f, 0, BAD, 10), -EFAULT);
    KT_EQ(fs_test_write(f, 0, BAD, PAGE_SIZE), -EFAULT);
    KT_EQ(f->inode_size, 0);
    KT_EQ(inuse("ramfs_page"), 0);
    KT_EQ(fs_test_write(f, 0, "hello", 5), 5);
    KT_EQ(inode_read(f, 0, BAD, 5), -EFAULT);
    KT_EQ(fs_test_write(f, 3, BAD, 5), -EFAULT);
    KT_TRUE(fs_test_has(T "/f", "hello"));
    end(f);
}

static void enter(struct space *s, paddr_t cr3)
{
    task_self()->task_space = s;
    task_self()->task_cr3 = cr3;
    write_cr3(cr3);
}

static void half_there_end(void *unused UNUSED)
{
    struct space *s = task_self()->task_space;

    if (s == NULL)
        return;
    enter(NULL, paging_kernel_cr3());
    space_destroy(s);
}

/* Memory of which the second page is missing: copies fail in the middle. */
static char *half_there(void)
{
    struct space *s = space_create(NULL);
    uaddr_t at = USER_BASE;
    int error;

    KT_REQUIRE(s != NULL);
    ktest_undo(half_there_end, NULL);
    enter(s, space_cr3(s));
    KT_REQUIRE(space_add_region(s, at, at + PAGE_SIZE, PROT_READ | PROT_WRITE,
                                REGION_IMAGE) == 0);
    memset(space_touch(s, at, true, &error), 'x', PAGE_SIZE);
    return (char *)at;
}

KTEST(ramfs, a_failed_write_leaves_zeroes)
{
    struct inode *f = begin();
    char *p = half_there();

    KT_EQ(fs_test_write(f, 0, "hello", 5), 5);
    KT_EQ(fs_test_write(f, 5, p + PAGE_SIZE - 8, 16), -EFAULT);
    KT_EQ(f->inode_size, 5);
    KT_EQ(fs_test_truncate(f, 100), 0);
    KT_TRUE(all(f, 5, 100, 0));
    /* A whole page is good, the next is not. */
    KT_EQ(fs_test_write(f, 0, p, 2 * PAGE_SIZE), PAGE_SIZE);
    KT_EQ(f->inode_size, PAGE_SIZE);
    KT_EQ(inuse("ramfs_page"), 1);
    KT_EQ(fs_test_write(f, PAGE_SIZE, p + 1, PAGE_SIZE), -EFAULT);
    KT_EQ(inuse("ramfs_page"), 1);
    KT_TRUE(all(f, 0, PAGE_SIZE, 'x'));
    /* Reading into it: what has been moved counts. */
    KT_EQ(fs_test_truncate(f, 3 * PAGE_SIZE), 0);
    KT_EQ(inode_read(f, PAGE_SIZE, p, 2 * PAGE_SIZE), PAGE_SIZE);
    KT_EQ(inode_read(f, 0, p + PAGE_SIZE, 1), -EFAULT);
    half_there_end(NULL);
    end(f);
}

KTEST(ramfs, devices_and_directories_have_no_contents)
{
    struct inode *f = begin();
    struct inode *device, *dir;
    char c;

    KT_EQ(fs_mknod(T "/device", NULL, FILE_DEVICE, 77), 0);
    device = fs_test_get(T "/device");
    dir = fs_test_get(T);
    KT_EQ(device->inode_type, FILE_DEVICE);
    KT_EQ(device->inode_device, 77);
    KT_EQ(inode_read(device, 0, &c, 1), -EINVAL);
    KT_EQ(fs_test_write(device, 0, "x", 1), -EINVAL);
    KT_EQ(fs_test_truncate(device, 0), -EINVAL);
    KT_EQ(inode_read(dir, 0, &c, 1), -EISDIR);
    KT_EQ(fs_test_write(dir, 0, "x", 1), -EINVAL);
    KT_EQ(fs_test_truncate(dir, 0), -EINVAL);
    inode_put(device);
    inode_put(dir);
    end(f);
}

/* ---- out of memory ------------------------------------------------------ */

static void **flood;

/* Takes memory in pieces of `size` until there is none. */
static void take_all(size_t size)
{
    void **p;

    while ((p = kmem_alloc(size, KM_NOSLEEP)) != NULL) {
        p[0] = flood;
        p[1] = (void *)size;
        flood = p;
    }
}

static void free_taken(unsigned n)
{
    while (flood != NULL && n-- > 0) {
        void **p = flood;

        flood = p[0];
        kmem_free(p, (size_t)p[1]);
    }
}

KTEST(ramfs, a_write_that_runs_out_of_memory)
{
    struct inode *f = begin();
    size_t pages, slots;
    ssize_t n;

    take_all(PAGE_SIZE);
    free_taken(4);
    pages = inuse("ramfs_page");
    n = fs_test_write(f, 0, fill('a', 3 * PAGE_SIZE), 3 * PAGE_SIZE);
    KT_TRUE(n > 0 && n % PAGE_SIZE == 0);
    while (n > 0)
        n = fs_test_write(f, f->inode_size, fill('a', PAGE_SIZE), PAGE_SIZE);
    KT_EQ(n, -ENOMEM);
    KT_EQ(inuse("ramfs_page") - pages, f->inode_size / PAGE_SIZE);
    KT_TRUE(all(f, 0, f->inode_size, 'a'));
    slots = ramfs_node_of(f)->file_slots;
    KT_EQ(fs_test_write(f, MIB(40), "x", 1), -ENOMEM);
    KT_EQ(ramfs_node_of(f)->file_slots, slots);
    FS_VERIFY();
    free_taken(UINT32_MAX);
    end(f);
}

/* Tries an operation with its n-th request for memory failing, for n = 1, 2, 3
 * … until none fails. If the operation fails, the number of entries must not
 * change. */
static void fail_each(enum kmem_fail_kind kind, int (*fn)(void))
{
    size_t entries = inuse("ramfs_entry");
    size_t nodes = inuse("ramfs_node");
    bool fired = true;
    unsigned n = 0;
    int r = 0;

    while (fired && n++ < 20) {
        inode_reclaim(SIZE_MAX);
        kmem_reap(KMEM_REAP_ALL);
        kmem_fail_set(kind, n);
        r = fn();
        fired = kmem_fail_fired();
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        if (r == 0)
            break; /* succeeded without that memory */
        KT_EQ(r, -ENOMEM);
        KT_EQ(inuse("ramfs_entry"), entries);
        KT_EQ(inuse("ramfs_node"), nodes);
        FS_VERIFY();
    }
    KT_EQ(r, 0);
}

static int make_file(void)
{
    struct inode *made;
    int r = fs_create_file(T "/new", NULL, O_EXCL, &made);

    if (r == 0)
        inode_put(made);
    return r;
}

static int make_directory(void)
{
    return fs_mkdir(T "/dir", NULL);
}

static int make_link(void)
{
    return fs_link(T "/f", T "/link", NULL);
}

static int rename_directory(void)
{
    return fs_rename(T "/dir", T "/other/dir", NULL);
}

static void each_operation(enum kmem_fail_kind kind)
{
    struct inode *f = begin();

    KT_EQ(fs_mkdir(T "/other", NULL), 0);
    fail_each(kind, make_file);
    fail_each(kind, make_directory);
    fail_each(kind, make_link);
    fail_each(kind, rename_directory);
    KT_EQ(fs_test_look(T "/dir"), -ENOENT);
    KT_EQ(fs_test_look(T "/other/dir"), 0);
    KT_EQ(fs_test_look(T "/new"), 0);
    KT_EQ(fs_test_look(T "/link"), 0);
    end(f);
}

KTEST(ramfs, all_or_nothing_when_an_object_is_missing)
{
    each_operation(KMEM_FAIL_SLAB);
}

KTEST(ramfs, all_or_nothing_when_a_page_is_missing)
{
    each_operation(KMEM_FAIL_PAGE);
}

/* ---- many --------------------------------------------------------------- */

#define MANY 3000u

KTEST(ramfs, thousands_of_entries)
{
    struct inode *f = begin();
    size_t entries = inuse("ramfs_entry");
    struct inode *dir = fs_test_get(T);
    char name[16];

    KT_REQUIRE(dir != NULL);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "entry%u", i);
        KT_EQ(fs_mknod(name, dir, FILE_REGULAR, 0), 0);
    }
    KT_EQ(inuse("ramfs_entry"), entries + MANY);
    FS_VERIFY();
    KT_EQ(fs_test_count(dir, 500), MANY + 3);
    for (unsigned i = 0; i < MANY; i += 2) {
        snprintf(name, sizeof(name), "entry%u", i);
        KT_EQ(fs_unlink(name, dir), 0);
    }
    KT_EQ(fs_test_count(dir, PAGE_SIZE), MANY / 2 + 3);
    FS_VERIFY();
    inode_put(dir);
    end(f);
    KT_EQ(inuse("ramfs_entry"), entries - 2); /* T and f */
}

/* ---- names chosen to collide -------------------------------------------- */

#define CHOSEN 1024u
#define WORDS  14u

/*
 * Name i of 14 words, all of one hash if a word is added by
 * h = (h ^ word) * odd, h ^= h >> 15: bit 31 of a word flips bits 31 and 16 of
 * h, whatever h and the factor are, and the next word flips both back.
 */
static void flipped_name(uint32_t start UNUSED, uint32_t i, uint32_t *word)
{
    for (unsigned w = 0; w < WORDS; w++)
        word[w] =
            0x61616161 ^ (i >> w & 1) << 31 ^ (i << 1 >> w & 1) * 0x80010000u;
}

/* Name i of two words, likewise: the second takes h to the same value, which
 * needs the start value and the factor. */
static void inverted_name(uint32_t start, uint32_t i, uint32_t *word)
{
    uint32_t h;

    memset(word, 0, WORDS * sizeof(*word));
    word[0] = 0x61616161 ^ (i & 15) ^ (i >> 4 & 15) << 8 ^ (i >> 8) << 16;
    h = (start ^ word[0]) * 0x9e3779b1u;
    word[1] = h ^ h >> 15 ^ 0x12345678;
}

static void ordinary_name(uint32_t start UNUSED, uint32_t i, uint32_t *word)
{
    snprintf((char *)word, NAME_MAX, "%056u", i);
}

typedef void name_fn(uint32_t start, uint32_t i, uint32_t *word);

static bool is_name(const char *name)
{
    return strlen(name) % sizeof(uint32_t) == 0 && strchr(name, '/') == NULL;
}

/* Ticks that it takes to find each of CHOSEN files of these names in T. */
static uint64_t time_of_names(name_fn *make)
{
    uint32_t name[WORDS + 1] = {0};
    struct inode *f = begin();
    struct inode *dir = fs_test_get(T);
    const struct ramfs_node *node = ramfs_node_of(dir);
    uint64_t ticks = 0;

    for (unsigned made = 0, i = 0; made < CHOSEN; i++) {
        make((uintptr_t)node, i, name);
        if (!is_name((char *)name))
            continue;
        KT_REQUIRE(fs_mknod((char *)name, dir, FILE_REGULAR, 0) == 0);
        made++;
    }
    for (unsigned found = 0, i = 0; found < CHOSEN; i++) {
        uint64_t start;

        make((uintptr_t)node, i, name);
        if (!is_name((char *)name))
            continue;
        start = rdtsc();
        found += ramfs_find(node, (char *)name, strlen((char *)name)) != NULL;
        ticks += rdtsc() - start;
    }
    inode_put(dir);
    end(f);
    return ticks;
}

/* Finding them takes no longer than finding ordinary names. */
KTEST(ramfs, names_cannot_be_chosen_to_collide)
{
    uint64_t ordinary;

    KT_NEEDS(KIB(512));
    KT_NEEDS_COUNTING();
    ordinary = time_of_names(ordinary_name);
    KT_LE(time_of_names(flipped_name), 2 * ordinary);
    KT_LE(time_of_names(inverted_name), 2 * ordinary);
}

/* ---- numbers ------------------------------------------------------------ */

/* Each file has the next number, also where the node of a removed one was. */
KTEST(ramfs, numbers_count_files)
{
    struct inode *f = begin();
    uint32_t first = f->inode_number;

    for (uint32_t i = 1; i < 5; i++) {
        inode_put(f);
        KT_EQ(fs_unlink(T "/f", NULL), 0);
        KT_REQUIRE(fs_create_file(T "/f", NULL, O_EXCL, &f) == 0);
        KT_EQ(f->inode_number, first + i);
    }
    end(f);
}

/* After the last number come those that no file has. */
KTEST(ramfs, numbers_start_again)
{
    uint32_t last = ramfs_last_number;
    struct inode *f, *dir;

    ramfs_last_number = UINT32_MAX - 2;
    f = begin(); /* T and f */
    KT_EQ(f->inode_number, UINT32_MAX);
    dir = fs_test_get(T);
    KT_EQ(dir->inode_number, UINT32_MAX - 1);
    for (char name[] = "A"; name[0] <= 'Z'; name[0]++) {
        struct inode *made = NULL;

        KT_REQUIRE(fs_create_file(name, dir, O_EXCL, &made) == 0);
        KT_TRUE(made->inode_number != 0 && made->inode_number < UINT32_MAX - 2);
        inode_put(made);
        FS_VERIFY();
    }
    inode_put(dir);
    end(f);
    ramfs_last_number = last;
}
