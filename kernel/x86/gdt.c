/*
 * The segment table and the two task state segments of each processor.
 */
#include "kernel/x86/gdt.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"
#include "kernel/x86/trap.h"

#define ACCESS_CODE 0x9A /* present, ring 0, code, readable */
#define ACCESS_DATA 0x92 /* present, ring 0, data, writable */
#define ACCESS_TSS  0x89 /* present, 32-bit task state, not busy */
#define ACCESS_USER 0x60 /* the same in ring 3 */
#define FLAGS_FLAT  0xC  /* 4 KiB units, 32-bit */
#define FLAGS_BYTES 0x4  /* bytes, 32-bit */

#define ACCESSED (1ull << 40) /* in the descriptor: it was loaded */
#define TSS_BUSY (2ull << 40) /* in the descriptor */
#define NESTED   (1u << 14)   /* EFLAGS.NT: iret would switch tasks */

/* What the kernel has in GS. */
#ifdef CONFIG_SMP
#define KERNEL_GS GDT_CPU
#else
#define KERNEL_GS GDT_KERNEL_DATA
#endif

/* Of the processor that boots. */
struct tss_and_ports gdt_tss;
static struct segments boot_segments;

/* The first page is a guard page. */
static uint8_t fault_stack[PAGE_SIZE + 12288]
    __attribute__((aligned(PAGE_SIZE)));

static uint64_t descriptor(uint32_t base, uint32_t limit, uint8_t access,
                           uint8_t flags)
{
    return (uint64_t)(limit & 0xffff) | (uint64_t)(base & 0xffffff) << 16 |
           (uint64_t)access << 40 | (uint64_t)(limit >> 16 & 0xf) << 48 |
           (uint64_t)flags << 52 | (uint64_t)(base >> 24) << 56;
}

/* Loads no local table: boot loaders leave one, whose segments programs
 * could use. */
void gdt_load(const struct cpu *cpu)
{
    const struct segments *s = cpu->cpu_segments;
    struct {
        uint16_t limit;
        uint32_t base;
    } __attribute__((packed))
    gdtr = {sizeof(s->segments_gdt) - 1, (uint32_t)s->segments_gdt};

    __asm__ volatile("lgdt %0\n\t"
                     "ljmp %1, $1f\n"
                     "1:\tmovw %w2, %%ds\n\t"
                     "movw %w2, %%es\n\t"
                     "movw %w2, %%fs\n\t"
                     "movw %w5, %%gs\n\t"
                     "movw %w2, %%ss\n\t"
                     "ltr %w3\n\t"
                     "lldt %w4"
                     :
                     : "m"(gdtr), "i"(GDT_KERNEL_CODE), "r"(GDT_KERNEL_DATA),
                       "r"(GDT_TSS), "r"(0), "r"(KERNEL_GS)
                     : "memory");
}

static uint64_t cpu_descriptor(const struct cpu *cpu)
{
    return descriptor((uint32_t)cpu, sizeof(*cpu) - 1, ACCESS_DATA,
                      FLAGS_BYTES);
}

void gdt_fill(struct cpu *cpu, struct segments *s, size_t tss_bytes,
              size_t stack_bytes)
{
    uint64_t *gdt = s->segments_gdt;

    s->segments_fault = (struct tss){
        .eip = (uint32_t)trap_double_fault,
        .esp = s->segments_guard + stack_bytes,
        .eflags = 2,
        .cs = GDT_KERNEL_CODE,
        .ss = GDT_KERNEL_DATA,
        .ds = GDT_KERNEL_DATA,
        .es = GDT_KERNEL_DATA,
        .fs = GDT_KERNEL_DATA,
        .gs = KERNEL_GS,
        .cr3 = read_cr3(),
        .iomap = sizeof(struct tss),
    };
    gdt[1] = descriptor(0, 0xfffff, ACCESS_CODE, FLAGS_FLAT);
    gdt[2] = descriptor(0, 0xfffff, ACCESS_DATA, FLAGS_FLAT);
    gdt[GDT_TSS / 8] =
        descriptor((uint32_t)s->segments_tss, tss_bytes - 1, ACCESS_TSS, 0);
    gdt[4] = descriptor((uint32_t)&s->segments_fault, sizeof(struct tss) - 1,
                        ACCESS_TSS, 0);
    gdt[GDT_USER_CODE / 8] =
        descriptor(0, 0xfffff, ACCESS_CODE | ACCESS_USER, FLAGS_FLAT);
    gdt[GDT_USER_DATA / 8] =
        descriptor(0, 0xfffff, ACCESS_DATA | ACCESS_USER, FLAGS_FLAT);
    gdt[GDT_CPU / 8] = cpu_descriptor(cpu);
    s->segments_tss->ss0 = GDT_KERNEL_DATA;
    cpu->cpu_segments = s;
    cpu->cpu_tss = s->segments_tss;
#ifdef CONFIG_SMP
    cpu->cpu_this = cpu;
#endif
}

void gdt_init(void)
{
    struct segments *s = &boot_segments;

    s->segments_tss = &gdt_tss.tss;
    s->segments_guard = (vaddr_t)fault_stack;
    memset(gdt_tss.tss_ports, 0xff, sizeof(gdt_tss.tss_ports));
    gdt_ports_on(false);
    gdt_fill(&cpu_boot, s, sizeof(gdt_tss), sizeof(fault_stack));
    gdt_load(&cpu_boot);
}

const char *gdt_verify(const struct cpu *cpu)
{
    const struct segments *s = cpu->cpu_segments;

    if ((s->segments_gdt[GDT_CPU / 8] | ACCESSED) !=
        (cpu_descriptor(cpu) | ACCESSED))
        return "its segment for its data is that of another one";
    if (cpu->cpu_tss != s->segments_tss)
        return "its task state is that of another one";
    if (paging_readable(s->segments_guard))
        return "the stack of its double fault has no guard page";
    return NULL;
}

void gdt_ports_allow(uint32_t first, uint32_t last, bool allow)
{
    for (uint32_t port = first; port <= last; port++)
        if (allow)
            gdt_tss.tss_ports[port / 8] &= (uint8_t) ~(1u << port % 8);
        else
            gdt_tss.tss_ports[port / 8] |= (uint8_t)(1u << port % 8);
}

size_t gdt_ports_allowed(void)
{
    size_t n = 0;

    for (size_t i = 0; i < GDT_PORTS / 8; i++)
        for (unsigned no = ~gdt_tss.tss_ports[i] & 0xffu; no != 0; no &= no - 1)
            n++;
    return n;
}

const struct tss *gdt_interrupted(void)
{
    return cpu_tss(cpu_self());
}

void gdt_set_cr3(uint32_t cr3)
{
    cpu_self()->cpu_segments->segments_fault.cr3 = cr3;
    cpu_tss(cpu_self())->cr3 = cr3;
}

void gdt_leave_fault_task(void)
{
    uint64_t *gdt = cpu_self()->cpu_segments->segments_gdt;

    gdt[GDT_TSS / 8] &= ~TSS_BUSY;
    gdt[GDT_DF_TSS / 8] &= ~TSS_BUSY;
    __asm__ volatile("ltr %w0\n\t"
                     "pushfl\n\t"
                     "andl %1, (%%esp)\n\t"
                     "popfl"
                     :
                     : "r"(GDT_TSS), "i"(~NESTED)
                     : "memory", "cc");
}

vaddr_t gdt_fault_guard(const struct cpu *cpu)
{
    return cpu->cpu_segments->segments_guard;
}
