/*
 * The console for programs: its ownership, reading and writing.
 *
 * Ownership of the console changes in interrupts (Ctrl-\), under console_lock.
 * A task reads an eventcount, tests the ownership or looks for a key, and waits
 * for the eventcount to advance, so no event in between is lost. A mutex guards
 * the line being typed. It is not held while a task waits for a key, so several
 * may wait, and each can be killed.
 */
#include "kernel/fs/tty.h"
#include "drivers/console.h"
#include "kernel/abi/errno.h"
#include "kernel/vm/user.h"

#define CTRL_C         0x03
#define CTRL_BACKSLASH 0x1c

/* A key has arrived; programs have got the console. */
static struct eventcount input = EVENTCOUNT_INIT(input, "console-input");
static struct eventcount turn = EVENTCOUNT_INIT(turn, "console");

/* Guarded by console_lock. */
static bool programs;      /* programs own the console, not the shell */
static struct task *shell; /* waits until programs release the console */
static pid_t foreground;   /* the group that ^C ends, or 0 */
static bool interrupted;   /* after ^C: drop what was typed before */

static struct mutex line_mutex;
static struct tty_line line = {.tty_echo = console_echo};

/* ---- waiting ------------------------------------------------------------ */

int tty_getkey(void)
{
    for (;;) {
        uint32_t seen = eventcount_read(&input);
        int key = console_trykey();

        if (key != KEY_NONE)
            return key;
        eventcount_wait(&input, seen, false);
    }
}

void tty_wake(void)
{
    eventcount_advance(&input);
}

static bool programs_own(void)
{
    bool own;

    spin_lock(&console_lock);
    own = programs;
    spin_unlock(&console_lock);
    return own;
}

/* What a program must wait for before it can read a key, or NULL. */
static struct eventcount *missing(void)
{
    if (!programs_own())
        return &turn;
    return console_key_pending() ? NULL : &input;
}

/* Waits until a program has a key. 0 or -EINTR. */
static int wait_for_key(void)
{
    int error = 0;

    while (error == 0) {
        uint32_t seen_turn = eventcount_read(&turn);
        uint32_t seen_input = eventcount_read(&input);
        struct eventcount *e = missing();

        if (e == NULL)
            break;
        if (e == &input)
            console_report_wait("program");
        error = eventcount_wait(e, e == &turn ? seen_turn : seen_input, true);
    }
    return error;
}

/* ---- signal keys -------------------------------------------------------- */

/* Returns the console to the shell and wakes it from its wait for the child,
 * for which it tests `programs` under sched_lock. */
static void stop(void)
{
    spin_lock(&sched_lock);
    programs = false;
    wait_queue_wake_locked(&shell->task_exited);
    spin_unlock(&sched_lock);
}

bool tty_signal_key(int key)
{
    spin_assert_held(&console_lock);
    if (!programs)
        return false;
    if (key == CTRL_BACKSLASH) {
        stop();
        return true;
    }
    if (key != CTRL_C || foreground == 0 ||
        task_kill(NULL, -foreground, SIGINT) != 0)
        return false;
    interrupted = true;
    console_write_locked("^C\n", 3);
    return true;
}

/* A ^C typed early was meant for the new foreground group, which may never read
 * it: acts on it now. */
static void interrupt_early(void)
{
    if (!console_interrupt_pending())
        return;
    while (console_interrupt_pending())
        console_trykey();
    spin_lock(&console_lock);
    tty_signal_key(CTRL_C);
    spin_unlock(&console_lock);
}

/* ---- reading and writing ------------------------------------------------ */

/* ^C and ^\ typed before a program owned the console act now. */
static int program_key(void)
{
    int key;

    spin_lock(&console_lock);
    key = programs ? console_trykey_locked() : KEY_NONE;
    if ((key == CTRL_C || key == CTRL_BACKSLASH) && tty_signal_key(key))
        key = KEY_NONE;
    spin_unlock(&console_lock);
    return key;
}

/* Whether there was a ^C since the last call. */
static bool was_interrupted(void)
{
    bool was;

    spin_lock(&console_lock);
    was = interrupted;
    interrupted = false;
    spin_unlock(&console_lock);
    return was;
}

