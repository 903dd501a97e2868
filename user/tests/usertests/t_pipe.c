/*
 * Pipes.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/string.h"

static char block[2 * PIPE_SIZE];

TEST(pipe, order)
{
    static char got[1000];
    int ends[2];

    make_pipe(ends);
    for (int i = 0; i < 1000; i++)
        block[i] = (char)(i * 7);
    for (int round = 0; round < 20; round++) {
        EQUAL(write(ends[1], block, 300), 300);
        EQUAL(write(ends[1], block + 300, 700), 700);
        EQUAL(read(ends[0], got, 1), 1);
        EQUAL(read(ends[0], got + 1, sizeof(got)), 999);
        EQUAL(memcmp(got, block, sizeof(got)), 0);
    }
}

TEST(pipe, end_of_file)
{
    int ends[2];
    char c;

    make_pipe(ends);
    EQUAL(write(ends[1], "x", 1), 1);
    EQUAL(close(ends[1]), 0);
    EQUAL(read(ends[0], &c, 1), 1);
    EQUAL(read(ends[0], &c, 1), 0);
    EQUAL(read(ends[0], &c, 1), 0);
}

TEST(pipe, broken)
{
    int ends[2];

    make_pipe(ends);
    EQUAL(write(ends[1], "x", 1), 1);
    EQUAL(close(ends[0]), 0);
    FAILS(write(ends[1], "x", 1), EPIPE);
    FAILS(write(ends[1], block, sizeof(block)), EPIPE);
}

TEST(pipe, wrong_end)
{
    int ends[2];
    char c = 0;
    struct stat st;

    make_pipe(ends);
    FAILS(read(ends[1], &c, 1), EBADF);
    FAILS(write(ends[0], &c, 1), EBADF);
    FAILS(lseek(ends[0], 0, SEEK_SET), ESPIPE);
    FAILS(lseek(ends[1], 0, SEEK_END), ESPIPE);
    FAILS(ftruncate(ends[1], 0), EINVAL);
    FAILS(getdents(ends[0], block, sizeof(block)), ENOTDIR);
    EQUAL(fstat(ends[0], &st), 0);
    EQUAL(st.st_type, FILE_PIPE);
}

/* A transfer of no bytes does not wait. */
TEST(pipe, no_bytes)
{
    int ends[2];

    make_pipe(ends);
    EQUAL(write(ends[1], block, 0), 0);
    EQUAL(read(ends[0], block, 0), 0);
}

static void write_later(int out)
{
    sleep_ms(20);
    EQUAL(write(out, "late", 4), 4);
}

TEST(pipe, reader_waits)
{
    int ends[2];
    pid_t child;

    make_pipe(ends);
    child = spawn(write_later, ends[1]);
    EQUAL(read(ends[0], block, sizeof(block)), 4);
    EQUAL(memcmp(block, "late", 4), 0);
    expect_exit(child, 0);
}

static void write_much(int out)
{
    EQUAL(write(out, block, sizeof(block)), sizeof(block));
}

/* More than a pipe holds: the writer waits for a reader, byte by byte. */
TEST(pipe, writer_waits)
{
    int ends[2];
    size_t left = sizeof(block);
    pid_t child;

    make_pipe(ends);
    child = spawn(write_much, ends[1]);
    until_waits_for(child, "pipe-full");
    while (left > 0) {
        char some[113];
        ssize_t n = read(ends[0], some, sizeof(some));

        CHECK(n > 0);
        left -= (size_t)n;
    }
    expect_exit(child, 0);
}

static void expect_broken(int out)
{
    ssize_t n = write(out, block, sizeof(block));

    /* Bytes written before count. */
    if (n >= 0)
        EQUAL(n, PIPE_SIZE);
    FAILS(write(out, block, 1), EPIPE);
}

/* The last reader ends while a writer waits. */
TEST(pipe, writer_gets_epipe)
{
    int ends[2];
    pid_t child;

    make_pipe(ends);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        EQUAL(close(ends[0]), 0);
        expect_broken(ends[1]);
        _exit(0);
    }
    until_waits_for(child, "pipe-full");
    EQUAL(close(ends[0]), 0);
    expect_exit(child, 0);
}

