/*
 * Tasks: fork, wait, kill, groups, time.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/string.h"

/* ---- fork --------------------------------------------------------------- */

TEST(task, getpid)
{
    pid_t parent = getpid();
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0)
        _exit(getppid() == parent && getpid() != parent ? 42 : 1);
    CHECK(child > parent);
    expect_exit(child, 42);
}

static int cow_data = 1;
static int cow_bss;

/* Neither side sees writes of the other: data, bss, heap, mapping, stack. */
TEST(task, fork_isolation)
{
    int on_stack = 3;
    int *heap = sbrk(PAGE_SIZE);
    int *mapped = mmap(PAGE_SIZE, PROT_READ | PROT_WRITE);
    volatile int *all[] = {&cow_data, &cow_bss, &on_stack, heap, mapped};
    int to_child[2], to_parent[2];
    pid_t child;
    char c = 0;

    make_pipe(to_child);
    make_pipe(to_parent);
    for (int i = 0; i < 5; i++)
        *all[i] = 100 + i;
    child = fork();
    if (child == 0) {
        for (int i = 0; i < 5; i++) {
            EQUAL(*all[i], 100 + i);
            *all[i] = 200 + i;
        }
        EQUAL(write(to_parent[1], &c, 1), 1);
        EQUAL(read(to_child[0], &c, 1), 1);
        for (int i = 0; i < 5; i++)
            EQUAL(*all[i], 200 + i);
        _exit(0);
    }
    EQUAL(read(to_parent[0], &c, 1), 1);
    for (int i = 0; i < 5; i++) {
        EQUAL(*all[i], 100 + i);
        *all[i] = 300 + i;
    }
    EQUAL(write(to_child[1], &c, 1), 1);
    expect_exit(child, 0);
    for (int i = 0; i < 5; i++)
        EQUAL(*all[i], 300 + i);
}

/* A page shared by three generations; each writes to it in turn. */
TEST(task, fork_generations)
{
    volatile int *p = mmap(PAGE_SIZE, PROT_READ | PROT_WRITE);

    *p = 0;
    for (int depth = 1; depth <= 6; depth++) {
        pid_t child = fork();

        CHECK(child >= 0);
        if (child > 0) {
            expect_exit(child, 0);
            EQUAL(*p, depth - 1);
            _exit(0);
        }
        *p = depth;
    }
    EQUAL(*p, 6);
}

TEST(task, fork_many_times)
{
    for (int i = 0; i < 200; i++) {
        pid_t child = fork();

        CHECK(child >= 0);
        if (child == 0)
            _exit(i & 0xff);
        expect_exit(child, i & 0xff);
    }
}

/* ---- wait --------------------------------------------------------------- */

static void exit_with(int code)
{
    _exit(code);
}

TEST(task, exit_codes)
{
    expect_exit(spawn(exit_with, 0), 0);
    expect_exit(spawn(exit_with, 255), 255);
    expect_exit(spawn(exit_with, 0x1234), 0x34);
    expect_exit(spawn(exit_with, -1), 255);
}

TEST(task, wait_errors)
{
    int status = 77;
    pid_t child;

    FAILS(wait(&status), ECHILD);
    FAILS(waitpid(getpid(), &status, 0), ECHILD);
    FAILS(waitpid(1, &status, 0), ECHILD);
    FAILS(waitpid(0x7fffffff, &status, 0), ECHILD);
    EQUAL(status, 77);
    child = spawn(exit_with, 5);
    FAILS(waitpid(child, &status, 2), EINVAL);
    FAILS(waitpid(child, &status, -1), EINVAL);
    FAILS(waitpid(0, &status, 0), EINVAL);
    FAILS(waitpid(-child, &status, 0), EINVAL);
    EQUAL(waitpid(child, NULL, 0), child);
    FAILS(waitpid(child, NULL, 0), ECHILD);
}

static void read_one(int handle)
{
    char c;

    read(handle, &c, 1);
}

