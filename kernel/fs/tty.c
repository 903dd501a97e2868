/*
 * The console for programs: its ownership, reading and writing.
 *
 * Ownership of the console changes in interrupts (Ctrl-\) and is therefore
 * tested with interrupts disabled, so that a test and the wait that follows are
 * one step, as in drivers/console.c. A mutex guards the line being typed. It is
 * not held while a task waits for a key, so several may wait, and each can be
 * killed.
 */
#include "kernel/fs/tty.h"
#include "drivers/console.h"
#include "kernel/abi/errno.h"
#include "kernel/vm/user.h"

#define CTRL_C         0x03
#define CTRL_BACKSLASH 0x1c
#define WRITE_MAX      256u /* bytes written in one piece */

static struct wait_queue input = WAIT_QUEUE_INIT(input, "console-input");
static struct wait_queue turn = WAIT_QUEUE_INIT(turn, "console");

/* Used with interrupts disabled. */
static bool programs;      /* programs own the console, not the shell */
static struct task *shell; /* waits until programs release the console */
static pid_t foreground;   /* the group that ^C ends, or 0 */
static bool interrupted;   /* after ^C: drop what was typed before */

static struct mutex line_mutex;
static struct tty_line line = {.tty_echo = console_echo};

/* ---- waiting ------------------------------------------------------------ */

static int block(struct wait_queue *q, bool interruptible)
{
    int result;

    spin_lock(&sched_lock);
    result = wait_queue_block(q, interruptible, 0);
    spin_unlock(&sched_lock);
    return result;
}

void tty_wait(void)
{
    block(&input, false);
}

void tty_wake(void)
{
    if (!list_empty(&input.wait_tasks))
        wait_queue_wake(&input, UINT32_MAX);
}

/* Waits until a program has a key. 0 or -EINTR. */
static int wait_for_key(void)
{
    uint32_t flags = irq_save();
    int error = 0;

    while (error == 0 && !(programs && console_key_pending()))
        error = block(programs ? &input : &turn, true);
    irq_restore(flags);
    return error;
}

/* ---- signal keys -------------------------------------------------------- */

/* Returns the console to the shell and wakes it from its wait for the child. */
static void stop(void)
{
    spin_lock(&sched_lock);
    programs = false;
    wait_queue_wake_locked(&shell->task_exited, UINT32_MAX);
    spin_unlock(&sched_lock);
}

bool tty_signal_key(int key)
{
    if (!programs)
        return false;
    if (key == CTRL_BACKSLASH) {
        stop();
        return true;
    }
    if (key != CTRL_C || foreground == 0 || task_kill(-foreground, SIGINT) != 0)
        return false;
    interrupted = true;
    console_write("^C\n", 3);
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
    tty_signal_key(CTRL_C);
}

/* ---- reading and writing ------------------------------------------------ */

/* ^C and ^\ typed before a program owned the console act now. */
static int program_key(void)
{
    uint32_t flags = irq_save();
    int key = programs ? console_trykey() : KEY_NONE;

    if ((key == CTRL_C || key == CTRL_BACKSLASH) && tty_signal_key(key))
        key = KEY_NONE;
    irq_restore(flags);
    return key;
}

/* Collects typed keys up to the end of a line. The mutex is held. */
static void gather(void)
{
    int key;

    mutex_assert_held(&line_mutex);
    if (interrupted) {
        interrupted = false;
        tty_line_clear(&line);
    }
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
    uint32_t flags = irq_save();
    int error = 0;

    while (error == 0 && !programs)
        error = block(&turn, true);
    if (task_self()->task_pending & PENDING_KILL)
        error = -EINTR;
    if (error == 0)
        console_write(text, n);
    irq_restore(flags);
    return error;
}

static ssize_t tty_write(struct file *f UNUSED, const void *buf, size_t n)
{
    char text[WRITE_MAX];
    size_t done = 0;

    while (done < n) {
        size_t chunk = MIN(n - done, sizeof(text));
        int error = user_copy(text, (const uint8_t *)buf + done, chunk);

        if (error == 0)
            error = show(text, chunk);
        if (error != 0)
            return done > 0 ? (ssize_t)done : error;
        done += chunk;
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

int tty_set_group(pid_t group)
{
    if (group < 0)
        return -EINVAL;
    if (group > 0 && task_kill(-group, 0) == -ESRCH)
        return -ESRCH;
    foreground = group;
    if (programs && group > 0)
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

    shell = task_self();
    programs = true;
    interrupt_early();
    spin_lock(&sched_lock);
    wait_queue_wake_locked(&turn, UINT32_MAX);
    while (programs && runs(pid))
        wait_queue_block(&shell->task_exited, false, 0);
    programs = false;
    spin_unlock(&sched_lock);
    ended = task_wait(pid, status, WNOHANG);
    if (ended == 0)
        return -EINTR;
    return ended < 0 ? ended : 0;
}

int tty_foreground(pid_t pid, int *status)
{
    tty_set_mode(TTY_COOKED);
    foreground = pid;
    return tty_continue(pid, status);
}

void tty_init(void)
{
    mutex_init(&line_mutex, "console-line", MUTEX_RANK_CONSOLE);
}
