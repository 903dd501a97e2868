/*
 * bench: the cost of system calls, by the time-stamp counter, which under
 * QEMU's -icount shift=0 counts instructions of program and kernel.
 *
 *     bench [KEY …]      prints "KEY VALUE" for all, or those given
 *     run -s bench       in the kernel's shell: those that need a device
 *
 * An operation is a function, called many times in a batch. The cost of the
 * same loop around an empty function is subtracted. The rest is the C call of
 * each library function, the system call, and the kernel's work for it, on
 * both sides of a switch. A first batch warms up: it brings in every page and
 * fills every slab. Of the batches that follow, the cheapest counts, because it
 * has no timer interrupts. The value is its mean. Each result also goes to
 * /dev/debug as a JSON line.
 */
#include "user/lib/err.h"
#include "user/lib/io.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/string.h"
#include "user/lib/tsc.h"

#define BATCHES     8
#define FAULT_PAGES 64u

typedef void operation_t(void);

static int debug; /* /dev/debug, or -1 */

static void report(const char *key, uint64_t hundredths)
{
    char value[32];
    char line[96];
    int n;

    snprintf(value, sizeof(value), "%llu.%02u",
             (unsigned long long)(hundredths / 100),
             (unsigned)(hundredths % 100));
    printf("  %-26s %12s\n", key, value);
    n = snprintf(line, sizeof(line),
                 "{\"event\":\"bench\",\"key\":\"%s\",\"value\":%s}\n", key,
                 value);
    if (debug >= 0)
        write_all(debug, line, (size_t)n);
}

/* ---- measuring ---------------------------------------------------------- */

static void nothing(void)
{
}

static uint64_t batch(operation_t *op, unsigned rounds)
{
    uint64_t start = tsc_read();

    for (unsigned i = 0; i < rounds; i++)
        op();
    return tsc_read() - start;
}

static uint64_t cheapest_batch(operation_t *op, unsigned rounds)
{
    uint64_t best = UINT64_MAX;

    batch(op, rounds);
    for (unsigned i = 0; i < BATCHES; i++) {
        uint64_t cost = batch(op, rounds);

        best = MIN(best, cost);
    }
    return best;
}

/* The cost of one call of `op`, in hundredths. */
static uint64_t measure(operation_t *op, unsigned rounds)
{
    uint64_t loop = cheapest_batch(nothing, rounds);
    uint64_t all = cheapest_batch(op, rounds);

    return (all - loop) * 100 / rounds;
}

/* ---- with another process ----------------------------------------------- */

static pid_t start_child(operation_t *serve)
{
    pid_t pid = fork();

    if (pid < 0)
        err(1, "fork");
    if (pid == 0) {
        serve();
        _exit(1);
    }
    return pid;
}

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Measures while a child runs `serve`; then kills it. The parent runs `prepare`
 * before it measures. */
static uint64_t measure_with(operation_t *serve, operation_t *prepare,
                             operation_t *op, unsigned rounds)
{
    pid_t pid = start_child(serve);
    uint64_t cost;

    if (prepare != NULL)
        prepare();
    cost = measure(op, rounds);
    end_child(pid);
    return cost;
}

/* ---- operations --------------------------------------------------------- */

static void op_getpid(void)
{
    getpid();
}

static uint64_t syscall_null(void)
{
    return measure(op_getpid, 2000);
}

/* ---- memory ------------------------------------------------------------- */

static uint8_t block[PAGE_SIZE + 1], copy[PAGE_SIZE];

static void op_copy(void)
{
    memcpy(copy, block, PAGE_SIZE);
}

/* Copies to a higher address, so from the end down. */
static void op_move(void)
{
    memmove(block + 1, block, PAGE_SIZE);
}

static void op_set(void)
{
    memset(copy, 1, PAGE_SIZE);
}

static uint64_t memory_copy(void)
{
    return measure(op_copy, 100);
}

static uint64_t memory_move(void)
{
    return measure(op_move, 100);
}

static uint64_t memory_set(void)
{
    return measure(op_set, 100);
}

static int there[2]; /* from this process to the other */
static int back[2];

static void echo_bytes(void)
{
    char c;

    close(there[1]);
    close(back[0]);
    while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
        continue;
}

