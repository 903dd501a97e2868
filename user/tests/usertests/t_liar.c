/*
 * File servers that lie: at worst their own files fail.
 */
#include "user/tests/usertests/liar.h"
#include "user/tests/usertests/test.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

/* ---- operations on files ------------------------------------------------ */

/* Each returns -1 with errno, or its result. */

static int with_file(const char *path, uint32_t flags, int (*fn)(int h))
{
    int h = open(path, flags);
    int r, error;

    if (h < 0)
        return -1;
    r = fn(h);
    error = errno;
    EQUAL(close(h), 0);
    errno = error;
    return r;
}

static int read_some(int h)
{
    char buf[64];

    return (int)read(h, buf, 8);
}

static int write_some(int h)
{
    return (int)write(h, "12345", 5);
}

static int list_some(int h)
{
    char buf[256];

    return (int)getdents(h, buf, sizeof(buf));
}

static int cut(int h)
{
    return ftruncate(h, 3);
}

/* A file whose inode is not in memory yet. */
static int try_look(unsigned i)
{
    char path[16];
    struct stat st;

    snprintf(path, sizeof(path), "m/x%u", i);
    return stat(path, &st);
}

static int try_deep(unsigned i)
{
    struct stat st;

    (void)i;
    return stat("m/d/s", &st);
}

int liar_try_read(unsigned i)
{
    (void)i;
    return with_file("m/f", O_RDONLY, read_some);
}

static int try_write(unsigned i)
{
    (void)i;
    return with_file("m/f", O_WRONLY, write_some);
}

static int try_list(unsigned i)
{
    (void)i;
    return with_file("m", O_RDONLY, list_some);
}

static int try_cut(unsigned i)
{
    (void)i;
    return with_file("m/f", O_WRONLY, cut);
}

static int try_sync(unsigned i)
{
    (void)i;
    return with_file("m/f", O_RDONLY, fsync);
}

static int try_cwd(unsigned i)
{
    char path[PATH_MAX];
    int r, error;

    (void)i;
    EQUAL(chdir("m/d"), 0);
    r = getcwd(path, sizeof(path));
    error = errno;
    EQUAL(chdir("../.."), 0);
    errno = error;
    return r;
}

static int try_unlink(unsigned i)
{
    (void)i;
    return unlink("m/f");
}

static int try_create(unsigned i)
{
    (void)i;
    return with_file("m/new", O_WRONLY | O_CREAT, write_some);
}

static int try_mkdir(unsigned i)
{
    (void)i;
    return mkdir("m/new");
}

static int try_rmdir(unsigned i)
{
    (void)i;
    return rmdir("m/d/s");
}

static int try_rename(unsigned i)
{
    (void)i;
    return rename("m/f", "m/g");
}

static int try_link(unsigned i)
{
    (void)i;
    return link("m/f", "m/g");
}

static int try_statfs(unsigned i)
{
    struct fs_stat st;

    (void)i;
    return statfs("m", &st);
}

#define SAYS(label, result, word, n, fn)                                       \
    {                                                                          \
        label, result, word, n, KEEP, 0, fn, EIO, PLAIN                        \
    }
#define PUTS(label, at, value, fn)                                             \
    {                                                                          \
        label, KEEP, KEEP, KEEP, at, value, fn, EIO, PLAIN                     \
    }
#define DOES(label, trick, fn, error)                                          \
    {                                                                          \
        label, KEEP, KEEP, KEEP, KEEP, 0, fn, error, trick                     \
    }
/* The second word of a dirent. */
#define RECLEN(reclen, type, namlen)                                           \
    ((uint32_t)(reclen) | (uint32_t)(type) << 16 | (uint32_t)(namlen) << 24)

