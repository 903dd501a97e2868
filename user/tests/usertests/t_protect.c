/*
 * Protection: accesses that are forbidden to a program. Each must end its case
 * by a signal.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/string.h"

#define KERNEL 0xC0100000u

static const int constant = 5;

/* Hides the address from the compiler, which may know its contents. */
static volatile char *at(uintptr_t address)
{
    __asm__("" : "+r"(address));
    return (volatile char *)address;
}

static void poke(uintptr_t address)
{
    *at(address) = 1;
}

static void peek(uintptr_t address)
{
    (void)*at(address);
}

static void jump(uintptr_t address)
{
    ((void (*)(void))(uintptr_t)at(address))();
}

static void protect_read_kernel(void)
{
    peek(KERNEL);
}

static void protect_write_kernel(void)
{
    poke(KERNEL);
}

/* The kernel's data, not only its text. */
static void protect_write_kernel_far(void)
{
    poke(KERNEL + MIB(1));
}

static void protect_read_last_byte(void)
{
    peek(UINT32_MAX);
}

static void protect_jump_kernel(void)
{
    jump(KERNEL);
}

static void protect_read_null(void)
{
    peek(0);
}

static void protect_write_null(void)
{
    poke(8);
}

static void protect_jump_null(void)
{
    jump(0);
}

static void protect_write_text(void)
{
    poke((uintptr_t)protect_write_text);
}

static void protect_write_constant(void)
{
    poke((uintptr_t)&constant);
}

/* Below the stack, between heap and mappings, right below the kernel. */
static void protect_unmapped_low(void)
{
    poke(0x00400000 - 1);
}

static void protect_unmapped_middle(void)
{
    peek(0x30000000);
}

static void protect_below_kernel(void)
{
    poke(0xC0000000 - 1);
}

/* An access with one half in the kernel. */
static void protect_straddle(void)
{
    *(volatile uint32_t *)at(0xC0000000 - 2) = 1;
}

const struct test protect_tests[] = {
    TEST_KILLED(protect, read_kernel, SIGSEGV),
    TEST_KILLED(protect, write_kernel, SIGSEGV),
    TEST_KILLED(protect, write_kernel_far, SIGSEGV),
    TEST_KILLED(protect, read_last_byte, SIGSEGV),
    TEST_KILLED(protect, jump_kernel, SIGSEGV),
    TEST_KILLED(protect, read_null, SIGSEGV),
    TEST_KILLED(protect, write_null, SIGSEGV),
    TEST_KILLED(protect, jump_null, SIGSEGV),
    TEST_KILLED(protect, write_text, SIGSEGV),
    TEST_KILLED(protect, write_constant, SIGSEGV),
    TEST_KILLED(protect, unmapped_low, SIGSEGV),
    TEST_KILLED(protect, unmapped_middle, SIGSEGV),
    TEST_KILLED(protect, below_kernel, SIGSEGV),
    TEST_KILLED(protect, straddle, SIGSEGV),
    TEST_END,
};
