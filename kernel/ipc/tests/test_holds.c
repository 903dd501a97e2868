/*
 * For how long sched_lock is held, at most: MOST instructions, however many
 * tasks, ports, handles and callers there are (docs/locking.md). Counted by
 * `make DEBUG=1`, whose checks are in the figures, in a run in which the
 * time-stamp counter counts instructions. Other kernels run the cases for what
 * happens in them; so do machines with several processors, where the counter
 * counts the instructions of all.
 *
 * Tests: kernel/task/timeout.c, kernel/ipc/alarm.c
 */
#include "drivers/pit.h"
#include "kernel/abi/errno.h"
#include "kernel/ipc/port.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/symbol.h"
#include "kernel/object/handle.h"
#include "kernel/task/sched_impl.h"
#include "kernel/task/sync.h"
#include "kernel/x86/lockstat.h"
#include "tools/workshop/ktest/ktest.h"

#define MOST  1000u
#define CROWD 300
#define RING  100 /* tasks in a cycle of callers */

/* ---- the measurement ---------------------------------------------------- */

#if defined(CONFIG_DEBUG) && !defined(CONFIG_SANITIZE)
static void begin(void)
{
    lock_class_reset();
}

static void end(const char *what)
{
    const struct lock_class *class = lock_class_of(&sched_lock);
    uint32_t longest = (uint32_t) class->class_longest;
    uintptr_t offset;
    const char *name = symbol_lookup(class->class_release, &offset);

    kprintf("# %s: %u instructions, released in %s\n", what, longest,
            name == NULL ? "?" : name);
    if (ktest_ticks_are_exact() && cpu_count == 1 && longest > MOST)
        KT_FAIL("%s: sched_lock was held for %u instructions", what, longest);
}
#else
static void begin(void)
{
}

static void end(const char *what UNUSED)
{
}
#endif

/* ---- a crowd of tasks --------------------------------------------------- */

static struct port *port; /* at which they call */
static pid_t crowd[CROWD];
static unsigned crowd_size;
static void (*volatile crowd_does)(void *);
static volatile bool crowd_gathers;
static uint64_t wake_ms;
static struct wait_queue queue = WAIT_QUEUE_INIT(queue, "crowd");

static void join_crowd(void *unused)
{
    int status;

    (void)unused;
    while (crowd_size > 0)
        task_wait(crowd[--crowd_size], &status, 0);
}

static void join(void *unused)
{
    (void)unused;
    while (crowd_gathers)
        sched_yield();
    if (crowd_does != NULL)
        crowd_does(NULL);
}

/* Each begins with the function, and waits there. Where not all of them can be
 * created, none calls it. */
static bool gather(void (*fn)(void *))
{
    ktest_undo(join_crowd, NULL);
    crowd_does = fn;
    crowd_gathers = true;
    for (crowd_size = 0; crowd_size < CROWD; crowd_size++) {
        struct task *t = task_create("crowd", join, NULL, PRIORITY_KERNEL);

        if (t == NULL) {
            crowd_does = NULL;
            break;
        }
        crowd[crowd_size] = t->task_pid;
    }
    crowd_gathers = false;
    sched_yield();
    return crowd_does != NULL;
}

static void sleep_until_then(void *unused)
{
    (void)unused;
    sched_sleep_ms((uint32_t)(wake_ms - timer_ms()));
}

KTEST(holds, of_the_clock)
{
    KT_NEEDS(MIB(8));
    wake_ms = timer_ms() + 200;
    begin();
    KT_REQUIRE(gather(sleep_until_then));
    join_crowd(NULL);
    KT_GE(timer_ms(), wake_ms);
    end("300 sleepers wake at once");
}

static void wait_in_queue(void *unused)
{
    (void)unused;
    spin_lock(&sched_lock);
    wait_queue_block(&queue, true, 0);
    spin_unlock(&sched_lock);
}

KTEST(holds, of_wait_queues_and_snapshots)
{
    struct task_stat st[8];
    struct ipc_edge edge;
    pid_t last = -1;
    size_t n;

    KT_NEEDS(MIB(8));
    KT_REQUIRE(gather(wait_in_queue));
    begin();
    while ((n = task_stats(last, st, ARRAY_SIZE(st))) > 0)
        last = st[n - 1].stat_pid;
    KT_GE(last, crowd[CROWD - 1]);
    ipc_edges(&edge, 1);
    end("300 tasks are listed");
    begin();
    wait_queue_wake_all(&queue);
    join_crowd(NULL);
    end("300 waiters wake");
}

