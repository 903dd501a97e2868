/*
 * Tasks, the scheduler, wait queues, mutexes and condition variables.
 *
 * Tests: kernel/task/task.c, kernel/task/sched.c, kernel/task/sync.c
 */
#include "kernel/abi/errno.h"
#include "kernel/lib/string.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/task/sched_impl.h"
#include "kernel/task/sync.h"
#include "tools/workshop/ktest/order.h"
#include "drivers/pit.h"
#include "mm/kmem_impl.h"
#include "kernel/x86/paging.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/segkmem.h"

/* Waits for `n` children; whether all ended with status 0. */
static bool join(unsigned n)
{
    bool good = true;
    int status;

    while (n-- > 0)
        good = task_wait(-1, &status, 0) > 0 && status == 0 && good;
    return good;
}

static void join_all(void *unused)
{
    int status;

    (void)unused;
    while (task_wait(-1, &status, 0) > 0)
        ;
}

/* ---- tasks -------------------------------------------------------------- */

static void note_three(void *arg)
{
    for (unsigned i = 0; i < 3; i++) {
        note(*(const char *)arg);
        sched_yield();
    }
}

KTEST(task, equals_take_turns)
{
    ktest_undo(join_all, NULL);
    begin_order();
    KT_REQUIRE(task_create("a", note_three, "a", PRIORITY_KERNEL) != NULL);
    KT_REQUIRE(task_create("b", note_three, "b", PRIORITY_KERNEL) != NULL);
    KT_SOUND(task_verify);
    KT_TRUE(join(2));
    KT_ORDER("ababab");
}

KTEST(task, higher_priority_first)
{
    ktest_undo(join_all, NULL);
    begin_order();
    KT_REQUIRE(task_create("u", note_three, "u", PRIORITY_USER) != NULL);
    KT_REQUIRE(task_create("s", note_three, "s", PRIORITY_SERVER) != NULL);
    KT_TRUE(join(2));
    KT_ORDER("sssuuu");
}

static struct task *case_task;

/* Waits for the case's task, then notes its letter and wakes that task. */
static void wait_and_wake(void *arg)
{
    spin_lock(&sched_lock);
    sched_block(false, 0);
    note(*(const char *)arg);
    sched_wake(case_task, 0);
    spin_unlock(&sched_lock);
}

KTEST(task, higher_priority_first_in_a_handoff)
{
    struct task *user;

    ktest_undo(join_all, NULL);
    begin_order();
    case_task = task_self();
    user = task_create("u", wait_and_wake, "u", PRIORITY_USER);
    KT_REQUIRE(user != NULL);
    while (user->task_state != TASK_BLOCKED)
        sched_sleep_ms(1);
    KT_TRUE(task_create("s", note_three, "s", PRIORITY_SERVER) != NULL);
    spin_lock(&sched_lock);
    KT_EQ(sched_block_handoff(false, user, 0), 0);
    spin_unlock(&sched_lock);
    KT_TRUE(join(2));
    KT_ORDER("sssu");
}

KTEST(task, a_name_is_printable)
{
    struct task_stat st;
    struct task *t;
    pid_t pid;

    ktest_undo(join_all, NULL);
    begin_order();
    t = task_create("a\nb\033[2J", note_three, "a", PRIORITY_USER);
    KT_REQUIRE(t != NULL);
    pid = t->task_pid;
    KT_EQ(task_stats(pid - 1, &st, 1), 1);
    KT_TRUE(strcmp(st.stat_name, "a?b?[2J") == 0);
    KT_TRUE(join(1));
}

/* ---- pids --------------------------------------------------------------- */

static struct wait_queue held = WAIT_QUEUE_INIT(held, "held");

static void be_held(void *unused)
{
    (void)unused;
    spin_lock(&sched_lock);
    wait_queue_block(&held, false, 0);
    spin_unlock(&sched_lock);
}

static void release_held(void *unused)
{
    (void)unused;
    wait_queue_wake_all(&held);
    join_all(NULL);
}

static void set_last(uint32_t pid)
{
    spin_lock(&sched_lock);
    pid_last = pid;
    spin_unlock(&sched_lock);
}