/* Collects typed keys up to the end of a line. The mutex is held. */
static void gather(void)
{
    int key;

    mutex_assert_held(&line_mutex);
    if (was_interrupted())
        tty_line_clear(&line);
    while (!line.tty_done && (key = program_key()) != KEY_NONE) {
        tty_line_key(&line, key);
        if (line.tty_done && !line.tty_raw)
            console_record(line.tty_text, line.tty_len);
    }
}

static ssize_t tty_read(struct file *f UNUSED, void *buf, size_t n)
{
    ssize_t result = 0;

    while (n > 0) {
        bool done;

        mutex_lock(&line_mutex);
        gather();
        done = line.tty_done;
        if (done)
            result = tty_line_take(&line, buf, n);
        mutex_unlock(&line_mutex);
        if (done)
            break;
        result = wait_for_key();
        if (result != 0)
            break;
    }
    return result;
}

/* Writes once programs own the console. 0, or -EINTR: the caller has been
 * killed. */
static int show(const char *text, size_t n)
{
    int error = 0;

    spin_lock(&console_lock);
    while (error == 0 && !programs) {
        uint32_t seen = eventcount_read(&turn);

        spin_unlock(&console_lock);
        error = eventcount_wait(&turn, seen, true);
        spin_lock(&console_lock);
    }
    if (task_killed())
        error = -EINTR;
    if (error == 0)
        console_write_locked(text, n);
    spin_unlock(&console_lock);
    return error;
}

static ssize_t tty_write(struct file *f UNUSED, const void *buf, size_t n)
{
    char text[CONSOLE_LINE];
    size_t done = 0;

    while (done < n) {
        size_t length = MIN(n - done, sizeof(text));
        int error = user_copy(text, (const uint8_t *)buf + done, length);

        if (error == 0) {
            length = console_line(text, length);
            error = show(text, length);
        }
        if (error != 0)
            return done > 0 ? (ssize_t)done : error;
        done += length;
    }
    return (ssize_t)done;
}

const struct file_ops tty_ops = {tty_read, tty_write, file_free, NULL};

/* ---- modes -------------------------------------------------------------- */

int tty_set_mode(int mode)
{
    int before;

    if (mode != TTY_COOKED && mode != TTY_RAW)
        return -EINVAL;
    mutex_lock(&line_mutex);
    before = line.tty_raw ? TTY_RAW : TTY_COOKED;
    tty_line_clear(&line);
    line.tty_raw = mode == TTY_RAW;
    mutex_unlock(&line_mutex);
    return before;
}

static void set_foreground(pid_t group)
{
    spin_lock(&console_lock);
    foreground = group;
    spin_unlock(&console_lock);
}

int tty_set_group(pid_t group)
{
    int error = group > 0 ? task_kill(task_self(), -group, 0) : 0;

    if (group < 0)
        return -EINVAL;
    if (error != 0)
        return error;
    set_foreground(group);
    if (group > 0 && programs_own())
        interrupt_early();
    return 0;
}

/* ---- ownership ---------------------------------------------------------- */

static bool runs(pid_t pid)
{
    const struct task *t = task_find(pid);

    spin_assert_held(&sched_lock);
    return t != NULL && t->task_state != TASK_ZOMBIE;
}

int tty_continue(pid_t pid, int *status)
{
    pid_t ended;

    spin_lock(&console_lock);
    shell = task_self();
    programs = true;
    spin_unlock(&console_lock);
    interrupt_early();
    eventcount_advance(&turn);
    spin_lock(&sched_lock);
    while (programs && runs(pid))
        wait_queue_block(&shell->task_exited, false, 0);
    spin_unlock(&sched_lock);
    spin_lock(&console_lock);
    programs = false;
    spin_unlock(&console_lock);
    ended = task_wait(pid, status, WNOHANG);
    if (ended == 0)
        return -EINTR;
    return ended < 0 ? ended : 0;
}

int tty_foreground(pid_t pid, int *status)
{
    tty_set_mode(TTY_COOKED);
    set_foreground(pid);
    return tty_continue(pid, status);
}

void tty_init(void)
{
    mutex_init(&line_mutex, "console-line", MUTEX_RANK_CONSOLE);
}
