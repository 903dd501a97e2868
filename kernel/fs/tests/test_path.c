/*
 * Paths: walking, mount points, and the path of a directory.
 */
#include "kernel/fs/tests/fs_test.h"

/* T/a/b/c are directories, T/f and T/a/g files. */
static void begin(void)
{
    fs_test_begin();
    KT_EQ(fs_mkdir(T "/a", NULL), 0);
    KT_EQ(fs_mkdir(T "/a/b", NULL), 0);
    KT_EQ(fs_mkdir(T "/a/b/c", NULL), 0);
    KT_EQ(fs_test_file(T "/f", "f"), 0);
    KT_EQ(fs_test_file(T "/a/g", "g"), 0);
}

/* Whether both paths lead to one inode. */
static bool same(const char *a, const char *b)
{
    struct inode *x = fs_test_get(a);
    struct inode *y = fs_test_get(b);

    inode_put(x);
    inode_put(y);
    return x == y;
}

#define NAME_59 "aaaaaaaaabaaaaaaaaabaaaaaaaaabaaaaaaaaabaaaaaaaaabaaaaaaaaa"

KTEST(path, names_dots_and_slashes)
{
    begin();
    KT_TRUE(same("/", "/.."));
    KT_TRUE(same("/", "//./..///"));
    KT_TRUE(same(T "/a", "//tmp/./t//a/"));
    KT_TRUE(same(T "/a", T "/a/b/c/../../../a"));
    KT_TRUE(same(T, T "/a/.."));
    KT_TRUE(same(T "/f", T "/a/../f"));
    KT_TRUE(!same(T "/f", T "/a/g"));
    fs_test_end();
}

KTEST(path, errors)
{
    begin();
    KT_EQ(fs_test_look(""), -ENOENT);
    KT_EQ(fs_test_look(T "/none"), -ENOENT);
    KT_EQ(fs_test_look(T "/none/.."), -ENOENT);
    KT_EQ(fs_test_look(T "/a/b/none"), -ENOENT);
    KT_EQ(fs_test_look(T "/f/"), -ENOTDIR);
    KT_EQ(fs_test_look(T "/f/x"), -ENOTDIR);
    KT_EQ(fs_test_look(T "/f/."), -ENOTDIR);
    KT_EQ(fs_test_look(T "/f/.."), -ENOTDIR);
    KT_EQ(fs_test_look(T "/" NAME_59), -ENOENT);
    KT_EQ(fs_test_look(T "/" NAME_59 "x"), -ENAMETOOLONG);
    KT_EQ(fs_test_look(T "/" NAME_59 "x/y"), -ENAMETOOLONG);
    fs_test_end();
}

KTEST(path, a_slash_after_a_file_that_is_renamed_to_itself)
{
    begin();
    KT_EQ(fs_rename(T "/f/", T "/f", NULL), -ENOTDIR);
    KT_EQ(fs_rename(T "/f", T "/f/", NULL), -ENOTDIR);
    KT_EQ(fs_rename(T "/f", T "//f", NULL), 0);
    KT_EQ(fs_rename(T "/a/", T "/a", NULL), 0);
    fs_test_end();
}

KTEST(path, relative_to_a_directory)
{
    struct inode *cwd, *inode;

    begin();
    cwd = fs_test_get(T "/a/b");
    KT_REQUIRE(path_lookup("c", cwd, &inode) == 0);
    inode_put(inode);
    KT_REQUIRE(path_lookup("../g", cwd, &inode) == 0);
    inode_put(inode);
    KT_REQUIRE(path_lookup(".", cwd, &inode) == 0);
    KT_TRUE(inode == cwd);
    inode_put(inode);
    KT_EQ(path_lookup("g", cwd, &inode), -ENOENT);
    KT_REQUIRE(path_lookup(T "/f", cwd, &inode) == 0);
    inode_put(inode);
    inode_put(cwd);
    fs_test_end();
}

static int parent(const char *path, const char *want)
{
    char name[NAME_MAX + 1];
    struct inode *dir;
    int r = path_parent(path, NULL, &dir, name);

    if (r >= 0) {
        KT_EQ(strcmp(name, want), 0);
        inode_put(dir);
    }
    return r;
}

