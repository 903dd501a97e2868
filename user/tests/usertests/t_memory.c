/*
 * Memory of a program: heap, mappings, stack, and running out of it.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/string.h"

#define STACK_MAX MIB(1)

static bool is_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

/* ---- heap --------------------------------------------------------------- */

TEST(memory, sbrk)
{
    char *start = sbrk(0);
    char *p = sbrk(3 * PAGE_SIZE + 5);

    EQUAL(p, start);
    EQUAL(sbrk(0), start + 3 * PAGE_SIZE + 5);
    CHECK(is_zero(p, 3 * PAGE_SIZE + 5));
    memset(p, 0x55, 3 * PAGE_SIZE + 5);
    EQUAL(sbrk(-(int32_t)(3 * PAGE_SIZE + 5)), start + 3 * PAGE_SIZE + 5);
    EQUAL(sbrk(0), start);
    EQUAL(sbrk(3 * PAGE_SIZE), start);
    /* Contents of a page that was not freed may remain. */
    CHECK(is_zero(p + PAGE_SIZE, 2 * PAGE_SIZE));
}

TEST(memory, sbrk_errors)
{
    void *start = sbrk(0);

    FAILS(sbrk(INT32_MAX), ENOMEM);
    FAILS(sbrk(INT32_MIN), EINVAL);
    FAILS(sbrk(-(int32_t)0x10000000), EINVAL);
    EQUAL(sbrk(0), start);
    CHECK(sbrk(1) == start);
}

/* After the end of the heap nothing is mapped. */
TEST_KILLED(memory, sbrk_freed, SIGSEGV)
{
    volatile char *p = sbrk(2 * PAGE_SIZE);

    p[PAGE_SIZE] = 1;
    sbrk(-(int32_t)(2 * PAGE_SIZE));
    p[PAGE_SIZE + PAGE_MASK] = 1;
}

/* ---- mappings ----------------------------------------------------------- */

TEST(memory, mmap)
{
    char *a = mmap(1, PROT_READ | PROT_WRITE);
    char *b = mmap(10 * PAGE_SIZE, PROT_READ | PROT_WRITE);

    CHECK(a != MAP_FAILED && b != MAP_FAILED);
    EQUAL((uintptr_t)a & PAGE_MASK, 0);
    CHECK(b >= a + PAGE_SIZE || a >= b + 10 * PAGE_SIZE);
    CHECK(is_zero(a, PAGE_SIZE) && is_zero(b, 10 * PAGE_SIZE));
    memset(a, 1, PAGE_SIZE);
    memset(b, 2, 10 * PAGE_SIZE);
    EQUAL(a[PAGE_MASK], 1);
    EQUAL(munmap(b, 10 * PAGE_SIZE), 0);
    EQUAL(a[0], 1);
    b = mmap(10 * PAGE_SIZE, PROT_READ);
    CHECK(b != MAP_FAILED && is_zero(b, 10 * PAGE_SIZE));
    EQUAL(munmap(a, 1), 0);
}

TEST(memory, mmap_errors)
{
    char *p;

    FAILS(mmap(0, PROT_READ), EINVAL);
    FAILS(mmap(PAGE_SIZE, 0), EINVAL);
    FAILS(mmap(PAGE_SIZE, PROT_WRITE), EINVAL);
    FAILS(mmap(PAGE_SIZE, PROT_READ | 4), EINVAL);
    FAILS(mmap(UINT32_MAX, PROT_READ), EINVAL);
    FAILS(mmap(0xB0000000, PROT_READ), ENOMEM);
    p = mmap(4 * PAGE_SIZE, PROT_READ | PROT_WRITE);
    CHECK(p != MAP_FAILED);
    FAILS(munmap(p + PAGE_SIZE, 3 * PAGE_SIZE), EINVAL);
    FAILS(munmap(p, 3 * PAGE_SIZE), EINVAL);
    FAILS(munmap(p, 5 * PAGE_SIZE), EINVAL);
    FAILS(munmap(p, 0), EINVAL);
    FAILS(munmap(p + 1, 4 * PAGE_SIZE), EINVAL);
    FAILS(munmap(NULL, PAGE_SIZE), EINVAL);
    FAILS(munmap((void *)0xC0000000, PAGE_SIZE), EINVAL);
    FAILS(munmap((void *)memory_mmap, PAGE_SIZE), EINVAL);
    p[4 * PAGE_SIZE - 1] = 1;
    EQUAL(munmap(p, 4 * PAGE_SIZE), 0);
    FAILS(munmap(p, 4 * PAGE_SIZE), EINVAL);
}