static uint32_t start_held(void)
{
    struct task *t = task_create("held", be_held, NULL, PRIORITY_KERNEL);

    KT_REQUIRE(t != NULL);
    sched_yield();
    return (uint32_t)t->task_pid;
}

/* After the highest pid come low ones again, but none that a task or a group
 * has. */
KTEST(task, pids_start_again)
{
    uint32_t before = pid_last;
    uint32_t pid[3], again;

    ktest_undo(release_held, NULL);
    set_last(pid_limit - 4);
    for (uint32_t i = 0; i < 3; i++) {
        pid[i] = start_held();
        KT_EQ(pid[i], pid_limit - 3 + i);
    }
    again = start_held();
    KT_LE(again, before);
    KT_GE(again, 1);
    spin_lock(&sched_lock);
    KT_TRUE(task_find((pid_t)pid[2]) != NULL);
    KT_TRUE(task_find((pid_t)again) != NULL);
    task_set_group(task_find((pid_t)again), (pid_t)pid_limit - 4);
    spin_unlock(&sched_lock);
    KT_SOUND(task_verify);
    set_last(pid_limit - 5); /* the next are a group's, and three tasks' */
    KT_LE(start_held(), before);
    KT_SOUND(task_verify);
    release_held(NULL);
    set_last(before);
}

/* ---- the scheduler ------------------------------------------------------ */

static volatile bool stop_spinning;
static volatile uint32_t spins[2];

static void spin(void *arg)
{
    while (!stop_spinning)
        ++*(volatile uint32_t *)arg;
}

static void end_spinning(void *unused)
{
    (void)unused;
    stop_spinning = true;
}

KTEST(task, a_slice_ends_by_itself)
{
    ktest_undo(join_all, NULL);
    ktest_undo(end_spinning, NULL);
    stop_spinning = false;
    spins[0] = spins[1] = 0;
    KT_REQUIRE(task_create("s0", spin, (void *)&spins[0], PRIORITY_USER));
    KT_REQUIRE(task_create("s1", spin, (void *)&spins[1], PRIORITY_USER));
    KT_EQ(sched_sleep_ms(400), 0);
    stop_spinning = true;
    KT_TRUE(join(2));
    KT_TRUE(spins[0] > 1000 && spins[1] > 1000);
    /* Each had half of the time, give or take a slice. */
    KT_TRUE(spins[0] < 2 * spins[1] && spins[1] < 2 * spins[0]);
}

/* Wherever between two ticks it begins. */
KTEST(task, sleep_lasts_at_least)
{
    for (unsigned i = 0; i < 8; i++) {
        uint64_t start = timer_us() + i * 1300, slept;

        while (timer_us() < start)
            cpu_relax();
        start = timer_us();
        KT_EQ(sched_sleep_ms(30), 0);
        slept = timer_us() - start;
        KT_GE(slept, 30000);
        KT_LE(slept, 60000);
    }
}

static void sleep_and_note(void *arg)
{
    sched_sleep_ms(10 * (uint32_t)(*(const char *)arg - '0'));
    note(*(const char *)arg);
}

KTEST(task, sleepers_wake_in_order_of_time)
{
    ktest_undo(join_all, NULL);
    begin_order();
    KT_REQUIRE(task_create("5", sleep_and_note, "5", PRIORITY_KERNEL));
    KT_REQUIRE(task_create("2", sleep_and_note, "2", PRIORITY_KERNEL));
    KT_REQUIRE(task_create("8", sleep_and_note, "8", PRIORITY_KERNEL));
    sched_yield();
    KT_SOUND(task_verify);
    KT_TRUE(join(3));
    KT_ORDER("258");
}

static void nothing(void *arg)
{
    (void)arg;
}

static void make_orphan(void *arg)
{
    (void)arg;
    task_create("orphan", sleep_and_note, "1", PRIORITY_KERNEL);
}