/* The next pids are all in use. */
KTEST(holds, of_a_search_for_a_pid)
{
    uint32_t before = pid_last;
    int status;
    struct task *t;

    KT_NEEDS(MIB(8));
    pid_last = pid_limit - CROWD / 2;
    KT_REQUIRE(gather(wait_in_queue));
    begin();
    pid_last = (uint32_t)crowd[0] - 1;
    t = task_create("next", wait_in_queue, NULL, PRIORITY_KERNEL);
    KT_REQUIRE(t != NULL);
    sched_yield();
    wait_queue_wake_all(&queue);
    task_wait(t->task_pid, &status, 0);
    join_crowd(NULL);
    pid_last = before;
    end("300 pids are passed over");
}

static void wait_in_group(void *unused)
{
    (void)unused;
    task_self()->task_program = true;
    spin_lock(&sched_lock);
    task_set_group(task_self(), crowd[0]);
    wait_queue_block(&queue, true, 0);
    spin_unlock(&sched_lock);
}

KTEST(holds, of_kills)
{
    KT_NEEDS(MIB(8));
    KT_REQUIRE(gather(wait_in_group));
    begin();
    KT_EQ(task_kill(NULL, -crowd[0], 0), 0);
    KT_EQ(task_kill(NULL, -crowd[0], SIGKILL), 0);
    join_crowd(NULL);
    KT_EQ(task_kill(NULL, -crowd[0], 0), -ESRCH);
    end("300 tasks of a group are killed");
}

static void nothing(void *unused)
{
    (void)unused;
}

/* Half of its children have ended when it ends. */
static void bear(void *unused)
{
    (void)unused;
    for (int i = 0; i < CROWD; i++)
        task_create("child", i % 2 ? nothing : wait_in_queue, NULL,
                    PRIORITY_KERNEL);
    sched_sleep_ms(20);
}

KTEST(holds, of_ends)
{
    struct task *t;
    int status;

    KT_NEEDS(MIB(8));
    begin();
    t = task_create("parent", bear, NULL, PRIORITY_KERNEL);
    KT_REQUIRE(t != NULL);
    KT_GE(task_wait(t->task_pid, &status, 0), 0);
    wait_queue_wake_all(&queue);
    sched_sleep_ms(20);
    end("a parent of 300 tasks ends");
}

/* ---- ports -------------------------------------------------------------- */

static bool make_port(struct port **out, struct handle_table *handles)
{
    *out = port_create();
    return *out != NULL &&
           handle_add(handles, &(*out)->port_object, HANDLE_RECEIVE) >= 0;
}

static void call_port(void *unused)
{
    (void)unused;
    task_frame(task_self())->ecx = 0;
    ipc_call(port, NULL);
}

static void drop_handles(void *unused)
{
    struct handle_table *handles = task_self()->task_handles;

    (void)unused;
    task_self()->task_handles = NULL;
    if (handles != NULL)
        handle_table_destroy(handles);
}

/* The running task has a table with `n` handles that may receive at *out. */
static bool take_handles(unsigned n, struct port **out)
{
    struct handle_table *handles = handle_table_create();

    task_self()->task_handles = handles;
    if (handles == NULL || !make_port(out, handles))
        return false;
    for (unsigned i = 1; i < n; i++)
        handle_add(handles, object_get(&(*out)->port_object), HANDLE_RECEIVE);
    return true;
}

KTEST(holds, of_a_port_that_dies)
{
    struct port *walk = NULL;
    struct port_stat st;
    uint32_t most;

    KT_NEEDS(MIB(8));
    ktest_undo(drop_handles, NULL);
    KT_REQUIRE(take_handles(HANDLES_MAX, &port));
    KT_REQUIRE(gather(call_port));
    begin();
    most = 0;
    while ((walk = port_walk(walk, &st)) != NULL)
        most = MAX(most, (uint32_t)st.stat_queued);
    KT_EQ(most, PORT_COUNT_MAX);
    handle_close(task_self()->task_handles, 1);
    end("one of 256 handles to a port with 300 callers is closed");
    begin();
    drop_handles(NULL);
    join_crowd(NULL);
    end("a port with 300 callers dies");
}

