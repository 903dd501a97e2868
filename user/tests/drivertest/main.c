/*
 * drivertest: tests of a driver's grant, from ring 3.
 *
 *     run -s drivertest               uses the grant, and makes requests that
 *                                     must be refused with an error
 *     run -p drivertest privileged    how to get a grant: grant_take, exec; and
 *                                     the ports next to the granted ones
 *     run -s drivertest in PORT       reads a port and prints the value;
 *                                     inw: 16 bits, inl: 32 bits
 *     run -s drivertest wait          holds part of it until it is killed
 *     run -s drivertest orphan        exits; a child still has the port of a
 *                                     bound line
 *     run -s drivertest bound PROGRAM [ARG …]
 *     run -s drivertest exec PROGRAM [ARG …]
 *                                     executes that program; bound: with
 *                                     line 5
 *
 * Its grant (/etc/servers) is only for this test: the clock (ports 0x70-0x71,
 * line 8), three ports and line 5 where no device is, the page of the screen's
 * text and the second page after it, and four pages for DMA. A port that is not
 * granted kills a program, so a child tries each. The child must take the grant
 * itself, since children do not inherit it.
 */
#include "user/lib/err.h"
#include "user/lib/io.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/tests/devtest/devtest.h"

#define SELF "/bin/drivertest"

#define SCREEN  0xb8000u
#define HOLE    0xb9000u /* between the two pages that are granted */
#define BEHIND  0xba000u
#define PAGES   4u /* for DMA */
#define LINE    5
#define CLOCK   8
#define NOTHING 0x278 /* three ports without a device */

static bool fails(int32_t result, int error)
{
    return result == -1 && errno == error;
}

/* ---- ports -------------------------------------------------------------- */

static uint8_t clock_read(uint8_t reg)
{
    outb(0x70, reg);
    return inb(0x71);
}

static void clock_write(uint8_t reg, uint8_t value)
{
    outb(0x70, reg);
    outb(0x71, value);
}

static int child_port(void)
{
    return inb(NOTHING);
}

static void ports(void)
{
    uint16_t words[3] = {0, 0, 0};

    check(clock_read(0x32) == 0x20, "the clock's century is that of 2020");
    outb(NOTHING + 2, 0);
    check(inb(NOTHING + 2) == 0xff && inw(NOTHING) == 0xffff,
          "ports without a device read as ones");
    insw(NOTHING, words, 2);
    check(words[1] == 0xffff && words[2] == 0, "two words in a row");
    outsw(NOTHING, words, 2);
    check(ended(child(child_port)) == -SIGSEGV, "a child has no ports");
    check(inb(NOTHING) == 0xff, "and its parent still has them");
}

/* ---- interrupts --------------------------------------------------------- */

enum {
    CLOCK_A = 10,
    CLOCK_B = 11,
    CLOCK_C = 12,
    A_64_HZ = 0x2a,
    B_PERIODIC = 0x40,
};

static int test_port;

static int child_irq(void)
{
    return fails(irq_bind(test_port, LINE, 1), EPERM) &&
           fails(irq_ack(CLOCK), EPERM);
}

static void lines(void)
{
    struct message m = {0};
    uint8_t b = clock_read(CLOCK_B);
    bool refused = true;
    bool came = true;

    for (int line = 0; line < 16; line++)
        if (line != LINE && line != CLOCK)
            refused &= fails(irq_bind(test_port, line, 1), EPERM) &&
                       fails(irq_ack(line), EPERM);
    check(refused, "no other interrupt lines");
    check(fails(irq_bind(test_port, 16, 1), EINVAL) &&
              fails(irq_ack(-1), EINVAL) && fails(irq_ack(CLOCK), EINVAL),
          "no invalid lines, and none that is not bound");
    check(irq_bind(test_port, LINE, 7) == 0, "line 5");
    check(irq_bind(test_port, CLOCK, 3) == 0, "line 8");
    check(ended(child(child_irq)) == 1, "a child has no lines");
    clock_write(CLOCK_A, A_64_HZ);
    clock_read(CLOCK_C);
    clock_write(CLOCK_B, b | B_PERIODIC);
    for (int i = 0; i < 5 && came; i++) {
        came = ipc_receive(test_port, &m) == 0 && m.msg_client == 0 &&
               m.msg_word[0] == 1u << 3 &&
               (clock_read(CLOCK_C) & B_PERIODIC) != 0 && irq_ack(CLOCK) == 0;
    }
    clock_write(CLOCK_B, b);
    check(came, "five interrupts of the clock are messages");
}

