/*
 * The clock chip has some bytes of RAM, kept by a battery. The BIOS uses most
 * of them; on a PC the last of the lower bank are free.
 */
#include "docs/labs/08-messages/servers/beat/beat.h"
#include "user/lib/io.h"

enum {
    PORT_INDEX = 0x70,
    PORT_DATA = 0x71,
    RAM_FIRST = 0x70,
};

uint8_t ram_get(unsigned i)
{
    outb(PORT_INDEX, (uint8_t)(RAM_FIRST + i));
    return inb(PORT_DATA);
}

void ram_put(unsigned i, uint8_t value)
{
    outb(PORT_INDEX, (uint8_t)(RAM_FIRST + i));
    outb(PORT_DATA, value);
}
