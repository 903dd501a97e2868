/*
 * Patterns in memory (paper, sections 6.3 and 6.4): filling a range, and
 * finding the first byte that was overwritten.
 *
 * A pattern is a word, repeated from the start of a range; an incomplete word
 * at the end has the word's first bytes. So every byte has one right value, and
 * a single wrong one is found.
 */
#include "mm/debug/debug_impl.h"

static uint8_t pattern_byte(uint32_t word, size_t i)
{
    return (uint8_t)(word >> (i % sizeof(word) * 8));
}

void kmem_pattern_fill(void *buf, size_t size, uint32_t word)
{
    uint8_t *p = buf;
    size_t i = 0;

    for (; i + sizeof(word) <= size; i += sizeof(word))
        __builtin_memcpy(p + i, &word, sizeof(word));
    for (; i < size; i++)
        p[i] = pattern_byte(word, i);
}

const void *kmem_pattern_mismatch(const void *buf, size_t size, uint32_t word)
{
    const uint8_t *p = buf;
    size_t i = 0;

    for (uint32_t have; i + sizeof(word) <= size; i += sizeof(word)) {
        __builtin_memcpy(&have, p + i, sizeof(have));
        if (have != word)
            break;
    }
    for (; i < size; i++)
        if (p[i] != pattern_byte(word, i))
            return p + i;
    return NULL;
}