TEST(task, wait_nohang)
{
    int ends[2];
    int status = 77;
    pid_t child;

    FAILS(waitpid(-1, &status, WNOHANG), ECHILD);
    make_pipe(ends);
    child = spawn(read_one, ends[0]);
    EQUAL(waitpid(child, &status, WNOHANG), 0);
    EQUAL(waitpid(-1, &status, WNOHANG), 0);
    EQUAL(status, 77);
    EQUAL(write(ends[1], "x", 1), 1);
    EQUAL(waitpid(-1, &status, 0), child);
    EQUAL(status, 0);
}

/* Waits for one child, though others ended before. */
TEST(task, wait_for_one)
{
    pid_t first = spawn(exit_with, 1);
    pid_t second = spawn(exit_with, 2);
    pid_t third = spawn(exit_with, 3);

    expect_exit(third, 3);
    expect_exit(first, 1);
    expect_exit(second, 2);
    FAILS(wait(NULL), ECHILD);
}

static void have_child(int report)
{
    pid_t parent = getpid();

    if (fork() == 0) {
        while (getppid() == parent)
            yield();
        parent = getppid();
        write(report, &parent, sizeof(parent));
        _exit(0);
    }
    _exit(0);
}

/* A child whose parent has ended gets a new parent. */
TEST(task, orphan)
{
    int ends[2];
    pid_t parent = 0;
    pid_t child;

    make_pipe(ends);
    child = spawn(have_child, ends[1]);
    expect_exit(child, 0);
    EQUAL(close(ends[1]), 0);
    EQUAL(read(ends[0], &parent, sizeof(parent)), sizeof(parent));
    CHECK(parent != child && parent != getpid());
    if (parent != 0)
        FAILS(kill(parent, 0), EPERM); /* init */
    EQUAL(read(ends[0], &parent, 1), 0);
}

/* ---- kill --------------------------------------------------------------- */

TEST(task, kill_errors)
{
    pid_t child = spawn(exit_with, 0);

    EQUAL(kill(child, 0), 0);
    expect_exit(child, 0);
    FAILS(kill(child, 0), ESRCH);
    FAILS(kill(child, SIGKILL), ESRCH);
    FAILS(kill(-child, SIGKILL), ESRCH);
    FAILS(kill(0x7fffffff, 0), ESRCH);
    FAILS(kill(-0x7fffffff - 1, SIGKILL), ESRCH);
    FAILS(kill(getpid(), SIG_MAX + 1), EINVAL);
    FAILS(kill(getpid(), -1), EINVAL);
    FAILS(kill(0, SIGKILL), EINVAL);
    FAILS(kill(1, SIGKILL), EPERM); /* the kernel's shell */
}

TEST_KILLED(task, kill_self, SIGTERM)
{
    kill(getpid(), SIGTERM);
    test_fail(__FILE__, __LINE__, "lives on", 0);
}

/* A processor without `pause` would starve the others in a counted run; each
 * one takes QEMU long. */
static void spin(int unused)
{
    (void)unused;
    for (volatile uint32_t n = 0;; n++)
        if (n % 1000 == 0)
            __asm__ volatile("pause");
}

static void sleep_long(int ms)
{
    sleep_ms((uint32_t)ms);
}

static void wait_for_child(int in)
{
    spawn(read_one, in);
    wait(NULL);
}

/* One, two and three, so that of several processors also those without a clock
 * run them. */
static void kill_runners(void)
{
    pid_t runner[3];

    for (int n = 1; n <= 3; n++) {
        for (int i = 0; i < n; i++)
            runner[i] = spawn(spin, 0);
        sleep_ms(20);
        for (int i = 0; i < n; i++) {
            EQUAL(kill(runner[i], SIGINT), 0);
            expect_signal(runner[i], SIGINT);
        }
    }
}

