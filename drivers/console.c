/*
 * Two consoles as one: output goes to the serial line, the display and the ring
 * for `dmesg`; keys from the serial line and the keyboard go into one ring.
 *
 *     console_write -+-> serial_write          serial_receive -> ansi ---+
 *                    +-> vga_write                                       |
 *                    +-> history               kbd_receive -> scancode --+
 *                                                                        v
 *     console_getkey <------------------------------------------------ input
 *
 * console_lock guards the state and the devices. Until interrupts are enabled,
 * and again in a panic, the task that reads a key polls the devices. In a panic
 * it halts in between, and any interrupt ends the halt.
 */
#include "drivers/console.h"
#include "drivers/ansi.h"
#include "drivers/debugcon.h"
#include "drivers/kbd.h"
#include "drivers/pit.h"
#include "drivers/serial.h"
#include "drivers/vga.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"

#define HISTORY_SIZE   16384u /* powers of two */
#define INPUT_SIZE     1024u
#define PRINTF_MAX     512
#define CTRL_C         0x03
#define CTRL_BACKSLASH 0x1c

struct spinlock console_lock = SPINLOCK_INIT("console", LOCK_RANK_CONSOLE);

static struct {
    bool interrupts; /* input arrives by itself */
    bool halts;      /* in a panic: it did */
    uint32_t ticks;  /* in a panic: interrupts of the clock before it */
    bool keyboard;   /* the last key came from it, not from the line */
    enum console_terminals terminals;
    bool (*pager)(const char *s, size_t n); /* or NULL */
    void (*sink)(const char *s, size_t n);  /* of a debugger, or NULL */
    uint32_t input_head;                    /* keys ever inserted */
    uint32_t input_tail;                    /* keys ever removed */
    uint32_t input_ctrl_c;                  /* keys between them that are ^C */
    int16_t input[INPUT_SIZE];
    struct ansi_decoder ansi;
    int (*getkey)(void); /* the hooks */
    void (*wake)(void);
    bool (*signal_hook)(int key);
    uint32_t history_end; /* characters ever recorded */
    char history[HISTORY_SIZE];
} console = {.terminals = CONSOLE_VGA};

/* ---- input -------------------------------------------------------------- */

static bool input_ready(void)
{
    return console.input_head - console.input_tail < INPUT_SIZE;
}

static void input_clear(void)
{
    console.input_tail = console.input_head;
    console.input_ctrl_c = 0;
}

/* A signal key may act at once. A full ring means that no task reads: the
 * keyboard's ^C must then still get through. (The serial line waits, so that
 * what is sent to a busy machine is not lost.) */
static void input_put(int key)
{
    bool signal = key == CTRL_C || key == CTRL_BACKSLASH;

    if (signal && console.interrupts && console.signal_hook &&
        console.signal_hook(key)) {
        input_clear();
        return;
    }
    if (key == CTRL_C && !input_ready())
        input_clear();
    if (input_ready()) {
        console.input[console.input_head++ % INPUT_SIZE] = (int16_t)key;
        console.input_ctrl_c += key == CTRL_C;
    }
    if (console.interrupts)
        console.wake();
}

static void serial_byte(uint8_t byte)
{
    int key = ansi_decode(&console.ansi, byte);

    console.keyboard = false;
    if (key != KEY_NONE)
        input_put(key);
}

/* A serial terminal scrolls back by itself; the display does not. */
static void keyboard_key(int key)
{
    console.keyboard = true;
    if (key == KEY_PAGE_UP)
        vga_look(1);
    else if (key == KEY_PAGE_DOWN)
        vga_look(-1);
    else
        input_put(key);
}

/* Also called while interrupts deliver input: fetches what waited for room. */
static void poll(void)
{
    serial_receive();
    kbd_receive();
}

int console_trykey_locked(void)
{
    int key;

    spin_assert_held(&console_lock);
    poll();
    if (console.input_head == console.input_tail)
        return KEY_NONE;
    key = console.input[console.input_tail++ % INPUT_SIZE];
    console.input_ctrl_c -= key == CTRL_C;
    return key;
}

int console_trykey(void)
{
    int key;

    spin_lock(&console_lock);
    key = console_trykey_locked();
    spin_unlock(&console_lock);
    return key;
}

/* Between two polls. In a panic, interrupts were disabled, perhaps for ever, or
 * this processor gets none: it halts only after the clock has interrupted. */
static void rest(void)
{
    if (!console.halts) {
        cpu_relax();
        return;
    }
    if (timer_interrupts() != console.ticks) {
        cpu_wait_interrupt();
    } else {
        irq_enable();
        cpu_relax();
    }
    irq_disable();
}

int console_getkey(void)
{
    int key;

    if (console.interrupts)
        return console.getkey();
    while ((key = console_trykey()) == KEY_NONE)
        rest();
    return key;
}

bool console_key_pending(void)
{
    bool pending;

    spin_lock(&console_lock);
    pending = console.input_head != console.input_tail;
    spin_unlock(&console_lock);
    return pending;
}

