/*
 * File servers that do not reply to one kind of request: tasks that wait for
 * them, or for tasks that do, can be killed; everything can be unmounted.
 */
#include "user/tests/usertests/liar.h"
#include "user/tests/usertests/test.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

/* ---- any request -------------------------------------------------------- */

static void look(int unused)
{
    struct stat st;

    (void)unused;
    stat("m/x7", &st);
}

static void with_file(int unused)
{
    char buf[8];
    int h = open("m/f", O_RDWR);

    (void)unused;
    read(h, buf, sizeof(buf));
    write(h, buf, sizeof(buf));
    ftruncate(h, 2);
    fsync(h);
}

static void list(int unused)
{
    char buf[256];

    (void)unused;
    getdents(open("m/d", O_RDONLY), buf, sizeof(buf));
}

static void change(int unused)
{
    (void)unused;
    close(open("m/new", O_RDWR | O_CREAT));
    link("m/f", "m/g");
    rename("m/f", "m/h");
    rmdir("m/d/s");
    unlink("m/f");
}

static void go(int unused)
{
    char path[PATH_MAX];

    (void)unused;
    chdir("m/d");
    getcwd(path, sizeof(path));
}

static const struct {
    uint32_t label;
    void (*ask)(int unused); /* sends it */
    const char *lock;        /* that it holds meanwhile */
} requests[] = {
    {FS_INODE, look, "inode"},         {FS_LOOKUP, look, "inode"},
    {FS_READ, with_file, "inode"},     {FS_WRITE, with_file, "inode"},
    {FS_TRUNCATE, with_file, "inode"}, {FS_SYNC, with_file, "inode"},
    {FS_GETDENTS, list, "inode"},      {FS_NAME, go, "rename"},
    {FS_CREATE, change, "inode"},      {FS_LINK, change, "inode"},
    {FS_RENAME, change, "inode"},      {FS_RMDIR, change, "rename"},
    {FS_UNLINK, change, "inode"},
};

/* The second task waits for the first, and dies first. */
TEST(silent, any)
{
    for (unsigned i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        pid_t server = liar_begin();
        pid_t first, second;

        liar_silence(requests[i].label);
        first = spawn(requests[i].ask, 0);
        liar_until_silent();
        second = spawn(requests[i].ask, 0);
        until_waits_for(second, requests[i].lock);
        expect_killed(second);
        expect_killed(first);
        EQUAL(umount("m"), 0);
        liar_stop(server);
        EQUAL(rmdir("m"), 0);
    }
}

/* Its unmounting never ends, but the directory is free. */
static void try_unmount(int unused)
{
    (void)unused;
    umount("m");
}

TEST(silent, unmount)
{
    pid_t server = liar_begin();
    pid_t pid;

    liar_silence(FS_UNMOUNT);
    pid = spawn(try_unmount, 0);
    liar_until_silent();
    EQUAL(mount(liar_port, "m"), 0);
    expect_killed(pid);
    liar_order(-1);
    liar_end(server);
}

/* ---- a mount in another ------------------------------------------------- */

static int inner_port;

/* Its absolute path, which needs no server. */
static void path_of_d(char *path)
{
    CHECK(getcwd(path, PATH_MAX) > 0);
    strlcat(path, "/m/d", PATH_MAX);
}

static void read_mounts(int unused)
{
    char path[PATH_MAX], row[PATH_MAX + 16];
    FILE *f = fopen("/proc/mounts", "r");
    bool found = false;

    (void)unused;
    CHECK(f != NULL);
    path_of_d(path);
    while (fgets(row, sizeof(row), f) != NULL)
        found |= strstr(row, path) != NULL;
    CHECK(found);
}

/* The list of mounts needs no server, and no lock that a server delays. */
TEST(silent, mounts)
{
    pid_t server = liar_begin();
    pid_t inner = spawn_server(liar_run, &inner_port);
    pid_t mover;
    char path[PATH_MAX];

    path_of_d(path);
    EQUAL(mount(inner_port, "m/d"), 0);
    liar_silence(FS_RENAME);
    mover = spawn(change, 0);
    liar_until_silent();
    liar_silence(FS_NAME);
    expect_exit(spawn(read_mounts, 0), 0);
    expect_killed(mover);
    EQUAL(umount(path), 0);
    expect_killed(inner);
    EQUAL(close(inner_port), 0);
    liar_end(server);
}

