/*
 * Charges for files in RAM: to which session, for what, and until when.
 *
 * Tests: kernel/fs/ramfs.c, kernel/fs/ramfs_file.c
 */
#include "kernel/fs/tests/fs_test.h"
#include "kernel/object/session.h"

#define VECTOR_SLOTS 1024u /* of a page of pointers */

static struct session *first, *second;
static struct inode *f;

/* The running task acts for a session; NULL: for none. */
static void act_for(struct session *s)
{
    task_self()->task_session = s;
}

static void leave(void *unused)
{
    (void)unused;
    act_for(NULL);
    session_leave(first);
    session_leave(second);
    first = second = NULL;
}

static void end(void)
{
    if (f != NULL)
        inode_put(f);
    fs_test_end();
    leave(NULL);
}

/* T, and in it an empty file f of the first session. */
static void begin(void)
{
    ktest_undo(leave, NULL);
    f = NULL;
    fs_test_begin();
    first = session_create();
    second = session_create();
    KT_REQUIRE(first != NULL && second != NULL);
    act_for(first);
    KT_REQUIRE(fs_create_file(T "/f", NULL, O_EXCL, &f) == 0);
}

static void expect(uint32_t of_first, uint32_t of_second)
{
    KT_EQ(first->session_used[SESSION_FILES], of_first);
    KT_EQ(second->session_used[SESSION_FILES], of_second);
    FS_VERIFY();
}

static bool write_page(uint32_t page)
{
    return fs_test_write(f, page * PAGE_SIZE, "x", 1) == 1;
}

KTEST(ramfs_charges, of_a_file_to_who_creates_it)
{
    begin();
    expect(1, 0);
    act_for(second);
    KT_EQ(fs_mkdir(T "/d", NULL), 0);
    KT_EQ(fs_test_file(T "/d/g", ""), 0);
    expect(1, 2);
    KT_EQ(fs_link(T "/f", T "/d/f", NULL), 0);
    KT_EQ(fs_rename(T "/d/g", T "/f", NULL), 0);
    KT_EQ(fs_unlink(T "/d/f", NULL), 0);
    expect(1, 2); /* f is still open */
    inode_put(f);
    f = NULL;
    expect(0, 2);
    act_for(first);
    KT_EQ(fs_unlink(T "/f", NULL), 0);
    KT_EQ(fs_rmdir(T "/d", NULL), 0);
    expect(0, 0);
    end();
}

KTEST(ramfs_charges, of_pages_to_who_adds_the_last)
{
    begin();
    KT_TRUE(write_page(0) && write_page(7));
    expect(3, 0);
    act_for(second);
    KT_TRUE(write_page(7));
    expect(3, 0);
    KT_TRUE(write_page(2));
    expect(1, 3);
    KT_EQ(fs_test_write(f, 5 * PAGE_SIZE, (void *)0x1000, 1), -EFAULT);
    expect(1, 3);
    act_for(first);
    KT_EQ(fs_test_truncate(f, 3 * PAGE_SIZE), 0);
    expect(1, 2);
    KT_EQ(fs_test_truncate(f, 0), 0);
    expect(1, 0);
    end();
}

/* The pointers to the pages of a large file with holes. */
KTEST(ramfs_charges, of_large_vectors)
{
    begin();
    KT_TRUE(write_page(VECTOR_SLOTS - 1));
    expect(3, 0);
    KT_TRUE(write_page(2 * VECTOR_SLOTS));
    expect(1 + 2 + 4, 0);
    act_for(second);
    KT_TRUE(write_page(0));
    expect(1, 3 + 4);
    KT_EQ(fs_test_truncate(f, 1), 0);
    expect(1, 1 + 4);
    KT_EQ(fs_test_truncate(f, 0), 0);
    expect(1, 0);
    end();
}

KTEST(ramfs_charges, up_to_a_limit)
{
    uint32_t rest = session_limit[SESSION_FILES] - 2;
    ssize_t third;
    int file;

    begin();
    KT_TRUE(session_charge(first, SESSION_FILES, rest));
    KT_TRUE(write_page(0));
    third = fs_test_write(f, PAGE_SIZE, "x", 1);
    file = fs_test_file(T "/g", "");
    session_refund(first, SESSION_FILES, rest);
    KT_EQ(third, -ENOSPC);
    KT_EQ(file, -ENOSPC);
    expect(2, 0);
    /* Those that would move do not fit. */
    rest++;
    KT_TRUE(session_charge(second, SESSION_FILES, rest));
    act_for(second);
    third = fs_test_write(f, PAGE_SIZE, "x", 1);
    session_refund(second, SESSION_FILES, rest);
    KT_EQ(third, -ENOSPC);
    expect(2, 0);
    KT_EQ(f->inode_size, 1);
    end();
}

KTEST(ramfs_charges, end_with_the_session)
{
    begin();
    KT_TRUE(write_page(0));
    act_for(NULL);
    session_leave(first);
    first = session_create();
    KT_REQUIRE(first != NULL);
    expect(0, 0);
    act_for(second);
    KT_TRUE(write_page(1));
    expect(0, 2);
    end();
}

KTEST(ramfs_charges, a_file_has_so_many_names)
{
    char name[24];

    begin();
    for (unsigned i = 1; i < RAMFS_LINK_MAX; i++) {
        snprintf(name, sizeof(name), T "/%u", i);
        KT_REQUIRE(fs_link(T "/f", name, NULL) == 0);
    }
    KT_EQ(fs_link(T "/f", T "/more", NULL), -EMLINK);
    expect(1, 0);
    KT_EQ(fs_unlink(name, NULL), 0);
    KT_EQ(fs_link(T "/f", T "/more", NULL), 0);
    end();
}