TEST_KILLED(memory, mmap_read_only, SIGSEGV)
{
    volatile char *p = mmap(PAGE_SIZE, PROT_READ);

    CHECK(*p == 0);
    *p = 1;
}

TEST_KILLED(memory, use_after_munmap, SIGSEGV)
{
    volatile char *p = mmap(PAGE_SIZE, PROT_READ | PROT_WRITE);

    *p = 1;
    EQUAL(munmap((void *)p, PAGE_SIZE), 0);
    *p = 1;
}

/* Many mappings, some of which are removed and replaced. */
TEST(memory, mmap_many)
{
    char *p[64];

    for (int i = 0; i < 64; i++) {
        p[i] = mmap((size_t)(i % 5 + 1) * PAGE_SIZE, PROT_READ | PROT_WRITE);
        CHECK(p[i] != MAP_FAILED);
        *p[i] = (char)i;
    }
    for (int i = 0; i < 64; i += 2)
        EQUAL(munmap(p[i], (size_t)(i % 5 + 1) * PAGE_SIZE), 0);
    for (int i = 0; i < 64; i += 2) {
        p[i] = mmap(PAGE_SIZE, PROT_READ | PROT_WRITE);
        CHECK(p[i] != MAP_FAILED && *p[i] == 0);
        *p[i] = (char)i;
    }
    for (int i = 0; i < 64; i++)
        EQUAL(*p[i], i);
}

/* ---- stack -------------------------------------------------------------- */

TEST(memory, stack_grows)
{
    EQUAL(use_stack(STACK_MAX / 10 * 7), 1);
}

TEST_KILLED(memory, stack_overflow, SIGSEGV)
{
    use_stack(2 * STACK_MAX);
}

TEST_KILLED(memory, stack_far_below, SIGSEGV)
{
    volatile char here;
    uintptr_t below = (uintptr_t)&here - 2 * STACK_MAX;

    *(volatile char *)below = 1;
}

/* ---- running out -------------------------------------------------------- */

static void take_everything(int heap)
{
    for (;;) {
        volatile char *p =
            heap ? sbrk(MIB(1)) : mmap(MIB(1), PROT_READ | PROT_WRITE);

        if (p == MAP_FAILED)
            _exit(errno);
        for (size_t i = 0; i < MIB(1); i += PAGE_SIZE)
            p[i] = 1;
    }
}

/* Checks that there is memory again. */
static void check_memory(void)
{
    char *p = mmap(MIB(2), PROT_READ | PROT_WRITE);

    CHECK(p != MAP_FAILED);
    memset(p, 1, MIB(2));
    EQUAL(munmap(p, MIB(2)), 0);
}

/* A program that wants more than there is gets ENOMEM. */
TEST(memory, exhaustion)
{
    expect_exit(spawn(take_everything, false), ENOMEM);
    check_memory();
}

static void read_everything(int zero)
{
    for (;;) {
        char *p = mmap(MIB(1), PROT_READ | PROT_WRITE);

        if (p == MAP_FAILED)
            _exit(errno);
        if (read(zero, p, MIB(1)) != (ssize_t)MIB(1))
            _exit(errno);
    }
}

/* If the kernel writes to the page for the program, the call fails. */
TEST(memory, exhaustion_in_calls)
{
    int zero = open("/dev/zero", O_RDONLY);

    CHECK(zero >= 0);
    expect_exit(spawn(read_everything, zero), ENOMEM);
    check_memory();
}

/* The same with the heap. */
TEST(memory, exhaustion_heap)
{
    expect_exit(spawn(take_everything, true), ENOMEM);
    check_memory();
}
