/*
 * Instructions that a program may not execute, or that raise an exception in
 * it; and unusual states of the processor at the entry to the kernel, which
 * must work in all of them.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/string.h"

/* A case of a few instructions. */
#define INSTRUCTIONS(name, text)                                               \
    static void trap_##name(void)                                              \
    {                                                                          \
        __asm__ volatile(text ::: "eax", "ecx", "edx", "memory");              \
    }

INSTRUCTIONS(hlt, "hlt")
INSTRUCTIONS(cli, "cli")
INSTRUCTIONS(sti, "sti")
INSTRUCTIONS(in, "inb $0x60, %%al")
INSTRUCTIONS(out, "outb %%al, $0xe9")
INSTRUCTIONS(lidt, "lidt 0x400000")
INSTRUCTIONS(lgdt, "lgdt 0x400000")
INSTRUCTIONS(ltr, "movl $0x28, %%eax\n ltr %%ax")
INSTRUCTIONS(read_cr0, "movl %%cr0, %%eax")
INSTRUCTIONS(write_cr0, "movl %%eax, %%cr0")
INSTRUCTIONS(write_cr3, "xorl %%eax, %%eax\n movl %%eax, %%cr3")
INSTRUCTIONS(invlpg, "invlpg 0x400000")
INSTRUCTIONS(clts, "clts")
INSTRUCTIONS(wrmsr, "xorl %%ecx, %%ecx\n wrmsr")
INSTRUCTIONS(kernel_data, "movl $0x10, %%eax\n movw %%ax, %%ds")
INSTRUCTIONS(kernel_code, "lcall $0x08, $0xc0100000")
INSTRUCTIONS(fake_interrupt, "int $0x20")
INSTRUCTIONS(fake_page_fault, "int $0x0e")
INSTRUCTIONS(fake_double_fault, "int $0x08")
INSTRUCTIONS(divide, "xorl %%ecx, %%ecx\n movl $1, %%eax\n cltd\n idivl %%ecx")
INSTRUCTIONS(breakpoint, "int3")
INSTRUCTIONS(overflow, "movb $0x7f, %%al\n incb %%al\n into")
INSTRUCTIONS(opcode, "ud2")
INSTRUCTIONS(floating_point, "fld1")
INSTRUCTIONS(single_step, "pushfl\n orl $0x100, (%%esp)\n popfl\n nop\n nop")
INSTRUCTIONS(no_stack, "xorl %%esp, %%esp\n pushl %%eax")
INSTRUCTIONS(io_privilege, "pushfl\n orl $0x3000, (%%esp)\n popfl\n cli")
INSTRUCTIONS(debug_register, "movl %%eax, %%dr0")
INSTRUCTIONS(lldt, "xorl %%eax, %%eax\n lldt %%ax")
INSTRUCTIONS(sysenter, "sysenter")
INSTRUCTIONS(no_gate, "int $0x60")
INSTRUCTIONS(beyond_gates, "int $0xff")
INSTRUCTIONS(local_table, "movl $7, %%eax\n movw %%ax, %%gs")
INSTRUCTIONS(beyond_table, "movl $0x43, %%eax\n movw %%ax, %%gs")
/* The segment of the processor's own data in the kernel. */
INSTRUCTIONS(processor_segment, "movl $0x38, %%eax\n movw %%ax, %%gs")
INSTRUCTIONS(processor_segment_3, "movl $0x3b, %%eax\n movw %%ax, %%gs")
INSTRUCTIONS(null_stack, "xorl %%eax, %%eax\n movw %%ax, %%ss")
INSTRUCTIONS(task_switch, "lcall $0x18, $0")
INSTRUCTIONS(fault_task_switch, "ljmp $0x20, $0")
INSTRUCTIONS(return_inwards, "pushl $8\n pushl $0xc0100000\n lretl")
/* iret with the flag that makes it return to another task. */
INSTRUCTIONS(nested_iret, "pushfl\n orl $0x4000, (%%esp)\n popfl\n iretl")
/* iret to ring 0, as if the program had been called from there. */
INSTRUCTIONS(iret, "pushfl\n pushl $8\n pushl $0xc0100000\n iretl")

/* Clearing the interrupt flag by popf has no effect: the clock continues. */
static void trap_popf(void)
{
    uint32_t before = uptime_ms();
    uint32_t flags;

    __asm__ volatile("pushfl\n andl $~0x200, (%%esp)\n popfl\n"
                     "pushfl\n popl %0"
                     : "=r"(flags)::"cc", "memory");
    EQUAL(flags & 0x200, 0x200);
    while (uptime_ms() == before)
        continue;
}

