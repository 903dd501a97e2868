/*
 * SipHash-2-4. Four words are mixed in rounds of additions, rotations and
 * exclusive ors; two rounds for each eight bytes of the text, four at the end.
 */
#include "tools/workshop/labs/siphash.h"

struct state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void rounds(struct state *s, unsigned n)
{
    while (n-- > 0) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 = rotate(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v2 = rotate(s->v2, 32);
    }
}

static void absorb(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    rounds(s, 2);
    s->v0 ^= word;
}

/* Up to eight bytes, the first one lowest. */
static uint64_t word_of(const uint8_t *p, size_t n)
{
    uint64_t word = 0;

    while (n-- > 0)
        word = word << 8 | p[n];
    return word;
}

uint64_t siphash(uint64_t k0, uint64_t k1, const void *text, size_t n)
{
    const uint8_t *p = text;
    struct state s = {
        k0 ^ 0x736f6d6570736575ull,
        k1 ^ 0x646f72616e646f6dull,
        k0 ^ 0x6c7967656e657261ull,
        k1 ^ 0x7465646279746573ull,
    };
    size_t left = n;

    for (; left >= 8; left -= 8, p += 8)
        absorb(&s, word_of(p, 8));
    absorb(&s, word_of(p, left) | (uint64_t)n << 56);
    s.v2 ^= 0xff;
    rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
