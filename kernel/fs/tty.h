/*
 * The console for programs: /dev/console.
 *
 * Either the kernel shell or programs own the console. While the shell owns it,
 * programs that read or write it wait. While programs own it, it belongs to one
 * session: its foreground group reads, and its tasks choose the mode and the
 * group. Other tasks that try to wait.
 *
 *     kernel shell                              programs
 *       tty_foreground(pid) ───────────────────>  read, write
 *       … blocked …                               ^C: SIGINT to the group
 *       <─────────────────── pid ended, or ^\ ──  (wait from now on)
 *       tty_continue(pid) ─────────────────────>  read, write
 */
#pragma once

#include "kernel/fs/file.h"

/* ---- input -------------------------------------------------------------- */

#define TTY_LINE_MAX 1024 /* characters of a line, with its newline */

/*
 * A line being typed: a state machine that needs no console. In cooked mode
 * Enter or ^D finishes it, backspace, ^W and ^U edit it, and ^C restarts it; in
 * raw mode every key finishes it (kernel/abi/types.h).
 */
struct tty_line {
    void (*tty_echo)(const char *s, size_t n);
    uint32_t tty_len;
    uint32_t tty_taken; /* of a finished line: read so far */
    bool tty_done;      /* finished; 0 characters: end of file */
    bool tty_raw;
    char tty_text[TTY_LINE_MAX];
};

/* Processes a key (drivers/console.h). Not allowed while a finished line is not
 * completely read. */
void tty_line_key(struct tty_line *l, int key);

/* Reads up to `n` characters of a finished line; a new line begins after the
 * last. Returns bytes, or -EFAULT: nothing was read. `buf` as for user_copy. */
ssize_t tty_line_take(struct tty_line *l, void *buf, size_t n);

/* Drops what was typed of an unfinished line; the line, finished or not. */
void tty_line_clear(struct tty_line *l);
void tty_line_drop(struct tty_line *l);

/* ---- for the kernel shell ----------------------------------------------- */

/*
 * Gives the console to the session of its child `pid`, cooked, with the group
 * `pid` in the foreground, and blocks the caller until that child has ended (0
 * and *status, as task_wait) or Ctrl-\ was typed (-EINTR). Then the shell owns
 * the console again. -ECHILD: no such child.
 */
int tty_foreground(pid_t pid, int *status);

/* The same, but keeps the mode and group that programs set. In raw mode the
 * next key that is read is ^R: print the line again. */
int tty_continue(pid_t pid, int *status);

/* ---- for system calls --------------------------------------------------- */

extern const struct file_ops tty_ops;

static inline bool tty_is(const struct file *f)
{
    return f->file_ops == &tty_ops;
}

/* The next two functions wait while the shell or another session has the
 * console; -EINTR: the caller was killed meanwhile. */

/* Sets TTY_COOKED or TTY_RAW and drops an unfinished line. Returns the mode
 * before, or -EINVAL. */
int tty_set_mode(int mode);

/* Sets the foreground group, which reads and which ^C kills. 0: the caller's,
 * for which ^C is an ordinary key, as it is if the group no longer exists.
 * -ESRCH: no such group; -EPERM: none that the caller may signal. */
int tty_set_group(pid_t group);

/* Called after a task has joined a group, which may be the foreground group. */
void tty_group_changed(void);

/* The caller has entered a new session: if init had started it in the
 * foreground, the console is that session's. */
void tty_enter_session(void);

/* ---- for boot and the console ------------------------------------------- */

void tty_init(void);

/* Hooks of drivers/console.h, which does not know tasks: wait for a key; wake
 * the waiters; act at once on ^C and ^\. The last two are called with
 * console_lock held. */
int tty_getkey(void);
void tty_wake(void);
bool tty_signal_key(int key);
