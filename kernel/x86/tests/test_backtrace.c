/*
 * Backtraces (kernel/x86/backtrace.c): of this very code, and of stacks made
 * up for the purpose.
 */
#include "kernel/x86/backtrace.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"

#define FRAMES 16

#define NOINLINE static __attribute__((noinline))

static uintptr_t pc[FRAMES];

static bool named(uintptr_t addr, const char *name)
{
    const char *found = symbol_lookup(addr, NULL);

    return found != NULL && strcmp(found, name) == 0;
}

/* The code after the call keeps it from becoming a jump. */
NOINLINE unsigned walk_from_here(void)
{
    unsigned n = backtrace(read_ebp(), pc, FRAMES);

    return MIN(n, FRAMES);
}

KTEST(backtrace, names_the_running_test)
{
    unsigned n = walk_from_here();

    KT_REQUIRE(n >= 3);
    KT_TRUE(named(pc[0], "ktest_backtrace_names_the_running_test"));
    KT_TRUE(named(pc[n - 2], "kmain"));
    KT_TRUE(named(pc[n - 1], "boot_high"));
}

KTEST(backtrace, keeps_to_its_limit)
{
    pc[2] = 0x1234;
    KT_EQ(backtrace(read_ebp(), pc, 2), 2);
    KT_EQ(pc[2], 0x1234);
    KT_EQ(backtrace(read_ebp(), pc, 0), 0);
}

KTEST(backtrace, follows_no_bad_pointer)
{
    static uintptr_t frame[2];

    KT_EQ(backtrace(0, pc, FRAMES), 0);
    KT_EQ(backtrace((uintptr_t)boot_stack_guard, pc, FRAMES), 0);
    KT_EQ(backtrace((uintptr_t)boot_stack_bottom - 4, pc, FRAMES), 0);
    frame[1] = (uintptr_t)frame; /* no code there */
    KT_EQ(backtrace((uintptr_t)frame, pc, FRAMES), 0);
    frame[0] = 0x1000;
    frame[1] = (uintptr_t)text_start;
    KT_EQ(backtrace((uintptr_t)frame, pc, FRAMES), 1);
}

KTEST(backtrace, frames_are_aligned)
{
    static uint32_t place[3];
    const uintptr_t frame[2] = {0, (uintptr_t)text_start};

    memcpy(place, frame, sizeof(frame));
    KT_EQ(backtrace((uintptr_t)place, pc, FRAMES), 1);
    memcpy((char *)place + 1, frame, sizeof(frame));
    KT_EQ(backtrace((uintptr_t)place + 1, pc, FRAMES), 0);
}

KTEST(backtrace, ends_in_a_circle)
{
    static uintptr_t frame[4];

    frame[0] = (uintptr_t)&frame[2];
    frame[1] = (uintptr_t)text_start;
    frame[2] = (uintptr_t)&frame[0];
    frame[3] = (uintptr_t)text_start + 1;
    KT_EQ(backtrace((uintptr_t)frame, pc, FRAMES), 2);
    KT_EQ(pc[0], (uintptr_t)text_start);
    KT_EQ(pc[1], (uintptr_t)text_start + 1);
}

/* ---- functions without a frame ------------------------------------------ */

/* GCC must not merge these equal functions, nor change their calls. */
#define APART static __attribute__((noipa))

APART uintptr_t return_address(void)
{
    return (uintptr_t)__builtin_return_address(0);
}

APART uintptr_t other_return_address(void)
{
    return (uintptr_t)__builtin_return_address(0);
}

static uintptr_t (*volatile through_pointer)(void) = return_address;

/* Looks for the caller of return_address at its first instruction, with these
 * words on the stack and the caller's frame after `n` of them. */
static uintptr_t caller(const uintptr_t *stack, unsigned n)
{
    return backtrace_leaf_caller((uintptr_t)return_address, (uintptr_t)stack,
                                 (uintptr_t)(stack + n));
}

