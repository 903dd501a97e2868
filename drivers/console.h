/*
 * The console: one stream of text in and out, on the serial line and on the
 * VGA/PS2 pair at once. What is typed on either reaches the reader; what is
 * printed appears on both and in the ring that `dmesg` shows.
 */
#pragma once

#include <stdarg.h>

#include "kernel/lib/key.h"
#include "kernel/lib/types.h"

/* Brings up serial, VGA and the ring: output works from here on, polled.
 * Needs no interrupts and no memory allocation. */
void console_init(void);

/* From polled to interrupt-driven; after the PIC and IDT are ready. */
void console_enable_interrupts(void);

/* Back to polling for good: a panic. Interrupts stay masked. */
void console_panic_mode(void);

void console_write(const char *s, size_t n);
void console_putc(char c);

/* The two halves of console_write: show without recording in the ring (what a
 * line editor draws, or dmesg itself), and record without showing. */
void console_echo(const char *s, size_t n);
void console_record(const char *s, size_t n);

/* Formatted printing to the console; \n becomes CR LF on the serial line.
 * Callable anywhere, interrupts and panics included. One call prints at most
 * 511 characters; longer text ends in dots. */
void kprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);
void kvprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0);

/* The next key: 1 … 255 or enum console_key. Waits with the processor halted
 * (polls after console_panic_mode). */
int console_getkey(void);

/* The same without waiting: KEY_NONE if none is there. */
int console_trykey(void);

/* True if a key waits to be read. */
bool console_key_pending(void);

/* Waits until one does, at most `ms` milliseconds: what console_key_pending
 * says then. Does not wait after console_panic_mode: the clock stands still. */
bool console_wait_key(uint32_t ms);

/* With tasks, waiting for a key becomes somebody else's business:
 * `wait` is called with interrupts disabled, as they must be when it returns,
 * which is after `ms` milliseconds at the latest (0: no limit), and the caller
 * looks again; when a key has arrived `wake` is called, with interrupts
 * disabled. Neither is used after console_panic_mode. */
void console_set_wait(void (*wait)(uint32_t ms), void (*wake)(void));

/* `signal_hook` is shown ^C and ^\ as they arrive, with interrupts disabled,
 * before anybody can read them. If it returns true they are used up, and with
 * them all keys that nobody has read. Not after console_panic_mode. */
void console_set_signal_hook(bool (*signal_hook)(int key));

/* True if ^C is among the keys not yet read; leaves them in place. */
bool console_interrupt_pending(void);

/* Waits until all output has left the serial line. */
void console_drain(void);

/* Clears the VGA screen and asks the serial terminal to do so. */
void console_clear(void);

/* Shows an empty screen without a cursor, for a display that changes in place;
 * then again what was there before. A panic does the latter by itself. */
void console_display_begin(void);
void console_display_end(void);

/* The ring of everything printed, oldest first: copies up to `n` characters
 * from `offset` on. Returns how many. */
size_t console_history(size_t offset, char *buf, size_t n);