KTEST(path, up_to_the_last_name)
{
    begin();
    KT_EQ(parent(T "/a/new", "new"), 0);
    KT_EQ(parent(T "/a/new//", "new"), 1);
    KT_EQ(parent(T "/a", "a"), 0);
    KT_EQ(parent("/x", "x"), 0);
    KT_EQ(parent(T "/a/" NAME_59, NAME_59), 0);
    KT_EQ(parent(T "/a/" NAME_59 "x", ""), -ENAMETOOLONG);
    KT_EQ(parent("", ""), -ENOENT);
    KT_EQ(parent("/", ""), -EBUSY);
    KT_EQ(parent("///", ""), -EBUSY);
    KT_EQ(parent(T "/a/.", ""), -EINVAL);
    KT_EQ(parent(T "/a/../", ""), -EINVAL);
    KT_EQ(parent(T "/f/new", ""), -ENOTDIR);
    KT_EQ(parent(T "/none/new", ""), -ENOENT);
    fs_test_end();
}

/* ---- the path of a directory -------------------------------------------- */

static bool is_called(const char *path, const char *want)
{
    struct inode *dir = fs_test_get(path);
    char buf[64];
    int r;

    r = path_of(dir, buf, sizeof(buf));
    inode_put(dir);
    return r == (int)strlen(want) && strcmp(buf, want) == 0;
}

KTEST(path, of_a_directory)
{
    struct inode *dir;
    char buf[16];

    begin();
    KT_TRUE(is_called("/", "/"));
    KT_TRUE(is_called("/tmp", "/tmp"));
    KT_TRUE(is_called(T "/a/b/c", T "/a/b/c"));
    KT_TRUE(is_called("/proc", "/proc"));
    KT_EQ(fs_rename(T "/a/b", T "/bb", NULL), 0);
    KT_TRUE(is_called(T "/bb/c", T "/bb/c"));
    dir = fs_test_get(T "/a");
    for (size_t n = 0; n < sizeof(T "/a"); n++)
        KT_EQ(path_of(dir, buf, n), -ERANGE);
    KT_EQ(path_of(dir, buf, sizeof(T "/a")), sizeof(T "/a") - 1);
    KT_EQ(path_of(path_root(), buf, 2), 1);
    KT_EQ(path_of(path_root(), buf, 1), -ERANGE);
    inode_put(dir);
    fs_test_end();
}

KTEST(path, a_removed_directory_has_nothing_in_it)
{
    struct inode *dir, *inode;
    char buf[64];
    uint32_t offset = 0;

    begin();
    dir = fs_test_get(T "/a/b/c");
    KT_EQ(fs_rmdir(T "/a/b/c", NULL), 0);
    KT_EQ(path_of(dir, buf, sizeof(buf)), -ENOENT);
    KT_EQ(path_lookup("x", dir, &inode), -ENOENT);
    KT_EQ(path_lookup("..", dir, &inode), -ENOENT);
    KT_REQUIRE(path_lookup(".", dir, &inode) == 0);
    inode_put(inode);
    KT_EQ(fs_mkdir("x", dir), -ENOENT);
    KT_EQ(fs_create_file("x", dir, 0, &inode), -ENOENT);
    KT_EQ(fs_link(T "/f", "x", dir), -ENOENT);
    KT_EQ(fs_rename(T "/f", "x", dir), -ENOENT);
    KT_EQ(fs_test_getdents(dir, &offset, buf, sizeof(buf)), 0);
    KT_EQ(fs_mount(&test_fs, dir), -ENOENT);
    inode_put(dir);
    fs_test_end();
}

/* ---- mounting ----------------------------------------------------------- */

static void mount(void)
{
    struct inode *dir;

    begin();
    test_fs_begin();
    dir = fs_test_get(T "/a/b");
    KT_REQUIRE(fs_mount(&test_fs, dir) == 0);
    KT_EQ(fs_mount(&test_fs, dir), -EBUSY);
    inode_put(dir);
    fs_test_note();
}

static int try_unmount(void)
{
    struct inode *root;
    int result;

    KT_REQUIRE(inode_get(&test_fs, test_fs.fs_root, &root) == 0);
    result = fs_unmount(root, false);
    inode_put(root);
    return result;
}

static void unmount(void)
{
    KT_EQ(try_unmount(), 0);
    KT_EQ(try_unmount(), -EINVAL);
    KT_TRUE(same(T "/a/b/c", T "/a/b/c"));
    fs_test_end();
}

