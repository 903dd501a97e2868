/*
 * Tasks on all processors at once. Other suites know in which order tasks run,
 * so `test` confines tasks to the first processor; these cases lift that. They
 * hold on one processor, too.
 *
 * Tests: kernel/task/sched.c, kernel/cpus.c, kernel/ipc/deadlock.c
 * Tests: kernel/fs/ramfs.c
 * Tests: mm/kmem_mag.c
 */
#include "drivers/pit.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/tests/fs_test.h"
#include "kernel/ipc/port.h"
#include "kernel/lib/string.h"
#include "kernel/object/handle.h"
#include "kernel/task/task.h"
#include "kernel/x86/cpu.h"
#include "mm/debug/debug.h"
#include "mm/kmem_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "tools/workshop/ktest/ktest.h"

#define CROWD   (2 * CPUS_MAX)
#define RING    12 /* tasks in a cycle of callers */
#define RINGS   20
#define HANDLES 40 /* of each: the search lets other tasks in between */
#define CALLS   50

static unsigned here(void)
{
    uint32_t flags = irq_save();
    unsigned number = cpu_self()->cpu_number;

    irq_restore(flags);
    return number;
}

static void add(unsigned *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL);
}

/* Returns when `n` tasks have called it. They keep their processors. (In a
 * counted run `pause` takes QEMU long, and none starves the others.) */
static void meet(unsigned *arrived, unsigned n)
{
    add(arrived);
    for (volatile unsigned i = 0;
         __atomic_load_n(arrived, __ATOMIC_ACQUIRE) < n; i++)
        if (i % 1000 == 0)
            cpu_relax();
}

static void confine(void *unused UNUSED)
{
    sched_confine(true);
}

/* Tasks 0 to n - 1 call fn with their number; returns when all have ended. */
static void crowd(unsigned n, void (*fn)(void *number))
{
    pid_t pid[CROWD];
    int status;

    ktest_undo(confine, NULL);
    sched_confine(false);
    for (uintptr_t i = 0; i < n; i++) {
        struct task *t = task_create("crowd", fn, (void *)i, PRIORITY_KERNEL);

        KT_REQUIRE(t != NULL);
        pid[i] = t->task_pid;
    }
    for (unsigned i = 0; i < n; i++)
        KT_EQ(task_wait(pid[i], &status, 0), pid[i]);
    sched_confine(true);
}

/* ---- where tasks run ---------------------------------------------------- */

static unsigned arrived;
static unsigned size;
static uint32_t seen; /* bits of processors */
static unsigned wrong;

/* Keeps its processor until each has been seen. */
static void be_seen(void *unused UNUSED)
{
    uint32_t all = (1u << cpu_count) - 1;

    for (volatile unsigned i = 0;
         __atomic_or_fetch(&seen, 1u << here(), __ATOMIC_ACQ_REL) != all; i++)
        if (i % 1000 == 0)
            cpu_relax();
}

/* As many as there are processors. The host may let one processor wait while
 * the others change tasks, but one task is left for it. Without the placing
 * that gives it this task, the case does not end. */
KTEST(parallel, each_processor_runs_a_task)
{
    seen = 0;
    crowd(cpu_count, be_seen);
    KT_EQ(seen, (1u << cpu_count) - 1);
}

/* Moves to one processor, by the number of the task; returns which. */
static unsigned settle(void *number)
{
    unsigned cpu = (unsigned)(uintptr_t)number % cpu_count;

    sched_move_self((uint8_t)(1u << cpu));
    return cpu;
}

static void settle_and_meet(void *number)
{
    settle(number);
    meet(&arrived, size);
}

/* Two tasks on each meet, because the slices of each end. */
KTEST(parallel, slices_end_on_each_processor)
{
    arrived = 0;
    size = 2 * cpu_count;
    crowd(size, settle_and_meet);
    KT_EQ(arrived, size);
}

static uint64_t longest_ms;

/* Nothing else runs, so none waits for the end of a slice. */
static void settle_and_sleep(void *number)
{
    unsigned cpu = settle(number);

    for (int i = 0; i < 20; i++) {
        uint64_t before = timer_ms();

        sched_sleep_ms(1);
        longest_ms = MAX(longest_ms, timer_ms() - before);
        if (here() != cpu)
            add(&wrong);
        sched_yield();
        if (here() != cpu)
            add(&wrong);
    }
}

