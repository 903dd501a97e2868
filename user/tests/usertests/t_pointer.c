/*
 * Bad pointers: every system call that takes a pointer gets each kind of bad
 * one, and must return EFAULT, or an error found before, and change nothing.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/ipc.h"
#include "user/lib/string.h"

#define UNMAPPED 0x30000000u
#define KERNEL   0xC0100000u

/* Pointers to which no byte belongs to the program. */
static const uint32_t bad[] = {
    0,      1,          0x1000,     UNMAPPED,   0xBFFFFFFF, 0xC0000000,
    KERNEL, KERNEL + 1, 0xFFC00000, 0xFFFFF000, 0xFFFFFFFC, 0xFFFFFFFF,
};

static int32_t call3(uint32_t number, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t registers[6] = {a, b, c};

    return syscall_raw(number, registers);
}

#define FAULTS(number, a, b, c)                                                \
    EQUAL(call3(number, (uint32_t)(a), (uint32_t)(b), (uint32_t)(c)), -EFAULT)

/* ---- paths -------------------------------------------------------------- */

TEST(pointer, paths)
{
    static const uint8_t one[] = {SYS_mkdir, SYS_rmdir, SYS_unlink, SYS_chdir,
                                  SYS_umount};
    static struct stat st;
    int port = port_create();

    make_file("f", "");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(one); k++)
            FAULTS(one[k], bad[i], 0, 0);
        FAULTS(SYS_open, bad[i], O_RDONLY, 0);
        FAULTS(SYS_open, bad[i], O_RDWR | O_CREAT, 0);
        FAULTS(SYS_stat, bad[i], &st, 0);
        FAULTS(SYS_statfs, bad[i], &st, 0);
        FAULTS(SYS_mount, port, bad[i], 0);
        FAULTS(SYS_rename, bad[i], "g", 0);
        FAULTS(SYS_rename, "f", bad[i], 0);
        FAULTS(SYS_link, bad[i], "g", 0);
        FAULTS(SYS_link, "f", bad[i], 0);
        FAULTS(SYS_exec, bad[i], NULL, NULL);
    }
    CHECK(has_text("f", ""));
}

/* A string that reaches unmapped memory before its end. */
TEST(pointer, endless_path)
{
    char *page = mmap(PAGE_SIZE, PROT_READ | PROT_WRITE);
    char *end = page + PAGE_SIZE;

    memset(page, '/', PAGE_SIZE);
    FAULTS(SYS_chdir, end - 10, 0, 0);
    FAULTS(SYS_chdir, end - 1, 0, 0);
    FAULTS(SYS_open, end - 100, O_RDONLY, 0);
    end[-1] = 0;
    EQUAL(call3(SYS_chdir, (uint32_t)(end - 10), 0, 0), 0);
    EQUAL(call3(SYS_chdir, (uint32_t)(end - 1), 0, 0), -ENOENT);
}

TEST(pointer, exec_arguments)
{
    char *good[] = {"x", NULL};

    for (size_t i = 1; i < ARRAY_SIZE(bad); i++) {
        char *string[] = {"x", (char *)bad[i], NULL};

        FAULTS(SYS_exec, "/bin/true", bad[i], NULL);
        FAULTS(SYS_exec, "/bin/true", good, bad[i]);
        FAULTS(SYS_exec, "/bin/true", string, NULL);
        FAULTS(SYS_exec, "/bin/true", good, string);
    }
}

/* ---- results ------------------------------------------------------------ */

TEST(pointer, results)
{
    int ends[2];
    pid_t child;
    int h = open("/etc/motd", O_RDONLY);

    CHECK(h >= 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        FAULTS(SYS_stat, "/etc/motd", bad[i], 0);
        FAULTS(SYS_statfs, "/etc/motd", bad[i], 0);
        FAULTS(SYS_fstat, h, bad[i], 0);
        FAULTS(SYS_getcwd, bad[i], 64, 0);
        FAULTS(SYS_pipe, bad[i], 0, 0);
    }
    /* The pipes whose handles could not be stored are closed. */
    make_pipe(ends);
    EQUAL(ends[0], h + 1);
    EQUAL(ends[1], h + 2);
    child = spawn((void (*)(int))_exit, 3);
    for (size_t i = 1; i < ARRAY_SIZE(bad); i++)
        if (bad[i] >= 0xBFFFFFFF)
            FAULTS(SYS_wait, child, bad[i], 0);
    expect_exit(child, 3);
    child = spawn((void (*)(int))_exit, 3);
    FAULTS(SYS_wait, child, UNMAPPED, 0);
}

/* ---- bytes -------------------------------------------------------------- */

static void check_buffer(uint32_t number, int h)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        FAULTS(number, h, bad[i], 64);
        FAULTS(number, h, bad[i], 2 * PAGE_SIZE);
        FAULTS(number, h, bad[i], INT32_MAX);
    }
}

TEST(pointer, buffers)
{
    int ends[2];
    int file, dir, zero;

    make_file("f", "some text");
    file = open("f", O_RDWR);
    dir = open(".", O_RDONLY);
    zero = open("/dev/zero", O_RDONLY);
    make_pipe(ends);
    EQUAL(write(ends[1], "some bytes", 10), 10);
    check_buffer(SYS_read, file);
    check_buffer(SYS_write, file);
    check_buffer(SYS_read, ends[0]);
    check_buffer(SYS_write, ends[1]);
    check_buffer(SYS_read, zero);
    check_buffer(SYS_getdents, dir);
    /* Nothing was read from pipe and directory, nothing written to the file. */
    CHECK(has_text("f", "some text"));
    EQUAL(lseek(file, 0, SEEK_CUR), 0);
    EQUAL(lseek(dir, 0, SEEK_CUR), 0);
    EQUAL(close(ends[1]), 0);
    EQUAL(read(ends[0], (char[64]){0}, 64), 10);
}

