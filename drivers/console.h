/*
 * The console: one stream of text in and out, on the serial line and on VGA and
 * PS/2 at once. Keys from either reach the reader; output appears on both and
 * in the ring for `dmesg`. kprintf (kernel/lib/printf.h) prints to it.
 */
#pragma once

#include "kernel/lib/key.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/types.h"
#include "kernel/x86/spinlock.h"

/* Guards the console and its devices: serial line, display, keyboard; and to
 * whom it belongs (kernel/fs/tty.c). Its holder prints only by
 * console_write_locked. */
extern struct spinlock console_lock;

/* Initializes serial line, VGA and ring: output works from here on, polled.
 * Needs neither interrupts nor memory allocation. */
void console_init(void);

/* Switches from polling to interrupts. After the PIC and IDT are ready. */
void console_enable_interrupts(void);

/* Returns to polling for good, in a panic. Interrupts are disabled, but for the
 * halts of console_getkey. */
void console_panic_mode(void);

void console_write(const char *s, size_t n);
void console_putc(char c);

/* Writes a line, or a piece of one (console_line), never through a pager. The
 * caller holds console_lock. */
void console_write_locked(const char *s, size_t n);

/* How many of n characters may be written in one hold of console_lock: to the
 * end of the line, and at most CONSOLE_LINE. So lines of several processors do
 * not mix, and interrupts are not disabled for long. */
#define CONSOLE_LINE 80u
size_t console_line(const char *s, size_t n);

/* The two halves of console_write: show without recording (drawing of a line
 * editor, dmesg), and record without showing. */
void console_echo(const char *s, size_t n);
void console_record(const char *s, size_t n);

/* The outputs that are terminals, at which a person sits: these show colours,
 * and commands typed there print a page at a time. The serial line is one only
 * if an option says so: it may lead into a file or to a tool. */
enum console_terminals {
    CONSOLE_NO_TERMINAL,
    CONSOLE_VGA,
    CONSOLE_VGA_AND_SERIAL,
};

void console_set_terminals(enum console_terminals which);

/* Whether the last key came from a terminal. */
bool console_at_terminal(void);

/* The colour of the text that follows, on terminals; nothing is recorded. The
 * numbers are those of ECMA-48's SGR; its blue is too dark to read. */
enum console_colour {
    CONSOLE_PLAIN = 0,
    CONSOLE_RED = 31,
    CONSOLE_GREEN = 32,
    CONSOLE_YELLOW = 33,
    CONSOLE_MAGENTA = 35,
    CONSOLE_CYAN = 36,
};

void console_colour(enum console_colour colour);

/* Sets a function that console_write calls with its text, or NULL. It returns
 * true if it has shown the text itself, or has dropped it. Not used after
 * console_panic_mode. */
void console_set_pager(bool (*pager)(const char *s, size_t n));

/* From now on all text goes to `sink` alone, and no key is read: for a call of
 * a debugger (kernel/shell/report.c), which puts back what was before. */
void console_divert(void (*sink)(const char *s, size_t n));

/* The next key: 1 to 255 or enum console_key. Halts the processor while it
 * waits; only polls where no interrupt would end the halt. */
int console_getkey(void);

/* The same without waiting: KEY_NONE if there is none. The caller of
 * console_trykey_locked holds console_lock. */
int console_trykey(void);
int console_trykey_locked(void);

/* Whether a key is waiting to be read. */
bool console_key_pending(void);

/* Reports on the debug port that `reader` is about to wait for a key, unless
 * one is pending, and the bytes of the serial line up to now. A tool that has
 * typed so many and read so many has all output that comes before the key. */
void console_report_wait(const char *reader);

/* Before console_enable_interrupts: sets the function that is console_getkey
 * from then on, and one that is called, with console_lock held, when a key has
 * arrived. Not used after console_panic_mode. */
void console_set_getkey(int (*getkey)(void), void (*wake)(void));

/* `signal_hook` gets ^C and ^\ as they arrive, with console_lock held. If it
 * returns true, they and all unread keys are dropped. Not used after
 * console_panic_mode. */
void console_set_signal_hook(bool (*signal_hook)(int key));

/* Whether ^C is among the unread keys; does not remove it. */
bool console_interrupt_pending(void);

/* Waits until all output has left the serial line. */
void console_drain(void);

/* Copies up to `n` characters of the ring of all output, oldest first, from
 * character number *at on, or from the oldest that is left. Sets *at to the
 * number of the next character. Returns how many were copied. */
size_t console_history(uint32_t *at, char *buf, size_t n);