KTEST(parallel, a_task_stays_where_it_may_run)
{
    wrong = 0;
    longest_ms = 0;
    crowd(2 * cpu_count, settle_and_sleep);
    KT_EQ(wrong, 0);
    if (ktest_ticks_are_exact())
        KT_LE(longest_ms, 20);
}

static bool ignore(const struct kmem_buf_stat *buf UNUSED, void *arg UNUSED)
{
    return true;
}

static size_t suspects(void)
{
    struct kmem_leak_stat leaks;

    KT_TRUE(kmem_leak_scan(ignore, NULL, &leaks));
    return leaks.stat_suspects;
}

static size_t found;
static bool scanned;

/* The pointer is in its frame alone, far below where the task was switched
 * away. (The first object of a page may have the address of a stack's end, and
 * its link that of the second: it is free again.) */
static __attribute__((noinline)) void hold(void)
{
    void *volatile frame[200];
    void *first = kmem_alloc(40, KM_NOSLEEP);

    frame[0] = kmem_alloc(40, KM_NOSLEEP);
    kmem_free(first, 40);
    meet(&arrived, size);
    while (!__atomic_load_n(&scanned, __ATOMIC_ACQUIRE))
        cpu_relax();
    kmem_free(frame[0], 40);
}

/* Task 0 scans; each other processor runs one that holds a buffer. */
static void hold_or_scan(void *number)
{
    if (settle(number) != 0) {
        hold();
        return;
    }
    meet(&arrived, size);
    found = suspects();
    __atomic_store_n(&scanned, true, __ATOMIC_RELEASE);
}

KTEST(parallel, stacks_of_tasks_that_run_elsewhere_are_roots)
{
    size_t before = suspects();

    arrived = 0;
    scanned = false;
    size = cpu_count;
    crowd(size, hold_or_scan);
    KT_EQ(found, before);
}

/* Task 0 serves on the last processor; task 1 calls from the first. */
static struct port *port;

static void call_across(void *number)
{
    struct trapframe *frame = task_frame(task_self());
    bool serves = number == NULL;
    unsigned cpu = settle(serves ? (void *)(uintptr_t)(cpu_count - 1) : NULL);

    for (int i = 0; i < CALLS; i++) {
        int error;

        frame->ecx = 0;
        error = serves ? ipc_receive(port, NULL) : ipc_call(port, NULL);
        if (error != 0 || here() != cpu)
            add(&wrong);
        frame->ecx = 0;
        if (serves && ipc_reply(frame->ebx, NULL, 0) != 0)
            add(&wrong);
    }
}

KTEST(parallel, a_call_runs_the_receiver_where_it_may_run)
{
    struct handle_table *handles = handle_table_create();

    wrong = 0;
    port = port_create();
    KT_REQUIRE(handles != NULL && port != NULL);
    KT_GE(handle_add(handles, &port->port_object, HANDLE_RECEIVE), 0);
    crowd(2, call_across);
    handle_table_destroy(handles);
    KT_EQ(wrong, 0);
}

/* ---- cycles of callers -------------------------------------------------- */

static struct port *ports[RING];
static unsigned ready;
static unsigned results[2]; /* refused; its port died */

static bool take_handles(unsigned n)
{
    struct handle_table *handles = handle_table_create();

    task_self()->task_handles = handles;
    ports[n] = handles == NULL ? NULL : port_create();
    if (ports[n] == NULL)
        return false;
    handle_add(handles, &ports[n]->port_object, HANDLE_RECEIVE);
    for (unsigned i = 1; i < HANDLES; i++)
        handle_add(handles, object_get(&ports[n]->port_object), HANDLE_RECEIVE);
    return true;
}

/* Member n calls the port of the next, all at the same time. The last that
 * blocks closes the cycle. When it closes its handles, the one before it is
 * told that the port died, and so on. */
static void call_next(void *number)
{
    unsigned n = (unsigned)(uintptr_t)number;
    struct handle_table *handles;
    int result = 0;

    if (!take_handles(n))
        add(&wrong);
    add(&ready);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < RING)
        sched_yield();
    task_frame(task_self())->ecx = 0;
    if (wrong == 0)
        result = ipc_call(ports[(n + 1) % RING], NULL);
    if (result == -EDEADLK)
        add(&results[0]);
    else if (result == -EPIPE)
        add(&results[1]);
    handles = task_self()->task_handles;
    task_self()->task_handles = NULL;
    if (handles != NULL)
        handle_table_destroy(handles);
}