/* Ensures an end of file if the other process dies. */
static void close_other_ends(void)
{
    close(there[0]);
    close(back[1]);
}

static void op_pipe(void)
{
    char c = 0;

    if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
        err(1, "pipe");
}

static uint64_t pipe_roundtrip(void)
{
    uint64_t cost;

    if (pipe(there) < 0 || pipe(back) < 0)
        err(1, "pipe");
    cost = measure_with(echo_bytes, close_other_ends, op_pipe, 500);
    close(there[1]);
    close(back[0]);
    return cost;
}

static int port;

static void reply_to_calls(void)
{
    struct message m = {0};

    if (ipc_receive(port, &m) == 0)
        while (ipc_reply_receive(port, &m) == 0)
            continue;
}

static void op_call(void)
{
    struct message m = {.msg_tag = 1};

    ipc_call(port, &m);
}

static uint64_t ipc_roundtrip(void)
{
    uint64_t cost;

    port = port_create();
    if (port < 0)
        err(1, "port");
    cost = measure_with(reply_to_calls, NULL, op_call, 500);
    close(port);
    return cost;
}

static void keep_yielding(void)
{
    for (;;)
        yield();
}

static void op_yield(void)
{
    yield();
}

/* A yield of each of two processes is two switches. */
static uint64_t task_switch(void)
{
    uint64_t both = measure_with(keep_yielding, NULL, op_yield, 500);

    return both / 2 - syscall_null();
}

/* Touches the pages of a fresh mapping, but for the first, which may need a
 * page table as well. */
static uint64_t touch_pages(void)
{
    volatile char *pages =
        mmap((FAULT_PAGES + 1) * PAGE_SIZE, PROT_READ | PROT_WRITE);
    uint64_t start, cost[2];

    if (pages == MAP_FAILED)
        err(1, "mmap");
    pages[0] = 1;
    for (int again = 0; again < 2; again++) {
        start = tsc_read();
        for (unsigned i = 1; i <= FAULT_PAGES; i++)
            pages[i * PAGE_SIZE] = 1;
        cost[again] = tsc_read() - start;
    }
    munmap((void *)pages, (FAULT_PAGES + 1) * PAGE_SIZE);
    return cost[0] - cost[1];
}

static uint64_t fault_zero(void)
{
    uint64_t best = touch_pages();

    for (unsigned i = 0; i < BATCHES; i++) {
        uint64_t cost = touch_pages();

        best = MIN(best, cost);
    }
    return best * 100 / FAULT_PAGES;
}

static void op_fork(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
}

static uint64_t fork_exit_wait(void)
{
    return measure(op_fork, 20);
}

