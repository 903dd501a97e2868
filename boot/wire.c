/*
 * Connects the interrupt controller, the 8259, to the processor that boots:
 * "virtual wire mode" (Intel SDM volume 3, 10.4 and 10.5; MultiProcessor
 * Specification 1.4, 3.6.2.2). A local APIC that is on passes the 8259's
 * interrupts only if its line LINT0 says so. A BIOS has set that; other
 * firmware has not.
 *
 * entry.asm calls it before paging is on, as boot/processor.c, whose rules it
 * follows: the registers are at their physical address.
 */
#include <cpuid.h>

#include "kernel/x86/apic.h"
#include "kernel/x86/cpu.h"

#define BASE_ON      (1u << 11)
#define BASE_ADDRESS 0xFFFFF000u

void wire_interrupts(void);

void wire_interrupts(void)
{
    uint32_t eax, ebx, ecx, edx = 0;
    volatile uint32_t *registers;
    uint64_t base;

    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    if ((edx & (CPUID_MSR | CPUID_APIC)) != (CPUID_MSR | CPUID_APIC))
        return;
    base = rdmsr(MSR_APIC_BASE);
    if ((base & BASE_ON) == 0 || (base & APIC_X2) != 0 || base >> 32 != 0)
        return; /* without an APIC the 8259 is connected */
    registers = (volatile uint32_t *)((uint32_t)base & BASE_ADDRESS);
    registers[APIC_SPURIOUS] = APIC_SPURIOUS_ON;
    registers[APIC_LINT0] = APIC_LINT_EXTINT;
}