KTEST(parallel, of_a_cycle_of_callers_one_is_refused)
{
    for (int i = 0; i < RINGS; i++) {
        results[0] = results[1] = ready = wrong = 0;
        crowd(RING, call_next);
        KT_EQ(wrong, 0);
        KT_EQ(results[0], 1);
        KT_EQ(results[1], RING - 1);
    }
}

/* ---- names of one file -------------------------------------------------- */

#define RENAMES 50000

/* The file has two names, and task 1 gives it a third again and again. */
static void rename_or_link(void *number)
{
    struct inode *f;

    settle(number);
    if (number == NULL) {
        for (int i = 0; i < RENAMES; i += 2)
            if (fs_rename(T "/a/f", T "/a/g", NULL) != 0 ||
                fs_rename(T "/a/g", T "/a/f", NULL) != 0)
                add(&wrong);
        return;
    }
    f = fs_test_get(T "/b/f");
    for (int i = 0; i < RENAMES; i++) {
        if (fs_link(T "/b/f", T "/b/g", NULL) != 0 || f->inode_nlink != 3 ||
            fs_unlink(T "/b/g", NULL) != 0 || f->inode_nlink != 2)
            add(&wrong);
    }
    inode_put(f);
}

KTEST(parallel, a_rename_does_not_change_the_count_of_links)
{
    wrong = 0;
    fs_test_begin();
    KT_EQ(fs_mkdir(T "/a", NULL), 0);
    KT_EQ(fs_mkdir(T "/b", NULL), 0);
    KT_EQ(fs_test_file(T "/a/f", ""), 0);
    KT_EQ(fs_link(T "/a/f", T "/b/f", NULL), 0);
    crowd(2, rename_or_link);
    KT_EQ(wrong, 0);
    fs_test_end();
}

/* ---- the heap ----------------------------------------------------------- */

#define HEAP_OPS     4000
#define HEAP_OBJECTS 40 /* of a task, at most */

static const struct {
    const char *name;
    size_t size;
} heaps[] = {{"t_small", 60}, {"t_middle", 200}, {"t_large", 1000}};

#define HEAPS ARRAY_SIZE(heaps)

static struct kmem_cache *heap[HEAPS];
static uint32_t *passed[HEAPS][4]; /* free for any task to take and free */
static unsigned working;

struct heap_user {
    uint32_t random;
    unsigned count;
    struct {
        uint32_t *words;
        unsigned kind;
    } object[HEAP_OBJECTS];
};

static uint32_t below(struct heap_user *u, uint32_t n)
{
    u->random = u->random * 1664525u + 1013904223u;
    return (u->random >> 16) % n;
}

/* Every word of an object in use is the first word, which no other has. */
static void stamp(uint32_t *words, unsigned kind, uint32_t with)
{
    for (size_t i = 0; i < heaps[kind].size / sizeof(*words); i++)
        words[i] = with;
}

static void check_and_free(uint32_t *words, unsigned kind)
{
    for (size_t i = 1; i < heaps[kind].size / sizeof(*words); i++)
        if (words[i] != words[0])
            add(&wrong);
    kmem_cache_free(heap[kind], words);
}

/* Frees the newest object, or leaves it and frees one that was left before. */
static void free_or_pass(struct heap_user *u)
{
    unsigned kind = u->object[--u->count].kind;
    uint32_t *words = u->object[u->count].words;

    if (below(u, 3) == 0)
        words = __atomic_exchange_n(&passed[kind][below(u, 4)], words,
                                    __ATOMIC_ACQ_REL);
    if (words != NULL)
        check_and_free(words, kind);
}

static void use_heap(struct heap_user *u, uint32_t with)
{
    unsigned kind = below(u, HEAPS);
    uint32_t *words;

    if (u->count == HEAP_OBJECTS || (u->count != 0 && below(u, 2) == 0)) {
        free_or_pass(u);
        return;
    }
    words = kmem_cache_alloc(heap[kind], KM_NOSLEEP);
    if (words == NULL)
        return;
    stamp(words, kind, with);
    u->object[u->count].words = words;
    u->object[u->count++].kind = kind;
}

