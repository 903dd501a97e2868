/*
 * The number of the last beat, in the chip's RAM, which survives the driver.
 * The driver can be killed between any two bytes. So there are two places, and
 * at any moment at least one of them is valid:
 *
 *     ┌──────────────┬───────┐┌──────────────┬───────┐
 *     │ number, 3998 │ check ││ number, 3999 │ check │
 *     └──────────────┴───────┘└──────────────┴───────┘
 *       the one before          the last
 */
#include "docs/labs/08-messages/servers/beat/beat.h"

enum {
    SLOTS = 2,
    CHECK_AT = 4, /* after the number, lowest byte first */
    SLOT_BYTES = 5,
    CHECK_NONE = 0, /* fits no number: the place is not valid */
};

static uint8_t check_of(uint32_t number)
{
    uint32_t folded = number ^ number >> 8 ^ number >> 16 ^ number >> 24;

    return (uint8_t)(0x80 | (0x5a ^ folded));
}

/* Whether a place is valid; *number gets its contents. */
static bool read_slot(unsigned slot, uint32_t *number)
{
    unsigned at = slot * SLOT_BYTES;

    *number = 0;
    for (unsigned i = 0; i < CHECK_AT; i++)
        *number |= (uint32_t)ram_get(at + i) << 8 * i;
    return ram_get(at + CHECK_AT) == check_of(*number);
}

/* The place with the last number, which goes to *number; SLOTS, and 0 in
 * *number, if neither is valid. */
static unsigned newest(uint32_t *number)
{
    unsigned found = SLOTS;
    uint32_t n;

    *number = 0;
    for (unsigned slot = 0; slot < SLOTS; slot++)
        if (read_slot(slot, &n) &&
            (found == SLOTS || (int32_t)(n - *number) > 0)) {
            found = slot;
            *number = n;
        }
    return found;
}

uint32_t keep_load(void)
{
    uint32_t number;

    newest(&number);
    return number;
}

void keep_save(uint32_t number)
{
    uint32_t last;
    unsigned at = (newest(&last) == 0 ? 1 : 0) * SLOT_BYTES;

    ram_put(at + CHECK_AT, CHECK_NONE);
    for (unsigned i = 0; i < CHECK_AT; i++)
        ram_put(at + i, (uint8_t)(number >> 8 * i));
    ram_put(at + CHECK_AT, check_of(number));
}
