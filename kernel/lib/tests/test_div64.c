/*
 * 64-bit division (kernel/lib/div64.c).
 */
#include "tools/workshop/ktest/ktest.h"

/* The next of a fixed sequence (xorshift, Marsaglia 2003). */
static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void expect_division(uint64_t n, uint64_t d, uint64_t q, uint64_t r)
{
    if (n / d != q || n % d != r)
        KT_FAIL("%llu / %llu = %llu rest %llu, want %llu rest %llu",
                (unsigned long long)n, (unsigned long long)d,
                (unsigned long long)(n / d), (unsigned long long)(n % d),
                (unsigned long long)q, (unsigned long long)r);
}

KTEST(div64, known_values)
{
    const uint64_t max = UINT64_MAX;

    expect_division(0, 1, 0, 0);
    expect_division(100, 7, 14, 2);
    expect_division(6, 7, 0, 6);
    expect_division(max, 1, max, 0);
    expect_division(max, max, 1, 0);
    expect_division(max - 1, max, 0, max - 1);
    expect_division(max, 10, 1844674407370955161u, 5);
    expect_division(1ull << 32, 3, 1431655765, 1);
    expect_division(1ull << 63, 1ull << 32, 1u << 31, 0);
    expect_division(max, 1ull << 63, 1, max >> 1);
    expect_division(5000000000000000007u, 1000000000, 5000000000u, 7);
    expect_division(0x100000000, 0xffffffff, 1, 1);
    expect_division(0xfffffffe00000001u, 0xffffffff, 0xffffffff, 0);
}

KTEST(div64, signs)
{
    static const struct {
        int64_t n, d, q, r;
    } cases[] = {
        {7000000000, 3, 2333333333, 1},
        {-7000000000, 3, -2333333333, -1},
        {7000000000, -3, -2333333333, 1},
        {-7000000000, -3, 2333333333, -1},
        {INT64_MIN, 1, INT64_MIN, 0},
        {INT64_MIN, 10, -922337203685477580, -8},
        {INT64_MIN, INT64_MIN, 1, 0},
        {5, INT64_MIN, 0, 5},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        volatile int64_t n = cases[i].n, d = cases[i].d;

        KT_EQ(n / d, cases[i].q);
        KT_EQ(n % d, cases[i].r);
    }
}

/* n = q * d + r and r < d, for numbers of every length. */
KTEST(div64, identity)
{
    uint32_t state = 1994;

    for (unsigned i = 0; i < 5000; i++) {
        uint64_t n = (uint64_t)next_random(&state) << 32 | next_random(&state);
        uint64_t d = (uint64_t)next_random(&state) << 32 | next_random(&state);
        uint64_t q, r;

        n >>= next_random(&state) % 64;
        d >>= next_random(&state) % 64;
        if (d == 0)
            continue;
        q = n / d;
        r = n % d;
        if (q * d + r != n || r >= d) {
            KT_FAIL("%llu / %llu = %llu rest %llu", (unsigned long long)n,
                    (unsigned long long)d, (unsigned long long)q,
                    (unsigned long long)r);
            return;
        }
    }
}