/* ---- the memory of devices ---------------------------------------------- */

static volatile uint16_t *screen;

static int child_screen(void)
{
    return map_device(SCREEN, PAGE_SIZE) == MAP_FAILED && errno == EPERM
               ? screen[0]
               : 1;
}

static void serve(int port)
{
    static char text[64];
    struct ipc_buffer b = {.ipc_receive = text, .ipc_receive_max = 64};
    struct message m = {.msg_buffer = &b};

    while (ipc_receive(port, &m) == 0) {
        m.msg_tag = IPC_DATA;
        b.ipc_send = text;
        b.ipc_send_size = 16;
        ipc_reply(m.msg_client, &m);
    }
    _exit(0);
}

/* A call that sends 16 bytes from `from` and has room for them at `to`. */
static int call(int port, const volatile void *from, volatile void *to)
{
    struct ipc_buffer b = {.ipc_send = (const void *)from,
                           .ipc_send_size = 16,
                           .ipc_receive = (void *)to,
                           .ipc_receive_max = 16};
    struct message m = {.msg_tag = IPC_DATA, .msg_buffer = &b};

    return ipc_call(port, &m);
}

static bool map_fails(uint32_t first, size_t bytes, int error)
{
    return fails((int32_t)map_device(first, bytes), error);
}

static void device(int server)
{
    volatile uint16_t *second = map_device(BEHIND, PAGE_SIZE);
    char text[16];
    uint16_t old;

    screen = map_device(SCREEN, PAGE_SIZE);
    check(screen != MAP_FAILED && second != MAP_FAILED, "two device pages");
    old = screen[80 * 24];
    screen[80 * 24] = 0x0741;
    check(screen[80 * 24] == 0x0741, "the screen keeps a character");
    screen[80 * 24] = old;
    check(map_fails(HOLE, 1, EPERM) && map_fails(SCREEN - 4096, 1, EPERM) &&
              map_fails(BEHIND + 4096, 1, EPERM) &&
              map_fails(0x100000, 4096, EPERM) && map_fails(0, 4096, EPERM),
          "no other pages");
    check(map_fails(SCREEN, 4097, EPERM) && map_fails(SCREEN, -1u, EPERM) &&
              map_fails(SCREEN, 3 * 4096, EPERM),
          "no more pages than granted");
    check(map_fails(SCREEN + 1, 1, EINVAL) && map_fails(SCREEN, 0, EINVAL),
          "no parts of pages");
    check(fails(call(server, screen, text), EFAULT) &&
              fails(call(server, text, screen), EFAULT) &&
              call(server, text, text) == 0,
          "no messages from and to a device");
    check(ended(child(child_screen)) == -SIGSEGV,
          "a child has no device pages");
    check(fails(munmap((void *)screen, 8192), EINVAL) &&
              munmap((void *)second, 4096) == 0 &&
              munmap((void *)screen, 4096) == 0,
          "they are unmapped");
}

/* ---- pages for DMA ------------------------------------------------------ */

static uint32_t *pages;

static int child_dma(void)
{
    uint32_t first;

    return dma_alloc(1, &first) == MAP_FAILED && errno == EPERM ? (int)pages[0]
                                                                : 1;
}

static bool all(const uint32_t *at, size_t bytes, uint32_t value)
{
    for (size_t i = 0; i < bytes / 4; i++)
        if (at[i] != value)
            return false;
    return true;
}

static bool dma_fails(size_t n, uint32_t *out, int error)
{
    return fails((int32_t)dma_alloc(n, out), error);
}

static void dma(int server)
{
    uint32_t first = 1, other = 1;
    uint32_t *more;

    pages = dma_alloc(3, &first);
    check(pages != MAP_FAILED && first != 0 && (first & PAGE_MASK) == 0,
          "three pages for DMA");
    check(all(pages, 3 * PAGE_SIZE, 0), "they are zero");
    memset(pages, 0x5a, 3 * PAGE_SIZE);
    check(dma_fails(2, &other, EPERM) && dma_fails(0, &other, EINVAL) &&
              dma_fails(-1u, &other, EPERM) &&
              dma_fails(1, (uint32_t *)0xc0000000, EFAULT),
          "no more than granted");
    more = dma_alloc(1, &other);
    check(more != MAP_FAILED && (other < first || other >= first + 3 * 4096),
          "one page more");
    check(dma_fails(1, &other, EPERM), "no fifth one");
    check(call(server, pages, more) == 0 && all(more, 16, 0x5a5a5a5a),
          "messages from and to these pages");
    check(ended(child(child_dma)) == -SIGSEGV, "a child has no pages for DMA");
    check(munmap(pages, 3 * PAGE_SIZE) == 0, "they are freed");
    pages = dma_alloc(3, &first);
    check(pages != MAP_FAILED && all(pages, 3 * PAGE_SIZE, 0),
          "and allocated again, zeroed");
}