KTEST(path, into_a_mounted_file_system_and_out)
{
    struct inode *inode;

    mount();
    inode = fs_test_get(T "/a/b/17");
    KT_TRUE(inode->inode_fs == &test_fs);
    KT_EQ(inode->inode_number, 17);
    KT_EQ(try_unmount(), -EBUSY);
    inode_put(inode);
    KT_EQ(fs_test_look(T "/a/b/c"), -ENOENT);
    KT_TRUE(same(T "/a", T "/a/b/.."));
    KT_TRUE(same(T "/a", T "/a/b/d/../.."));
    KT_TRUE(same(T "/a/b", T "/a/b/d/.."));
    KT_TRUE(is_called(T "/a/b", T "/a/b"));
    KT_TRUE(is_called(T "/a/b/d", T "/a/b/d"));
    unmount();
}

KTEST(path, a_covered_directory_stays)
{
    struct inode *inode;

    mount();
    KT_EQ(fs_rmdir(T "/a/b", NULL), -EBUSY);
    KT_EQ(fs_rename(T "/a/b", T "/b", NULL), -EBUSY);
    KT_EQ(fs_mkdir(T "/e", NULL), 0);
    KT_EQ(fs_rename(T "/e", T "/a/b", NULL), -EBUSY);
    KT_EQ(fs_rename(T "/f", T "/a/b/f", NULL), -EXDEV);
    KT_EQ(fs_link(T "/f", T "/a/b/f", NULL), -EXDEV);
    KT_EQ(fs_create_file(T "/a/b", NULL, O_EXCL, &inode), -EEXIST);
    KT_REQUIRE(fs_create_file(T "/a/b", NULL, 0, &inode) == 0);
    KT_TRUE(inode->inode_fs == &test_fs);
    inode_put(inode);
    unmount();
}

KTEST(path, the_verifier_notices_a_mount_on_a_removed_directory)
{
    const char *where;
    struct inode *dir;
    uint32_t links;

    mount();
    dir = test_fs.fs_covers;
    links = dir->inode_nlink;
    KT_SOUND(inode_verify);
    dir->inode_nlink = 0;
    KT_TRUE(inode_verify(&where) != NULL);
    dir->inode_nlink = links;
    unmount();
}

KTEST(path, a_mount_has_its_path_as_text)
{
    struct inode *root;

    mount();
    KT_EQ(fs_rename(T "/a", T "/aa", NULL), 0);
    KT_TRUE(fs_find_mount(T "/aa/b") == NULL);
    root = fs_find_mount(T "/a/b");
    KT_TRUE(root == test_fs.fs_root_inode);
    KT_EQ(fs_unmount(root, true), -EINVAL); /* it is static */
    inode_put(root);
    KT_EQ(fs_rename(T "/aa", T "/a", NULL), 0);
    unmount();
}

static void move_meanwhile(void *unused)
{
    (void)unused;
    KT_EQ(fs_rename(T "/a/b", T "/b", NULL), 0);
}

static void join(void *unused)
{
    int status;

    (void)unused;
    task_wait(-1, &status, 0);
}

/* The directory is not covered while the root is still being read. */
KTEST(path, a_directory_that_is_renamed_while_it_is_mounted_on)
{
    struct inode *dir, *root;

    begin();
    test_fs_begin();
    dir = fs_test_get(T "/a/b");
    test_fs_log.sleep_ms = 50;
    ktest_undo(join, NULL);
    KT_REQUIRE(task_create("mover", move_meanwhile, NULL, PRIORITY_KERNEL) !=
               NULL);
    KT_EQ(fs_mount(&test_fs, dir), 0);
    inode_put(dir);
    fs_test_note();
    join(NULL);
    test_fs_log.sleep_ms = 0;
    KT_TRUE(fs_find_mount(T "/a/b") == NULL);
    root = fs_find_mount(T "/b");
    KT_REQUIRE(root == test_fs.fs_root_inode);
    inode_put(root);
    KT_EQ(try_unmount(), 0);
    fs_test_end();
}

KTEST(path, a_file_system_that_cannot_be_written)
{
    struct inode *inode;

    mount();
    KT_EQ(fs_mkdir(T "/a/b/x", NULL), -EROFS);
    KT_EQ(fs_create_file(T "/a/b/x", NULL, 0, &inode), -EROFS);
    KT_EQ(fs_unlink(T "/a/b/17", NULL), -EROFS);
    KT_EQ(fs_rmdir(T "/a/b/d", NULL), -EROFS);
    KT_EQ(fs_rename(T "/a/b/17", T "/a/b/x", NULL), -EROFS);
    KT_EQ(fs_link(T "/a/b/17", T "/a/b/x", NULL), -EROFS);
    KT_EQ(fs_mkdir(T "/a/b/17", NULL), -EEXIST);
    unmount();
}