static void try_mount(int unused)
{
    (void)unused;
    _exit(mount(inner_port, "m/d") < 0);
}

static void try_rename(int unused)
{
    (void)unused;
    _exit(rename("m/e", "m/d") < 0);
}

static int exit_code(pid_t pid)
{
    int status;

    EQUAL(waitpid(pid, &status, 0), pid);
    EQUAL(WTERMSIG(status), 0);
    return WEXITSTATUS(status);
}

/* A directory is about to be covered and to be replaced, while both wait for
 * its lock: one of them fails. */
TEST(silent, rename)
{
    pid_t server = liar_begin();
    pid_t inner = spawn_server(liar_run, &inner_port);
    pid_t lister, mounter, mover;
    char path[PATH_MAX];
    int failed;

    path_of_d(path);
    liar_silence(FS_GETDENTS);
    lister = spawn(list, 0);
    liar_until_silent();
    mounter = spawn(try_mount, 0);
    until_waits_for(mounter, "inode");
    mover = spawn(try_rename, 0);
    until_waits_for(mover, "rename");
    liar_order(-1);
    expect_killed(lister);
    failed = exit_code(mounter) + exit_code(mover);
    umount(path);
    expect_killed(inner);
    EQUAL(close(inner_port), 0);
    EQUAL(failed, 1);
    liar_end(server);
}

/* The outer server has died, or its successor has no such directory: the inner
 * mount can no longer be reached by a path. */
TEST(silent, nested)
{
    pid_t server = liar_begin();
    pid_t inner = spawn_server(liar_run, &inner_port);
    char path[PATH_MAX];

    path_of_d(path);
    EQUAL(mount(inner_port, "m/d"), 0);
    expect_killed(server);
    EQUAL(close(liar_port), 0);
    FAILS(umount("m"), EBUSY);
    EQUAL(umount(path), 0);
    server = spawn_server(liar_run, &liar_port);
    EQUAL(mount(liar_port, "m"), 0);
    EQUAL(mount(inner_port, "m/d"), 0);
    liar_order(liar_find(liar_tells, FS_LOOKUP, PLAIN));
    FAILS(umount("m"), EBUSY);
    EQUAL(umount(path), 0);
    expect_killed(server);
    EQUAL(close(liar_port), 0);
    expect_killed(inner);
    EQUAL(close(inner_port), 0);
    EQUAL(umount("m"), 0);
}

/* ---- a server below another --------------------------------------------- */

static pid_t locker; /* holds the lock of m/d, and waits for the server */

static void list_handle(int h)
{
    char buf[256];

    getdents(h, buf, sizeof(buf));
}

/* A liar that replies to FS_STAT, for mount, and first goes up from its current
 * directory, which is in a file system mounted on m/d. */
static void run_below(int port)
{
    struct fs_stat st = {.fs_root = 1, .fs_kind = "liar"};
    struct ipc_buffer b = {.ipc_send = &st, .ipc_send_size = sizeof(st)};
    struct message m = {.msg_buffer = &b};
    struct stat unused;

    EQUAL(ipc_receive(port, &m), 0);
    m.msg_tag = IPC_DATA;
    m.msg_word[0] = 0;
    EQUAL(ipc_reply(m.msg_client, &m), 0);
    until_waits_for(locker, "message");
    FAILS(stat("../f", &unused), EDEADLK);
    liar_run(port);
}

TEST(silent, below)
{
    pid_t server = liar_begin();
    pid_t inner = spawn_server(liar_run, &inner_port);
    int h = open("m/d", O_RDONLY);
    char back[PATH_MAX], path[PATH_MAX];

    path_of_d(path);
    CHECK(getcwd(back, sizeof(back)) > 0);
    EQUAL(mount(inner_port, "m/d"), 0);
    EQUAL(chdir("m/d"), 0);
    liar_stop(server);
    locker = spawn(list_handle, h);
    until_waits_for(locker, "file-server");
    server = spawn_server(run_below, &liar_port);
    EQUAL(chdir(back), 0);
    EQUAL(mount(liar_port, "m"), 0);
    expect_exit(locker, 0);
    EQUAL(close(h), 0);
    liar_stop(server);
    EQUAL(umount(path), 0);
    expect_killed(inner);
    EQUAL(close(inner_port), 0);
    EQUAL(umount("m"), 0);
}

