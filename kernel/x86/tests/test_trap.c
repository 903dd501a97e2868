/*
 * Exceptions (kernel/x86/trap.c): handlers and the words of a report.
 *
 * Tests: kernel/x86/trap.c, kernel/x86/cpu.c, kernel/x86/gdt.c
 */
#include "kernel/x86/trap.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/tests/fault.h"
#include "kernel/x86/tests/steps.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/protect.h"

bool trap_dispatch(struct trapframe *tf);

static unsigned calls;
static struct trapframe seen;
static uint32_t inside; /* EFLAGS in the handler */

static bool note(struct trapframe *tf)
{
    calls++;
    memcpy(&seen, tf, offsetof(struct trapframe, esp));
    inside = read_eflags();
    return true;
}

static bool note_and_skip(struct trapframe *tf)
{
    note(tf);
    tf->eip += FAULT_LENGTH;
    return true;
}

KTEST(trap, breakpoint_returns_through_its_handler)
{
    trap_handler_t before = trap_set_handler(TRAP_BREAKPOINT, note);
    uint32_t flags = read_eflags();

    calls = 0;
    fault_breakpoint();
    fault_breakpoint();
    KT_EQ(calls, 2);
    KT_EQ(seen.vector, TRAP_BREAKPOINT);
    KT_EQ(seen.error, 0);
    KT_EQ(seen.cs, GDT_KERNEL_CODE);
    KT_EQ(seen.ds & 0xffff, GDT_KERNEL_DATA);
    KT_EQ(seen.eflags & EFLAGS_IF, flags & EFLAGS_IF);
    KT_EQ(inside & EFLAGS_IF, 0);
    KT_EQ(read_eflags() & EFLAGS_IF, flags & EFLAGS_IF);
    KT_TRUE(trap_set_handler(TRAP_BREAKPOINT, before) == note);
}

KTEST(trap, undefined_opcode_is_skipped)
{
    trap_handler_t before = trap_set_handler(TRAP_OPCODE, note_and_skip);

    calls = 0;
    fault_opcode();
    KT_EQ(calls, 1);
    KT_EQ(seen.vector, TRAP_OPCODE);
    trap_set_handler(TRAP_OPCODE, before);
}

KTEST(trap, error_code_of_a_bad_selector)
{
    trap_handler_t before = trap_set_handler(TRAP_PROTECTION, note_and_skip);

    calls = 0;
    fault_protection();
    KT_EQ(calls, 1);
    KT_EQ(seen.vector, TRAP_PROTECTION);
    KT_EQ(seen.error, 0xfff8);
    trap_set_handler(TRAP_PROTECTION, before);
}

KTEST(trap, stack_pointer_of_ring_0)
{
    struct trapframe tf = {.vector = TRAP_PAGE_FAULT, .cs = GDT_KERNEL_CODE};

    tf.esp = 0x1234;
    KT_TRUE(trap_esp(&tf) == (uintptr_t)&tf.esp);
    tf.vector = TRAP_DOUBLE_FAULT;
    KT_EQ(trap_esp(&tf), 0x1234);
    tf.vector = TRAP_PAGE_FAULT;
    tf.cs = 0x1b;
    KT_EQ(trap_esp(&tf), 0x1234);
}

/* A program may set EFLAGS.AC, which in ring 0 would switch SMAP off. */
KTEST(trap, alignment_flag_does_not_reach_a_handler)
{
    trap_handler_t before = trap_set_handler(TRAP_BREAKPOINT, note);

    write_eflags(read_eflags() | EFLAGS_AC);
    fault_breakpoint();
    KT_EQ(read_eflags() & EFLAGS_AC, EFLAGS_AC);
    write_eflags(read_eflags() & ~EFLAGS_AC);
    KT_EQ(inside & EFLAGS_AC, protect_on() & PROTECT_SMAP ? 0 : EFLAGS_AC);
    trap_set_handler(TRAP_BREAKPOINT, before);
}

KTEST(trap, frames_of_programs)
{
    struct trapframe tf = {.cs = GDT_KERNEL_CODE, .eflags = EFLAGS_IF};

    KT_TRUE(!trap_from_user(&tf));
    tf.cs = GDT_USER_CODE;
    KT_TRUE(trap_from_user(&tf));
    tf.eflags |= EFLAGS_VM; /* CS is any number */
    KT_TRUE(trap_from_user(&tf));
    tf.cs = 0xf000;
    KT_TRUE(trap_from_user(&tf));
}

/* ---- lines whose handler goes ------------------------------------------ */

#define FREE_LINE 5

static unsigned at; /* the step before which the handler goes */
static unsigned handled;

static void handle_free_line(struct trapframe *tf UNUSED)
{
    handled++;
}

static void remove_handler(const struct trapframe *tf UNUSED, unsigned n)
{
    if (n == at)
        irq_set_handler(FREE_LINE, NULL);
}

static void raise_free_line(void)
{
    struct trapframe tf = {.vector = TRAP_IRQ_BASE + FREE_LINE,
                           .cs = GDT_KERNEL_CODE};

    trap_dispatch(&tf);
}