/* A kill ends a task that runs, or waits, whatever it waits for. */
TEST(task, kill_anywhere)
{
    int ends[2];
    pid_t child;

    make_pipe(ends);
    kill_runners();
    child = spawn(sleep_long, 1000000);
    until_waits_for(child, "sleep");
    EQUAL(kill(child, SIGTERM), 0);
    expect_signal(child, SIGTERM);
    child = spawn(wait_for_child, ends[0]);
    until_waits_for(child, "child");
    EQUAL(kill(child, 31), 0);
    expect_signal(child, 31);
    EQUAL(close(ends[1]), 0);
}

/* The first signal counts. */
TEST(task, kill_twice)
{
    pid_t child = spawn(sleep_long, 1000000);

    until_waits_for(child, "sleep");
    EQUAL(kill(child, SIGINT), 0);
    EQUAL(kill(child, SIGKILL), 0);
    expect_signal(child, SIGINT);
}

TEST(task, kill_group)
{
    pid_t children[3];

    for (int i = 0; i < 3; i++) {
        children[i] = spawn(sleep_long, 1000000);
        EQUAL(setpgid(children[i], children[0]), 0);
    }
    EQUAL(kill(-children[0], 0), 0);
    EQUAL(kill(-children[0], SIGTERM), 0);
    for (int i = 0; i < 3; i++)
        expect_signal(children[i], SIGTERM);
    FAILS(kill(-children[0], 0), ESRCH);
}

TEST(task, setpgid_errors)
{
    pid_t child = spawn(sleep_long, 1000000);
    pid_t stranger = getppid();

    EQUAL(setpgid(0, 0), 0);
    EQUAL(setpgid(getpid(), getpid()), 0);
    FAILS(setpgid(-1, 0), EINVAL);
    FAILS(setpgid(0, -1), EINVAL);
    FAILS(setpgid(0x7fffffff, 0), ESRCH);
    FAILS(setpgid(stranger != 0 ? stranger : 1, 0), ESRCH);
    FAILS(setpgid(child, 0x7fffffff), EPERM);
    EQUAL(setpgid(child, 0), 0);
    EQUAL(kill(-child, SIGKILL), 0);
    expect_signal(child, SIGKILL);
}

/* ---- time --------------------------------------------------------------- */

TEST(task, sleep)
{
    uint32_t before = uptime_ms();

    EQUAL(sleep_ms(50), 0);
    CHECK(uptime_ms() - before >= 50);
    before = uptime_ms();
    EQUAL(sleep_ms(0), 0);
    CHECK(uptime_ms() - before < 50);
}

/* A task that never waits cannot keep the processor. */
TEST(task, preemption)
{
    pid_t child = spawn(spin, 0);

    EQUAL(sleep_ms(30), 0);
    EQUAL(yield(), 0);
    expect_killed(child);
}

TEST(task, unknown_calls)
{
    static const uint32_t numbers[] = {
        SYSCALL_COUNT, SYSCALL_COUNT + 1, 255,       256,
        0x7fffffff,    0x80000000,        UINT32_MAX};
    static const uint32_t none[6];

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
        EQUAL(syscall_raw(numbers[i], none), -ENOSYS);
}

/* ---- running out of tasks ----------------------------------------------- */

static void fork_all(int gate)
{
    char c;

    while (fork() > 0)
        continue;
    if (errno == 0)
        read(gate, &c, 1);
}

/* Forks until there is no memory; afterwards all is as before. The forking
 * process may also be killed, for lack of a page. */
TEST(task, exhaustion)
{
    int ends[2];
    pid_t child;
    int status;

    make_pipe(ends);
    errno = 0;
    child = fork();
    if (child == 0) {
        EQUAL(close(ends[1]), 0);
        fork_all(ends[0]);
        _exit(0);
    }
    EQUAL(waitpid(child, &status, 0), child);
    CHECK(status == 0 || WTERMSIG(status) == SIGSEGV);
    EQUAL(close(ends[1]), 0);
    EQUAL(close(ends[0]), 0);
    for (int i = 0; i < 100; i++) {
        child = fork();
        if (child >= 0)
            break;
        EQUAL(errno, ENOMEM);
        sleep_ms(10);
    }
    if (child == 0)
        _exit(9);
    expect_exit(child, 9);
}