static void op_exec(void)
{
    char *argv[] = {"true", NULL};
    pid_t pid = fork();

    if (pid == 0) {
        execv("/bin/true", argv);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

static uint64_t fork_exec_exit_wait(void)
{
    return measure(op_exec, 20);
}

static void op_make_pipe(void)
{
    int ends[2];

    pipe(ends);
    close(ends[0]);
    close(ends[1]);
}

static uint64_t pipe_create_close(void)
{
    return measure(op_make_pipe, 500);
}

/* ---- interrupts --------------------------------------------------------- */

/* With the machine's clock, which interrupts periodically. With the line
 * masked, polling shows when the device raises its line: twice, which also
 * gives the period. The next interrupt is received as in a driver. */
enum {
    CLOCK_INDEX = 0x70,
    CLOCK_DATA = 0x71,
    CLOCK_IRQ = 8,
    REG_A = 10,
    A_DIVIDER = 0x70,
    A_8192_HZ = 3,
    REG_B = 11,
    B_PERIODIC = 0x40,
    REG_C = 12,
    C_PERIODIC = 0x40,
};

static uint8_t clock_get(uint8_t reg)
{
    outb(CLOCK_INDEX, reg);
    return inb(CLOCK_DATA);
}

static void clock_put(uint8_t reg, uint8_t value)
{
    outb(CLOCK_INDEX, reg);
    outb(CLOCK_DATA, value);
}

/* Register C must be selected. */
static uint64_t poll_clock(void)
{
    while (!(inb(CLOCK_DATA) & C_PERIODIC))
        continue;
    return tsc_read();
}

static void serve_clock(void)
{
    inb(CLOCK_DATA);
    irq_ack(CLOCK_IRQ);
}

/* From the interrupt to the driver's return from ipc_receive, or `acked`: until
 * it has read the cause and unmasked the line. */
static uint64_t one_interrupt(bool acked)
{
    struct message m = {0};
    uint64_t period, polled, heard;

    clock_get(REG_C);
    ipc_receive(port, &m);
    period = tsc_read();
    serve_clock();
    ipc_receive(port, &m); /* the line is masked from now on */
    period = tsc_read() - period;
    inb(CLOCK_DATA);
    polled = poll_clock();
    irq_ack(CLOCK_IRQ); /* the polled event interrupts as well */
    ipc_receive(port, &m);
    serve_clock();
    ipc_receive(port, &m);
    heard = tsc_read();
    serve_clock();
    if (acked)
        heard = tsc_read();
    return (heard - polled) % period;
}

static uint64_t cheapest_interrupt(bool acked)
{
    uint64_t best = UINT64_MAX;
    uint8_t a, b;

    port = port_create();
    if (port < 0 || irq_bind(port, CLOCK_IRQ, 0) < 0)
        err(1, "interrupt %d (`run -s bench` has it)", CLOCK_IRQ);
    a = clock_get(REG_A);
    b = clock_get(REG_B);
    clock_put(REG_A, (a & A_DIVIDER) | A_8192_HZ);
    clock_put(REG_B, b | B_PERIODIC);
    for (unsigned i = 0; i < BATCHES; i++) {
        uint64_t cost = one_interrupt(acked);

        best = MIN(best, cost);
    }
    clock_put(REG_B, b);
    clock_put(REG_A, a);
    close(port);
    return best * 100;
}

static uint64_t irq_latency(void)
{
    return cheapest_interrupt(false);
}

static uint64_t irq_roundtrip(void)
{
    return cheapest_interrupt(true);
}

static void compute(void)
{
    for (;;)
        __asm__ volatile("");
}

/* The same while another program computes. */
static uint64_t irq_latency_busy(void)
{
    pid_t pid = start_child(compute);
    uint64_t cost = cheapest_interrupt(false);

    end_child(pid);
    return cost;
}

/* ---- all of them -------------------------------------------------------- */

static const struct benchmark {
    const char *bench_key;
    uint64_t (*bench_run)(void);
    bool bench_asked; /* only on request */
} benchmarks[] = {
    {"syscall.null", syscall_null, false},
    {"memcpy.4096", memory_copy, false},
    {"memmove.4096", memory_move, false},
    {"memset.4096", memory_set, false},
    {"task.switch", task_switch, false},
    {"pipe.roundtrip", pipe_roundtrip, false},
    {"ipc.roundtrip", ipc_roundtrip, false},
    {"fault.zero", fault_zero, false},
    {"task.fork_exit_wait", fork_exit_wait, false},
    {"task.fork_exec_exit_wait", fork_exec_exit_wait, false},
    {"pipe.create_close.cached", pipe_create_close, false},
    /* The kernel's shell runs this one with the cache of pipes disabled. */
    {"pipe.create_close.uncached", pipe_create_close, true},
    /* And these with a grant, `run -s bench`. */
    {"irq.latency", irq_latency, true},
    {"irq.latency.busy", irq_latency_busy, true},
    {"irq.roundtrip", irq_roundtrip, true},
};

static bool is_wanted(const struct benchmark *b, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(b->bench_key, argv[i]) == 0)
            return true;
    return argc == 1 && !b->bench_asked;
}

int main(int argc, char **argv)
{
    bool found = false;

    debug = open("/dev/debug", O_WRONLY | O_CLOEXEC);
    for (size_t i = 0; i < ARRAY_SIZE(benchmarks); i++)
        if (is_wanted(&benchmarks[i], argc, argv)) {
            report(benchmarks[i].bench_key, benchmarks[i].bench_run());
            found = true;
        }
    if (!found)
        errx(2, "%s: no such key", argv[1]);
    return 0;
}
