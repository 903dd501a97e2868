/*
 * Data of each processor.
 */
#include "kernel/x86/cpu.h"
#include "kernel/x86/gdt.h"
#include "kernel/x86/panic.h"

struct cpu cpu_boot = {.cpu_bit = 1};
struct cpu *volatile cpu_online[CPUS_MAX] = {&cpu_boot};
unsigned cpu_limit = 1;
unsigned cpu_started = 1;

struct cpu *cpu_of(const struct task *t)
{
    for (unsigned i = 0; i < CPUS_MAX; i++)
        if (cpu_online[i] != NULL && cpu_online[i]->cpu_task == t)
            return cpu_online[i];
    return NULL;
}

const char *cpu_verify(const char **where)
{
    const char *wrong = NULL;

    *where = "the data of a processor";
    for (unsigned i = 0; i < CPUS_MAX && wrong == NULL; i++)
        if (cpu_online[i] != NULL)
            wrong = cpu_online[i]->cpu_number != i
                        ? "it has the number of another one"
                        : gdt_verify(cpu_online[i]);
    return wrong;
}

void cpu_triple_fault(void)
{
    struct {
        uint16_t limit;
        uint32_t base;
    } __attribute__((packed)) none = {0, 0};

    __asm__ volatile("lidt %0; int3" : : "m"(none));
    for (;;)
        cpu_halt();
}

#ifdef CONFIG_DEBUG
void cpu_debug_stays(void)
{
    if (read_eflags() & EFLAGS_IF)
        panic("cpu_self() is called with interrupts enabled");
}
#endif