/* Another processor removes it before each instruction of the dispatch. */
KTEST(trap, a_handler_that_goes_is_called_or_not)
{
    if (!steps_work() || irq_taken(FREE_LINE))
        return;
    handled = 0;
    at = 0;
    do {
        at++;
        irq_set_handler(FREE_LINE, handle_free_line);
    } while (steps_run(raise_free_line, remove_handler) >= at);
    irq_set_handler(FREE_LINE, NULL);
    KT_GE(handled, 2);
    KT_LE(handled, at - 2);
}

/* The plain kernel does not load GS: it may have a program's selector. */
static uint32_t read_gs(void)
{
    uint32_t gs;

    __asm__ volatile("movl %%gs, %0" : "=r"(gs));
    return gs & 0xffff;
}

KTEST(trap, data_of_the_running_processor)
{
    uint32_t flags = irq_save();
    const struct cpu *cpu = cpu_self();

    KT_TRUE(cpu == &cpu_boot);
    KT_TRUE(cpu_running() == cpu->cpu_task);
    KT_TRUE(cpu_tss(cpu) == cpu->cpu_tss);
    KT_TRUE(cpu->cpu_tss == cpu->cpu_segments->segments_tss);
    KT_EQ(cpu->cpu_tss->ss0, GDT_KERNEL_DATA);
    irq_restore(flags);
}

KTEST(trap, registers_of_the_caller)
{
    struct trapframe tf;
    uintptr_t offset = 0;
    const char *name;

    memset(&tf, 0xee, sizeof(tf));
    trap_here(&tf);
    name = symbol_lookup(tf.eip, &offset);
    KT_TRUE(name != NULL &&
            strcmp(name, "ktest_trap_registers_of_the_caller") == 0);
    KT_TRUE(offset > 0);
    KT_EQ(tf.ebp, read_ebp());
    KT_TRUE(tf.esp < tf.ebp && tf.ebp - tf.esp < 512);
    KT_TRUE((uintptr_t)&tf >= tf.esp && (uintptr_t)&tf < tf.ebp);
    KT_EQ(tf.eax, (uintptr_t)&tf);
    KT_EQ(tf.cs, GDT_KERNEL_CODE);
    KT_EQ(tf.ss & 0xffff, GDT_KERNEL_DATA);
    KT_EQ(tf.ds & 0xffff, GDT_KERNEL_DATA);
    KT_EQ(tf.gs & 0xffff, read_gs());
    KT_EQ(tf.eflags & EFLAGS_IF, read_eflags() & EFLAGS_IF);
    KT_EQ(tf.vector, TRAP_NONE);
    KT_EQ(tf.error, 0);
}

KTEST(trap, every_exception_has_a_name_of_its_own)
{
    for (unsigned i = 0; i < TRAP_EXCEPTIONS; i++) {
        KT_REQUIRE(trap_name(i) != NULL);
        KT_TRUE(trap_name(i)[0] != '\0');
        for (unsigned j = 0; j < i; j++)
            KT_TRUE(strcmp(trap_name(i), trap_name(j)) != 0);
    }
    KT_TRUE(strstr(trap_name(TRAP_PAGE_FAULT), "#PF") != NULL);
    KT_TRUE(strstr(trap_name(TRAP_DOUBLE_FAULT), "#DF") != NULL);
    KT_TRUE(strcmp(trap_name(TRAP_EXCEPTIONS), "not an exception") == 0);
}

static void expect_words(uint32_t vector, uint32_t error, uint32_t cr2,
                         const char *want)
{
    struct trapframe tf = {.vector = vector, .error = error};
    char text[96] = "untouched";

    trap_describe(&tf, cr2, text, sizeof(text));
    if (strcmp(text, want) != 0)
        KT_FAIL("vector %u, error 0x%x: got \"%s\", want \"%s\"",
                (unsigned)vector, (unsigned)error, text, want);
}

KTEST(trap, page_faults_in_words)
{
    expect_words(TRAP_PAGE_FAULT, 0, 0x10,
                 "reading from 0x00000010 in ring 0: nothing is mapped there "
                 "(a null pointer?)");
    expect_words(TRAP_PAGE_FAULT, 0, 0x1000,
                 "reading from 0x00001000 in ring 0: nothing is mapped there");
    expect_words(TRAP_PAGE_FAULT, 3, 0xC0100000,
                 "writing to 0xc0100000 in ring 0: the page is protected");
    expect_words(TRAP_PAGE_FAULT, 7, 0xC0100000,
                 "writing to 0xc0100000 in ring 3: the page is protected");
    expect_words(TRAP_PAGE_FAULT, 4 | 16, 0x8000000,
                 "executing 0x08000000 in ring 3: nothing is mapped there");
    expect_words(TRAP_PAGE_FAULT, 9, 0xC0200000,
                 "reading from 0xc0200000 in ring 0: a reserved bit is set in "
                 "its entry");
}

KTEST(trap, selectors_in_words)
{
    expect_words(TRAP_PROTECTION, 0, 0, "no descriptor is named");
    expect_words(TRAP_PROTECTION, 0xfff8, 0, "entry 8191 of the GDT");
    expect_words(TRAP_PROTECTION, 3 << 3 | 4, 0, "entry 3 of the LDT");
    expect_words(TRAP_STACK, 64 << 3 | 3, 0,
                 "entry 64 of the IDT, an external event");
    expect_words(11, 2 << 3, 0, "entry 2 of the GDT");
    expect_words(TRAP_DIVIDE, 0, 0, "");
    expect_words(TRAP_DOUBLE_FAULT, 0, 0, "");
}
