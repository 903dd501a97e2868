/*
 * Sessions: numbers, quotas, their tasks, and whether `verify` finds damage.
 *
 * Tests: kernel/object/session.c
 */
#include "kernel/object/session.h"
#include "drivers/pit.h"
#include "kernel/abi/errno.h"
#include "kernel/task/sync.h"
#include "kernel/lib/string.h"
#include "kernel/vm/space.h"
#include "kernel/x86/tests/steps.h"
#include "tools/workshop/ktest/ktest.h"

static bool exists(uint32_t number)
{
    struct session_stat st;

    return session_stat(number - 1, &st) && st.stat_number == number;
}

/* ---- what a case holds --------------------------------------------------- */

#define TASKS 5

static struct session *s, *other;
static struct space *space, *copy;
static struct task *unstarted[TASKS];

/* Ends what the case has begun; also if it stops early. */
static void end(void *unused)
{
    int status;

    (void)unused;
    for (size_t i = 0; i < TASKS; i++) {
        if (unstarted[i] != NULL)
            task_discard(unstarted[i]);
        unstarted[i] = NULL;
    }
    if (s != NULL)
        session_end(s->session_number);
    if (other != NULL)
        session_end(other->session_number);
    while (task_wait(-1, &status, 0) > 0)
        continue;
    if (copy != NULL)
        space_destroy(copy);
    if (space != NULL)
        space_destroy(space);
    space = copy = NULL;
    session_leave(s);
    session_leave(other);
    s = other = NULL;
}

static void begin(void)
{
    ktest_finally(end, NULL);
    s = session_create();
    other = session_create();
    KT_REQUIRE(s != NULL && other != NULL);
}

static void sleep_long(void *unused)
{
    (void)unused;
    sched_begin();
    task_self()->task_program = true;
    task_exit(sched_sleep_ms(60000) == -EINTR ? 0 : 1);
}

/* A task of a session, not started; as process_fork does. NULL: no memory. */
static struct task *prepare_to(void (*fn)(void *), struct session *of)
{
    struct task *t = task_prepare("t", fn, NULL, PRIORITY_KERNEL);
    size_t i = 0;

    if (t == NULL)
        return NULL;
    while (unstarted[i] != NULL)
        i++;
    unstarted[i] = t;
    KT_TRUE(session_charge(of, SESSION_TASKS, 1));
    t->task_session = of;
    return t;
}

/* One that sleeps. */
static struct task *prepare(struct session *of)
{
    struct task *t = prepare_to(sleep_long, of);

    KT_REQUIRE(t != NULL);
    return t;
}

/* Starts it, and waits until it sleeps. */
static pid_t start(struct task *t)
{
    size_t i = 0;
    pid_t pid;

    while (unstarted[i] != t)
        i++;
    unstarted[i] = NULL;
    pid = task_start(t);
    sched_sleep_ms(20);
    return pid;
}

static void wait_for(unsigned n)
{
    int status;

    while (n-- > 0) {
        KT_GE(task_wait(-1, &status, 0), 1);
        KT_EQ(status, 0);
    }
}

/* ---- numbers and quotas -------------------------------------------------- */

KTEST(session, numbers_ascend_and_are_not_reused)
{
    uint32_t last;

    begin();
    last = other->session_number;
    KT_GE(s->session_number, 2);
    KT_EQ(last, s->session_number + 1);
    KT_SOUND(session_verify);
    session_leave(other);
    other = NULL;
    KT_TRUE(!exists(last) && exists(last - 1));
    KT_EQ(session_end(last), -ESRCH);
    KT_EQ(session_end(0), -ESRCH);
    other = session_create();
    KT_REQUIRE(other != NULL);
    KT_EQ(other->session_number, last + 1);
    KT_EQ(session_number(NULL), 0);
}

KTEST(session, the_first_is_the_shells)
{
    KT_EQ(session_console->session_number, 1);
    KT_TRUE(exists(1));
    KT_TRUE(session_charge(session_console, SESSION_TASKS, 1));
    session_leave(session_console);
    KT_TRUE(exists(1));
    KT_SOUND(session_verify);
}

KTEST(session, a_limit_is_exact)
{
    uint32_t most = session_limit[SESSION_REGIONS];
    uint32_t *used;

    begin();
    used = &s->session_used[SESSION_REGIONS];
    KT_TRUE(!session_charge(s, SESSION_REGIONS, most + 1));
    KT_TRUE(!session_charge(s, SESSION_REGIONS, INT32_MAX));
    KT_TRUE(session_charge(s, SESSION_REGIONS, most - 1));
    KT_TRUE(!session_charge(s, SESSION_REGIONS, 2));
    KT_EQ(*used, most - 1);
    KT_TRUE(session_charge(s, SESSION_REGIONS, 1));
    KT_TRUE(!session_charge(s, SESSION_REGIONS, 1));
    KT_TRUE(session_charge(s, SESSION_REGIONS, 0));
    KT_TRUE(session_charge(other, SESSION_REGIONS, 1));
    KT_TRUE(session_charge(NULL, SESSION_REGIONS, INT32_MAX));
    KT_EQ(*used, most);
    KT_SOUND(session_verify);
    session_refund(s, SESSION_REGIONS, most);
    session_refund(other, SESSION_REGIONS, 1);
    session_refund(NULL, SESSION_REGIONS, 1);
    KT_EQ(*used, 0);
}

