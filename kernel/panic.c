/*
 * Panics: a report of the error, the place and the callers, and then the hook
 * to inspect the stopped machine (HOOK_INSPECT): the kernel shell. Where nobody
 * would type there (panic=exit), the machine ends instead.
 *
 * A panic may come from anywhere, interrupt handlers and the allocator
 * included. It disables interrupts, switches the console to polling, and uses
 * no memory but the stack.
 */
#include "kernel/x86/panic.h"
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "drivers/power.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/option.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/task/task.h"
#include "kernel/x86/backtrace.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/paging.h"
#include "kernel/x86/trap.h"
#include "mm/debug/debug.h"

#define FRAMES_MAX 24

/* Nested panics that the stack has room for. */
#define PANICS_MAX 5

/* Of the first panic: later ones are its consequences. */
static uintptr_t frames[FRAMES_MAX];
static unsigned frame_count;
static bool frames_trapped;
static unsigned depth;
static bool pretended;
static const struct cpu *panicking;

bool panic_exits;

static bool set_exits(char *value)
{
    bool exits = strcmp(value, "exit") == 0;

    if (!exits && strcmp(value, "shell") != 0)
        return false;
    panic_exits = exits;
    return true;
}

BOOT_OPTION(exits, "panic=", "panic=shell|exit",
            "after a panic: a shell to inspect it, or power off", set_exits);

bool panic_happened(void)
{
    return depth != 0 || pretended;
}

bool panic_reported(void)
{
    return depth != 0;
}

static const char *place_name(uintptr_t pc, bool trapped, char *text,
                              size_t size)
{
    return trapped ? symbol_format(pc, text, size)
                   : symbol_caller(pc, text, size);
}

void print_frames(const uintptr_t *pc, unsigned n, bool trapped)
{
    char text[64];

    for (unsigned i = 0; i < n; i++)
        kprintf("  %2u  0x%08lx  %s\n", i, (unsigned long)pc[i],
                place_name(pc[i], trapped && i == 0, text, sizeof(text)));
}

void panic_backtrace(void)
{
    print_frames(frames, frame_count, frames_trapped);
}

void print_backtrace_here(void)
{
    uintptr_t pc[FRAMES_MAX];

    print_frames(pc, backtrace(read_ebp(), pc, FRAMES_MAX), false);
}

/* ---- parts of the report ------------------------------------------------ */

/* One processor reports. Others that panic at the same time wait until it stops
 * them. */