/* ---- changes without a reply -------------------------------------------- */

static void append_it(int unused)
{
    (void)unused;
    write(open("m/f", O_WRONLY), "hello12345", 10);
}

static void cut_it(int unused)
{
    (void)unused;
    ftruncate(open("m/f", O_WRONLY), 0);
}

static void link_it(int unused)
{
    (void)unused;
    link("m/f", "m/g");
}

static void unlink_it(int unused)
{
    (void)unused;
    unlink("m/f");
}

static void rmdir_it(int unused)
{
    (void)unused;
    rmdir("m/d/s");
}

static void replace_it(int unused)
{
    (void)unused;
    rename("m/x1", "m/f");
}

/* The client is killed during the request late[i]; a later FS_INODE shows that
 * the server has made the change. */
static const struct {
    uint32_t label;
    void (*make)(int unused);
    const char *path;
    uint32_t released;
} late[] = {
    {FS_WRITE, append_it, "m/f", 0},  {FS_TRUNCATE, cut_it, "m/f", 0},
    {FS_LINK, link_it, "m/f", 0},     {FS_UNLINK, unlink_it, "m/f", 1},
    {FS_RMDIR, rmdir_it, "m/d/s", 1}, {FS_RENAME, replace_it, "m/f", 1},
    {FS_RENAME, replace_it, "m", 0},
};

#define LINKS 4 /* in struct fs_attr */
#define SIZE  8
#define MADE(at, value)                                                        \
    {                                                                          \
        FS_INODE, KEEP, KEEP, KEEP, at, value, NULL, 0, PLAIN                  \
    }

static const struct lie made[] = {
    MADE(SIZE, 10), MADE(SIZE, 0),  MADE(LINKS, 2), MADE(LINKS, 0),
    MADE(LINKS, 0), MADE(LINKS, 0), MADE(LINKS, 7), {0},
};

static void run_late(int port)
{
    liar_serve(port, made);
}

static pid_t begin_late(void)
{
    pid_t server = spawn_server(run_late, &liar_port);

    EQUAL(mkdir("m"), 0);
    EQUAL(mount(liar_port, "m"), 0);
    return server;
}

static void make_late(unsigned i)
{
    pid_t client;

    liar_silence(late[i].label);
    client = spawn(late[i].make, 0);
    liar_until_silent();
    expect_killed(client);
    liar_order((int)i);
}

static void end_late(unsigned i, pid_t server)
{
    struct fs_stat st;

    EQUAL(statfs("m", &st), 0);
    EQUAL(st.fs_files, late[i].released);
    liar_end(server);
    EQUAL(rmdir("m"), 0);
}

/* An open handle shows the change; appended bytes come after it. */
TEST(silent, late)
{
    for (unsigned i = 0; i < ARRAY_SIZE(late); i++) {
        bool size = made[i].lie_at == SIZE;
        pid_t server = begin_late();
        int h = open(late[i].path, size ? O_WRONLY | O_APPEND : O_RDONLY);
        struct stat st;

        CHECK(h >= 0);
        make_late(i);
        if (size) {
            EQUAL(write(h, "x", 1), 1);
            EQUAL(lseek(h, 0, SEEK_CUR), made[i].lie_value + 1);
        } else {
            EQUAL(fstat(h, &st), 0);
            EQUAL(st.st_nlink, made[i].lie_value);
        }
        EQUAL(close(h), 0);
        end_late(i, server);
    }
}

/* A file that nothing uses is released, if it has no link. */
TEST(silent, late_unused)
{
    for (unsigned i = 0; i < ARRAY_SIZE(late); i++) {
        pid_t server = begin_late();

        make_late(i);
        end_late(i, server);
    }
}
