/*
 * Numbers that follow from the seed of the hand-out.
 */
#include "tools/workshop/labs/seed.h"

static uint32_t state; /* of the random numbers */

/* Multiplication carries low bits up, the shifts bring them down again. */
unsigned lab_pick(unsigned purpose, unsigned n)
{
    uint32_t x = (uint32_t)LAB_SEED * 0x9e3779b1u + purpose * 0x85ebca77u + 1;

    for (int i = 0; i < 3; i++) {
        x ^= x >> 15;
        x *= 0x2c1b3c6du;
    }
    return (x >> 12) % n;
}

void random_begin(unsigned purpose)
{
    state = lab_pick(purpose, 1u << 20);
}

uint32_t random_below(uint32_t n)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % n;
}
