/*
 * The interrupt table, and dispatch after the stubs in trap.asm.
 */
#include "kernel/x86/trap.h"
#include "kernel/lib/printf.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/panic.h"

#define GATE_INTERRUPT 0x8E00 /* present, ring 0, interrupts off inside */
#define GATE_TASK      0x8500 /* present, ring 0, switches tasks */
#define GATE_USER      0x6000 /* ring 3 may use it too */
#define GATE_SYSCALL   0xEF00 /* present, ring 3, interrupts as they were */
#define IRQ_CASCADE    2      /* the second controller */

extern const uint32_t trap_stubs[TRAP_VECTORS];
bool trap_dispatch(struct trapframe *tf);
void trap_double_fault_report(void);
void trap_syscall(void); /* trap.asm */

static uint64_t idt[TRAP_SYSCALL + 1];
static trap_handler_t handlers[TRAP_EXCEPTIONS];
static void (*irq_handlers[16])(struct trapframe *tf);
static uint32_t irq_counts[16];
static void (*irq_ack)(int irq);
static void (*preempt)(void);

static uint64_t gate(uint16_t selector, uint32_t offset, uint16_t type)
{
    return (uint64_t)(offset & 0xffff) | (uint64_t)selector << 16 |
           (uint64_t)((offset & 0xffff0000) | type) << 32;
}

void trap_load(void)
{
    struct {
        uint16_t limit;
        uint32_t base;
    } __attribute__((packed)) idtr = {sizeof(idt) - 1, (uint32_t)idt};

    __asm__ volatile("lidt %0" : : "m"(idtr));
}

void trap_set_gate(unsigned vector, uint32_t entry)
{
    idt[vector] = gate(GDT_KERNEL_CODE, entry, GATE_INTERRUPT);
}

void trap_init(void)
{
    for (unsigned i = 0; i < TRAP_VECTORS; i++)
        trap_set_gate(i, trap_stubs[i]);
    idt[TRAP_BREAKPOINT] |= (uint64_t)GATE_USER << 32;
    idt[TRAP_OVERFLOW] |= (uint64_t)GATE_USER << 32;
    idt[TRAP_DOUBLE_FAULT] = gate(GDT_DF_TSS, 0, GATE_TASK);
    idt[TRAP_SYSCALL] =
        gate(GDT_KERNEL_CODE, (uint32_t)trap_syscall, GATE_SYSCALL);
    trap_load();
}

trap_handler_t trap_set_handler(unsigned vector, trap_handler_t fn)
{
    trap_handler_t before = handlers[vector];

    handlers[vector] = fn;
    return before;
}

void irq_set_handler(int irq, void (*fn)(struct trapframe *tf))
{
    irq_handlers[irq] = fn;
}

bool irq_taken(int irq)
{
    return irq == IRQ_CASCADE || irq_handlers[irq] != NULL;
}

uintptr_t irq_handler(int irq)
{
    return (uintptr_t)irq_handlers[irq];
}

uint32_t irq_count(int irq)
{
    return irq_counts[irq];
}

void irq_set_ack(void (*fn)(int irq))
{
    irq_ack = fn;
}

void trap_set_preempt(void (*fn)(void))
{
    preempt = fn;
}

void trap_preempt(const struct trapframe *tf)
{
    if (preempt != NULL && !trap_from_user(tf))
        preempt();
}

/* Another processor may remove the handler meanwhile, so it is read once. */
static void handle_irq(struct trapframe *tf, int irq)
{
    void (*handler)(struct trapframe * tf);

    irq_counts[irq]++;
    if (irq_ack != NULL)
        irq_ack(irq);
    if (panic_happened()) /* it has only ended a halt (drivers/console.c) */
        return;
    handler = __atomic_load_n(&irq_handlers[irq], __ATOMIC_ACQUIRE);
    if (handler != NULL)
        handler(tf);
    trap_preempt(tf);
}

/* Called by trap.asm. Returns whether a program was interrupted. */
bool trap_dispatch(struct trapframe *tf)
{
    if (tf->vector >= TRAP_IRQ_BASE)
        handle_irq(tf, (int)tf->vector - TRAP_IRQ_BASE);
    else if (handlers[tf->vector] == NULL || !handlers[tf->vector](tf))
        panic_trap(tf);
    return trap_from_user(tf);
}

