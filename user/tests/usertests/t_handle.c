/*
 * Handles: numbers, duplicates, and having none left.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/ipc.h"
#include "user/lib/string.h"

static const int bad_handles[] = {-1,  64,        HANDLES_MAX - 1, HANDLES_MAX,
                                  257, INT32_MIN, INT32_MAX};

/* No call accepts a handle that is not open. */
TEST(handle, bad_numbers)
{
    char buf[64];
    struct stat st;

    for (size_t i = 0; i < ARRAY_SIZE(bad_handles); i++) {
        int h = bad_handles[i];
        struct message m = {0};

        FAILS(close(h), EBADF);
        FAILS(read(h, buf, 1), EBADF);
        FAILS(write(h, buf, 1), EBADF);
        FAILS(lseek(h, 0, SEEK_SET), EBADF);
        FAILS(fstat(h, &st), EBADF);
        FAILS(ftruncate(h, 0), EBADF);
        FAILS(getdents(h, buf, sizeof(buf)), EBADF);
        FAILS(dup(h), EBADF);
        FAILS(dup2(h, 5), EBADF);
        FAILS(ttymode(h, TTY_COOKED), EBADF);
        FAILS(tcsetpgrp(h, 0), EBADF);
        FAILS(ipc_call(h, &m), EBADF);
        FAILS(ipc_receive(h, &m), EBADF);
        FAILS(ipc_reply_receive(h, &m), EBADF);
        FAILS(notify(h, 1), EBADF);
        FAILS(name_server(NAME_SERVER_SET, h), EBADF);
    }
    FAILS(dup2(0, -1), EBADF);
    FAILS(dup2(0, HANDLES_MAX), EBADF);
    FAILS(dup2(0, INT32_MAX), EBADF);
}

/* A port is not a file, and a file is not a port. */
TEST(handle, wrong_kind)
{
    char buf[64];
    struct message m = {0};
    struct stat st;
    int port = port_create();
    int file = open("/etc/motd", O_RDONLY);

    CHECK(port >= 0 && file >= 0);
    FAILS(read(port, buf, 1), EBADF);
    FAILS(write(port, buf, 1), EBADF);
    FAILS(lseek(port, 0, SEEK_SET), EBADF);
    FAILS(ftruncate(port, 0), EBADF);
    FAILS(getdents(port, buf, sizeof(buf)), EBADF);
    FAILS(ttymode(port, TTY_RAW), EBADF);
    FAILS(ipc_call(file, &m), EBADF);
    FAILS(ipc_receive(file, &m), EBADF);
    FAILS(notify(file, 1), EBADF);
    FAILS(name_server(NAME_SERVER_SET, file), EBADF);
    EQUAL(fstat(port, &st), 0);
    EQUAL(st.st_type, FILE_PORT);
}

TEST(handle, lowest)
{
    int a = open("/etc/motd", O_RDONLY);
    int b = dup(a);
    int c = dup(a);

    EQUAL(b, a + 1);
    EQUAL(c, a + 2);
    EQUAL(close(b), 0);
    EQUAL(open("/etc/motd", O_RDONLY), b);
    EQUAL(close(a), 0);
    EQUAL(port_create(), a);
    FAILS(close(c + 1), EBADF);
    EQUAL(close(c), 0);
    FAILS(close(c), EBADF);
}

TEST(handle, dup_shares_offset)
{
    char c;
    int a, b;

    make_file("f", "abcdef");
    a = open("f", O_RDONLY);
    b = dup(a);
    EQUAL(read(a, &c, 1), 1);
    EQUAL(read(b, &c, 1), 1);
    EQUAL(c, 'b');
    EQUAL(lseek(b, 4, SEEK_SET), 4);
    EQUAL(close(b), 0);
    EQUAL(read(a, &c, 1), 1);
    EQUAL(c, 'e');
}

static void read_byte_of(int h)
{
    char c;

    EQUAL(read(h, &c, 1), 1);
    EQUAL(c, 'a');
    EQUAL(close(h), 0);
}

/* A child has the same open file, but its own handles. */
TEST(handle, fork_shares_offset)
{
    char c;
    int h;

    make_file("f", "abcdef");
    h = open("f", O_RDONLY);
    expect_exit(spawn(read_byte_of, h), 0);
    EQUAL(read(h, &c, 1), 1);
    EQUAL(c, 'b');
}

TEST(handle, dup2)
{
    int ends[2];
    char c;
    int h;

    make_pipe(ends);
    make_file("f", "abc");
    h = open("f", O_RDONLY);
    EQUAL(dup2(h, h), h);
    EQUAL(dup2(h, 200), 200);
    EQUAL(read(200, &c, 1), 1);
    EQUAL(dup2(h, ends[1]), ends[1]); /* closes the previous file */
    EQUAL(read(ends[0], &c, 1), 0);
    EQUAL(read(ends[1], &c, 1), 1);
    EQUAL(c, 'b');
    EQUAL(close(200), 0);
    FAILS(dup2(200, 200), EBADF);
}

/* Fills the table by calls of `make`, which returns how many handles it has
 * created; returns their number. */
static int fill(int (*make)(void))
{
    int made = 0;
    int n;

    while ((n = make()) > 0)
        made += n;
    EQUAL(errno, EMFILE);
    return made;
}

static int make_dup(void)
{
    return dup(0) < 0 ? -1 : 1;
}

static int make_open(void)
{
    return open("/etc/motd", O_RDONLY) < 0 ? -1 : 1;
}

static int make_pipes(void)
{
    int ends[2];

    return pipe(ends) < 0 ? -1 : 2;
}

static int make_port(void)
{
    return port_create() < 0 ? -1 : 1;
}

TEST(handle, exhaustion)
{
    int (*const makers[])(void) = {make_dup, make_open, make_pipes, make_port};
    int first = dup(0);
    int before = first;

    CHECK(first > 2);
    EQUAL(close(first), 0);
    for (size_t i = 0; i < ARRAY_SIZE(makers); i++) {
        int made = fill(makers[i]);

        CHECK(made >= HANDLES_MAX - before - 1);
        fill(make_dup);
        FAILS(open("new", O_WRONLY | O_CREAT), EMFILE);
        FAILS(open("/etc/motd", O_RDONLY), EMFILE);
        EQUAL(dup2(0, HANDLES_MAX - 1), HANDLES_MAX - 1);
        for (int h = first; h < HANDLES_MAX; h++)
            EQUAL(close(h), 0);
    }
    /* An open that fails for lack of a handle creates no file. */
    FAILS(open("new", O_RDONLY), ENOENT);
    EQUAL(dup(0), first);
}

/* One free handle is not enough for a pipe, and stays free. */
TEST(handle, last_for_pipe)
{
    int ends[2] = {-7, -7};

    fill(make_dup);
    EQUAL(close(HANDLES_MAX - 1), 0);
    FAILS(pipe(ends), EMFILE);
    EQUAL(ends[0], -7);
    EQUAL(dup(0), HANDLES_MAX - 1);
}