KTEST(task, wait_finds_children_only)
{
    int status;
    struct task *t;
    pid_t pid;

    KT_EQ(task_wait(-1, &status, 0), -ECHILD);
    t = task_create("child", nothing, NULL, PRIORITY_USER);
    KT_REQUIRE(t != NULL);
    pid = t->task_pid;
    KT_EQ(task_wait(1, &status, 0), -ECHILD);
    KT_EQ(task_wait(pid, &status, WNOHANG), 0);
    KT_EQ(task_wait(pid, &status, 0), pid);
    KT_EQ(task_wait(pid, &status, 0), -ECHILD);
}

static unsigned asked_wrong;

/* Waits for a child without blocking, over and over. The child ends during one
 * of these calls: the clock wakes it, and it has the higher priority. */
static void ask_all_the_time(void *arg)
{
    int status;
    pid_t pid;

    (void)arg;
    for (unsigned i = 0; i < 10; i++) {
        if (task_create("child", sleep_and_note, "1", PRIORITY_KERNEL) == NULL)
            return;
        while ((pid = task_wait(-1, &status, WNOHANG)) == 0)
            ;
        asked_wrong += pid < 0 || status != 0;
    }
}

KTEST(task, a_child_that_ends_while_it_is_asked_about)
{
    asked_wrong = 0;
    begin_order();
    KT_REQUIRE(task_create("asker", ask_all_the_time, NULL, PRIORITY_USER));
    KT_TRUE(join(1));
    KT_EQ(asked_wrong, 0);
    KT_ORDER("1111111111");
    KT_SOUND(task_verify);
}

KTEST(task, orphans_are_taken_in)
{
    begin_order();
    KT_REQUIRE(task_create("parent", make_orphan, NULL, PRIORITY_KERNEL));
    KT_TRUE(join(1));
    sched_sleep_ms(50);
    KT_ORDER("1");
    KT_SOUND(task_verify);
}

KTEST(task, kernel_tasks_cannot_be_killed)
{
    KT_EQ(task_kill(NULL, 1, SIGKILL), -EPERM);
    KT_EQ(task_kill(NULL, 1, 0), -EPERM);
    KT_EQ(task_kill(NULL, 30000, SIGKILL), -ESRCH);
    KT_EQ(task_kill(NULL, 1, SIG_MAX + 1), -EINVAL);
    KT_EQ(task_kill(NULL, 0, SIGKILL), -EINVAL);
}

/* As a process that exits, after its address space is freed. */
static void end_as_program(void *arg)
{
    pid_t self = task_self()->task_pid;

    task_self()->task_program = true;
    *(int *)arg = task_kill(NULL, self, SIGTERM);
}

KTEST(task, a_program_that_ends_can_be_killed)
{
    int result = 1;

    KT_REQUIRE(task_create("p", end_as_program, &result, PRIORITY_KERNEL));
    KT_TRUE(join(1));
    KT_EQ(result, 0);
}

/* ---- stacks: the cache keeps the guard ---------------------------------- */

KTEST(task, a_stack_keeps_its_guard_in_the_cache)
{
    struct kmem_cache *cp = kmem_cache_find("kstack");
    void *stack;

    KT_REQUIRE(cp != NULL);
    stack = kmem_cache_alloc(cp, KM_SLEEP);
    KT_TRUE(!paging_readable((vaddr_t)stack));
    KT_TRUE(paging_writable((vaddr_t)stack + PAGE_SIZE));
    KT_TRUE(paging_writable((vaddr_t)stack + 2 * PAGE_SIZE));
    kmem_cache_free(cp, stack);
    KT_TRUE(!paging_readable((vaddr_t)stack));
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    KT_TRUE(paging_readable((vaddr_t)stack));
}

/* ---- mutexes and conditions --------------------------------------------- */

static struct mutex lock;
static struct cond changed;
static unsigned inside, entered;

static void crowd(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        mutex_lock(&lock);
        inside++;
        if (inside == 1)
            entered++;
        sched_yield();
        inside--;
        mutex_unlock(&lock);
    }
}