static void panic_claim(void)
{
    const struct cpu *other = NULL;

    if (__atomic_compare_exchange_n(&panicking, &other, cpu_self(), false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
        other == cpu_self())
        return;
    for (;;)
        cpu_halt();
}

void panic_pretend(void)
{
    pretended = true;
    cpu_self()->cpu_locks = 0;
}

static __attribute__((noreturn)) void end(void)
{
    if (panic_exits)
        power_exit(PANIC_EXIT);
    console_drain();
    for (;;)
        cpu_halt();
}

static void panic_begin(void)
{
    irq_disable();
    panic_claim();
    if (depth == 0)
        hooks_run(HOOK_STOP_CPUS, NULL);
    depth++; /* from now on spin_wait breaks locks: others must not do so */
    cpu_self()->cpu_locks = 0;
    console_panic_mode();
    if (depth == PANICS_MAX + 1) /* once: printing may be what panics */
        kprintf("\npanic: too many panics; halted\n");
    if (depth > PANICS_MAX)
        end();
}

static void headline(const char *text, uintptr_t pc, bool trapped)
{
    char where[64];
    char escaped[320];

    place_name(pc, trapped, where, sizeof(where));
    console_colour(CONSOLE_RED);
    kprintf("\npanic: %s\n", text);
    console_colour(CONSOLE_PLAIN);
    debugcon_escape(text, escaped, sizeof(escaped));
    debugcon_event("{\"event\":\"panic\",\"text\":\"%s\",\"at\":\"%s\"}",
                   escaped, where);
}

static void print_registers(const struct trapframe *tf, uint32_t cr2)
{
    kprintf("  eax %08x  ebx %08x  ecx %08x  edx %08x\n", (unsigned)tf->eax,
            (unsigned)tf->ebx, (unsigned)tf->ecx, (unsigned)tf->edx);
    kprintf("  esi %08x  edi %08x  ebp %08x  esp %08lx\n", (unsigned)tf->esi,
            (unsigned)tf->edi, (unsigned)tf->ebp, (unsigned long)trap_esp(tf));
    kprintf("  eip %08x  eflags %08x  cs %04x  ds %04x\n", (unsigned)tf->eip,
            (unsigned)tf->eflags, (unsigned)tf->cs & 0xffff,
            (unsigned)tf->ds & 0xffff);
    kprintf("  cr0 %08x  cr2 %08x  cr3 %08x  error %x\n", (unsigned)read_cr0(),
            (unsigned)cr2, (unsigned)read_cr3(), (unsigned)tf->error);
}

/* Reports where the machine was, and stops. After a trap the frames begin with
 * the instruction, and the caller of a function without a frame. */
static void __attribute__((noreturn))
report(const struct trapframe *tf, uint32_t cr2, const char *text)
{
    bool trapped = tf->vector != TRAP_NONE;
    uintptr_t pc[FRAMES_MAX];
    unsigned n = 0;

    if (trapped) {
        pc[n++] = tf->eip;
        pc[n] = backtrace_leaf_caller(tf->eip, trap_esp(tf), tf->ebp);
        n += pc[n] != 0;
    }
    n += backtrace(tf->ebp, pc + n, FRAMES_MAX - n);
    if (depth == 1) {
        memcpy(frames, pc, n * sizeof(pc[0]));
        frame_count = n;
        frames_trapped = trapped;
    }
    headline(text, n == 0 ? 0 : pc[0], trapped);
    print_registers(tf, cr2);
    print_frames(pc, n, trapped);
    hooks_run(HOOK_REPORT, NULL);
    hooks_run(HOOK_STOPPED, NULL);
    if (!panic_exits)
        hooks_run(HOOK_INSPECT, NULL);
    end();
}

/* ---- entry points ------------------------------------------------------- */

void panic(const char *fmt, ...)
{
    struct trapframe tf;
    char text[256];
    va_list ap;

    trap_here(&tf);
    panic_begin();
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    hooks_run(HOOK_PANIC, text);
    report(&tf, read_cr2(), text);
}

void panic_at(struct trapframe *tf, const char *text)
{
    panic_begin();
    hooks_run(HOOK_PANIC, text);
    report(tf, read_cr2(), text);
}

/* The guard page that a double fault ran into: a stack that overflowed. 0 if it
 * was something else. */
static vaddr_t hit_guard_page(const struct trapframe *tf, uint32_t cr2)
{
    const struct task *self = task_self();
    vaddr_t page = cr2 & ~PAGE_MASK;

    if (tf->vector == TRAP_DOUBLE_FAULT &&
        (page == (vaddr_t)boot_stack_guard ||
         page == gdt_fault_guard(cpu_self()) ||
         (self != NULL && page == (vaddr_t)self->task_kstack)))
        return page;
    return 0;
}

void panic_trap(struct trapframe *tf)
{
    uint32_t cr2 = read_cr2();
    char what[96];
    char text[160];
    vaddr_t guard;

    panic_begin();
    trap_describe(tf, cr2, what, sizeof(what));
    guard = hit_guard_page(tf, cr2);
    if (guard != 0)
        snprintf(text, sizeof(text),
                 "kernel stack overflow: the guard page at 0x%08lx was hit",
                 (unsigned long)guard);
    else
        snprintf(text, sizeof(text), "%s%s%s", trap_name(tf->vector),
                 what[0] != '\0' ? ": " : "", what);
    hooks_run(HOOK_PANIC, text);
    if (tf->vector == TRAP_PAGE_FAULT)
        kmem_fault((const void *)cr2);
    report(tf, cr2, text);
}
