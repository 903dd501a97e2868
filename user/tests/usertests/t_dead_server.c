/*
 * File servers that hang and die, and their successors.
 */
#include "user/tests/usertests/liar.h"
#include "user/tests/usertests/test.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"

/* ---- servers that hang -------------------------------------------------- */

static void read_until_killed(int unused)
{
    (void)unused;
    liar_try_read(0);
}

TEST(dead_server, hangs)
{
    pid_t server = liar_begin();
    pid_t first, second;
    struct stat st;

    liar_order(liar_find(liar_tells, FS_READ, HANG));
    first = spawn(read_until_killed, 0);
    liar_until_silent();
    second = spawn(read_until_killed, 0); /* blocks on the first request */
    until_waits_for(second, "inode");
    EQUAL(stat("m/d", &st), 0); /* other servers are not affected */
    expect_killed(first);
    expect_killed(second);
    liar_order(-1);
    CHECK(has_text("m/f", "hello"));
    liar_end(server);
}

/* A program that looks at a path blocks, and dies when it is killed. */
static void expect_killable(const char *path)
{
    pid_t pid = fork();
    struct stat st;

    CHECK(pid >= 0);
    if (pid == 0) {
        stat(path, &st);
        _exit(0);
    }
    liar_until_silent();
    expect_killed(pid);
}

/* A release without a reply does not prevent the server's death. */
static void unlink_and_close(int h)
{
    EQUAL(close(h), 0);
}

TEST(dead_server, release_dies)
{
    pid_t server = liar_begin();
    int h = open("m/f", O_RDONLY);
    struct fs_stat st;
    pid_t pid;

    CHECK(h >= 0);
    EQUAL(unlink("m/f"), 0);
    pid = spawn(unlink_and_close, h);
    expect_exit(pid, 0);
    liar_order(liar_find(liar_tells, FS_RELEASE, DIE));
    EQUAL(close(h), 0);
    FAILS(statfs("m", &st), EIO); /* sends the release first */
    expect_exit(server, 0);
    EQUAL(close(liar_port), 0);
    EQUAL(umount("m"), 0);
}

/* Nor does it block a program that closes the file, which may be a server that
 * received it in a message. */
TEST(dead_server, release_hangs)
{
    pid_t server = liar_begin();
    int h = open("m/f", O_RDONLY);
    uint32_t before = uptime_ms();
    struct stat st;

    CHECK(h >= 0);
    EQUAL(unlink("m/f"), 0);
    liar_silence(FS_RELEASE);
    EQUAL(close(h), 0);
    CHECK(uptime_ms() - before < 1000);
    /* The next request sends it, and can be killed. */
    expect_killable("m/d");
    EQUAL(stat("m/d", &st), 0); /* the server has received it */
    liar_end(server);
}

/* ---- servers that die --------------------------------------------------- */

/* Another liar takes the place of one that has died. */
static pid_t succeed(void)
{
    pid_t server;

    EQUAL(close(liar_port), 0);
    server = spawn_server(liar_run, &liar_port);
    EQUAL(mount(liar_port, "m"), 0);
    return server;
}

static void read_hello(int unused)
{
    uint32_t before = uptime_ms();

    (void)unused;
    CHECK(has_text("m/f", "hello"));
    CHECK(uptime_ms() - before < 2000); /* it was woken */
}

/* The server dies during a request that can be repeated, and between two. */
TEST(dead_server, successor)
{
    pid_t server = liar_begin();
    pid_t client;
    char buf[8];
    int h = open("m/f", O_RDONLY);

    CHECK(h >= 0);
    liar_order(liar_find(liar_tells, FS_READ, DIE));
    client = spawn(read_hello, 0);
    expect_exit(server, 0);
    until_waits_for(client, "file-server");
    server = succeed();
    expect_exit(client, 0);
    expect_killed(server);
    server = succeed();
    FAILS(mount(liar_port, "m"), EBUSY);
    EQUAL(read(h, buf, 8), 5);
    EQUAL(close(h), 0);
    liar_end(server);
}

#define READERS 3

/* A file whose size says how often the reader with this handle has read. */
static const char *reads(int h)
{
    static char name[16];

    snprintf(name, sizeof(name), "reads.%d", h);
    return name;
}

/* Readers do not notice that the server is killed repeatedly. */
static void read_on(int h)
{
    int counter = open(reads(h), O_WRONLY | O_CREAT);
    struct stat st;
    char buf[8];

    while (stat("stop", &st) < 0) {
        EQUAL(lseek(h, 0, SEEK_SET), 0);
        EQUAL(read(h, buf, 8), 5);
        EQUAL(memcmp(buf, "hello", 5), 0);
        CHECK(has_text("m/f", "hello"));
        EQUAL(write(counter, "+", 1), 1);
    }
}

