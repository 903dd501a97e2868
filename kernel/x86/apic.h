/*
 * The local APIC: by it a processor sends messages to others (Intel SDM volume
 * 3, chapter 10). Devices interrupt by the 8259 as before, whose line is LINT0:
 * boot/wire.c connects it to the processor that boots, and apic_take_lines to
 * one that panics. There is no I/O APIC here.
 */
#pragma once

#include "kernel/lib/types.h"

/* What apic_send sends: the low half of the interrupt command register. */
#define APIC_VECTOR(v) (0x4000u | (v)) /* an interrupt */
#define APIC_NMI       0x4400u
#define APIC_INIT      0x4500u
#define APIC_START(p)  (0x4600u | (uint32_t)(p) >> PAGE_SHIFT) /* at page p */

/* The MSR with the address and the mode of the APIC. */
#define MSR_APIC_BASE 0x1Bu
#define APIC_X2       (1u << 10) /* x2APIC mode: no registers in memory */

#define CPUID_MSR  (1u << 5) /* in EDX of CPUID 1 */
#define CPUID_APIC (1u << 9)

/* Registers that boot/wire.c writes, too, and their values. The vector of an
 * interrupt that disappears before it is acknowledged is that of line 15, for
 * which drivers/pic.c handles spurious interrupts. */
#define APIC_SPURIOUS    (0xF0 / 4)
#define APIC_SPURIOUS_ON 0x12Fu
#define APIC_LINT0       (0x350 / 4)
#define APIC_LINT_EXTINT 0x700u /* not masked */

/* Maps the registers at `addr` for every processor. False: there are none.
 * After paging_init, before the first address space. */
bool apic_map(paddr_t addr);

/* Switches that of the running processor on. */
void apic_on(void);

/* The running processor gets the 8259's interrupts. */
void apic_take_lines(void);

/* The number of that of the running processor. */
uint8_t apic_id(void);

/* Ends an interrupt by APIC_VECTOR: the next one may come. */
void apic_end(void);

/* Sends a message to the processor with this APIC; returns when it has left.
 * Interrupts are disabled: a message has two words. */
void apic_send(uint8_t to, uint32_t message);