/* ---- the rest ----------------------------------------------------------- */

static void privileges(void)
{
    check(fails(grant_take("ata"), EPERM) &&
              fails(grant_take("drivertest"), EPERM) && grant_take(NULL) == 0,
          "a server cannot take another grant");
    check(fails(open(SELF, O_WRONLY), EPERM) &&
              fails(open(SELF, O_RDWR | O_TRUNC), EPERM) &&
              fails(open("/sbin/init", O_RDWR), EPERM),
          "its program cannot be changed");
}

static pid_t start_server(int port)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0)
        serve(port);
    return pid;
}

/* ---- how to get a grant ------------------------------------------------- */

#define CANNOT 99 /* a child that did not reach its test */

/* Arguments of the program that a child executes. */
static char *next[4];

static int child_becomes(void)
{
    if (grant_take("drivertest") < 0)
        return CANNOT;
    execv(next[0], next);
    return CANNOT;
}

static int run_as_server(char *path, char *a, char *b)
{
    next[0] = path;
    next[1] = a;
    next[2] = b;
    return ended(child(child_becomes));
}

/* The grant is taken, but init's program still runs: the grant is not in
 * force. */
static int child_before_exec(void)
{
    uint32_t first;

    if (grant_take("drivertest") < 0)
        return CANNOT;
    if (!fails(irq_bind(port_create(), LINE, 1), EPERM) ||
        !fails((int32_t)map_device(SCREEN, 1), EPERM) ||
        !fails((int32_t)dma_alloc(1, &first), EPERM) ||
        !fails(grant_take("drivertest"), EPERM) ||
        !fails(grant_take("names"), EPERM))
        return CANNOT;
    return inb(NOTHING);
}

static int child_drops(void)
{
    return grant_take(NULL) == 0 && fails(grant_take("drivertest"), EPERM) &&
           grant_take(NULL) == 0;
}

static int child_execs(void)
{
    char *plain[] = {SELF, "plain", NULL};

    execv(SELF, plain);
    return CANNOT;
}

static int child_of_child(void)
{
    return ended(child(child_drops));
}

/* Whether a program has none of the rights of servers and init. */
static int is_plain(void)
{
    uint32_t first;
    int port = port_create();

    for (int line = 0; line < 16; line++)
        if (!fails(irq_bind(port, line, 1), EPERM) ||
            !fails(irq_ack(line), EPERM))
            return 1;
    return !fails(grant_take("drivertest"), EPERM) ||
           !fails((int32_t)map_device(SCREEN, 1), EPERM) ||
           !fails((int32_t)dma_alloc(1, &first), EPERM);
}

/* Only one task at a time is the server; another can follow it. */
static void one_at_a_time(void)
{
    int go = port_create();
    struct message m = {0};
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        grant_take("drivertest");
        notify(go, 1);
        for (;;)
            sleep(100);
    }
    ipc_receive(go, &m);
    check(fails(grant_take("drivertest"), EBUSY),
          "no second server at the same time");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    check(run_as_server(SELF, "in", "0x278") == 0, "another one after that");
}

static void neighbours(void)
{
    static char *const other[] = {
        "0x6f", "0x72", "0x277", "0x27b", "0",     "0x20", "0x21",  "0x60",
        "0x64", "0xe9", "0x1f0", "0x3f6", "0x3f8", "0x73", "0xcf8", "0xffff"};
    static char *const own[] = {"0x70", "0x71", "0x278", "0x279", "0x27a"};
    bool killed = true;
    bool good = true;

    for (size_t i = 0; i < ARRAY_SIZE(other); i++)
        killed &= run_as_server(SELF, "in", other[i]) == -SIGSEGV;
    check(killed, "any other port ends the program");
    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        good &= run_as_server(SELF, "in", own[i]) == 0;
    check(good, "granted ports do not");
    check(run_as_server(SELF, "inw", "0x278") == 0 &&
              run_as_server(SELF, "inw", "0x70") == 0,
          "two granted ports at once");
    check(run_as_server(SELF, "inw", "0x6f") == -SIGSEGV &&
              run_as_server(SELF, "inw", "0x71") == -SIGSEGV &&
              run_as_server(SELF, "inw", "0x27a") == -SIGSEGV &&
              run_as_server(SELF, "inw", "0xffff") == -SIGSEGV &&
              run_as_server(SELF, "inl", "0x278") == -SIGSEGV,
          "a granted port and its neighbour");
}

