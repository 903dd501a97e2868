/*
 * Instructions that a program may not execute, or that raise an exception in
 * it; and unusual states of the processor at the entry to the kernel, which
 * must work in all of them.
 */
#include "user/tests/usertests/test.h"
#include "user/lib/string.h"

/* A case of a few instructions. */
#define INSTRUCTIONS(name, signal, text)                                       \
    TEST_KILLED(trap, name, signal)                                            \
    {                                                                          \
        __asm__ volatile(text ::: "eax", "ecx", "edx", "memory");              \
    }

INSTRUCTIONS(hlt, SIGSEGV, "hlt")
INSTRUCTIONS(cli, SIGSEGV, "cli")
INSTRUCTIONS(sti, SIGSEGV, "sti")
INSTRUCTIONS(in, SIGSEGV, "inb $0x60, %%al")
INSTRUCTIONS(out, SIGSEGV, "outb %%al, $0xe9")
INSTRUCTIONS(lidt, SIGSEGV, "lidt 0x400000")
INSTRUCTIONS(lgdt, SIGSEGV, "lgdt 0x400000")
INSTRUCTIONS(ltr, SIGSEGV, "movl $0x28, %%eax\n ltr %%ax")
INSTRUCTIONS(read_cr0, SIGSEGV, "movl %%cr0, %%eax")
INSTRUCTIONS(write_cr0, SIGSEGV, "movl %%eax, %%cr0")
INSTRUCTIONS(write_cr3, SIGSEGV, "xorl %%eax, %%eax\n movl %%eax, %%cr3")
INSTRUCTIONS(invlpg, SIGSEGV, "invlpg 0x400000")
INSTRUCTIONS(clts, SIGSEGV, "clts")
INSTRUCTIONS(wrmsr, SIGSEGV, "xorl %%ecx, %%ecx\n wrmsr")
INSTRUCTIONS(kernel_data, SIGSEGV, "movl $0x10, %%eax\n movw %%ax, %%ds")
INSTRUCTIONS(kernel_code, SIGSEGV, "lcall $0x08, $0xc0100000")
INSTRUCTIONS(fake_interrupt, SIGSEGV, "int $0x20")
INSTRUCTIONS(fake_page_fault, SIGSEGV, "int $0x0e")
INSTRUCTIONS(fake_double_fault, SIGSEGV, "int $0x08")
INSTRUCTIONS(divide, SIGFPE,
             "xorl %%ecx, %%ecx\n movl $1, %%eax\n cltd\n idivl %%ecx")
INSTRUCTIONS(breakpoint, SIGTRAP, "int3")
INSTRUCTIONS(overflow, SIGFPE, "movb $0x7f, %%al\n incb %%al\n into")
INSTRUCTIONS(opcode, SIGILL, "ud2")
INSTRUCTIONS(floating_point, SIGILL, "fld1")
INSTRUCTIONS(single_step, SIGTRAP,
             "pushfl\n orl $0x100, (%%esp)\n popfl\n nop\n nop")
INSTRUCTIONS(no_stack, SIGSEGV, "xorl %%esp, %%esp\n pushl %%eax")
INSTRUCTIONS(io_privilege, SIGSEGV,
             "pushfl\n orl $0x3000, (%%esp)\n popfl\n cli")
INSTRUCTIONS(debug_register, SIGSEGV, "movl %%eax, %%dr0")
INSTRUCTIONS(lldt, SIGSEGV, "xorl %%eax, %%eax\n lldt %%ax")
INSTRUCTIONS(sysenter, SIGSEGV, "sysenter")
INSTRUCTIONS(no_gate, SIGSEGV, "int $0x60")
INSTRUCTIONS(beyond_gates, SIGSEGV, "int $0xff")
INSTRUCTIONS(local_table, SIGSEGV, "movl $7, %%eax\n movw %%ax, %%gs")
INSTRUCTIONS(beyond_table, SIGSEGV, "movl $0x43, %%eax\n movw %%ax, %%gs")
/* The segment of the processor's own data in the kernel. */
INSTRUCTIONS(processor_segment, SIGSEGV, "movl $0x38, %%eax\n movw %%ax, %%gs")
INSTRUCTIONS(processor_segment_3, SIGSEGV,
             "movl $0x3b, %%eax\n movw %%ax, %%gs")
INSTRUCTIONS(null_stack, SIGSEGV, "xorl %%eax, %%eax\n movw %%ax, %%ss")
INSTRUCTIONS(task_switch, SIGSEGV, "lcall $0x18, $0")
INSTRUCTIONS(fault_task_switch, SIGSEGV, "ljmp $0x20, $0")
INSTRUCTIONS(return_inwards, SIGSEGV, "pushl $8\n pushl $0xc0100000\n lretl")
/* iret with the flag that makes it return to another task. */
INSTRUCTIONS(nested_iret, SIGSEGV,
             "pushfl\n orl $0x4000, (%%esp)\n popfl\n iretl")
/* iret to ring 0, as if the program had been called from there. */
INSTRUCTIONS(iret, SIGSEGV, "pushfl\n pushl $8\n pushl $0xc0100000\n iretl")

/* Clearing the interrupt flag by popf has no effect: the clock continues. */
TEST(trap, popf)
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
TEST(trap, virtual_8086)
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

TEST(trap, tables)
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

TEST(trap, null_segments)
{
    EQUAL(getpid_with_null_segments(), getpid());
}

TEST(trap, no_stack_call)
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
TEST(trap, flags)
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
TEST_KILLED(trap, step_into_call, SIGTRAP)
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
TEST(trap, direction)
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
TEST(trap, registers)
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