static size_t times_read(int h)
{
    struct stat st;

    return stat(reads(h), &st) < 0 ? 0 : st.st_size;
}

/* Each reader has read twice, so the present server has replied to it. */
static void until_read(const int *h)
{
    size_t before[READERS];

    for (int i = 0; i < READERS; i++)
        before[i] = times_read(h[i]);
    for (int i = 0; i < READERS; i++)
        while (times_read(h[i]) < before[i] + 2)
            sleep_ms(1);
}

/* A request fails if three servers die during it, so not more than two die in
 * a row before all have replied. */
TEST(dead_server, storm)
{
    pid_t server = liar_begin();
    pid_t readers[READERS];
    int h[READERS];

    for (int i = 0; i < READERS; i++) {
        h[i] = open("m/f", O_RDONLY);
        readers[i] = spawn(read_on, h[i]);
    }
    for (int i = 0; i < 8; i++) {
        if (i % 2 == 0)
            until_read(h);
        for (int k = 0; k < i % 4; k++)
            yield();
        expect_killed(server);
        server = succeed();
    }
    make_file("stop", "");
    for (int i = 0; i < READERS; i++) {
        expect_exit(readers[i], 0);
        EQUAL(close(h[i]), 0);
    }
    liar_end(server);
}

/* A change that may have been made already is not repeated. */
static void unlink_fails(int unused)
{
    uint32_t before = uptime_ms();

    (void)unused;
    FAILS(unlink("m/f"), EIO);
    CHECK(uptime_ms() - before < 1000); /* it did not wait for a successor */
}

TEST(dead_server, change_once)
{
    pid_t server = liar_begin();
    pid_t client;

    liar_order(liar_find(liar_tells, FS_UNLINK, DIE));
    client = spawn(unlink_fails, 0);
    expect_exit(client, 0);
    expect_exit(server, 0);
    server = succeed();
    CHECK(has_text("m/f", "hello"));
    liar_end(server);
}

/* A request does not wait for a successor for ever; but one may come later. */
TEST(dead_server, no_successor)
{
    pid_t server = liar_begin();
    uint32_t before;
    struct stat st;

    expect_killed(server);
    before = uptime_ms();
    FAILS(stat("m/f", &st), EIO);
    CHECK(uptime_ms() - before >= 5000);
    before = uptime_ms();
    FAILS(stat("m/f", &st), EIO);
    CHECK(uptime_ms() - before < 1000);
    server = succeed();
    EQUAL(stat("m/f", &st), 0);
    liar_end(server);
}

/* A successor with another root, or with other files of the same numbers. */
TEST(dead_server, impostor)
{
    pid_t server = liar_begin();
    int h = open("m/f", O_RDONLY);
    char buf[8];

    CHECK(h >= 0);
    expect_killed(server);
    EQUAL(close(liar_port), 0);
    server = spawn_server(liar_run_mount, &liar_port);
    liar_order(liar_find(liar_tells_mount, FS_STAT, PLAIN) + 6); /* no kind */
    FAILS(mount(liar_port, "m"), EIO);
    liar_order(liar_find(liar_tells_mount, FS_INODE, PLAIN));
    liar_stop(server);
    server = spawn_server(liar_run, &liar_port);
    EQUAL(mount(liar_port, "m"), 0);
    for (int i = 0; liar_tells[i].lie_label != 0; i++)
        if (liar_tells[i].lie_label == FS_INODE &&
            liar_tells[i].lie_try == NULL)
            liar_order(i); /* f is a directory now */
    FAILS(read(h, buf, 8), EIO);
    liar_order(-1);
    EQUAL(read(h, buf, 8), 5);
    EQUAL(close(h), 0);
    liar_end(server);
}

/* A file without a name was lost with its server. The file that has its number
 * now is another one. */
TEST(dead_server, orphan)
{
    pid_t server = liar_begin();
    int h = open("m/f", O_RDONLY);
    struct fs_stat st;
    char buf[8];

    CHECK(h >= 0);
    EQUAL(unlink("m/f"), 0);
    EQUAL(read(h, buf, 8), 5);
    expect_killed(server);
    server = succeed();
    FAILS(read(h, buf, 8), EIO);
    for (int i = 0; liar_tells[i].lie_label != 0; i++)
        if (liar_tells[i].lie_label == FS_INODE && liar_tells[i].lie_at == 4)
            liar_order(i); /* this file: it has no link */
    FAILS(read(h, buf, 8), EIO);
    liar_order(-1);
    CHECK(has_text("m/f", "hello"));
    EQUAL(close(h), 0);
    EQUAL(statfs("m", &st), 0);
    EQUAL(st.fs_files, 0); /* it received no release */
    h = open("m/f", O_RDONLY);
    EQUAL(unlink("m/f"), 0);
    EQUAL(close(h), 0);
    EQUAL(statfs("m", &st), 0);
    EQUAL(st.fs_files, 1);
    liar_end(server);
}