KTEST(sync, a_mutex_lets_one_in)
{
    mutex_init(&lock, "test", MUTEX_RANK_FILE);
    inside = entered = 0;
    ktest_undo(join_all, NULL);
    for (unsigned i = 0; i < 4; i++)
        KT_REQUIRE(task_create("crowd", crowd, NULL, PRIORITY_KERNEL));
    KT_TRUE(join(4));
    KT_EQ(entered, 80);
    KT_EQ(inside, 0);
    KT_TRUE(lock.mutex_owner == NULL);
}

KTEST(sync, a_mutex_that_is_held_cannot_be_taken)
{
    mutex_init(&lock, "test", MUTEX_RANK_FILE);
    KT_TRUE(mutex_try(&lock));
    KT_TRUE(!mutex_try(&lock));
    KT_TRUE(lock.mutex_owner == task_self());
    lock.mutex_owner = NULL;
}

static void hold_for_long(void *arg)
{
    (void)arg;
    mutex_lock(&lock);
    sched_sleep_ms(KERNEL_PATIENCE_MS + 100);
    mutex_unlock(&lock);
}

/* A program's wait is ended by a kill: usertests silent.any. */
KTEST(sync, a_kernel_task_waits_for_a_limited_time)
{
    mutex_init(&lock, "test", MUTEX_RANK_FILE);
    ktest_undo(join_all, NULL);
    KT_REQUIRE(task_create("holder", hold_for_long, NULL, PRIORITY_KERNEL));
    sched_yield();
    KT_EQ(mutex_lock_killable(&lock), -EIO);
    KT_TRUE(lock.mutex_owner != task_self());
    KT_TRUE(list_empty(&lock.mutex_waiters.wait_tasks));
    KT_TRUE(join(1));
    KT_EQ(mutex_lock_killable(&lock), 0);
    KT_TRUE(lock.mutex_owner == task_self());
    mutex_unlock(&lock);
}

static unsigned tokens;

static void take_token(void *arg)
{
    mutex_lock(&lock);
    while (tokens == 0)
        cond_wait(&changed, &lock);
    tokens--;
    note(*(const char *)arg);
    mutex_unlock(&lock);
}

static void give_tokens(unsigned n, bool all)
{
    mutex_lock(&lock);
    tokens += n;
    if (all)
        cond_broadcast(&changed);
    else
        cond_signal(&changed);
    mutex_unlock(&lock);
}

static void give_to_all(void *unused)
{
    (void)unused;
    give_tokens(3, true);
}

KTEST(sync, signal_wakes_one_broadcast_all)
{
    mutex_init(&lock, "test", MUTEX_RANK_FILE);
    cond_init(&changed, "token");
    tokens = 0;
    ktest_undo(join_all, NULL);
    ktest_undo(give_to_all, NULL);
    begin_order();
    KT_REQUIRE(task_create("a", take_token, "a", PRIORITY_KERNEL));
    KT_REQUIRE(task_create("b", take_token, "b", PRIORITY_KERNEL));
    KT_REQUIRE(task_create("c", take_token, "c", PRIORITY_KERNEL));
    sched_yield();
    KT_SOUND(task_verify);
    give_tokens(1, false);
    sched_sleep_ms(20);
    KT_ORDER("a");
    give_tokens(2, true);
    KT_TRUE(join(3));
    KT_ORDER("abc");
    KT_EQ(tokens, 0);
}

static struct wait_queue queue;

static void wait_in_queue(void *arg)
{
    spin_lock(&sched_lock);
    *(int *)arg = wait_queue_block(&queue, true, 30);
    spin_unlock(&sched_lock);
}

KTEST(sync, a_wait_may_time_out)
{
    int result[2] = {1, 1};

    wait_queue_init(&queue, "test");
    ktest_undo(join_all, NULL);
    KT_REQUIRE(task_create("w", wait_in_queue, &result[0], PRIORITY_KERNEL));
    KT_REQUIRE(task_create("w", wait_in_queue, &result[1], PRIORITY_KERNEL));
    sched_yield();
    KT_SOUND(task_verify);
    wait_queue_wake(&queue);
    KT_TRUE(join(2));
    KT_EQ(result[0], 0);
    KT_EQ(result[1], -ETIMEDOUT);
    KT_TRUE(list_empty(&queue.wait_tasks));
}

/* ---- KM_SLEEP (S-3) ----------------------------------------------------- */