static unsigned charge_at, seen_above;
static bool charged[2]; /* by the task, in the interrupt */

static void charge_two(void)
{
    charged[0] = session_charge(s, SESSION_REGIONS, 2);
}

static void charge_in_interrupt(const struct trapframe *tf UNUSED, unsigned n)
{
    seen_above +=
        s->session_used[SESSION_REGIONS] > session_limit[SESSION_REGIONS];
    if (n == charge_at)
        charged[1] = session_charge(s, SESSION_REGIONS, 1);
}

/* Room for one is left: two are refused, wherever another task charges one. */
KTEST(session, a_refused_charge_is_not_seen)
{
    uint32_t most = session_limit[SESSION_REGIONS];
    unsigned steps;

    if (!steps_work())
        return;
    begin();
    KT_TRUE(session_charge(s, SESSION_REGIONS, most - 1));
    charge_at = 0;
    seen_above = 0;
    do {
        charge_at++;
        charged[1] = false;
        steps = steps_run(charge_two, charge_in_interrupt);
        KT_TRUE(!charged[0]);
        KT_EQ(charged[1], steps >= charge_at);
        session_refund(s, SESSION_REGIONS, charged[1] ? 1 : 0);
    } while (steps >= charge_at);
    KT_EQ(seen_above, 0);
    session_refund(s, SESSION_REGIONS, most - 1);
}

KTEST(session, every_resource_has_a_limit)
{
    for (unsigned i = 0; i < SESSION_RESOURCES; i++)
        KT_GE(session_limit[i], 1);
    KT_GE(session_reserve, 1);
}

/* ---- spaces -------------------------------------------------------------- */

static void expect_used(uint32_t regions, uint32_t pages)
{
    KT_EQ(s->session_used[SESSION_REGIONS], regions);
    KT_EQ(s->session_used[SESSION_PAGES], pages);
}

KTEST(session, spaces_are_charged_and_refunded)
{
    begin();
    space = space_create(s);
    KT_REQUIRE(space != NULL);
    for (uaddr_t at = SPACE_MMAP_BASE; at < SPACE_MMAP_BASE + MIB(3);
         at += MIB(1))
        KT_EQ(space_add_region(space, at, at + 2 * PAGE_SIZE,
                               PROT_READ | PROT_WRITE, REGION_MMAP),
              0);
    expect_used(3, 6);
    KT_EQ(space_add_region(space, SPACE_MMAP_BASE, SPACE_MMAP_BASE + MIB(1),
                           PROT_READ, REGION_MMAP),
          -EEXIST);
    expect_used(3, 6);
    copy = space_copy(space);
    KT_REQUIRE(copy != NULL);
    expect_used(6, 12);
    KT_EQ(space_munmap(copy, SPACE_MMAP_BASE, 2 * PAGE_SIZE), 0);
    expect_used(5, 10);
    space_destroy(copy);
    copy = NULL;
    expect_used(3, 6);
}

/* Leaves `n` of a resource of which `used` are charged. */
static uint32_t leave_room(enum session_resource of, uint32_t used, uint32_t n)
{
    uint32_t rest = session_limit[of] - used - n;

    KT_TRUE(session_charge(s, of, rest));
    return rest;
}

KTEST(session, spaces_keep_to_the_limits)
{
    int prot = PROT_READ | PROT_WRITE;
    uint32_t rest;
    int third;

    begin();
    space = space_create(s);
    KT_REQUIRE(space != NULL);
    for (int i = 0; i < 2; i++)
        KT_REQUIRE(space_mmap(space, PAGE_SIZE, prot) >= 1);
    rest = leave_room(SESSION_REGIONS, 2, 1);
    copy = space_copy(space);
    third = space_mmap(space, PAGE_SIZE, prot);
    KT_EQ(space_mmap(space, PAGE_SIZE, prot), -ENOMEM);
    session_refund(s, SESSION_REGIONS, rest);
    KT_REQUIRE(copy == NULL && third >= 1);
    expect_used(3, 3);
    rest = leave_room(SESSION_PAGES, 3, 2);
    copy = space_copy(space);
    KT_EQ(space_mmap(space, 3 * PAGE_SIZE, prot), -ENOMEM);
    KT_GE(space_mmap(space, 2 * PAGE_SIZE, prot), 1);
    session_refund(s, SESSION_PAGES, rest);
    KT_TRUE(copy == NULL);
    expect_used(4, 5);
}

/* ---- tasks --------------------------------------------------------------- */

