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

TEST_KILLED(protect, read_kernel, SIGSEGV)
{
    peek(KERNEL);
}

TEST_KILLED(protect, write_kernel, SIGSEGV)
{
    poke(KERNEL);
}

/* The kernel's data, not only its text. */
TEST_KILLED(protect, write_kernel_far, SIGSEGV)
{
    poke(KERNEL + MIB(1));
}

TEST_KILLED(protect, read_last_byte, SIGSEGV)
{
    peek(UINT32_MAX);
}

TEST_KILLED(protect, jump_kernel, SIGSEGV)
{
    jump(KERNEL);
}

TEST_KILLED(protect, read_null, SIGSEGV)
{
    peek(0);
}

TEST_KILLED(protect, write_null, SIGSEGV)
{
    poke(8);
}

TEST_KILLED(protect, jump_null, SIGSEGV)
{
    jump(0);
}

TEST_KILLED(protect, write_text, SIGSEGV)
{
    poke((uintptr_t)protect_write_text);
}

TEST_KILLED(protect, write_constant, SIGSEGV)
{
    poke((uintptr_t)&constant);
}

/* Below the stack, between heap and mappings, right below the kernel. */
TEST_KILLED(protect, unmapped_low, SIGSEGV)
{
    poke(0x00400000 - 1);
}

TEST_KILLED(protect, unmapped_middle, SIGSEGV)
{
    peek(0x30000000);
}

TEST_KILLED(protect, below_kernel, SIGSEGV)
{
    poke(0xC0000000 - 1);
}

/* An access with one half in the kernel. */
TEST_KILLED(protect, straddle, SIGSEGV)
{
    *(volatile uint32_t *)at(0xC0000000 - 2) = 1;
}
