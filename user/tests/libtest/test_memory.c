/*
 * memcpy, memmove, memset and memcmp at every alignment, overlap and length up
 * to some words, between bytes that must not change; and sizes.
 *
 * Tests: user/lib/number.c, user/lib/string.c
 */
#include "user/lib/errno.h"
#include "user/lib/number.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"
#include "user/tests/libtest/libtest.h"

#define ROOM  96u
#define SPAN  40u /* two iterations of the main loops, any remainder */
#define SHIFT 8u  /* alignments; also of a destination above its source */

static uint8_t got[ROOM], want[ROOM], other[ROOM];

static void fill(uint8_t *area, uint8_t first)
{
    for (uint32_t i = 0; i < ROOM; i++)
        area[i] = (uint8_t)(first + i * 7);
}

static bool as_wanted(void)
{
    for (uint32_t i = 0; i < ROOM; i++)
        if (got[i] != want[i])
            return false;
    return true;
}

/* Calls f for every length and two places. */
static void each_case(void (*f)(size_t n, size_t to, size_t from))
{
    for (size_t n = 0; n <= SPAN; n++)
        for (size_t to = 0; to < 2 * SHIFT; to++)
            for (size_t from = 0; from < 2 * SHIFT; from++)
                f(n, SHIFT + to, SHIFT + from);
}

static void copy(size_t n, size_t to, size_t from)
{
    fill(got, 1);
    fill(want, 1);
    fill(other, 101);
    for (size_t i = 0; i < n; i++)
        want[to + i] = other[from + i];
    CHECK(memcpy(got + to, other + from, n) == got + to && as_wanted());
}

static void move(size_t n, size_t to, size_t from)
{
    fill(got, 1);
    fill(want, 1);
    fill(other, 1);
    for (size_t i = 0; i < n; i++)
        want[to + i] = other[from + i];
    CHECK(memmove(got + to, got + from, n) == got + to && as_wanted());
}

/* `from` is the byte. */
static void set(size_t n, size_t to, size_t from)
{
    int byte = (int)from - 256; /* only its low eight bits count */

    fill(got, 1);
    fill(want, 1);
    for (size_t i = 0; i < n; i++)
        want[to + i] = (uint8_t)byte;
    CHECK(memset(got + to, byte, n) == got + to && as_wanted());
}

/* `from` is the place at which they differ, if n is larger. */
static void compare(size_t n, size_t to, size_t from)
{
    size_t differs = from - SHIFT;

    fill(got, 1);
    fill(other, 1);
    memmove(other + SHIFT, got + to, n);
    CHECK(memcmp(got + to, other + SHIFT, n) == 0);
    if (differs >= n)
        return;
    got[to + differs] = 0x80;
    other[SHIFT + differs] = 0x7f;
    CHECK(memcmp(got + to, other + SHIFT, n) > 0);
    CHECK(memcmp(other + SHIFT, got + to, n) < 0);
}

TEST(memory, copies)
{
    each_case(copy);
}

TEST(memory, moves)
{
    each_case(move);
}

TEST(memory, sets)
{
    each_case(set);
}

TEST(memory, comparisons)
{
    each_case(compare);
}

/* Nothing beyond the last byte is touched: the next page does not exist. */
TEST(memory, at_the_end_of_a_page)
{
    size_t rest = PAGE_SIZE - (uintptr_t)sbrk(0) % PAGE_SIZE;
    uint8_t *page = (uint8_t *)sbrk((intptr_t)rest + PAGE_SIZE) + rest;

    CHECK(open((char *)page + PAGE_SIZE, O_RDONLY) < 0 && errno == EFAULT);
    for (size_t n = 0; n <= SPAN; n++) {
        uint8_t *end = page + PAGE_SIZE - n;

        memset(end, 5, n);
        memcpy(end, other, n);
        memcpy(got, end, n);
        memmove(end - 3, end, n);
        memmove(end, end - 3, n);
        CHECK(memcmp(got, other, n) == 0);
    }
    sbrk(-(intptr_t)rest - PAGE_SIZE);
}

/* ---- sizes -------------------------------------------------------------- */

static void too_large(void)
{
    size_between("4097M", 0, UINT32_MAX);
}

static void too_small(void)
{
    size_between("1k", 1025, UINT32_MAX);
}

static void unit_alone(void)
{
    size_between("k", 0, UINT32_MAX);
}

static void two_units(void)
{
    size_between("1kk", 0, UINT32_MAX);
}

TEST(number, sizes)
{
    void (*const wrong[])(void) = {too_large, too_small, unit_alone, two_units};

    CHECK(size_between("0", 0, 9) == 0 && size_between("17", 0, 17) == 17);
    CHECK(size_between("4k", 1, 4096) == 4096);
    CHECK(size_between("3K", 1, 4096) == 3072);
    CHECK(size_between("2M", 1, UINT32_MAX) == 2097152);
    CHECK(size_between("0x10k", 1, UINT32_MAX) == 16384);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK(WEXITSTATUS(test_in_child(wrong[i])) == 2);
}