/* ---- virtual-8086 mode -------------------------------------------------- */

/* iret with EFLAGS.VM set, to a code segment whose RPL is 0. In ring 3 a
 * processor refuses the segment. QEMU 7.2 enters virtual-8086 mode, with the
 * segments, the I/O privilege and the interrupt flag of the words on the
 * stack. */
static void iret_to_virtual_8086(int flags)
{
    __asm__ volatile("pushl $0\n pushl $0\n pushl $0\n pushl $0\n"
                     "pushl $0x10\n pushl $0x100\n"
                     "pushl %0\n pushl $0\n pushl $0x7c00\n iretl"
                     :
                     : "r"(flags)
                     : "memory", "cc");
}

/* Also with the highest I/O privilege, and with the flags for single steps,
 * nested tasks and alignment checks; interrupts enabled and disabled. */
static void trap_virtual_8086(void)
{
    static const int flags[] = {0x20202, 0x20002, 0x23202, 0x23002, 0x67302};

    for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        expect_signal(spawn(iret_to_virtual_8086, flags[i]), SIGSEGV);
}

/* ---- the addresses of the kernel's tables ------------------------------- */

/* Whether the processor can forbid these instructions (UMIP): CPUID, leaf 7. */
static bool can_forbid(void)
{
    uint32_t eax = 0, ebx, ecx = 0, edx;

    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    if (eax < 7)
        return false;
    eax = 7;
    ecx = 0;
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return (ecx & 1u << 2) != 0;
}

static void read_table(int which)
{
    uint8_t where[6];
    uint32_t value;

    switch (which) {
    case 0:
        __asm__ volatile("sgdt %0" : "=m"(where));
        break;
    case 1:
        __asm__ volatile("sidt %0" : "=m"(where));
        break;
    case 2:
        __asm__ volatile("sldt %0" : "=r"(value));
        break;
    case 3:
        __asm__ volatile("str %0" : "=r"(value));
        break;
    default:
        __asm__ volatile("smsw %0" : "=r"(value));
    }
}

static void trap_tables(void)
{
    for (int which = 0; which < 5; which++)
        if (can_forbid())
            expect_signal(spawn(read_table, which), SIGSEGV);
        else
            expect_exit(spawn(read_table, which), 0);
}

/* ---- odd ways into the kernel ------------------------------------------- */

static int32_t getpid_with_null_segments(void)
{
    int32_t pid;

    __asm__ volatile("pushl %%ds\n pushl %%es\n"
                     "xorl %%eax, %%eax\n"
                     "movw %%ax, %%fs\n movw %%ax, %%gs\n"
                     "movw %%ax, %%es\n movw %%ax, %%ds\n"
                     "movl %1, %%eax\n int $0x80\n"
                     "popl %%es\n popl %%ds"
                     : "=&a"(pid)
                     : "i"(SYS_getpid)
                     : "memory");
    return pid;
}

static void trap_null_segments(void)
{
    EQUAL(getpid_with_null_segments(), getpid());
}

static void trap_no_stack_call(void)
{
    int32_t pid;

    __asm__ volatile("movl %%esp, %%esi\n movl $3, %%esp\n"
                     "int $0x80\n movl %%esi, %%esp"
                     : "=a"(pid)
                     : "a"(SYS_getpid)
                     : "esi", "memory");
    EQUAL(pid, getpid());
}

/* A program's flags for alignment checks, single steps and nested tasks must
 * not affect the kernel: no trap, no return to another task. */
static void trap_flags(void)
{
    static const uint32_t flags[] = {0x40000, 0x4000, 0x44000, 0x200000};

    for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        int32_t result;
        uint32_t after;

        __asm__ volatile("pushfl\n orl %3, (%%esp)\n popfl\n"
                         "int $0x80\n"
                         "pushfl\n popl %1\n"
                         "pushfl\n andl %4, (%%esp)\n popfl"
                         : "=a"(result), "=&S"(after)
                         : "a"(SYS_sleep), "D"(flags[i]), "d"(~flags[i]),
                           "b"(20)
                         : "memory", "cc");
        EQUAL(result, 0);
        EQUAL(after & flags[i], flags[i]);
    }
}

/* A single step into a system call ends after it. */
static void trap_step_into_call(void)
{
    int32_t pid;

    __asm__ volatile("pushfl\n orl $0x100, (%%esp)\n"
                     "movl %1, %%eax\n movw %%ss, %%cx\n"
                     "popfl\n movw %%cx, %%ss\n int $0x80\n nop"
                     : "=&a"(pid)
                     : "i"(SYS_getpid)
                     : "ecx", "memory", "cc");
}

