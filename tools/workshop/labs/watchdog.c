/*
 * The ib700, a watchdog timer of the ISA bus that QEMU has (-device ib700
 * -action watchdog=inject-nmi): one port starts it with a number that stands
 * for the seconds, another stops it. It ends in a non-maskable interrupt, so it
 * finds loops with interrupts disabled too. On a machine without one the ports
 * are unused and nothing happens.
 */
#include "tools/workshop/labs/watchdog.h"
#include "kernel/x86/io.h"

enum {
    PORT_STOP = 0x441,
    PORT_START = 0x443,
    SECONDS_MAX = 30, /* which is number 0; each more is two seconds less */
};

void watchdog_start(unsigned seconds, trap_handler_t fn)
{
    unsigned pairs = MIN(MAX(seconds, 2u), (unsigned)SECONDS_MAX) / 2;

    trap_set_handler(TRAP_NMI, fn);
    outb(PORT_START, (uint8_t)(SECONDS_MAX / 2 - pairs));
}

void watchdog_stop(void)
{
    outb(PORT_STOP, 0);
}
