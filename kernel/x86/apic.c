/*
 * The local APIC: see apic.h. Its registers are words at multiples of 16.
 */
#include "kernel/x86/apic.h"
#include <cpuid.h>
#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"

/* Far above the direct map of the largest machine, where nothing else is. */
#define ADDRESS 0xFF400000u

enum {
    ID = 0x20 / 4,
    END = 0xB0 / 4,
    COMMAND = 0x300 / 4,
    COMMAND_TO = 0x310 / 4,
};

#define COMMAND_SENT (1u << 12) /* clear: the last one has left */

static volatile uint32_t *registers;
static uint32_t table[PAGE_SIZE / sizeof(uint32_t)]
    __attribute__((aligned(PAGE_SIZE)));

bool apic_map(paddr_t addr)
{
    uint32_t *directory = (uint32_t *)(paging_kernel_cr3() + KERNEL_BASE);
    uint32_t eax, ebx, ecx, edx = 0;

    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    if (addr == 0 || (edx & CPUID_APIC) == 0 ||
        ((edx & CPUID_MSR) != 0 && (rdmsr(MSR_APIC_BASE) & APIC_X2) != 0))
        return false;
    table[0] = (addr & ~PAGE_MASK) | PTE_PRESENT | PTE_WRITE | PTE_THROUGH |
               PTE_NOCACHE;
    directory[ADDRESS >> 22] =
        ((uint32_t)table - KERNEL_BASE) | PTE_PRESENT | PTE_WRITE;
    registers = (uint32_t *)(ADDRESS + (addr & PAGE_MASK));
    return true;
}

void apic_on(void)
{
    registers[APIC_SPURIOUS] = APIC_SPURIOUS_ON;
}

void apic_take_lines(void)
{
    registers[APIC_LINT0] = APIC_LINT_EXTINT;
}

uint8_t apic_id(void)
{
    return (uint8_t)(registers[ID] >> 24);
}

void apic_end(void)
{
    registers[END] = 0;
}

void apic_send(uint8_t to, uint32_t message)
{
    registers[COMMAND_TO] = (uint32_t)to << 24;
    registers[COMMAND] = message;
    while (registers[COMMAND] & COMMAND_SENT)
        cpu_relax();
}