/* The last writer ends while a reader waits. */
TEST(pipe, reader_gets_end)
{
    int ends[2];
    pid_t child;
    char c;

    make_pipe(ends);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        EQUAL(close(ends[1]), 0);
        EQUAL(read(ends[0], &c, 1), 0);
        _exit(0);
    }
    until_waits_for(child, "pipe-empty");
    EQUAL(close(ends[1]), 0);
    expect_exit(child, 0);
}

#define WRITERS 4
#define ROUNDS  30
#define CHUNK   1000 /* does not divide PIPE_SIZE */

static void write_letters(int arg)
{
    char chunk[CHUNK];

    memset(chunk, 'a' + (arg & 7), sizeof(chunk));
    for (int i = 0; i < ROUNDS; i++)
        EQUAL(write(arg >> 3, chunk, sizeof(chunk)), sizeof(chunk));
}

static void read_exactly(int in, char *buf, size_t n)
{
    while (n > 0) {
        ssize_t got = read(in, buf, n);

        CHECK(got > 0);
        buf += got;
        n -= (size_t)got;
    }
}

/* A write of no more than the pipe holds arrives in one piece. */
TEST(pipe, atomic)
{
    int ends[2];
    char chunk[CHUNK];

    make_pipe(ends);
    for (int i = 0; i < WRITERS; i++)
        spawn(write_letters, ends[1] << 3 | i);
    for (int i = 0; i < WRITERS * ROUNDS; i++) {
        read_exactly(ends[0], chunk, sizeof(chunk));
        for (int k = 1; k < CHUNK; k++)
            EQUAL(chunk[k], chunk[0]);
    }
    for (int i = 0; i < WRITERS; i++) {
        int status;

        CHECK(wait(&status) > 0);
        EQUAL(status, 0);
    }
}

static void read_blocked(int in)
{
    char c;

    read(in, &c, 1);
}

/* A task is killed while it waits; the pipe still works for others. */
TEST(pipe, killed_waiting)
{
    int ends[2];
    pid_t child;
    char c;

    make_pipe(ends);
    child = spawn(read_blocked, ends[0]);
    until_waits_for(child, "pipe-empty");
    expect_killed(child);
    EQUAL(write(ends[1], "y", 1), 1);
    EQUAL(read(ends[0], &c, 1), 1);
    child = spawn(write_much, ends[1]);
    until_waits_for(child, "pipe-full");
    EQUAL(kill(child, SIGTERM), 0);
    expect_signal(child, SIGTERM);
    EQUAL(read(ends[0], block, sizeof(block)), PIPE_SIZE);
    EQUAL(close(ends[1]), 0);
    EQUAL(read(ends[0], &c, 1), 0);
}

/* A pipe is freed when the processes at both ends exit. */
TEST(pipe, many)
{
    int ends[2];

    for (int i = 0; i < 300; i++) {
        make_pipe(ends);
        EQUAL(write(ends[1], block, 10), 10);
        EQUAL(close(ends[i & 1]), 0);
        EQUAL(close(ends[~i & 1]), 0);
    }
}

static void fill_with_pipes(int gate)
{
    char c;
    int ends[2];

    for (;;) {
        while (pipe(ends) == 0)
            continue;
        if (errno != EMFILE || fork() != 0)
            break;
        /* The child has the same handles: it closes them and creates more. */
        for (int h = gate + 1; h < HANDLES_MAX; h++)
            close(h);
    }
    read(gate, &c, 1);
}

/* Creates as many as there is memory for, and afterwards some again. */
TEST(pipe, exhaustion)
{
    int ends[2], more[2];
    pid_t child;

    make_pipe(ends);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        EQUAL(close(ends[1]), 0);
        fill_with_pipes(ends[0]);
        _exit(0);
    }
    until_waits_for(child, "pipe-empty");
    sleep_ms(100);
    EQUAL(close(ends[1]), 0);
    expect_exit(child, 0);
    for (int i = 0; i < 100 && pipe(more) < 0; i++)
        sleep_ms(10);
    EQUAL(write(more[1], "z", 1), 1);
}
