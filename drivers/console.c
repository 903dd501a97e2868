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
 * Disabled interrupts guard the state. Until interrupts are enabled, and again
 * in a panic, the task that reads a key polls the devices.
 */
#include "drivers/console.h"
#include "drivers/ansi.h"
#include "drivers/kbd.h"
#include "drivers/serial.h"
#include "drivers/vga.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"

#define HISTORY_SIZE   16384u /* powers of two */
#define INPUT_SIZE     1024u
#define WRITE_CHUNK    256u /* characters with interrupts disabled */
#define PRINTF_MAX     512
#define CTRL_C         0x03
#define CTRL_BACKSLASH 0x1c

static struct {
    bool interrupts; /* input arrives by itself */
    bool keyboard;   /* the last key came from it, not from the line */
    enum console_terminals terminals;
    bool (*pager)(const char *s, size_t n); /* or NULL */
    uint32_t input_head;                    /* keys ever inserted */
    uint32_t input_tail;                    /* keys ever removed */
    uint32_t input_ctrl_c;                  /* keys between them that are ^C */
    int16_t input[INPUT_SIZE];
    struct ansi_decoder ansi;
    void (*wait)(void); /* the hooks, or NULL */
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

/* A full ring means that no task reads. ^C must then still get through. */
static void input_store(int key)
{
    if (key == CTRL_C && !input_ready())
        input_clear();
    if (!input_ready())
        return;
    console.input[console.input_head++ % INPUT_SIZE] = (int16_t)key;
    console.input_ctrl_c += key == CTRL_C;
}

/* Whether the key acts at once. */
static bool input_acts(int key)
{
    return (key == CTRL_C || key == CTRL_BACKSLASH) && console.interrupts &&
           console.signal_hook && console.signal_hook(key);
}

static void input_put(int key)
{
    if (input_acts(key)) {
        input_clear();
        return;
    }
    input_store(key);
    if (console.interrupts && console.wake)
        console.wake();
}

static int input_get(void)
{
    int key;

    if (console.input_head == console.input_tail)
        return KEY_NONE;
    key = console.input[console.input_tail++ % INPUT_SIZE];
    console.input_ctrl_c -= key == CTRL_C;
    return key;
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

/* Also called with interrupts enabled: fetches input that waited for room. */
static void poll(void)
{
    serial_receive();
    kbd_receive();
}

int console_trykey(void)
{
    uint32_t flags = irq_save();
    int key;

    poll();
    key = input_get();
    irq_restore(flags);
    return key;
}

/* For interrupts the test and the halt are one step: a key that arrives in
 * between ends the halt. Returns whether a key was there before. */
static bool look_or_wait(void)
{
    uint32_t flags = irq_save();
    bool pending;

    poll();
    pending = console.input_head != console.input_tail;
    if (!pending && console.interrupts) {
        if (console.wait)
            console.wait();
        else
            cpu_wait_interrupt();
    }
    irq_restore(flags);
    return pending;
}

int console_getkey(void)
{
    int key;

    do
        key = look_or_wait() ? console_trykey() : KEY_NONE;
    while (key == KEY_NONE);
    return key;
}

bool console_key_pending(void)
{
    uint32_t flags = irq_save();
    bool pending = console.input_head != console.input_tail;

    irq_restore(flags);
    return pending;
}

void console_set_wait(void (*wait)(void), void (*wake)(void))
{
    uint32_t flags = irq_save();

    console.wait = wait;
    console.wake = wake;
    irq_restore(flags);
}

void console_set_signal_hook(bool (*signal_hook)(int key))
{
    console.signal_hook = signal_hook;
}

bool console_interrupt_pending(void)
{
    uint32_t flags = irq_save();
    bool pending;

    if (!console.interrupts)
        poll();
    pending = console.input_ctrl_c > 0;
    irq_restore(flags);
    return pending;
}

/* ---- output ------------------------------------------------------------- */

void console_record(const char *s, size_t n)
{
    uint32_t flags = irq_save();

    for (size_t i = 0; i < n; i++)
        console.history[console.history_end++ % HISTORY_SIZE] = s[i];
    irq_restore(flags);
}

void console_echo(const char *s, size_t n)
{
    while (n > 0) {
        size_t chunk = MIN(n, WRITE_CHUNK);
        uint32_t flags = irq_save();

        serial_write(s, chunk);
        vga_write(s, chunk);
        irq_restore(flags);
        s += chunk;
        n -= chunk;
    }
}

void console_write(const char *s, size_t n)
{
    if (console.pager && console.pager(s, n))
        return;
    console_record(s, n);
    console_echo(s, n);
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

void console_clear(void)
{
    static const char clear[] = "\033[H\033[2J";

    console_echo(clear, sizeof(clear) - 1);
}

/* ---- terminals ---------------------------------------------------------- */

void console_set_terminals(enum console_terminals which)
{
    console_colour(CONSOLE_PLAIN);
    console.terminals = which;
}

enum console_terminals console_terminals(void)
{
    return console.terminals;
}

bool console_at_terminal(void)
{
    return console.keyboard ? console.terminals != CONSOLE_NO_TERMINAL
                            : console.terminals == CONSOLE_VGA_AND_SERIAL;
}

void console_colour(enum console_colour colour)
{
    uint32_t flags = irq_save();
    char text[12];
    size_t n = (size_t)snprintf(text, sizeof(text), "\033[0;%dm", (int)colour);

    if (console.terminals != CONSOLE_NO_TERMINAL)
        vga_write(text, n);
    if (console.terminals == CONSOLE_VGA_AND_SERIAL)
        serial_write(text, n);
    irq_restore(flags);
}

void console_set_pager(bool (*pager)(const char *s, size_t n))
{
    console.pager = pager;
}

void console_drain(void)
{
    uint32_t flags = irq_save();

    serial_drain();
    irq_restore(flags);
}

size_t console_history(size_t offset, char *buf, size_t n)
{
    uint32_t flags = irq_save();
    size_t have = MIN(console.history_end, HISTORY_SIZE);
    uint32_t at = console.history_end - (uint32_t)have + (uint32_t)offset;

    n = offset < have ? MIN(n, have - offset) : 0;
    for (size_t i = 0; i < n; i++)
        buf[i] = console.history[at++ % HISTORY_SIZE];
    irq_restore(flags);
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
    uint32_t flags = irq_save();

    console.interrupts = true;
    serial_enable_interrupts();
    kbd_enable_interrupts();
    poll(); /* a byte that is already there raises no interrupt edge */
    irq_restore(flags);
}

void console_panic_mode(void)
{
    irq_disable();
    console.interrupts = false;
    console.pager = NULL;
    serial_disable_interrupts();
}
