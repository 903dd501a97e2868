/*
 * The keyboard controller (Intel UPI-41AH/42AH data sheet; IBM PC AT Technical
 * Reference, keyboard controller chapter).
 *
 * The controller is configured here and not used as the BIOS left it, because
 * some machines have no BIOS: keyboard clock on, interrupt on, translation to
 * scan code set 1 on, mouse off. Each step waits a bounded time and continues
 * without a response: a controller that lacks a command may still deliver scan
 * codes.
 */
#include "drivers/kbd.h"
#include "drivers/console.h"
#include "drivers/pic.h"
#include "drivers/scancode.h"
#include "kernel/x86/trap.h"
#include "kernel/x86/io.h"

#define KBD_IRQ   1
#define KBD_TRIES 20000 /* reads of the status port: about 20 ms */

enum {
    PORT_DATA = 0x60,
    PORT_STATUS = 0x64,  /* read */
    PORT_COMMAND = 0x64, /* write */

    STATUS_OUTPUT = 1, /* a byte for us */
    STATUS_INPUT = 2,  /* our last byte is not read yet */
    STATUS_MOUSE = 0x20,
    STATUS_ABSENT = 0xFF,

    CMD_READ_CONFIG = 0x20,
    CMD_WRITE_CONFIG = 0x60,
    CMD_DISABLE_MOUSE = 0xA7,
    CMD_SELF_TEST = 0xAA,
    CMD_DISABLE_KEYBOARD = 0xAD,
    CMD_ENABLE_KEYBOARD = 0xAE,

    CONFIG_KEYBOARD_IRQ = 0x01,
    CONFIG_MOUSE_IRQ = 0x02,
    CONFIG_KEYBOARD_OFF = 0x10,
    CONFIG_MOUSE_OFF = 0x20,
    CONFIG_TRANSLATE = 0x40,

    KBD_ENABLE_SCANNING = 0xF4,
};

static bool present;
static struct scancode_decoder decoder;
static void (*key_sink)(int key);

static bool wait_status(uint8_t mask, uint8_t want)
{
    for (int i = 0; i < KBD_TRIES; i++)
        if ((inb(PORT_STATUS) & mask) == want)
            return true;
    return false;
}

static void kbd_send(uint16_t port, uint8_t byte)
{
    wait_status(STATUS_INPUT, 0);
    outb(port, byte);
}

/* The next byte from the controller, or -1 if none comes. */
static int response(void)
{
    if (!wait_status(STATUS_OUTPUT, STATUS_OUTPUT))
        return -1;
    return inb(PORT_DATA);
}

static void kbd_discard(void)
{
    for (int i = 0; i < 16 && (inb(PORT_STATUS) & STATUS_OUTPUT); i++)
        (void)inb(PORT_DATA);
}

/* The self-test resets the configuration on some controllers, so it precedes
 * the write of the configuration. */
bool kbd_init(void)
{
    int config;

    present = inb(PORT_STATUS) != STATUS_ABSENT;
    if (!present)
        return false;
    kbd_send(PORT_COMMAND, CMD_DISABLE_KEYBOARD);
    kbd_send(PORT_COMMAND, CMD_DISABLE_MOUSE);
    kbd_discard();
    kbd_send(PORT_COMMAND, CMD_READ_CONFIG);
    config = response();
    config = config < 0 ? 0 : config;
    config |= CONFIG_KEYBOARD_IRQ | CONFIG_TRANSLATE | CONFIG_MOUSE_OFF;
    config &= ~(CONFIG_MOUSE_IRQ | CONFIG_KEYBOARD_OFF);
    kbd_send(PORT_COMMAND, CMD_SELF_TEST);
    (void)response(); /* 0x55 if passed, or no byte if it is unknown */
    kbd_send(PORT_COMMAND, CMD_WRITE_CONFIG);
    kbd_send(PORT_DATA, (uint8_t)config);
    kbd_send(PORT_COMMAND, CMD_ENABLE_KEYBOARD);
    kbd_send(PORT_DATA, KBD_ENABLE_SCANNING);
    (void)response(); /* acknowledged, if a keyboard is plugged in */
    kbd_discard();
    return true;
}

void kbd_set_sink(void (*sink)(int key))
{
    key_sink = sink;
}

void kbd_receive(void)
{
    uint8_t status;

    spin_assert_held(&console_lock);
    if (!present)
        return;
    while ((status = inb(PORT_STATUS)) & STATUS_OUTPUT) {
        uint8_t code = inb(PORT_DATA);
        int key;

        if (status & STATUS_MOUSE)
            continue;
        key = scancode_decode(&decoder, code);
        if (key != KEY_NONE)
            key_sink(key);
    }
}

static void kbd_irq(struct trapframe *tf UNUSED)
{
    spin_lock(&console_lock);
    kbd_receive();
    spin_unlock(&console_lock);
}

void kbd_enable_interrupts(void)
{
    if (!present)
        return;
    irq_set_handler(KBD_IRQ, kbd_irq);
    pic_unmask(KBD_IRQ);
}