void console_report_wait(const char *reader)
{
    struct serial_count count;
    bool pending;

    spin_lock(&console_lock);
    pending = console.input_head != console.input_tail;
    count = serial_count();
    spin_unlock(&console_lock);
    if (!pending)
        debugcon_event("{\"event\":\"waits\",\"reader\":\"%s\",\"read\":%u,"
                       "\"written\":%u}",
                       reader, (unsigned)count.count_read,
                       (unsigned)count.count_written);
}

void console_set_getkey(int (*getkey)(void), void (*wake)(void))
{
    console.getkey = getkey;
    console.wake = wake;
}

void console_set_signal_hook(bool (*signal_hook)(int key))
{
    console.signal_hook = signal_hook;
}

bool console_interrupt_pending(void)
{
    bool pending;

    spin_lock(&console_lock);
    if (!console.interrupts)
        poll();
    pending = console.input_ctrl_c > 0;
    spin_unlock(&console_lock);
    return pending;
}

/* ---- output ------------------------------------------------------------- */

static void record_text(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        console.history[console.history_end++ % HISTORY_SIZE] = s[i];
}

static void console_show(const char *s, size_t n)
{
    if (console.sink) {
        console.sink(s, n);
        return;
    }
    serial_write(s, n);
    vga_write(s, n);
}

void console_write_locked(const char *s, size_t n)
{
    spin_assert_held(&console_lock);
    record_text(s, n);
    console_show(s, n);
}

size_t console_line(const char *s, size_t n)
{
    size_t length = 0;

    while (length < MIN(n, CONSOLE_LINE))
        if (s[length++] == '\n')
            break;
    return length;
}

static void in_lines(void (*write)(const char *s, size_t n), const char *s,
                     size_t n)
{
    while (n > 0) {
        size_t length = console_line(s, n);

        spin_lock(&console_lock);
        write(s, length);
        spin_unlock(&console_lock);
        s += length;
        n -= length;
    }
}

void console_record(const char *s, size_t n)
{
    in_lines(record_text, s, n);
}

void console_echo(const char *s, size_t n)
{
    in_lines(console_show, s, n);
}

void console_write(const char *s, size_t n)
{
    bool (*pager)(const char *s, size_t n) = console.pager;

    if (!pager || !pager(s, n))
        in_lines(console_write_locked, s, n);
}

void console_putc(char c)
{
    console_write(&c, 1);
}

void kvprintf(const char *fmt, va_list ap)
{
    char text[PRINTF_MAX];
    int n = vsnprintf(text, sizeof(text), fmt, ap);

    if ((size_t)n >= sizeof(text)) {
        n = sizeof(text) - 1;
        memcpy(text + n - 4, "...\n", 4);
    }
    console_write(text, (size_t)n);
}

void kprintf(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    kvprintf(fmt, ap);
    va_end(ap);
}

/* ---- terminals ---------------------------------------------------------- */

void console_set_terminals(enum console_terminals which)
{
    console_colour(CONSOLE_PLAIN);
    console.terminals = which;
}

bool console_at_terminal(void)
{
    return console.keyboard ? console.terminals != CONSOLE_NO_TERMINAL
                            : console.terminals == CONSOLE_VGA_AND_SERIAL;
}

void console_colour(enum console_colour colour)
{
    char text[12];
    size_t n = (size_t)snprintf(text, sizeof(text), "\033[0;%dm", (int)colour);

    spin_lock(&console_lock);
    if (console.terminals != CONSOLE_NO_TERMINAL)
        vga_write(text, n);
    if (console.terminals == CONSOLE_VGA_AND_SERIAL)
        serial_write(text, n);
    spin_unlock(&console_lock);
}

void console_set_pager(bool (*pager)(const char *s, size_t n))
{
    console.pager = pager;
}

void console_drain(void)
{
    spin_lock(&console_lock);
    serial_drain();
    spin_unlock(&console_lock);
}

size_t console_history(uint32_t *at, char *buf, size_t n)
{
    uint32_t end;

    spin_lock(&console_lock);
    end = console.history_end;
    *at = MAX(*at, end - MIN(end, HISTORY_SIZE));
    n = MIN(n, end - *at);
    for (size_t i = 0; i < n; i++)
        buf[i] = console.history[(*at)++ % HISTORY_SIZE];
    spin_unlock(&console_lock);
    return n;
}

/* ---- modes -------------------------------------------------------------- */

void console_init(void)
{
    serial_set_sink(input_ready, serial_byte);
    kbd_set_sink(keyboard_key);
    serial_init();
    vga_init();
    kbd_init();
}

void console_enable_interrupts(void)
{
    spin_lock(&console_lock);
    console.interrupts = true;
    serial_enable_interrupts();
    kbd_enable_interrupts();
    poll(); /* a byte that is already there raises no interrupt edge */
    spin_unlock(&console_lock);
}

void console_divert(void (*sink)(const char *s, size_t n))
{
    console.interrupts = true;
    console.input_ctrl_c = 0;
    console.terminals = CONSOLE_NO_TERMINAL;
    console.pager = NULL;
    console.sink = sink;
}

void console_panic_mode(void)
{
    irq_disable();
    console.halts = console.halts || console.interrupts;
    console.ticks = timer_interrupts();
    console.interrupts = false;
    console.pager = NULL;
    serial_disable_interrupts();
}