const struct lie liar_tells[] = {
    /* The program gets the server's own errors. */
    {FS_LOOKUP, -ENOENT, KEEP, KEEP, KEEP, 0, try_look, ENOENT, PLAIN},
    {FS_READ, -ENOSPC, KEEP, 0, KEEP, 0, liar_try_read, ENOSPC, PLAIN},
    {FS_STAT, -EROFS, KEEP, 0, KEEP, 0, try_statfs, EROFS, PLAIN},
    /* And else EIO. */
    SAYS(FS_LOOKUP, 5, KEEP, KEEP, try_look),
    SAYS(FS_LOOKUP, INT32_MIN, KEEP, KEEP, try_look),
    SAYS(FS_LOOKUP, KEEP, 0, KEEP, try_look),
    SAYS(FS_LOOKUP, KEEP, 1, KEEP, try_look), /* the root, and itself */
    SAYS(FS_LOOKUP, KEEP, 1, KEEP, try_deep),
    SAYS(FS_LOOKUP, KEEP, 3, KEEP, try_deep),
    SAYS(FS_LOOKUP, KEEP, KEEP, 8,
         try_look), /* bytes that were not requested */
    SAYS(FS_INODE, 5, KEEP, KEEP, try_look),
    SAYS(FS_INODE, KEEP, KEEP, 4, try_look),
    SAYS(FS_INODE, KEEP, KEEP, 0, try_look),
    SAYS(FS_INODE, KEEP, KEEP, 65536, try_look),
    PUTS(FS_INODE, 0, 0, try_look), /* invalid types */
    PUTS(FS_INODE, 0, FILE_PIPE, try_look),
    PUTS(FS_INODE, 0, 0x80000002, try_look),
    PUTS(FS_INODE, 4, 0, try_look), /* without links */
    SAYS(FS_READ, 9, KEEP, KEEP, liar_try_read),
    SAYS(FS_READ, 5, KEEP, 4, liar_try_read),
    SAYS(FS_READ, 3, KEEP, 4, liar_try_read),
    SAYS(FS_READ, 5, KEEP, 0, liar_try_read),
    SAYS(FS_READ, 9, KEEP, 9, liar_try_read),
    SAYS(FS_WRITE, 6, KEEP, KEEP, try_write),
    SAYS(FS_WRITE, 0, KEEP, KEEP, try_write),
    SAYS(FS_WRITE, KEEP, 4, KEEP, try_write),
    SAYS(FS_WRITE, KEEP, -1, KEEP, try_write),
    SAYS(FS_GETDENTS, 8, KEEP, KEEP, try_list),
    SAYS(FS_GETDENTS, 300, KEEP, 300, try_list),
    SAYS(FS_GETDENTS, 4, KEEP, 4, try_list),
    PUTS(FS_GETDENTS, 0, 0, try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(0, 1, 1), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(8, 1, 1), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(16, 1, 1), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(11, 1, 1), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(65532, 1, 1), try_list),
    {FS_GETDENTS, 11, KEEP, 11, 4, RECLEN(11, 1, 1), try_list, EIO, PLAIN},
    PUTS(FS_GETDENTS, 4, RECLEN(12, 1, 0), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(12, 1, 2), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(12, 1, 200), try_list),
    PUTS(FS_GETDENTS, 4, RECLEN(12, 9, 1), try_list),
    PUTS(FS_GETDENTS, 8, '/', try_list),
    PUTS(FS_GETDENTS, 8, 'f' | 'g' << 8, try_list),
    SAYS(FS_NAME, KEEP, KEEP, 0, try_cwd),
    SAYS(FS_NAME, KEEP, KEEP, 60, try_cwd),
    PUTS(FS_NAME, 0, '/', try_cwd),
    PUTS(FS_NAME, 0, 0, try_cwd),
    SAYS(FS_UNLINK, KEEP, 1, KEEP, try_unlink),
    SAYS(FS_UNLINK, KEEP, -1, KEEP, try_unlink),
    SAYS(FS_CREATE, KEEP, 0, KEEP, try_create),
    SAYS(FS_CREATE, KEEP, 1, KEEP, try_mkdir),
    SAYS(FS_CREATE, 1, KEEP, KEEP, try_mkdir),
    SAYS(FS_RMDIR, 1, KEEP, KEEP, try_rmdir),
    SAYS(FS_RENAME, 1, KEEP, KEEP, try_rename),
    SAYS(FS_LINK, 1, KEEP, KEEP, try_link),
    SAYS(FS_TRUNCATE, 1, KEEP, KEEP, try_cut),
    SAYS(FS_SYNC, 1, KEEP, KEEP, try_sync),
    SAYS(FS_STAT, 1, KEEP, KEEP, try_statfs),
    SAYS(FS_STAT, KEEP, KEEP, 8, try_statfs),
    PUTS(FS_STAT, 0, 2, try_statfs), /* another root */
    DOES(FS_LOOKUP, LABEL, try_look, EIO),
    DOES(FS_READ, LABEL, liar_try_read, EIO),
    DOES(FS_READ, HANDLE, liar_try_read, EIO),
    DOES(FS_INODE, HANDLE, try_look, EIO),
    DOES(FS_INODE, LOST, try_look, EIO),
    DOES(FS_INODE, KERNEL, try_look, EIO),
    DOES(FS_STAT, LOST, try_statfs, EIO),
    DOES(FS_READ, LOST, liar_try_read, EIO),
    DOES(FS_LOOKUP, OWN, try_look, EDEADLK),
    DOES(FS_LOOKUP, SYNC, try_look, EDEADLK),
    DOES(FS_LOOKUP, WRONG, try_look, 0),
    /* For other cases. */
    DOES(FS_LOOKUP, LEAVE, NULL, 0),
    DOES(FS_LOOKUP, DOWN, NULL, 0),
    DOES(FS_LOOKUP, CYCLE, NULL, 0),
    DOES(FS_READ, HANG, NULL, 0),
    DOES(FS_READ, DIE, NULL, 0),
    DOES(FS_WRITE, DIE, NULL, 0),
    DOES(FS_UNLINK, DIE, NULL, 0),
    DOES(FS_RELEASE, DIE, NULL, 0),
    PUTS(FS_INODE, 0, FILE_DIRECTORY, NULL),
    {0},
};

