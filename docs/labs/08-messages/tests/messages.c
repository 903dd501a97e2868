/*
 * Lab 8: a driver in ring 3. The program beattest (bin/beattest/beattest.h)
 * tests the parts from another process; students do not hand in any of its
 * files. These tests start it and check its exit status. The kernel itself
 * checks the state in which the driver leaves the chip.
 */
#include "drivers/pic.h"
#include "kernel/fs/file.h"
#include "kernel/fs/tty.h"
#include "kernel/ipc/port.h"
#include "tools/workshop/labs/lab.h"
#include "kernel/lib/string.h"
#include "kernel/syscall/process.h"
#include "kernel/object/grant.h"
#include "kernel/x86/io.h"

#define STEP_MS 10

enum {
    CLOCK_IRQ = 8,
    CLOCK_INDEX = 0x70,
    CLOCK_DATA = 0x71,
    REG_A = 10,
    A_RATE = 0x7f, /* crystal and rate; the chip changes the highest bit */
    A_1024_HZ = 0x26,
    A_128_HZ = 0x29, /* the rate of beats */
    REG_B = 11,
    B_CAUSES = 0x70, /* all causes of an interrupt */
    B_FORMAT = 0x06, /* the clock's format: 24 hours, binary */
    B_BINARY = 0x04,
};

/* ---- programs ----------------------------------------------------------- */

/* Starts a program of the archive on the console; a server with its grant. */
static pid_t start(const char *const *words, const char *server)
{
    struct process_start s = {
        .start_path = words[0],
        .start_argv = words,
        .start_grant = server != NULL ? grant_find(server) : NULL,
        .start_privileged = server == NULL,
    };
    pid_t pid = file_open("/dev/console", NULL, O_RDWR, &s.start_console);

    if (pid != 0)
        return pid;
    pid = process_spawn(&s);
    object_put(&s.start_console->file_object);
    return pid;
}

/* Gives the console to a program and waits for it. Its exit status, or -1 if it
 * was killed. */
static int ended(pid_t pid)
{
    int status = -1;

    if (pid < 0 || tty_foreground(pid, &status) != 0 || WTERMSIG(status) != 0)
        return -1;
    return WEXITSTATUS(status);
}

static void end(pid_t pid)
{
    int status;

    if (pid > 0 && task_kill(NULL, pid, SIGKILL) == 0)
        task_wait(pid, &status, 0);
}

/* Ends the tasks left by a program: its group, now children of the kernel. */
static void end_group(pid_t pid)
{
    int status;

    while (pid > 0 && task_kill(NULL, -pid, SIGKILL) == 0) {
        sched_sleep_ms(STEP_MS);
        while (task_wait(-1, &status, WNOHANG) > 0)
            continue;
    }
}

static void run_part(const char *part, unsigned seconds)
{
    const char *const words[] = {"/bin/beattest", part, NULL};
    pid_t pid;
    int status;

    lab_seconds(seconds);
    pid = start(words, NULL);
    status = ended(pid);
    end_group(pid);
    if (status != 0)
        KT_FAIL("`run -p beattest %s` ends with status %d; its lines that "
                "begin with BAD give the reason",
                part, status);
}

LAB_TEST(8, beats, LAB_UP)
{
    run_part("chip", 6);
}

LAB_TEST(8, loop, LAB_UP)
{
    run_part("loop", 2);
}

LAB_TEST(8, clients, LAB_UP)
{
    run_part("clients", 3);
}

LAB_TEST(8, refuse, LAB_UP)
{
    run_part("refuse", 2);
}

LAB_TEST(8, survive, LAB_UP)
{
    run_part("survive", 6);
}

LAB_TEST(8, keep, LAB_UP)
{
    run_part("keep", 3);
}

LAB_TEST(8, order, LAB_UP)
{
    run_part("order", 3);
}

LAB_TEST(8, storm, LAB_UP)
{
    run_part("storm", 5);
}

/* ---- what the kernel sees ----------------------------------------------- */

static uint8_t get(uint8_t reg)
{
    outb(CLOCK_INDEX, reg);
    return inb(CLOCK_DATA);
}

static void put(uint8_t reg, uint8_t value)
{
    outb(CLOCK_INDEX, reg);
    outb(CLOCK_DATA, value);
}

/* Whether the line is bound, after a while. */
static bool is_bound(struct ipc_irq_stat *st)
{
    for (unsigned i = 0; i < 20; i++) {
        ipc_irq_stat(CLOCK_IRQ, st);
        if (st->stat_port != 0)
            return true;
        sched_sleep_ms(STEP_MS);
    }
    return false;
}

/* Puts the chip into a state in which a killed driver may leave it, with all
 * causes of an interrupt enabled, and the clock into a format that the BIOS
 * does not choose. Returns the format. */
static uint8_t leave_beating(void)
{
    uint8_t b = (uint8_t)((get(REG_B) ^ B_BINARY) | B_CAUSES);

    put(REG_A, A_1024_HZ);
    put(REG_B, b);
    return b & B_FORMAT;
}

static void expect_set_up(pid_t driver, uint8_t format)
{
    struct ipc_irq_stat st;

    KT_REQUIRE(driver > 0);
    if (!is_bound(&st)) {
        KT_FAIL("line %d is bound to no port", CLOCK_IRQ);
        return;
    }
    sched_sleep_ms(2 * STEP_MS);
    KT_EQ(st.stat_task, driver);
    KT_TRUE(!pic_masked(CLOCK_IRQ));
    KT_EQ(get(REG_A) & A_RATE, A_128_HZ);
    if ((get(REG_B) & B_CAUSES) != 0)
        KT_FAIL("register B still enables interrupts: 0x%x of 0x%x, which a "
                "predecessor may have left",
                get(REG_B) & B_CAUSES, B_CAUSES);
    if ((get(REG_B) & B_FORMAT) != format)
        KT_FAIL("the format of the clock in register B was 0x%x and is 0x%x: "
                "programs now read the time wrongly",
                format, get(REG_B) & B_FORMAT);
}

LAB_TEST(8, bind, LAB_UP)
{
    static const char *const names[] = {"/sbin/names", NULL};
    static const char *const beat[] = {"/sbin/beat", NULL};
    pid_t server = start(names, "names");
    uint8_t format;
    pid_t driver;
    int status;

    sched_sleep_ms(STEP_MS);
    format = leave_beating();
    driver = start(beat, "beat");
    expect_set_up(driver, format);
    end(driver);
    KT_TRUE(pic_masked(CLOCK_IRQ));
    status = ended(start(beat, NULL));
    if (status != 1)
        KT_FAIL("without its grant beat ends with status %d, want 1: an error "
                "message, before it touches a port",
                status);
    end(server);
}