/* String instructions of the kernel must not run backwards. */
static void trap_direction(void)
{
    static char from[64] = "forwards, whatever the flag says";
    static char to[64];
    int ends[2];
    int32_t n;

    make_pipe(ends);
    EQUAL(write(ends[1], from, sizeof(from)), sizeof(from));
    __asm__ volatile("std\n int $0x80\n cld"
                     : "=a"(n)
                     : "a"(SYS_read), "b"(ends[0]), "c"(to), "d"(sizeof(to))
                     : "memory");
    EQUAL(n, sizeof(to));
    EQUAL(memcmp(from, to, sizeof(to)), 0);
}

/* A call changes EAX and nothing else. */
static void trap_registers(void)
{
    uint32_t b = 0x11111111, c = 0x22222222, d = 0x33333333;
    uint32_t si = 0x44444444, di = 0x55555555;
    uint32_t number = SYS_uptime;

    for (int i = 0; i < 100; i++) {
        __asm__ volatile("int $0x80"
                         : "+a"(number), "+b"(b), "+c"(c), "+d"(d), "+S"(si),
                           "+D"(di)::"memory");
        number = i % 2 ? SYS_uptime : SYS_yield;
    }
    EQUAL(b, 0x11111111);
    EQUAL(c, 0x22222222);
    EQUAL(d, 0x33333333);
    EQUAL(si, 0x44444444);
    EQUAL(di, 0x55555555);
}

const struct test trap_tests[] = {
    TEST_KILLED(trap, hlt, SIGSEGV),
    TEST_KILLED(trap, cli, SIGSEGV),
    TEST_KILLED(trap, sti, SIGSEGV),
    TEST_KILLED(trap, in, SIGSEGV),
    TEST_KILLED(trap, out, SIGSEGV),
    TEST_KILLED(trap, lidt, SIGSEGV),
    TEST_KILLED(trap, lgdt, SIGSEGV),
    TEST_KILLED(trap, ltr, SIGSEGV),
    TEST_KILLED(trap, read_cr0, SIGSEGV),
    TEST_KILLED(trap, write_cr0, SIGSEGV),
    TEST_KILLED(trap, write_cr3, SIGSEGV),
    TEST_KILLED(trap, invlpg, SIGSEGV),
    TEST_KILLED(trap, clts, SIGSEGV),
    TEST_KILLED(trap, wrmsr, SIGSEGV),
    TEST_KILLED(trap, kernel_data, SIGSEGV),
    TEST_KILLED(trap, kernel_code, SIGSEGV),
    TEST_KILLED(trap, fake_interrupt, SIGSEGV),
    TEST_KILLED(trap, fake_page_fault, SIGSEGV),
    TEST_KILLED(trap, fake_double_fault, SIGSEGV),
    TEST_KILLED(trap, divide, SIGFPE),
    TEST_KILLED(trap, breakpoint, SIGTRAP),
    TEST_KILLED(trap, overflow, SIGFPE),
    TEST_KILLED(trap, opcode, SIGILL),
    TEST_KILLED(trap, floating_point, SIGILL),
    TEST_KILLED(trap, single_step, SIGTRAP),
    TEST_KILLED(trap, no_stack, SIGSEGV),
    TEST_KILLED(trap, io_privilege, SIGSEGV),
    TEST_KILLED(trap, iret, SIGSEGV),
    TEST_KILLED(trap, debug_register, SIGSEGV),
    TEST_KILLED(trap, lldt, SIGSEGV),
    TEST_KILLED(trap, sysenter, SIGSEGV),
    TEST_KILLED(trap, no_gate, SIGSEGV),
    TEST_KILLED(trap, beyond_gates, SIGSEGV),
    TEST_KILLED(trap, local_table, SIGSEGV),
    TEST_KILLED(trap, beyond_table, SIGSEGV),
    TEST_KILLED(trap, processor_segment, SIGSEGV),
    TEST_KILLED(trap, processor_segment_3, SIGSEGV),
    TEST_KILLED(trap, null_stack, SIGSEGV),
    TEST_KILLED(trap, task_switch, SIGSEGV),
    TEST_KILLED(trap, fault_task_switch, SIGSEGV),
    TEST_KILLED(trap, return_inwards, SIGSEGV),
    TEST_KILLED(trap, nested_iret, SIGSEGV),
    TEST_KILLED(trap, step_into_call, SIGTRAP),
    TEST(trap, virtual_8086),
    TEST(trap, tables),
    TEST(trap, flags),
    TEST(trap, popf),
    TEST(trap, null_segments),
    TEST(trap, no_stack_call),
    TEST(trap, direction),
    TEST(trap, registers),
    TEST_END,
};