/* An open file is lost, and the successor gives its number to a new file: the
 * old handle does not write to that. */
TEST(dead_server, number_again)
{
    pid_t server = liar_begin();
    int h = open("m/lost", O_WRONLY | O_CREAT);
    int other;

    CHECK(h >= 0);
    expect_killed(server);
    server = succeed();
    other = open("m/other", O_WRONLY | O_CREAT);
    CHECK(other >= 0);
    FAILS(write(h, "lost", 4), EIO);
    EQUAL(write(other, "other", 5), 5);
    EQUAL(close(h), 0);
    EQUAL(write(other, "other", 5), 5);
    EQUAL(close(other), 0);
    liar_end(server);
}

/* fsync fails once if the server died after a write: the write may have been
 * lost. */
TEST(dead_server, unsynced)
{
    pid_t server = liar_begin();
    int h = open("m/f", O_RDWR);

    CHECK(h >= 0);
    for (int i = 0; i < 2; i++) {
        EQUAL(write(h, "12345", 5), 5);
        if (i == 0)
            EQUAL(fsync(h), 0);
        expect_killed(server);
        server = succeed();
        if (i == 1)
            FAILS(fsync(h), EIO);
        EQUAL(fsync(h), 0);
    }
    EQUAL(close(h), 0);
    liar_end(server);
}

/* The same while the file is written: the successor may have given its number
 * to another file. */
static void write_fails(int h)
{
    FAILS(write(h, "12345", 5), EIO);
}

TEST(dead_server, orphan_written)
{
    pid_t server = liar_begin();
    int h = open("m/f", O_RDWR);
    pid_t client;

    CHECK(h >= 0);
    EQUAL(unlink("m/f"), 0);
    liar_order(liar_find(liar_tells, FS_WRITE, DIE));
    client = spawn(write_fails, h);
    expect_exit(server, 0);
    until_waits_for(client, "file-server");
    server = succeed();
    expect_exit(client, 0);
    EQUAL(close(h), 0);
    liar_end(server);
}

/* The server dies after its reply that a name is new. Its successor may have
 * the name, so the kernel does not send it the request. */
static void create_fails(int unused)
{
    (void)unused;
    FAILS(open("m/new", O_WRONLY | O_CREAT), EIO);
}

static void mkdir_fails(int unused)
{
    (void)unused;
    FAILS(mkdir("m/new"), EIO);
}

TEST(dead_server, new_name)
{
    void (*const changes[])(int unused) = {create_fails, mkdir_fails};

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        pid_t server = liar_begin();
        pid_t client;

        liar_order(liar_find(liar_tells, FS_LOOKUP, LEAVE));
        client = spawn(changes[i], 0);
        expect_exit(server, 0);
        until_waits_for(client, "file-server");
        server = succeed();
        expect_exit(client, 0);
        EQUAL(mkdir("m/new"), 0);
        liar_end(server);
        EQUAL(rmdir("m"), 0);
    }
}

/* The server dies while a change waits for the file: its successor makes the
 * change, and gets the release. */
static void unlink_it(int unused)
{
    (void)unused;
    EQUAL(unlink("m/f"), 0);
}

static void replace_it(int unused)
{
    (void)unused;
    EQUAL(rename("m/x1", "m/f"), 0);
}

TEST(dead_server, change_across)
{
    void (*const changes[])(int unused) = {unlink_it, replace_it};

    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        pid_t server = liar_begin();
        int h = open("m/f", O_RDONLY);
        pid_t reader, client;
        struct fs_stat st;

        liar_silence(FS_READ);
        reader = spawn(read_until_killed, 0);
        liar_until_silent();
        client = spawn(changes[i], 0);
        until_waits_for(client, "inode");
        expect_killed(server);
        until_waits_for(reader, "file-server");
        expect_killed(reader);
        until_waits_for(client, "file-server");
        server = succeed();
        expect_exit(client, 0);
        EQUAL(close(h), 0);
        EQUAL(statfs("m", &st), 0);
        EQUAL(st.fs_files, 1);
        liar_end(server);
        EQUAL(rmdir("m"), 0);
    }
}