static int with_privilege(void)
{
    check(fails(grant_take("no server"), ENOENT) &&
              fails(grant_take("a name that is too long"), ENAMETOOLONG) &&
              fails(grant_take((char *)0xc0000000), EFAULT),
          "only existing servers");
    check(ended(child(child_of_child)) == 1, "children inherit the privilege");
    check(ended(child(child_execs)) == 0, "exec ends it");
    check(ended(child(child_before_exec)) == -SIGSEGV,
          "a grant is not in force before its program runs");
    check(run_as_server(SELF, "in", "0x278") == 0, "afterwards it is");
    check(run_as_server(SELF, "twice", NULL) == 0,
          "and stays with the program");
    check(run_as_server("/bin/true", NULL, NULL) == 0 &&
              run_as_server("/bin/grep", "~", "/etc/motd") == 1,
          "another program runs without it");
    check(run_as_server(SELF, "through", NULL) == 0,
          "and executing its program again does not restore it");
    one_at_a_time();
    neighbours();
    check(grant_take(NULL) == 0 && is_plain() == 0,
          "it is an ordinary program again");
    return check_report("drivertest");
}

/* Executes itself with one more argument: `mode` and then the last one. */
static int again(char *program, char *mode, char *argument)
{
    char *argv[] = {program, mode, argument, NULL};

    execv(program, argv);
    err(1, "%s", program);
}

/* ---- all tests ---------------------------------------------------------- */

static int everything(void)
{
    int server = port_create();
    pid_t pid = start_server(server);

    test_port = port_create();
    ports();
    lines();
    device(server);
    dma(server);
    privileges();
    kill(pid, SIGKILL);
    return check_report("drivertest");
}

/* Holds line 5, a device page and two pages until it is killed. */
static int wait_for_ever(void)
{
    struct message m = {0};
    uint32_t first;

    test_port = port_create();
    if (irq_bind(test_port, LINE, 1) < 0 ||
        map_device(SCREEN, PAGE_SIZE) == MAP_FAILED ||
        dma_alloc(2, &first) == MAP_FAILED)
        err(1, "drivertest");
    for (;;)
        ipc_receive(test_port, &m);
}

/* Binds line 5, for tests of what happens to it at exec, or when only a child
 * still has the port. */
static void bind_line(void)
{
    if (irq_bind(port_create(), LINE, 1) < 0)
        err(1, "line %d", LINE);
}

static int leave_child(void)
{
    bind_line();
    if (fork() == 0)
        sleep(1000);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return everything();
    if (argc == 3 && strcmp(argv[1], "in") == 0)
        printf("0x%x\n", inb((uint16_t)strtol(argv[2], NULL, 0)));
    else if (argc == 3 && strcmp(argv[1], "inw") == 0)
        printf("0x%x\n", inw((uint16_t)strtol(argv[2], NULL, 0)));
    else if (argc == 3 && strcmp(argv[1], "inl") == 0)
        printf("0x%x\n", (unsigned)inl((uint16_t)strtol(argv[2], NULL, 0)));
    else if (argc == 2 && strcmp(argv[1], "orphan") == 0)
        return leave_child();
    else if (argc >= 3 && strcmp(argv[1], "bound") == 0)
        bind_line(), err(1, "%s", (execv(argv[2], argv + 2), argv[2]));
    else if (argc >= 3 && strcmp(argv[1], "exec") == 0)
        err(1, "%s", (execv(argv[2], argv + 2), argv[2]));
    else if (argc == 2 && strcmp(argv[1], "privileged") == 0)
        return with_privilege();
    else if (argc == 2 && strcmp(argv[1], "wait") == 0)
        return wait_for_ever();
    else if (argc == 2 && strcmp(argv[1], "plain") == 0)
        return is_plain();
    else if (argc == 2 && strcmp(argv[1], "twice") == 0)
        return again(SELF, "in", "0x278");
    else if (argc == 2 && strcmp(argv[1], "through") == 0)
        return again("/bin/sh", "-c", SELF " plain");
    else
        usage("[privileged | wait | orphan | in PORT | inw PORT | inl PORT |\n"
              "                   exec|bound PROGRAM [ARG ...]]");
    return 0;
}