/* Reaps, switches and verifies until the others are done. */
static void disturb(void)
{
    const char *where;

    for (unsigned i = 0; __atomic_load_n(&working, __ATOMIC_ACQUIRE) != 0;
         i++) {
        if (i % 4 == 0)
            kmem_reap(i % 8 == 0 ? KMEM_REAP_ALL : KMEM_REAP_WS);
        if (i % 4 == 1)
            kmem_update();
        if (i % 4 == 2) {
            kmem_mag_disable();
            kmem_mag_enable();
        }
        if (kmem_verify(&where) != NULL)
            add(&wrong);
        sched_sleep_ms(2);
    }
}

static void work_or_disturb(void *number)
{
    uint32_t n = (uint32_t)(uintptr_t)number;
    struct heap_user u = {.random = n};

    if (n == 0) {
        disturb();
        return;
    }
    for (uint32_t i = 0; i < HEAP_OPS; i++) {
        use_heap(&u, n << 24 | i);
        if (i % 64 == 0)
            cpu_relax();
    }
    while (u.count != 0)
        free_or_pass(&u);
    __atomic_sub_fetch(&working, 1, __ATOMIC_RELEASE);
}

static void disable_magazines(void *unused UNUSED)
{
    kmem_mag_disable();
}

static void end_heap(unsigned kind)
{
    struct kmem_cache_stat st;

    for (size_t i = 0; i < ARRAY_SIZE(passed[kind]); i++)
        if (passed[kind][i] != NULL)
            check_and_free(passed[kind][i], kind);
    memset(passed[kind], 0, sizeof(passed[kind]));
    kmem_cache_stat(heap[kind], &st);
    KT_EQ(st.stat_inuse, 0);
    KT_NE(st.stat_trapped, 0);
    kmem_cache_reap(heap[kind], KMEM_REAP_ALL);
    kmem_cache_stat(heap[kind], &st);
    KT_EQ(st.stat_trapped, 0);
    KT_EQ(kmem_cache_destroy(heap[kind]), 0);
}

/* Objects have their contents whatever the magazines do meanwhile. */
KTEST(parallel, magazines_serve_each_processor)
{
    for (unsigned i = 0; i < HEAPS; i++) {
        heap[i] =
            kmem_cache_create(heaps[i].name, heaps[i].size, 0, NULL, NULL);
        KT_REQUIRE(heap[i] != NULL);
    }
    wrong = 0;
    working = cpu_count;
    ktest_undo(disable_magazines, NULL);
    kmem_mag_enable(); /* `test` has disabled them */
    crowd(cpu_count + 1, work_or_disturb);
    for (unsigned i = 0; i < HEAPS; i++)
        end_heap(i);
    kmem_mag_disable();
    KT_EQ(wrong, 0);
}

#define LOOKS 2000

/* Task 0 reads the counts of a cache that all others use. */
static void look_or_use(void *number)
{
    struct kmem_cache_stat st;
    bool looks = settle(number) == 0;

    for (unsigned i = 0; looks && i < LOOKS; i++) {
        kmem_cache_stat(heap[0], &st);
        if (st.stat_inuse > st.stat_total || st.stat_trapped > st.stat_total)
            add(&wrong);
    }
    if (looks)
        __atomic_store_n(&working, 0, __ATOMIC_RELEASE);
    while (__atomic_load_n(&working, __ATOMIC_ACQUIRE) != 0) {
        void *buf = kmem_cache_alloc(heap[0], KM_NOSLEEP);

        if (buf != NULL)
            kmem_cache_free(heap[0], buf);
        cpu_relax(); /* in a counted run, lets the next processor run */
    }
}

/* Magazines of one round: often there is none in any. */
KTEST(parallel, counts_agree_while_others_go_on)
{
    heap[0] = kmem_cache_create("t_counts", 12000, 0, NULL, NULL);
    KT_REQUIRE(heap[0] != NULL);
    wrong = 0;
    working = 1;
    ktest_undo(disable_magazines, NULL);
    kmem_mag_enable();
    crowd(cpu_count, look_or_use);
    kmem_mag_disable();
    KT_EQ(wrong, 0);
    KT_EQ(kmem_cache_destroy(heap[0]), 0);
}