TEST(pointer, overflow)
{
    static char buf[16];
    int zero = open("/dev/zero", O_RDWR);

    EQUAL(call3(SYS_read, zero, (uint32_t)buf, UINT32_MAX), -EINVAL);
    EQUAL(call3(SYS_write, zero, (uint32_t)buf, 0x80000000), -EINVAL);
    FAULTS(SYS_read, zero, 0x80000000, INT32_MAX);
    FAULTS(SYS_read, zero, 0xBFFFFFFF, 2);
    FAULTS(SYS_write, zero, 0xFFFFFFFF, 2);
    FAULTS(SYS_getcwd, buf, UINT32_MAX, 0);
    FAULTS(SYS_fstat, zero, 0xC0000000 - 4, 0);
    FAULTS(SYS_pipe, 0xC0000000 - 4, 0, 0);
}

/* Only the first bytes belong to the program. */
TEST(pointer, straddle)
{
    char *page = mmap(PAGE_SIZE, PROT_READ | PROT_WRITE);
    char *end = page + PAGE_SIZE;
    int zero = open("/dev/zero", O_RDONLY);
    int ends[2];
    ssize_t n;

    make_pipe(ends);
    FAULTS(SYS_read, zero, end - 10, 20);
    FAULTS(SYS_fstat, zero, end - 4, 0);
    FAULTS(SYS_stat, "/", end - 4, 0);
    FAULTS(SYS_pipe, end - 4, 0, 0);
    FAULTS(SYS_getcwd, end - 4, 64, 0);
    n = write(ends[1], end - 10, 20);
    CHECK(n == 10 || (n == -1 && errno == EFAULT));
    make_file("f", "0123456789012345678901234567890123456789");
    n = read(open("f", O_RDONLY), end - 10, 20);
    CHECK(n == 10 || (n == -1 && errno == EFAULT));
}

/* The kernel does not write to pages that the program cannot write to. */
TEST(pointer, read_only)
{
    char *page = mmap(PAGE_SIZE, PROT_READ);
    int zero = open("/dev/zero", O_RDONLY);

    FAULTS(SYS_read, zero, pointer_read_only, 4);
    FAULTS(SYS_read, zero, page, 4);
    FAULTS(SYS_read, zero, bad, 4);
    FAULTS(SYS_pipe, page, 0, 0);
    FAULTS(SYS_fstat, zero, page, 0);
    EQUAL(page[0], 0);
    EQUAL(bad[1], 1);
}

/* Pages that are allocated on access count as present. */
TEST(pointer, untouched)
{
    char *pages = mmap(4 * PAGE_SIZE, PROT_READ | PROT_WRITE);
    int ends[2];

    make_pipe(ends);
    EQUAL(write(ends[1], pages, PAGE_SIZE), PAGE_SIZE);
    EQUAL(read(ends[0], pages + 2 * PAGE_SIZE + 5, PAGE_SIZE), PAGE_SIZE);
    EQUAL(call3(SYS_fstat, (uint32_t)ends[0],
                (uint32_t)(pages + 2 * PAGE_SIZE - 4), 0),
          0);
}

/* ---- messages ----------------------------------------------------------- */

static int32_t message_call(uint32_t number, int port, uint32_t tag,
                            uint32_t buffer)
{
    const uint32_t registers[6] = {(uint32_t)port, tag, 0, 0, 0, buffer};

    return syscall_raw(number, registers);
}

TEST(pointer, message_buffers)
{
    int port = port_create();

    for (size_t i = 1; i < ARRAY_SIZE(bad); i++) {
        EQUAL(message_call(SYS_ipc_call, port, IPC_DATA, bad[i]), -EFAULT);
        EQUAL(message_call(SYS_ipc_call, port, 1, bad[i]), -EFAULT);
        EQUAL(message_call(SYS_ipc_receive, port, 0, bad[i]), -EFAULT);
        EQUAL(message_call(SYS_ipc_reply_receive, port, 0, bad[i]), -EFAULT);
    }
    EQUAL(message_call(SYS_ipc_call, port, IPC_DATA, 0), -EFAULT);
    EQUAL(message_call(SYS_ipc_call, port, IPC_HANDLE, 0), -EFAULT);
}

/* The memory that the buffer points to. */
TEST(pointer, message_bytes)
{
    struct ipc_buffer b;
    int port = port_create();

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (bad[i] < 0xBFFFFFFF)
            continue;
        b = (struct ipc_buffer){.ipc_send = (void *)bad[i],
                                .ipc_send_size = 16};
        EQUAL(message_call(SYS_ipc_call, port, IPC_DATA, (uint32_t)&b),
              -EFAULT);
        b = (struct ipc_buffer){.ipc_receive = (void *)bad[i],
                                .ipc_receive_max = 16};
        EQUAL(message_call(SYS_ipc_call, port, 1, (uint32_t)&b), -EFAULT);
        EQUAL(message_call(SYS_ipc_receive, port, 0, (uint32_t)&b), -EFAULT);
    }
    b = (struct ipc_buffer){.ipc_send_size = IPC_DATA_MAX + 1};
    EQUAL(message_call(SYS_ipc_call, port, IPC_DATA, (uint32_t)&b), -EMSGSIZE);
    b = (struct ipc_buffer){.ipc_send_handle = 99};
    EQUAL(message_call(SYS_ipc_call, port, IPC_HANDLE, (uint32_t)&b), -EBADF);
}