KTEST(holds, of_a_server_that_dies)
{
    KT_NEEDS(MIB(8));
    ktest_undo(drop_handles, NULL);
    KT_REQUIRE(take_handles(1, &port));
    KT_REQUIRE(gather(call_port));
    begin();
    for (int i = 0; i < CROWD; i++)
        KT_EQ(ipc_receive(port, NULL), 0);
    ipc_task_exit(task_self());
    join_crowd(NULL);
    drop_handles(NULL);
    end("a server with 300 clients dies");
}

static struct port *ports[CROWD];

static void put_ports(void *unused)
{
    (void)unused;
    for (int i = 0; i < CROWD && ports[i] != NULL; i++) {
        ipc_alarm(ports[i], 0, 0);
        object_put(&ports[i]->port_object);
    }
}

KTEST(holds, of_alarms)
{
    struct port *walk = NULL;
    struct port_stat st;
    unsigned n = 0;

    ktest_undo(put_ports, NULL);
    for (int i = 0; i < CROWD; i++)
        ports[i] = NULL;
    begin();
    for (int i = 0; i < CROWD; i++) {
        ports[i] = port_create();
        KT_REQUIRE(ports[i] != NULL);
        KT_EQ(ipc_alarm(ports[i], 100, 0), 0);
    }
    while ((walk = port_walk(walk, &st)) != NULL)
        n++;
    KT_GE(n, CROWD);
    sched_sleep_ms(110);
    for (int i = 0; i < CROWD; i++)
        KT_EQ(ports[i]->port_alarm_bits, 0);
    put_ports(NULL);
    end("300 alarms ring at once");
}

/* ---- cycles of callers -------------------------------------------------- */

#define RING_LATE_US                                                           \
    9900u /* after a tick: less than a search before the next */

static int results[RING];
static unsigned ring_size;
static uint32_t ring_switches;  /* of the last member, while it searched */
static volatile bool ring_done; /* or one of them got no port */

/* Waits until the next tick is near, so that it comes during a search. */
static void wait_for_tick(void)
{
    uint64_t ms = timer_ms();
    uint64_t start;

    while (timer_ms() == ms)
        ;
    start = rdtsc();
    while (ktest_ticks_are_exact() && rdtsc() - start < RING_LATE_US * 1000)
        ;
}

/* Member n has a full table with its port, and calls that of the next. The last
 * one calls when all others wait. */
static void call_next(void *arg)
{
    unsigned n = (unsigned)(uintptr_t)arg;
    uint32_t switches;

    if (!take_handles(HANDLES_MAX, &ports[n]))
        ring_done = true;
    __atomic_add_fetch(&ring_size, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&ring_size, __ATOMIC_RELAXED) < RING && !ring_done)
        sched_yield();
    if (ring_done) {
        drop_handles(NULL);
        return;
    }
    task_frame(task_self())->ecx = 0;
    if (n == RING - 1) {
        sched_sleep_ms(100);
        wait_for_tick();
    }
    switches = task_self()->task_switches;
    results[n] = ipc_call(ports[(n + 1) % RING], NULL);
    if (n == RING - 1) {
        ring_switches = task_self()->task_switches - switches;
        ring_done = true;
    }
    drop_handles(NULL);
}

/* Runs at each tick. */
static void disturb(void *unused UNUSED)
{
    struct wait_queue q;

    wait_queue_init(&q, "a tick");
    while (!ring_done) {
        spin_lock(&sched_lock);
        wait_queue_block(&q, false, 1);
        spin_unlock(&sched_lock);
    }
}

/* Those that do not call yet leave. */
static void join_ring(void *unused)
{
    int status;

    (void)unused;
    ring_done = true;
    while (task_wait(-1, &status, 0) >= 0)
        ;
}

KTEST(holds, of_a_cycle_of_callers)
{
    int status;

    KT_NEEDS(MIB(8));
    ring_size = ring_switches = 0;
    ring_done = false;
    ktest_undo(join_ring, NULL);
    begin();
    KT_REQUIRE(task_create("disturb", disturb, NULL, PRIORITY_KERNEL) != NULL);
    for (uintptr_t i = 0; i < RING; i++)
        KT_REQUIRE(task_create("ring", call_next, (void *)i, PRIORITY_USER) !=
                   NULL);
    for (int i = 0; i <= RING; i++)
        KT_GE(task_wait(-1, &status, 0), 0);
    KT_EQ(results[RING - 1], -EDEADLK);
    KT_EQ(results[0], -EPIPE);
    if (ktest_ticks_are_exact())
        KT_GE(ring_switches, 1); /* so it searched again */
    end("100 tasks with 256 handles call one another");
}