/* ---- double fault ------------------------------------------------------- */

/* Builds a trap frame from what the task switch saved. The report and the shell
 * after it run on the double fault's stack. It has a guard page too: an
 * overflow there is another double fault, which starts at its top. */
void trap_double_fault_report(void)
{
    const struct tss *t = gdt_interrupted();
    struct trapframe tf = {
        .edi = t->edi,
        .esi = t->esi,
        .ebp = t->ebp,
        .ebx = t->ebx,
        .edx = t->edx,
        .ecx = t->ecx,
        .eax = t->eax,
        .ds = t->ds,
        .es = t->es,
        .fs = t->fs,
        .gs = t->gs,
        .vector = TRAP_DOUBLE_FAULT,
        .eip = t->eip,
        .cs = t->cs,
        .eflags = t->eflags,
        .esp = t->esp,
        .ss = t->ss,
    };

    gdt_leave_fault_task();
    panic_trap(&tf);
}

uintptr_t trap_esp(const struct trapframe *tf)
{
    return tf->vector == TRAP_DOUBLE_FAULT || tf->vector == TRAP_NONE ||
                   trap_from_user(tf)
               ? tf->esp
               : (uintptr_t)&tf->esp;
}

/* ---- words -------------------------------------------------------------- */

const char *trap_name(unsigned vector)
{
    static const char *const names[TRAP_EXCEPTIONS] = {
        "divide error (#DE)",
        "debug (#DB)",
        "non-maskable interrupt",
        "breakpoint (#BP)",
        "overflow (#OF)",
        "bound range exceeded (#BR)",
        "invalid opcode (#UD)",
        "no floating-point unit (#NM)",
        "double fault (#DF)",
        "coprocessor segment overrun",
        "invalid task state (#TS)",
        "segment not present (#NP)",
        "stack fault (#SS)",
        "general protection (#GP)",
        "page fault (#PF)",
        "reserved exception 15",
        "floating-point error (#MF)",
        "alignment check (#AC)",
        "machine check (#MC)",
        "SIMD floating-point (#XM)",
        "virtualisation (#VE)",
        "control protection (#CP)",
        "reserved exception 22",
        "reserved exception 23",
        "reserved exception 24",
        "reserved exception 25",
        "reserved exception 26",
        "reserved exception 27",
        "hypervisor injection (#HV)",
        "VMM communication (#VC)",
        "security (#SX)",
        "reserved exception 31",
    };

    return vector < TRAP_EXCEPTIONS ? names[vector] : "not an exception";
}

/* Volume 3, figure 6-11: the error code of a page fault. */
static void describe_page_fault(const struct trapframe *tf, uint32_t cr2,
                                char *buf, size_t size)
{
    int ring = tf->error & 4 ? 3 : 0;
    const char *what = tf->error & 16  ? "executing"
                       : tf->error & 2 ? "writing to"
                                       : "reading from";
    const char *why = tf->error & 8   ? "a reserved bit is set in its entry"
                      : tf->error & 1 ? "the page is protected"
                                      : "nothing is mapped there";

    snprintf(buf, size, "%s 0x%08x in ring %d: %s%s", what, (unsigned)cr2, ring,
             why, cr2 < PAGE_SIZE ? " (a null pointer?)" : "");
}

/* Volume 3, figure 6-7: an error code that names a descriptor. */
static void describe_selector(const struct trapframe *tf, char *buf,
                              size_t size)
{
    static const char *const tables[] = {"GDT", "IDT", "LDT", "IDT"};

    if (tf->error == 0)
        snprintf(buf, size, "no descriptor is named");
    else
        snprintf(buf, size, "entry %u of the %s%s", (unsigned)tf->error >> 3,
                 tables[tf->error >> 1 & 3],
                 tf->error & 1 ? ", an external event" : "");
}

void trap_describe(const struct trapframe *tf, uint32_t cr2, char *buf,
                   size_t size)
{
    switch (tf->vector) {
    case TRAP_PAGE_FAULT:
        describe_page_fault(tf, cr2, buf, size);
        break;
    case 10: /* #TS, #NP, #SS, #GP: a selector */
    case 11:
    case TRAP_STACK:
    case TRAP_PROTECTION:
        describe_selector(tf, buf, size);
        break;
    default:
        buf[0] = '\0';
    }
}
