/*
 * Wake-ups, with the waiter and the waker on different processors: none is lost
 * in any schedule (wakes.h).
 *
 *     waketest          every case
 *     waketest CASE     this one
 *
 * Tests: kernel/task/sync.c, kernel/fs/tty.c, kernel/fs/tty_line.c
 * Tests: drivers/console.c
 */
#include "kernel/task/tests/wakes/wakes.h"

#include "drivers/console.h"
#include "kernel/fs/tty.h"
#include "kernel/lib/string.h"
#include "kernel/task/tests/wakes/devices.h"
#include "tools/test/budget.h"

static struct mutex mutex;
static struct cond cond;
static struct wait_queue queue;
static struct eventcount event = EVENTCOUNT_INIT(event, "event");
static volatile unsigned ready;
static unsigned inside;
static unsigned ended;

static void make(void)
{
    mutex_init(&mutex, "mutex", MUTEX_RANK_FILE);
    cond_init(&cond, "cond");
    wait_queue_init(&queue, "queue");
    ready = 0;
    inside = 0;
    ended = 0;
}

static void all_free(void)
{
    FIBERS_TRUE(mutex.mutex_owner == NULL);
    FIBERS_TRUE(list_empty(&mutex.mutex_waiters.wait_tasks));
    FIBERS_TRUE(list_empty(&cond.cond_waiters.wait_tasks));
    FIBERS_TRUE(list_empty(&queue.wait_tasks));
    FIBERS_TRUE(list_empty(&event.event_waiters.wait_tasks));
}

/* ---- mutexes and condition variables ------------------------------------ */

static void hold(void)
{
    mutex_lock(&mutex);
    FIBERS_TRUE(inside++ == 0);
    ready++;
    inside--;
    mutex_unlock(&mutex);
}

static void all_held(void)
{
    FIBERS_TRUE(ready == 3);
    all_free();
}

static void take_one(void)
{
    mutex_lock(&mutex);
    while (ready == 0)
        cond_wait(&cond, &mutex);
    ready--;
    mutex_unlock(&mutex);
}

static void give_one(void)
{
    mutex_lock(&mutex);
    ready++;
    cond_signal(&cond);
    mutex_unlock(&mutex);
}

static void give_two(void)
{
    mutex_lock(&mutex);
    ready += 2;
    cond_broadcast(&cond);
    mutex_unlock(&mutex);
}

/* ---- eventcounts -------------------------------------------------------- */

static void await(void)
{
    uint32_t seen = eventcount_read(&event);

    while (ready == 0) {
        eventcount_wait(&event, seen, false);
        seen = eventcount_read(&event);
    }
}

static void happen(void)
{
    ready = 1;
    eventcount_advance(&event);
}

/* ---- wait queues -------------------------------------------------------- */

static void wait_once(void)
{
    spin_lock(&sched_lock);
    if (ready == 0)
        wait_queue_block(&queue, true, 0);
    spin_unlock(&sched_lock);
}

static void wake_all(void)
{
    spin_lock(&sched_lock);
    ready = 1;
    spin_unlock(&sched_lock);
    wait_queue_wake_all(&queue);
}

static void kill_waiter(void)
{
    wakes_kill(wakes_task(0));
}

/* ---- the console -------------------------------------------------------- */

static void make_console(void)
{
    make();
    devices_make();
    console_set_getkey(tty_getkey, tty_wake);
    console_set_signal_hook(tty_signal_key);
    console_enable_interrupts();
}

static void get_key(void)
{
    FIBERS_TRUE(console_getkey() == 'a');
}

static void press(void)
{
    devices_press('a');
}

/* A program, which waits until the console is its own. */
static void write_text(void)
{
    FIBERS_TRUE(tty_ops.file_write(NULL, "text", 4) == 4);
    ended = 1;
    spin_lock(&sched_lock);
    wait_queue_wake_locked(&wakes_task(1)->task_exited);
    spin_unlock(&sched_lock);
}

/* A program, which waits for a key besides. */
static void read_line(void)
{
    char text[4];

    wakes_task(0)->task_group = DEVICES_CHILD;
    FIBERS_TRUE(tty_ops.file_read(NULL, text, sizeof(text)) == 2);
    FIBERS_TRUE(memcmp(text, "a\n", 2) == 0);
    ended = 1;
    spin_lock(&sched_lock);
    wait_queue_wake_locked(&wakes_task(1)->task_exited);
    spin_unlock(&sched_lock);
}

/* The shell, until its child has ended. */
static void own(void)
{
    int status;

    wait_queue_init(&wakes_task(1)->task_exited, "child");
    tty_foreground(DEVICES_CHILD, &status);
}

bool devices_child_ended(void)
{
    return ended != 0;
}

static void press_line(void)
{
    devices_press('a');
    devices_press('\n');
}

static void text_shown(void)
{
    FIBERS_TRUE(strcmp(devices_shown(), "text") == 0);
    all_free();
}

/* ---- the list ----------------------------------------------------------- */

#define CASE(name) .case_name = #name

static const struct fiber_case cases[] = {
    {CASE(mutex_is_held_by_one), make, {hold, hold, hold}, all_held},
    {CASE(signal_finds_the_waiter), make, {take_one, give_one}, all_free},
    {CASE(broadcast_finds_both_waiters),
     make,
     {take_one, give_two, take_one},
     all_free},
    {CASE(advance_finds_both_waiters), make, {await, happen, await}, all_free},
    {CASE(wake_all_and_kill),
     make,
     {wait_once, wake_all, kill_waiter},
     all_free},
    {CASE(a_key_wakes_the_shell), make_console, {get_key, press}, all_free},
    {CASE(a_writer_gets_the_console),
     make_console,
     {write_text, own},
     text_shown},
    {CASE(a_reader_gets_the_console_and_a_line),
     make_console,
     {read_line, own, press_line},
     all_free},
};

int printf(const char *fmt, ...) PRINTF_LIKE(1, 2); /* the host's */

static void run(const void *c)
{
    printf("# %zu schedules\n", wakes_run(c));
}

int main(int argc, char **argv)
{
    bool passed = true;

    budget_share();
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        bool ok;

        if (argc > 1 && strcmp(argv[1], cases[i].case_name) != 0)
            continue;
        ok = fibers_apart(run, &cases[i]) == 0;
        printf("%sok %u - %s\n", ok ? "" : "not ", i + 1, cases[i].case_name);
        passed &= ok;
    }
    return passed ? 0 : 1;
}
