/*
 * The chip. Its data sheet describes the registers; drivers/servers/rtc.c uses
 * others.
 */
#include "docs/labs/08-messages/servers/beat/beat.h"
#include "user/lib/io.h"

enum {
    PORT_INDEX = 0x70, /* selects a register … */
    PORT_DATA = 0x71,  /* … its contents */

    REG_A = 10,
    A_DIVIDER = 0x20, /* its crystal has 32,768 Hz */
    A_128_HZ = 9,     /* 32,768 >> (9 - 1) */
    REG_B = 11,
    B_24_HOURS = 0x02,
    B_BINARY = 0x04,
    B_BEATS = 0x40, /* interrupt periodically */
    REG_C = 12,     /* cause of the interrupt; reading clears it */
    C_BEAT = 0x40,
    REG_D = 13,
    D_NOTHING = 0xff, /* reads on a bus without a clock */
};

static uint8_t get(uint8_t reg)
{
    outb(PORT_INDEX, reg);
    return inb(PORT_DATA);
}

static void put(uint8_t reg, uint8_t value)
{
    outb(PORT_INDEX, reg);
    outb(PORT_DATA, value);
}

/* A predecessor may have been killed at any point, so this sets everything that
 * the driver relies on. It keeps the format in which the clock counts. */
int chip_open(int port)
{
    if (irq_bind(port, CHIP_IRQ, CHIP_BIT) < 0)
        return -1;
    if (get(REG_D) == D_NOTHING) {
        errno = ENODEV;
        return -1;
    }
    put(REG_A, A_DIVIDER | A_128_HZ);
    put(REG_B, get(REG_B) & (B_24_HOURS | B_BINARY));
    return 0;
}

void chip_start(void)
{
    get(REG_C);
    put(REG_B, get(REG_B) | B_BEATS);
}

void chip_stop(void)
{
    put(REG_B, get(REG_B) & (uint8_t)~B_BEATS);
}

bool chip_beat(void)
{
    bool beat = (get(REG_C) & C_BEAT) != 0;

    irq_ack(CHIP_IRQ);
    return beat;
}
