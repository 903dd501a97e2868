/*
 * An ordinary program has no port, interrupt line, device page or page for DMA,
 * and cannot change a server's program. (For the rights of servers see
 * user/tests/drivertest.)
 */
#include "user/tests/usertests/test.h"
#include "user/lib/io.h"
#include "user/lib/ipc.h"
#include "user/lib/string.h"

TEST(grant, lines)
{
    int port = port_create();

    for (int line = 0; line < 16; line++) {
        FAILS(irq_bind(port, line, 1), EPERM);
        FAILS(irq_ack(line), EPERM);
    }
    FAILS(irq_bind(port, 16, 1), EINVAL);
    FAILS(irq_bind(-1, 16, 1), EBADF);
    FAILS(irq_ack(16), EINVAL);
}

TEST(grant, memory)
{
    static const uint32_t places[] = {
        0, 0x1000, 0xa0000, 0xb8000, 0xf0000, 0x100000, 0xfee00000, 0xfffff000};
    uint32_t first = 5;

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        FAILS(map_device(places[i], 1), EPERM);
        FAILS(map_device(places[i], PAGE_SIZE), EPERM);
        FAILS(map_device(places[i], UINT32_MAX), EPERM);
        FAILS(map_device(places[i] + 1, PAGE_SIZE), EINVAL);
        FAILS(map_device(places[i], 0), EINVAL);
    }
    FAILS(dma_alloc(1, &first), EPERM);
    FAILS(dma_alloc(UINT32_MAX, &first), EPERM);
    FAILS(dma_alloc(0, &first), EINVAL);
    FAILS(dma_alloc(1, (uint32_t *)0xc0000000), EPERM);
    EQUAL(first, 5);
}

TEST(grant, call)
{
    FAILS(grant_take("names"), EPERM);
    FAILS(grant_take("drivertest"), EPERM);
    FAILS(grant_take("nobody"), EPERM);
    FAILS(grant_take((const char *)0xc0000000), EPERM);
    EQUAL(grant_take(NULL), 0);
}

/* What servers and init are started from keeps its contents and its names. */
TEST(grant, sealed)
{
    static const char *const sealed[] = {"/sbin/init", "/sbin/names",
                                         "/bin/drivertest", "/etc/servers"};
    struct stat before, after;

    for (size_t i = 0; i < ARRAY_SIZE(sealed); i++) {
        EQUAL(stat(sealed[i], &before), 0);
        FAILS(open(sealed[i], O_WRONLY), EPERM);
        FAILS(open(sealed[i], O_RDWR), EPERM);
        FAILS(open(sealed[i], O_WRONLY | O_TRUNC), EPERM);
        FAILS(open(sealed[i], O_WRONLY | O_APPEND | O_CREAT), EPERM);
        FAILS(link(sealed[i], "linked"), EPERM);
        FAILS(unlink(sealed[i]), EPERM);
        FAILS(rename(sealed[i], "elsewhere"), EPERM);
        FAILS(rename("/bin/true", sealed[i]), EPERM);
        EQUAL(stat(sealed[i], &after), 0);
        EQUAL(after.st_ino, before.st_ino);
        EQUAL(after.st_size, before.st_size);
        EQUAL(close(open(sealed[i], O_RDONLY)), 0);
    }
}

/* So does every directory that leads there, and what is opened by name later.
 */
TEST(grant, sealed_paths)
{
    static const char *const directories[] = {"/sbin", "/bin", "/etc", "/dev"};
    static const char *const devices[] = {"/dev/console", "/dev/debug",
                                          "/dev/null"};

    EQUAL(mkdir("empty"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
        FAILS(rename(directories[i], "elsewhere"), EPERM);
        FAILS(rename("empty", directories[i]), EPERM);
        FAILS(rmdir(directories[i]), EPERM);
    }
    EQUAL(rmdir("empty"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
        FAILS(unlink(devices[i]), EPERM);
        FAILS(rename(devices[i], "elsewhere"), EPERM);
        FAILS(rename("/bin/true", devices[i]), EPERM);
        EQUAL(close(open(devices[i], O_RDWR)), 0);
    }
    EQUAL(close(open("/sbin/new", O_WRONLY | O_CREAT)), 0);
    EQUAL(unlink("/sbin/new"), 0);
}

/* ---- ports -------------------------------------------------------------- */

static void child_in(int port)
{
    inb((uint16_t)port);
}

static void child_out(int port)
{
    outb((uint16_t)port, 0);
}

static void child_inl(int port)
{
    inl((uint16_t)port);
}

TEST(grant, ports)
{
    static const uint16_t ports[] = {0,    0x20,  0x40,  0x60,  0x64,
                                     0x70, 0x1f0, 0x3f8, 0xcf8, 0xffff};

    for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
        expect_signal(spawn(child_in, ports[i]), SIGSEGV);
        expect_signal(spawn(child_out, ports[i]), SIGSEGV);
        expect_signal(spawn(child_inl, ports[i]), SIGSEGV);
    }
}

TEST_KILLED(grant, in_words, SIGSEGV)
{
    uint16_t words[2];

    insw(0x1f0, words, 2);
}

TEST_KILLED(grant, out_words, SIGSEGV)
{
    static const uint16_t words[2];

    outsw(0x1f0, words, 2);
}