#define HOARD 8192

static struct kmem_cache *hungry;
static void *fed;

static void eat(void *arg)
{
    (void)arg;
    fed = kmem_cache_alloc(hungry, KM_SLEEP);
}

/* The supplier that the sleeper waits for has pages while this is set. */
static bool tap_open;

static void *tap_get(size_t pages, void *arg)
{
    (void)arg;
    return tap_open ? kmem_getpages(pages, PAGE_SLAB, hungry) : NULL;
}

static void tap_put(void *addr, size_t pages, void *arg)
{
    (void)arg;
    kmem_freepages(addr, pages);
}

static size_t failures(void)
{
    struct kmem_cache_stat stat;

    kmem_cache_stat(hungry, &stat);
    return (size_t)stat.stat_fails;
}

/* Whether there is an eater, which waits. */
static bool begin_to_eat(void)
{
    static const struct kmem_supplier tap = {tap_get, tap_put, NULL};

    tap_open = false;
    fed = NULL;
    hungry = kmem_cache_create_from("hungry", 64, 0, NULL, NULL, &tap);
    if (hungry == NULL ||
        task_create("eater", eat, NULL, PRIORITY_KERNEL) == NULL)
        return false;
    sched_sleep_ms(100);
    return fed == NULL && failures() == 0;
}

/* Pages return, which wakes the eater. */
static void free_pages(void)
{
    kmem_free(kmem_alloc(HOARD * 2, KM_SLEEP), HOARD * 2);
}

KTEST(kmem_sleep, S3_waits_until_pages_are_freed)
{
    KT_REQUIRE(begin_to_eat());
    KT_TRUE(kmem_cache_alloc(hungry, KM_NOSLEEP) == NULL);
    KT_EQ(failures(), 1);
    tap_open = true;
    free_pages();
    KT_TRUE(join(1));
    KT_TRUE(fed != NULL);
    kmem_cache_free(hungry, fed);
    KT_EQ(kmem_cache_destroy(hungry), 0);
}

/* As if mm_wake_waiters had looked before the eater was in the queue. */
KTEST(kmem_sleep, a_lost_wake_up_only_delays)
{
    KT_REQUIRE(begin_to_eat());
    tap_open = true;
    sched_sleep_ms(100);
    KT_TRUE(fed != NULL);
    free_pages();
    KT_TRUE(join(1));
    kmem_cache_free(hungry, fed);
    KT_EQ(kmem_cache_destroy(hungry), 0);
}

static void release_later(void *arg)
{
    struct kmem_cache *cp = arg;

    sched_sleep_ms(30);
    note('r');
    kmem_release(cp);
}

KTEST(kmem_sleep, S8_destroy_waits_until_a_cache_is_released)
{
    struct kmem_cache *cp = kmem_cache_create("t_held", 40, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    begin_order();
    KT_REQUIRE(task_create("release", release_later, cp, PRIORITY_KERNEL) !=
               NULL);
    kmem_hold(cp);
    KT_EQ(kmem_cache_destroy(cp), 0);
    note('d');
    KT_TRUE(join(1));
    KT_ORDER("rd");
}

/* ---- killed while it creates a task ------------------------------------- */

static void end_at_once(void *arg)
{
    (void)arg;
    sched_begin();
    task_exit(0);
}

/* The signal of a new task of `group`, created by a task that is killed. */
static uint8_t signal_of_new(pid_t group)
{
    struct task *t = task_prepare("new", end_at_once, NULL, PRIORITY_USER);
    struct task *self = task_self();
    uint8_t signal;

    if (t == NULL)
        return 0;
    t->task_group = group;
    self->task_signal = SIGINT;
    task_start(t);
    self->task_signal = 0;
    signal = t->task_signal;
    KT_EQ(t->task_pending, signal == 0 ? 0 : PENDING_KILL);
    join(1);
    return signal;
}

KTEST(task, one_made_while_its_group_is_killed_is_killed_too)
{
    KT_EQ(signal_of_new(task_self()->task_group), SIGINT);
    KT_EQ(signal_of_new(0), 0);
}