KTEST(backtrace, leaf_after_a_direct_call)
{
    uintptr_t stack[] = {7, (uintptr_t)text_start, return_address(), 7};

    KT_TRUE(named(stack[2], "ktest_backtrace_leaf_after_a_direct_call"));
    KT_EQ(caller(stack, 4), stack[2]);
    KT_EQ(caller(stack, 2), 0);
}

KTEST(backtrace, leaf_after_an_indirect_call)
{
    uintptr_t stack[] = {7, through_pointer(), 7};

    KT_TRUE(named(stack[1], "ktest_backtrace_leaf_after_an_indirect_call"));
    KT_EQ(caller(stack, 3), stack[1]);
}

KTEST(backtrace, calls_of_this_function_come_first)
{
    uintptr_t stack[] = {through_pointer(), other_return_address(),
                         return_address()};

    KT_EQ(caller(stack, 3), stack[2]);
    KT_EQ(caller(stack, 2), stack[0]);
    KT_EQ(caller(stack + 1, 1), stack[1]);
}

KTEST(backtrace, a_function_with_a_frame_has_no_leaf_caller)
{
    uintptr_t stack[] = {return_address()};
    uintptr_t inside = walk_from_here() > 0 ? pc[0] : 0;

    KT_EQ(
        backtrace_leaf_caller(inside, (uintptr_t)stack, (uintptr_t)(stack + 1)),
        0);
    KT_EQ(
        backtrace_leaf_caller(0x1000, (uintptr_t)stack, (uintptr_t)(stack + 1)),
        0);
}

/* Every form of an indirect call, and what only looks like one; after 8 bytes
 * of nop, so that each is found by its own length. */
#define NOPS 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90

static const struct {
    uint8_t nops[8];
    uint8_t code[8];
    uint32_t length;
    uint32_t is_call;
} forms[] __attribute__((section(".text.forms"))) = {
    {{NOPS}, {0xFF, 0xD0}, 2, 1},                   /* *%eax */
    {{NOPS}, {0xFF, 0xD4}, 2, 1},                   /* *%esp */
    {{NOPS}, {0xFF, 0x13}, 2, 1},                   /* *(%ebx) */
    {{NOPS}, {0xFF, 0x14, 0x24}, 3, 1},             /* *(%esp) */
    {{NOPS}, {0xFF, 0x50, 0x08}, 3, 1},             /* *8(%eax) */
    {{NOPS}, {0xFF, 0x54, 0x83, 0x08}, 4, 1},       /* *8(%ebx,%eax,4) */
    {{NOPS}, {0xFF, 0x15, 1, 2, 3, 4}, 6, 1},       /* *0x4030201 */
    {{NOPS}, {0xFF, 0x93, 1, 2, 3, 4}, 6, 1},       /* *…(%ebx) */
    {{NOPS}, {0xFF, 0x14, 0x85, 1, 2, 3, 4}, 7, 1}, /* *…(,%eax,4) */
    {{NOPS}, {0xFF, 0x94, 0x83, 1, 2, 3, 4}, 7, 1}, /* *…(%ebx,%eax,4) */
    {{NOPS}, {0xFF, 0xE0}, 2, 0},                   /* jmp *%eax */
    {{NOPS}, {0xFF, 0x15, 1, 2, 3, 4}, 5, 0},       /* within a call */
    {{NOPS}, {0xFE, 0xD0}, 2, 0},                   /* not FF */
    {{NOPS}, {0xE8, 1, 0, 0, 0}, 5, 0},             /* of no function */
};

KTEST(backtrace, every_form_of_indirect_call)
{
    for (unsigned i = 0; i < ARRAY_SIZE(forms); i++) {
        uintptr_t ret = (uintptr_t)&forms[i].code[forms[i].length];
        uintptr_t found = caller(&ret, 1);

        if (found != (forms[i].is_call ? ret : 0))
            KT_FAIL("form %u: found 0x%lx", i, (unsigned long)found);
    }
}
