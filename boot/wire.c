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

#define CPUID_MSR  (1u << 5)
#define CPUID_APIC (1u << 9)

#define BASE_ON      (1u << 11)
#define BASE_ADDRESS 0xFFFFF000u

#define SPURIOUS    (0xF0 / 4)
#define LINT0       (0x350 / 4)
#define SPURIOUS_ON 0x12Fu /* as kernel/x86/apic.c */
#define LINT_EXTINT 0x700u /* not masked */

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
    registers[SPURIOUS] = SPURIOUS_ON;
    registers[LINT0] = LINT_EXTINT;
}
