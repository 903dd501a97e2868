/*
 * 64-bit division for a 32-bit processor.
 *
 * GCC compiles 64-bit division into calls of these functions. Those of libgcc
 * take their arguments on the stack; the kernel passes arguments in registers
 * (-mregparm=3), so it needs its own.
 */
#include "kernel/lib/types.h"

uint64_t __udivmoddi4(uint64_t n, uint64_t d, uint64_t *rem);
uint64_t __udivdi3(uint64_t n, uint64_t d);
uint64_t __umoddi3(uint64_t n, uint64_t d);
int64_t __divdi3(int64_t n, int64_t d);
int64_t __moddi3(int64_t n, int64_t d);

/* Long division, bit by bit: the divisor is shifted up to the dividend and
 * subtracted where possible on the way down. */
static uint64_t divide_long(uint64_t n, uint64_t d, uint64_t *rem)
{
    uint64_t quotient = 0;
    uint64_t bit = 1;

    while (d < n && (d >> 63) == 0) {
        d <<= 1;
        bit <<= 1;
    }
    for (; bit != 0; bit >>= 1, d >>= 1) {
        if (n >= d) {
            n -= d;
            quotient |= bit;
        }
    }
    *rem = n;
    return quotient;
}

uint64_t __udivmoddi4(uint64_t n, uint64_t d, uint64_t *rem)
{
    uint64_t r;
    uint64_t quotient;

    if (d == 0)
        __builtin_trap();
    if ((n >> 32) == 0 && (d >> 32) == 0) {
        quotient = (uint32_t)n / (uint32_t)d;
        r = (uint32_t)n % (uint32_t)d;
    } else {
        quotient = divide_long(n, d, &r);
    }
    if (rem != NULL)
        *rem = r;
    return quotient;
}

uint64_t __udivdi3(uint64_t n, uint64_t d)
{
    return __udivmoddi4(n, d, NULL);
}

uint64_t __umoddi3(uint64_t n, uint64_t d)
{
    uint64_t r;

    __udivmoddi4(n, d, &r);
    return r;
}

static uint64_t magnitude(int64_t n)
{
    return n < 0 ? -(uint64_t)n : (uint64_t)n;
}

int64_t __divdi3(int64_t n, int64_t d)
{
    uint64_t q = __udivmoddi4(magnitude(n), magnitude(d), NULL);

    return (int64_t)((n < 0) != (d < 0) ? -q : q);
}

int64_t __moddi3(int64_t n, int64_t d)
{
    uint64_t r;

    __udivmoddi4(magnitude(n), magnitude(d), &r);
    return (int64_t)(n < 0 ? -r : r);
}
