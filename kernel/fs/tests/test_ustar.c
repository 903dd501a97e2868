/*
 * The archive reader, on archives that are made here.
 */
#include "kernel/fs/tests/fs_test.h"
#include "mm/kmem.h"

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12];
    char checksum[8], type, linkname[100], magic[6], version[2];
    char uname[32], gname[32], devmajor[8], devminor[8], prefix[155];
    char unused[12];
};

/* ---- making archives ---------------------------------------------------- */

#define TAR_MAX KIB(16)

static char *tar; /* TAR_MAX bytes */
static size_t tar_size;
static struct tar_header *tar_last; /* the header made last */

static void tar_free(void *unused)
{
    (void)unused;
    kmem_free(tar, TAR_MAX);
}

static void tar_begin(void)
{
    tar = kmem_zalloc(TAR_MAX, KM_SLEEP);
    tar_size = 0;
    ktest_undo(tar_free, NULL);
}

/* Makes the checksum right. */
static void tar_sum(struct tar_header *h)
{
    unsigned sum = 0;

    memset(h->checksum, ' ', sizeof(h->checksum));
    for (size_t i = 0; i < sizeof(*h); i++)
        sum += ((const uint8_t *)h)[i];
    snprintf(h->checksum, sizeof(h->checksum), "%06o", sum);
}

static struct tar_header *tar_add(const char *name, char type, const char *data)
{
    struct tar_header *h = (struct tar_header *)(tar + tar_size);

    strlcpy(h->name, name, sizeof(h->name));
    strlcpy(h->mode, "0000644", sizeof(h->mode));
    snprintf(h->size, sizeof(h->size), "%011o", (unsigned)strlen(data));
    h->type = type;
    memcpy(h->magic, "ustar", 6);
    memcpy(h->version, "00", 2);
    tar_sum(h);
    memcpy(h + 1, data, strlen(data));
    tar_size += sizeof(*h) * (data[0] == '\0' ? 1 : 2);
    tar_last = h;
    return h;
}

/* The size with the end mark. */
static size_t tar_end(void)
{
    return tar_size + 1024;
}

/* ---- cases -------------------------------------------------------------- */

static struct ramfs_node *target(void)
{
    struct ramfs_node *tmp = ramfs_find(ramfs_root(), "tmp", 3);

    return ramfs_find(tmp, "t", 1);
}

/* Makes T, and in the archive's memory an archive. */
static void begin(void)
{
    fs_test_begin();
    inode_reclaim(SIZE_MAX); /* no unpacked file has an inode */
    tar_begin();
}

static void end(void)
{
    fs_test_end();
    tar_free(NULL);
}

/* Empties T, in which an archive was unpacked, after a look at the tree. */
static void clear(void)
{
    FS_VERIFY();
    fs_test_empty(T);
    inode_reclaim(SIZE_MAX);
}

static unsigned unpack(void)
{
    return ustar_unpack(tar, tar_end(), target());
}

KTEST(ustar, files_and_directories)
{
    begin();
    tar_add("bin/", '5', "");
    tar_add("bin/ls", '0', "list");
    tar_add("./etc/motd", '\0', "hello\n");
    tar_add("empty", '0', "");
    tar_add("bin/", '5', "");
    KT_EQ(unpack(), 0);
    KT_TRUE(fs_test_has(T "/bin/ls", "list"));
    KT_TRUE(fs_test_has(T "/etc/motd", "hello\n"));
    KT_TRUE(fs_test_has(T "/empty", ""));
    end();
}

KTEST(ustar, missing_directories_are_made)
{
    begin();
    tar_add("a/b/c/d", '0', "deep");
    tar_add("a/b/c2/d", '0', "too");
    tar_add("/a//b/./e", '0', "and");
    KT_EQ(unpack(), 0);
    KT_TRUE(fs_test_has(T "/a/b/c/d", "deep"));
    KT_TRUE(fs_test_has(T "/a/b/c2/d", "too"));
    KT_TRUE(fs_test_has(T "/a/b/e", "and"));
    end();
}

KTEST(ustar, a_prefix_goes_before_the_name)
{
    begin();
    strlcpy(tar_add("name", '0', "x")->prefix, "one/two", 155);
    tar_sum(tar_last);
    KT_EQ(unpack(), 0);
    KT_TRUE(fs_test_has(T "/one/two/name", "x"));
    end();
}

/* Names that fill their fields have no NUL. */
KTEST(ustar, full_fields)
{
    struct tar_header *h;

    begin();
    h = tar_add("", '0', "full");
    for (unsigned i = 0; i < sizeof(h->name); i++)
        h->name[i] = i % 50 == 49 ? '/' : 'n';
    h->name[99] = 'n';
    for (unsigned i = 0; i < sizeof(h->prefix); i++)
        h->prefix[i] = i % 50 == 49 ? '/' : 'p';
    tar_sum(h);
    KT_EQ(unpack(), 0);
    KT_EQ(fs_test_look(T "/ppppppppppppppppppppppppppppppppppppppppppppppppp"),
          0);
    end();
}

KTEST(ustar, the_last_of_a_name_counts)
{
    begin();
    tar_add("f", '0', "first");
    tar_add("f", '0', "last");
    tar_add("d/x", '0', "x");
    tar_add("d", '0', "a directory");
    tar_add("f/y", '0', "a file");
    KT_EQ(unpack(), 2);
    KT_TRUE(fs_test_has(T "/f", "last"));
    KT_TRUE(fs_test_has(T "/d/x", "x"));
    end();
}

