/*
 * The processor: its registers and instructions, and its own data in the kernel
 * (Intel SDM volume 2 and volume 3, chapter 2).
 */
#pragma once

#include "kernel/lib/types.h"

#define EFLAGS_IF (1u << 9)
#define EFLAGS_VM (1u << 17) /* virtual-8086 mode: a program's */
#define EFLAGS_AC (1u << 18) /* in ring 0: see protect.h */

struct segments;
struct spinlock;
struct task;
struct trapframe;
struct tss;
struct tss_and_ports;

#define CPUS_MAX      8
#define CPU_LOCKS_MAX 8

/*
 * Data of one processor. With CONFIG_SMP its segment, in GS while the kernel
 * runs, begins here (gdt.h), so that each processor reaches its own.
 */
struct cpu {
#ifdef CONFIG_SMP
    struct cpu *cpu_this; /* its own address: at gs:0 */
#endif
    struct task *cpu_task; /* the running task: trap.asm loads it. NULL until
                              there are tasks. */
    struct task *cpu_idle; /* runs when no other task can */
    unsigned cpu_number;
    uint32_t cpu_bit;      /* 1 << cpu_number; 0: only its idle task may run */
    uint32_t cpu_switches; /* to another task */
    uint64_t cpu_since_ms; /* when it started */
    uint32_t cpu_eflags;   /* before cpu_enter */
    struct segments *cpu_segments; /* gdt.h */
    struct tss *cpu_tss;           /* of its segments */
    unsigned cpu_locks;            /* locks held, in debug builds */
    struct spinlock *cpu_lock[CPU_LOCKS_MAX];
    uint8_t cpu_apic;      /* the number of its local APIC */
    vaddr_t cpu_halted_at; /* of ipi_stop_others: a frame of where it is */
    /* After a panic on another processor: where this one was stopped. */
    const struct trapframe *volatile cpu_stopped;
};

extern struct cpu cpu_boot; /* of the processor that boots */

/* By number: those that run kernel code, others are NULL. Each processor enters
 * itself. */
extern struct cpu *volatile cpu_online[CPUS_MAX];

/* How many of them the kernel may use. */
extern unsigned cpu_limit;

/* The processor whose running task this is, or NULL. */
struct cpu *cpu_of(const struct task *t);

/* How many of them run tasks, the first ones. Guarded by sched_lock. */
extern unsigned cpu_started;

/* The same as a constant in a kernel for one processor, so that its scheduler
 * has no loop. */
#ifdef CONFIG_SMP
#define CPU_SEVERAL true
#define cpu_count   cpu_started
#define cpu_at(i)   cpu_online[i]
#else
#define CPU_SEVERAL false
#define cpu_count   1u
#define cpu_at(i)   (&cpu_boot)
#endif

#define for_each_cpu(cpu)                                                      \
    for (unsigned i_ = 0; i_ < cpu_count && ((cpu) = cpu_at(i_), true); i_++)

/* NULL, or what is wrong with the data of a processor. */
const char *cpu_verify(const char **where);

#ifdef CONFIG_DEBUG
/* Panics if interrupts are enabled. */
void cpu_debug_stays(void);
#else
#define cpu_debug_stays() ((void)0)
#endif

/* The running processor. Interrupts must be disabled: with them enabled, the
 * task may go on on another one before it uses the result. */
static inline struct cpu *cpu_self(void)
{
#ifdef CONFIG_SMP
    struct cpu *cpu;

    cpu_debug_stays();
    __asm__ volatile("movl %%gs:0, %0" : "=r"(cpu));
    return cpu;
#else
    cpu_debug_stays();
    return &cpu_boot;
#endif
}

#ifdef CONFIG_SMP
#define CPU_OFFSET(member) "i"(offsetof(struct cpu, member))

/* Between these two interrupts are disabled, and the task stays on its
 * processor. They do not nest. They cost less than irq_save and irq_restore:
 * mm/kmem_mag.c has them in every allocation. */
static inline void cpu_enter(void)
{
    __asm__ volatile("pushfl; cli; popl %%gs:%c0"
                     :
                     : CPU_OFFSET(cpu_eflags)
                     : "memory");
}