/* And as long as anything else is charged to it. */
KTEST(session, it_lasts_as_long_as_its_tasks)
{
    struct task *first, *second;
    struct session *of;
    uint32_t number;

    begin();
    of = s;
    number = s->session_number;
    first = prepare(s);
    second = prepare(s);
    KT_EQ(s->session_used[SESSION_TASKS], 3);
    session_leave(s);
    s = NULL;
    unstarted[1] = NULL;
    task_discard(second);
    KT_EQ(of->session_used[SESSION_TASKS], 1);
    KT_TRUE(session_charge(of, SESSION_PAGES, 1));
    start(first);
    KT_SOUND(session_verify);
    KT_EQ(session_end(number), 0);
    wait_for(1);
    KT_TRUE(exists(number));
    session_refund(of, SESSION_PAGES, 1);
    session_leave(other); /* frees both */
    other = NULL;
    KT_TRUE(!exists(number) && !exists(number + 1));
    KT_SOUND(session_verify);
}

static void start_another(void *unused)
{
    struct task *t;

    (void)unused;
    sched_begin();
    task_self()->task_program = true;
    sched_sleep_ms(60000);
    t = prepare_to(sleep_long, s);
    KT_TRUE(t != NULL);
    if (t != NULL)
        start(t);
    task_exit(0);
}

/* A task that one creates after it was killed is killed, too; tasks of other
 * sessions are not. */
KTEST(session, its_end_kills_all_tasks)
{
    struct task *stranger, *t;

    begin();
    for (int i = 0; i < 3; i++)
        start(prepare(s));
    t = prepare_to(start_another, s);
    KT_REQUIRE(t != NULL);
    start(t);
    stranger = prepare(other);
    start(stranger);
    KT_EQ(session_end(s->session_number), 0);
    KT_EQ(stranger->task_signal, 0);
    wait_for(4);
    sched_sleep_ms(20); /* the reaper waits for the orphan */
    KT_EQ(s->session_used[SESSION_TASKS], 1);
    KT_EQ(session_end(s->session_number), 0); /* it has no tasks */
    KT_EQ(session_end(other->session_number), 0);
    wait_for(1);
}

static void sleep_on(void *unused)
{
    struct wait_queue q;

    (void)unused;
    sched_begin();
    task_self()->task_program = true;
    wait_queue_init(&q, "a device");
    spin_lock(&sched_lock);
    wait_queue_block(&q, false, 2000);
    spin_unlock(&sched_lock);
    task_exit(0);
}

KTEST(session, its_end_waits_a_second_at_most)
{
    uint64_t ms = timer_ms();
    struct task *t;

    begin();
    t = prepare_to(sleep_on, s);
    KT_REQUIRE(t != NULL);
    start(t);
    KT_EQ(session_end(s->session_number), -EBUSY);
    KT_GE(timer_ms() - ms, 1000);
    KT_GE(1500, timer_ms() - ms);
    wait_for(1);
}

/* ---- signals ------------------------------------------------------------- */

KTEST(session, signals_stay_in_a_session)
{
    struct task *t, *mate, *stranger;
    pid_t pid;

    begin();
    t = prepare(s);
    mate = prepare(s);
    stranger = prepare(other);
    pid = start(t);
    KT_EQ(task_kill(mate, pid, 0), 0);
    KT_EQ(task_kill(stranger, pid, 0), -EPERM);
    KT_EQ(task_kill(stranger, pid, SIGKILL), -EPERM);
    KT_EQ(task_kill(stranger, -pid, SIGKILL), -EPERM);
    KT_EQ(task_kill(task_self(), pid, 0), 0); /* its parent */
    KT_EQ(task_kill(t, pid, 0), 0);
    KT_EQ(task_kill(t, task_self()->task_pid, 0), -EPERM);
    stranger->task_privileged = true;
    KT_EQ(task_kill(stranger, pid, 0), 0);
    KT_EQ(t->task_signal, 0);
    KT_EQ(task_kill(mate, -pid, SIGKILL), 0);
    wait_for(1);
}

/* Two tasks outside every session do not belong together. */
KTEST(session, outside_is_no_session)
{
    struct task *t, *stranger;
    pid_t pid;

    begin();
    t = prepare(NULL);
    stranger = prepare(NULL);
    pid = start(t);
    KT_EQ(task_kill(stranger, pid, 0), -EPERM);
    KT_EQ(task_kill(NULL, pid, SIGKILL), 0);
    wait_for(1);
}

/* ---- verify -------------------------------------------------------------- */

KTEST(session, verify_finds_damage)
{
    begin();
    s->session_used[SESSION_REGIONS] = session_limit[SESSION_REGIONS] + 1;
    KT_UNSOUND(session_verify, "more than its limit");
    s->session_used[SESSION_REGIONS] = 0;
    KT_SOUND(session_verify);
}

KTEST(session, verify_checks_its_tasks)
{
    struct task *t;

    begin();
    t = prepare(s);
    start(t);
    s->session_used[SESSION_TASKS] = 0;
    KT_UNSOUND(session_verify, "more tasks");
    s->session_used[SESSION_TASKS] = 2;
    KT_SOUND(session_verify);
}
