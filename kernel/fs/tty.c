/*
 * The console for programs: its ownership, reading and writing.
 *
 * Ownership of the console changes in interrupts (Ctrl-\), under console_lock.
 * A task reads an eventcount, tests the ownership or looks for a key, and waits
 * for the eventcount to advance, so no event in between is lost. A mutex guards
 * the line being typed. It is not held while a task waits for a key, so several
 * may wait, and each can be killed.
 *
 * Only the foreground group reads, and only tasks of its session change the
 * mode and the group. Others wait until it is their turn, where POSIX stops
 * them (SIGTTIN, SIGTTOU).
 */
#include "kernel/fs/tty.h"
#include "drivers/console.h"
#include "kernel/abi/errno.h"
#include "kernel/object/session.h"
#include "kernel/vm/user.h"

#define CTRL_C         0x03
#define CTRL_R         0x12
#define CTRL_BACKSLASH 0x1c

/* A key has arrived; programs, or others of them, have got the console. */
static struct eventcount input = EVENTCOUNT_INIT(input, "console-input");
static struct eventcount turn = EVENTCOUNT_INIT(turn, "console");

/* Guarded by console_lock. */
static bool programs;      /* programs own the console, not the shell */
static struct task *shell; /* waits until programs release the console */
static bool restarted;     /* drop what was typed of a line before */
static bool reprint;       /* a raw reader's next key is ^R: the screen has
                              changed since it last had the console */
static struct {
    uint32_t front_session; /* 0: of init, which enters none */
    pid_t front_group;      /* reads */
    bool front_signals;     /* ^C ends the group; else it is a key */
    bool front_raw;
} front = {.front_session = 1};

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

/* Whether the caller may read. */
static bool in_front(void)
{
    spin_assert_held(&console_lock);
    return programs && front.front_group == task_self()->task_group;
}

/* Whether the caller may change the mode and the group. A program may run on
 * another processor before tty_foreground has set its mode and group: it waits
 * until then. Tasks outside sessions, such as init, always may. */
static bool may_change(void)
{
    uint32_t session = session_number(session_self());

    spin_assert_held(&console_lock);
    return session == 0 || (programs && session == front.front_session);
}

static bool programs_own(void)
{
    spin_assert_held(&console_lock);
    return programs;
}

/* Waits until `turn_has_come`: 0 with console_lock held, or -EINTR: the caller
 * has been killed. */
static int lock_in_turn(bool (*turn_has_come)(void))
{
    uint32_t seen = eventcount_read(&turn);
    int error = 0;

    spin_lock(&console_lock);
    while (error == 0 && !turn_has_come()) {
        spin_unlock(&console_lock);
        error = eventcount_wait(&turn, seen, true);
        seen = eventcount_read(&turn);
        spin_lock(&console_lock);
    }
    if (task_killed())
        error = -EINTR;
    if (error != 0)
        spin_unlock(&console_lock);
    return error;
}

/* Waits until the caller may read a key, and there is one. 0 or -EINTR. */
static int wait_for_key(void)
{
    for (;;) {
        uint32_t seen = eventcount_read(&input);
        int error = lock_in_turn(in_front);
        bool ready;

        if (error != 0)
            return error;
        ready = reprint;
        spin_unlock(&console_lock);
        if (ready || console_key_pending())
            return 0;
        console_report_wait("program");
        error = eventcount_wait(&input, seen, true);
        if (error != 0)
            return error;
    }
}

/* ---- signal keys -------------------------------------------------------- */

/* ^\ returns the console to the shell and wakes it from its wait for the child,
 * for which it tests `programs` under sched_lock. */