KTEST(ustar, refused_entries_are_counted)
{
    begin();
    tar_add("link", '1', "");
    tar_add("symlink", '2', "");
    tar_add("device", '3', "");
    tar_add("../up", '0', "up");
    tar_add("a/../../up", '0', "up");
    tar_add("nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", '0',
            "long");
    tar_add("ends/in/slash/", '0', "x");
    tar_add("", '0', "nothing");
    tar_add(".", '0', "dot");
    strlcpy(tar_add("size", '0', "")->size, "1x", 12);
    tar_sum(tar_last);
    tar_add("good", '0', "good");
    KT_EQ(unpack(), 10);
    KT_TRUE(fs_test_has(T "/good", "good"));
    KT_EQ(fs_test_look("/tmp/up"), -ENOENT);
    KT_EQ(fs_test_look(T "/link"), -ENOENT);
    end();
}

KTEST(ustar, unpacking_continues_after_a_broken_header)
{
    begin();
    tar_add("one", '0', "1");
    tar_add("two", '0', "2")->mode[0]++;
    tar_add("three", '0', "3");
    memset(tar_add("four", '0', "4")->magic, 'x', 6);
    tar_sum(tar_last);
    tar_add("five", '0', "5");
    KT_EQ(unpack(), 2);
    KT_TRUE(fs_test_has(T "/one", "1"));
    KT_EQ(fs_test_look(T "/two"), -ENOENT);
    KT_TRUE(fs_test_has(T "/three", "3"));
    KT_EQ(fs_test_look(T "/four"), -ENOENT);
    KT_TRUE(fs_test_has(T "/five", "5"));
    end();
}

/* The bytes after the end are valid, and must not be read. */
KTEST(ustar, cut_off_anywhere)
{
    char data[301];
    size_t one = 512 + sizeof(data) - 1;
    size_t two = 1024 + one;
    size_t size;

    begin();
    memset(data, 'x', sizeof(data) - 1);
    data[sizeof(data) - 1] = '\0';
    tar_add("a/one", '0', data);
    tar_add("a/two", '0', data);
    size = tar_end();
    for (size_t n = 0; n < size - 512; n += 37) {
        KT_EQ(ustar_unpack(tar, n, target()), n != 0);
        KT_EQ(fs_test_look(T "/a/one"), n >= one ? 0 : -ENOENT);
        KT_EQ(fs_test_look(T "/a/two"), n >= two ? 0 : -ENOENT);
        clear();
    }
    end();
}

KTEST(ustar, no_archive_is_an_empty_tree)
{
    begin();
    KT_EQ(ustar_unpack(NULL, 0, target()), 0);
    KT_EQ(unpack(), 0); /* nothing but the end mark */
    end();
}

/* ---- any bytes ---------------------------------------------------------- */

static uint32_t random_state;

static uint32_t next_random(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

/* Changes bytes of a header; every second time makes its checksum right. */
static void break_something(void)
{
    struct tar_header *h = (struct tar_header *)tar + next_random() % 6;
    char *bytes = (char *)h;

    for (unsigned n = 1 + next_random() % 4; n > 0; n--)
        bytes[next_random() % 512] = (char)next_random();
    if (next_random() % 2 == 0)
        tar_sum(h);
}

KTEST(ustar, any_bytes_at_all)
{
    random_state = 1;
    begin();
    for (unsigned i = 0; i < 60; i++) {
        tar_free(NULL);
        tar_begin();
        tar_add("d/one", '0', "1");
        tar_add("d/two", '0', "2");
        tar_add("e/", '5', "");
        break_something();
        unpack();
        clear();
    }
    end();
}

/* ---- contents stay where they are --------------------------------------- */

/* The file of an archive that has nothing else. */
static struct inode *unpacked_file(void)
{
    begin();
    tar_add("f", '0', "archived");
    KT_EQ(unpack(), 0);
    return fs_test_get(T "/f");
}

KTEST(ustar, contents_are_copied_when_written)
{
    struct inode *f;

    f = unpacked_file();
    KT_REQUIRE(f != NULL);
    KT_TRUE(ramfs_node_of(f)->file_page == NULL);
    KT_EQ(fs_test_write(f, 2, "XY", 2), 2);
    KT_TRUE(fs_test_has(T "/f", "arXYived"));
    KT_EQ(memcmp(tar_last + 1, "archived", 8), 0);
    KT_EQ(fs_test_truncate(f, 3), 0);
    KT_EQ(fs_test_truncate(f, 5), 0);
    KT_EQ(fs_test_write(f, 4, "!", 1), 1);
    inode_put(f);
    f = fs_test_get(T "/f");
    KT_EQ(ramfs_node_of(f)->file_data_size, 3);
    inode_put(f);
    end();
}

KTEST(ustar, shortened_without_a_page)
{
    struct inode *f;
    char buf[8];

    f = unpacked_file();
    KT_REQUIRE(f != NULL);
    KT_EQ(fs_test_truncate(f, 3), 0);
    KT_EQ(fs_test_truncate(f, 6), 0);
    KT_TRUE(ramfs_node_of(f)->file_page == NULL);
    KT_EQ(inode_read(f, 0, buf, sizeof(buf)), 6);
    KT_EQ(memcmp(buf, "arc\0\0\0", 6), 0);
    inode_put(f);
    end();
}