static inline void cpu_leave(void)
{
    __asm__ volatile("pushl %%gs:%c0; popfl"
                     :
                     : CPU_OFFSET(cpu_eflags)
                     : "memory", "cc");
}

/* Of the running processor. Interrupts must be disabled. */
static inline unsigned cpu_number(void)
{
    unsigned n;

    cpu_debug_stays();
    __asm__ volatile("movl %%gs:%c1, %0" : "=r"(n) : CPU_OFFSET(cpu_number));
    return n;
}
#endif

/* The running task, at any time: it is the same on any processor. (The
 * unused operand says that the result changes as that member does.) */
static inline struct task *cpu_running(void)
{
#ifdef CONFIG_SMP
    struct task *t;

    __asm__("movl %%gs:%c1, %0"
            : "=r"(t)
            : "i"(offsetof(struct cpu, cpu_task)), "m"(cpu_boot.cpu_task));
    return t;
#else
    return cpu_boot.cpu_task;
#endif
}

extern struct tss_and_ports gdt_tss; /* gdt.h */

/* Its task state segment. */
static inline struct tss *cpu_tss(const struct cpu *cpu UNUSED)
{
#ifdef CONFIG_SMP
    return cpu->cpu_tss;
#else
    return (struct tss *)&gdt_tss;
#endif
}

static inline uint64_t rdtsc(void)
{
    uint64_t value;

    __asm__ volatile("rdtsc" : "=A"(value) : : "memory");
    return value;
}

/* A model-specific register. */
static inline uint64_t rdmsr(uint32_t number)
{
    uint64_t value;

    __asm__ volatile("rdmsr" : "=A"(value) : "c"(number));
    return value;
}

/* A function that returns what an instruction stores in a register. */
#define CPU_READ(name, instruction)                                            \
    static inline uint32_t name(void)                                          \
    {                                                                          \
        uint32_t value;                                                        \
                                                                               \
        __asm__ volatile(instruction : "=r"(value));                           \
        return value;                                                          \
    }

CPU_READ(read_cr0, "mov %%cr0, %0")
CPU_READ(read_cr2, "mov %%cr2, %0")
CPU_READ(read_cr3, "mov %%cr3, %0")
CPU_READ(read_cr4, "mov %%cr4, %0")
CPU_READ(read_eflags, "pushfl; popl %0")
/* The frame pointer of the function into which this is inlined. */
CPU_READ(read_ebp, "mov %%ebp, %0")

static inline void write_cr3(uint32_t value)
{
    __asm__ volatile("mov %0, %%cr3" : : "r"(value) : "memory");
}

static inline void write_cr4(uint32_t value)
{
    __asm__ volatile("mov %0, %%cr4" : : "r"(value) : "memory");
}

static inline void invlpg(vaddr_t addr)
{
    __asm__ volatile("invlpg (%0)" : : "r"(addr) : "memory");
}

/* ---- interrupts --------------------------------------------------------- */

static inline void irq_enable(void)
{
    __asm__ volatile("sti" : : : "memory");
}

static inline void irq_disable(void)
{
    __asm__ volatile("cli" : : : "memory");
}

/* Disables interrupts; pass the result to irq_restore. */
static inline uint32_t irq_save(void)
{
    uint32_t flags = read_eflags();

    irq_disable();
    return flags;
}

static inline void irq_restore(uint32_t flags)
{
    if (flags & EFLAGS_IF)
        irq_enable();
}

/* Lets pending interrupts in, in the middle of code with interrupts disabled.
 * (STI takes effect after the next instruction.) */
static inline void irq_window(void)
{
    __asm__ volatile("sti; nop; cli" : : : "memory");
}

/* One hlt: waits for the next interrupt, if they are enabled. */
static inline void cpu_halt(void)
{
    __asm__ volatile("hlt" : : : "memory");
}

/* Enables interrupts and waits for one. None is missed in between (sti takes
 * effect one instruction later). */
static inline void cpu_wait_interrupt(void)
{
    __asm__ volatile("sti; hlt" : : : "memory");
}

/* In each turn of a loop that waits for another processor or a device. */
static inline void cpu_relax(void)
{
    __builtin_ia32_pause();
}

/* Faults without a table of handlers, so that the processor resets. */
void cpu_triple_fault(void) __attribute__((noreturn));
