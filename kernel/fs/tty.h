/*
 * The console as programs have it: /dev/console.
 *
 * The console belongs either to the kernel's shell or to programs. While it is
 * the shell's, programs that read or write it wait, so that what they have to
 * say is held back until they get it again.
 *
 *     kernel shell                              programs
 *       tty_foreground(pid) ───────────────────>  read, write
 *       … blocked …                               ^C: SIGINT to the group
 *       <─────────────────── pid ended, or ^\ ──  (wait from now on)
 *       tty_continue(pid) ─────────────────────>  read, write
 */
#pragma once

#include "kernel/fs/file.h"

/* ---- what is typed ------------------------------------------------------ */

#define TTY_LINE_MAX 1024 /* characters of a line, with its end */

/*
 * A line in the making, as a state machine without a console. In cooked mode
 * it is finished by Enter or ^D, edited by backspace, ^W and ^U, and begun
 * anew by ^C; in raw mode every key finishes it (kernel/abi/types.h).
 */
struct tty_line {
    void (*tty_echo)(const char *s, size_t n);
    uint32_t tty_len;
    uint32_t tty_taken; /* of a finished line: already read */
    bool tty_done;      /* finished; 0 characters mean end of file */
    bool tty_raw;
    char tty_text[TTY_LINE_MAX];
};

/* Takes in a key (drivers/console.h). Not while a line is finished and not
 * wholly read. */
void tty_line_key(struct tty_line *l, int key);

/* Hands out up to `n` characters of a finished line; after the last it begins
 * anew. Bytes, or -EFAULT: nothing was taken. `buf` as for user_copy. */
ssize_t tty_line_take(struct tty_line *l, void *buf, size_t n);

/* Forgets what has been typed of a line that is not finished. */
void tty_line_clear(struct tty_line *l);

/* ---- for the kernel's shell --------------------------------------------- */

/*
 * Gives the console to programs, cooked, with ^C meant for the group `pid`,
 * and blocks the caller until its child `pid` has ended (0 and *status, as
 * task_wait), or Ctrl-\ was typed (-EINTR). Either way the console is the
 * shell's again. -ECHILD: no such child.
 */
int tty_foreground(pid_t pid, int *status);

/* The same with mode and group as the programs left them. */
int tty_continue(pid_t pid, int *status);

/* ---- for system calls --------------------------------------------------- */

extern const struct file_ops tty_ops;

static inline bool tty_is(const struct file *f)
{
    return f->file_ops == &tty_ops;
}

/* TTY_COOKED or TTY_RAW. Returns the mode before, or -EINVAL. What has been
 * typed of an unfinished line is dropped. */
int tty_set_mode(int mode);

/* The group that ^C ends from now on. 0: none; then ^C is a key like others,
 * as it is where all of the group have gone. -ESRCH: there is no such group. */
int tty_set_group(pid_t group);

/* ---- for boot and the console ------------------------------------------- */

void tty_init(void);

/* Hooks of drivers/console.h, which may not know of tasks: to wait for a key,
 * with interrupts disabled, `ms` at most (0: no limit); to wake who does; and
 * what to do at once with ^C and ^\. */
void tty_wait(uint32_t ms);
void tty_wake(void);
bool tty_signal_key(int key);