bool tty_signal_key(int key)
{
    spin_assert_held(&console_lock);
    if (!programs)
        return false;
    if (key == CTRL_BACKSLASH) {
        spin_lock(&sched_lock);
        programs = false;
        wait_queue_wake_locked(&shell->task_exited);
        spin_unlock(&sched_lock);
        return true;
    }
    if (key != CTRL_C || !front.front_signals ||
        task_kill(NULL, -front.front_group, SIGINT) != 0)
        return false;
    restarted = true;
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

/* A key for the caller, if it may read one. ^C and ^\ typed before a program
 * owned the console act now. */
static int program_key(void)
{
    int key = KEY_NONE;

    spin_lock(&console_lock);
    if (in_front())
        key = reprint ? CTRL_R : console_trykey_locked();
    reprint = reprint && key != CTRL_R;
    if ((key == CTRL_C || key == CTRL_BACKSLASH) && tty_signal_key(key))
        key = KEY_NONE;
    spin_unlock(&console_lock);
    return key;
}

/* Collects typed keys up to the end of a line, which is in the mode of now, and
 * begins anew after ^C or another mode. Whether there is a line for the
 * caller. */
static bool gather_line(void)
{
    bool may;
    int key;

    mutex_assert_held(&line_mutex);
    spin_lock(&console_lock);
    may = in_front();
    if (restarted)
        tty_line_clear(&line);
    restarted = false;
    line.tty_raw = front.front_raw;
    spin_unlock(&console_lock);
    if (!may)
        return false;
    while (!line.tty_done && (key = program_key()) != KEY_NONE) {
        tty_line_key(&line, key);
        if (line.tty_done && !line.tty_raw)
            console_record(line.tty_text, line.tty_len);
    }
    return line.tty_done;
}

static ssize_t tty_read(struct file *f UNUSED, void *buf, size_t n)
{
    ssize_t result = 0;

    while (n > 0) {
        bool done;

        mutex_lock(&line_mutex);
        done = gather_line();
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

/* Writes each line once programs own the console. */
static ssize_t tty_write(struct file *f UNUSED, const void *buf, size_t n)
{
    char text[CONSOLE_LINE];
    size_t done = 0;

    while (done < n) {
        size_t length = MIN(n - done, sizeof(text));
        int error = user_copy(text, (const uint8_t *)buf + done, length);

        if (error == 0)
            error = lock_in_turn(programs_own);
        if (error != 0)
            return done > 0 ? (ssize_t)done : error;
        length = console_line(text, length);
        console_write_locked(text, length);
        spin_unlock(&console_lock);
        done += length;
    }
    return (ssize_t)done;
}

const struct file_ops tty_ops = {tty_read, tty_write, file_free, NULL};

/* ---- modes -------------------------------------------------------------- */

int tty_set_mode(int mode)
{
    int before, error;

    if (mode != TTY_COOKED && mode != TTY_RAW)
        return -EINVAL;
    error = lock_in_turn(may_change);
    if (error != 0)
        return error;
    before = front.front_raw ? TTY_RAW : TTY_COOKED;
    front.front_raw = mode == TTY_RAW;
    reprint = false;
    restarted = true;
    spin_unlock(&console_lock);
    return before;
}

int tty_set_group(pid_t group)
{
    int error = group > 0 ? task_kill(task_self(), -group, 0) : 0;
    bool own;

    if (group < 0)
        return -EINVAL;
    if (error == 0)
        error = lock_in_turn(may_change);
    if (error != 0)
        return error;
    front.front_group = group > 0 ? group : task_self()->task_group;
    front.front_signals = group > 0;
    own = programs;
    spin_unlock(&console_lock);
    eventcount_advance(&turn);
    if (group > 0 && own)
        interrupt_early();
    return 0;
}

void tty_group_changed(void)
{
    eventcount_advance(&turn);
}

void tty_enter_session(void)
{
    const struct task *self = task_self();

    spin_lock(&console_lock);
    if (front.front_session == 0 && front.front_group == self->task_group)
        front.front_session = session_number(self->task_session);
    spin_unlock(&console_lock);
}

/* ---- ownership ---------------------------------------------------------- */

int tty_continue(pid_t pid, int *status)
{
    const struct task *t;
    pid_t ended;

    spin_lock(&console_lock);
    shell = task_self();
    programs = true;
    reprint = front.front_raw;
    spin_unlock(&console_lock);
    interrupt_early();
    eventcount_advance(&turn);
    eventcount_advance(&input);
    spin_lock(&sched_lock);
    while (programs && (t = task_find(pid)) != NULL &&
           t->task_state != TASK_ZOMBIE)
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
    uint32_t session = session_of(pid);

    mutex_lock(&line_mutex);
    tty_line_drop(&line);
    spin_lock(&console_lock);
    front.front_session = session;
    front.front_group = pid;
    front.front_signals = true;
    front.front_raw = false;
    spin_unlock(&console_lock);
    mutex_unlock(&line_mutex);
    return tty_continue(pid, status);
}

void tty_init(void)
{
    mutex_init(&line_mutex, "console-line", MUTEX_RANK_CONSOLE);
}
