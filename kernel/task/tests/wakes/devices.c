/*
 * Devices of the console that keep nothing but text, and tasks by name.
 */
#include "kernel/task/tests/wakes/devices.h"

#include "drivers/ansi.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "drivers/kbd.h"
#include "drivers/pit.h"
#include "drivers/serial.h"
#include "drivers/vga.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/object/session.h"
#include "kernel/vm/user.h"
#include "kernel/x86/panic.h"
#include "kernel/fs/tty.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/task/tests/wakes/wakes.h"

static void (*key_sink)(int key);
static char shown[64];
static size_t length;

void devices_make(void)
{
    console_init();
    length = 0;
    memset(shown, 0, sizeof(shown));
    tty_init();
}

void devices_press(int key)
{
    spin_lock(&console_lock);
    key_sink(key);
    spin_unlock(&console_lock);
}

const char *devices_shown(void)
{
    return shown;
}

void kbd_set_sink(void (*sink)(int key))
{
    key_sink = sink;
}

void vga_write(const char *text, size_t n)
{
    spin_assert_held(&console_lock);
    for (size_t i = 0; i < n && length < sizeof(shown) - 1; i++)
        shown[length++] = text[i];
}

/* ---- what does nothing here --------------------------------------------- */

void vga_init(void)
{
}

void vga_look(int pages UNUSED)
{
}

bool kbd_init(void)
{
    return true;
}

void kbd_receive(void)
{
}

void kbd_enable_interrupts(void)
{
}

bool serial_init(void)
{
    return false;
}

void serial_set_sink(bool (*ready)(void) UNUSED,
                     void (*sink)(uint8_t byte) UNUSED)
{
}

void serial_enable_interrupts(void)
{
}

void serial_disable_interrupts(void)
{
}

void serial_write(const char *text UNUSED, size_t n UNUSED)
{
}

struct serial_count serial_count(void)
{
    return (struct serial_count){0};
}

void serial_receive(void)
{
}

void serial_drain(void)
{
}

uint64_t timer_ms(void)
{
    return 0;
}

uint32_t timer_interrupts(void)
{
    return 0;
}

int ansi_decode(struct ansi_decoder *d UNUSED, uint8_t byte UNUSED)
{
    return KEY_NONE;
}

void debugcon_event(const char *fmt UNUSED, ...)
{
}

/* ---- programs ----------------------------------------------------------- */

struct task *task_find(pid_t pid)
{
    return pid == DEVICES_CHILD && !devices_child_ended() ? wakes_task(0)
                                                          : NULL;
}

uint32_t session_of(pid_t pid UNUSED)
{
    return 0;
}

pid_t task_wait(pid_t pid, int *status, int flags UNUSED)
{
    *status = 0;
    return pid;
}

int task_kill(const struct task *by UNUSED, pid_t pid UNUSED, int signal UNUSED)
{
    return -ESRCH;
}

int user_copy(void *dst, const void *src, size_t n)
{
    memcpy(dst, src, n);
    return 0;
}

void file_free(struct file *f UNUSED)
{
}

void panic(const char *fmt, ...)
{
    char text[128];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fibers_failed("%s", text);
}