/* Of a server that is being mounted. */
const struct lie liar_tells_mount[] = {
    SAYS(FS_STAT, 1, KEEP, KEEP, NULL),
    SAYS(FS_STAT, -1, KEEP, 0, NULL),
    SAYS(FS_STAT, KEEP, KEEP, 8, NULL),
    SAYS(FS_STAT, KEEP, KEEP, 0, NULL),
    SAYS(FS_STAT, KEEP, KEEP, 65536, NULL),
    PUTS(FS_STAT, 0, 0, NULL),
    PUTS(FS_STAT, 24, 0, NULL),
    PUTS(FS_STAT, 24, 'a' | ' ' << 8, NULL),
    PUTS(FS_INODE, 0, FILE_REGULAR, NULL),
    PUTS(FS_INODE, 4, 0, NULL),
    SAYS(FS_INODE, -ENOENT, KEEP, 0, NULL),
    DOES(FS_STAT, HANG, NULL, 0),
    DOES(FS_INODE, DIE, NULL, 0),
    {0},
};

/* ---- lies --------------------------------------------------------------- */

TEST(liar, lies)
{
    pid_t pid = liar_begin();
    int before = dup(STDIN_FILENO);
    int h;

    EQUAL(close(before), 0);
    for (unsigned i = 0; liar_tells[i].lie_try != NULL; i++) {
        int r, error;

        liar_order((int)i);
        r = liar_tells[i].lie_try(i);
        error = r == -1 ? errno : MIN(r, 0);
        if (error != liar_tells[i].lie_error) {
            printf("# lie %u\n", i);
            fflush(stdout);
            EQUAL(error, liar_tells[i].lie_error);
        }
        liar_order(-1);
        CHECK(has_text("m/f", "hello"));
    }
    h = dup(STDIN_FILENO); /* no handle has been received */
    EQUAL(h, before);
    EQUAL(close(h), 0);
    liar_end(pid);
}

TEST(liar, mounts)
{
    pid_t pid = spawn_server(liar_run_mount, &liar_port);

    EQUAL(mkdir("m"), 0);
    for (int i = 0; liar_tells_mount[i].lie_trick == PLAIN; i++) {
        liar_order(i);
        EQUAL(mount(liar_port, "m"), -1);
        if (errno != EIO && errno != ENOTDIR && errno != EPERM &&
            errno != ENOENT)
            EQUAL(errno, i);
    }
    liar_order(-1);
    FAILS(mount(liar_port, "/"), EBUSY);
    FAILS(mount(liar_port, "/proc"), EBUSY);
    EQUAL(mount(liar_port, "m"), 0);
    FAILS(mount(liar_port, "m"), EBUSY);
    EQUAL(umount("m"), 0);
    liar_order(liar_find(liar_tells_mount, FS_INODE, DIE));
    FAILS(mount(liar_port, "m"), EIO);
    FAILS(mount(liar_port, "m"), EPIPE);
    expect_exit(pid, 0);
}

/* The mount never ends, but can be killed. */
static void try_mount(int unused)
{
    (void)unused;
    mount(liar_port, "m");
}

TEST(liar, mount_hangs)
{
    pid_t server = spawn_server(liar_run_mount, &liar_port);
    pid_t pid;

    EQUAL(mkdir("m"), 0);
    liar_order(liar_find(liar_tells_mount, FS_STAT, HANG));
    pid = spawn(try_mount, 0);
    liar_until_silent();
    expect_killed(pid);
    liar_stop(server);
}

/* Walks end, and no task waits for itself or in a circle. */
static void rmdirs(int which)
{
    EQUAL(chdir(which ? "m/d" : "m/d/s"), 0);
    for (int i = 0; i < 20; i++) {
        FAILS(rmdir("nothing"), ENOENT);
        rmdir(which ? "s" : "d");
        rename(which ? "s" : "d", which ? "s/x" : "d/x");
    }
}

TEST(liar, circle)
{
    char back[PATH_MAX], path[PATH_MAX];
    pid_t pid = liar_begin();
    pid_t one, other;

    CHECK(getcwd(back, sizeof(back)) > 0);
    CHECK(path_join(path, sizeof(path), back, "m/f"));
    EQUAL(chdir("m/d"), 0);
    for (int i = 0; liar_tells[i].lie_label != 0; i++)
        if (liar_tells[i].lie_label == FS_LOOKUP && liar_tells[i].lie_word == 1)
            liar_order(i); /* s is the root */
    FAILS(rmdir("s"), EIO);
    EQUAL(chdir(back), 0);
    liar_order(liar_find(liar_tells, FS_LOOKUP, DOWN));
    FAILS(rename("m/d/s/d", "m/d/x"), EINVAL);
    liar_order(liar_find(liar_tells, FS_LOOKUP, CYCLE));
    EQUAL(chdir("m/d/s/d/s/d"), 0);
    FAILS(rename("s", "s/x"), EINVAL);
    FAILS(rename(path, "g"), EIO); /* the root is not an ancestor */
    FAILS(getcwd(path, sizeof(path)), ERANGE);
    EQUAL(chdir(back), 0);
    other = spawn(rmdirs, 0);
    one = spawn(rmdirs, 1);
    expect_exit(other, 0);
    expect_exit(one, 0);
    liar_end(pid);
}
