/*
 * The processors that the firmware's tables list (ACPI Specification 1.0b,
 * chapter 5).
 */
#pragma once

#include "kernel/x86/cpu.h"

struct acpi {
    unsigned acpi_count;       /* processors that can be used */
    uint8_t acpi_id[CPUS_MAX]; /* of the first ones' local APICs */
    uint32_t acpi_apic;        /* where each one's registers are */
};

/* What acpi_processors has found; all 0 before. */
extern struct acpi acpi;

/* How many processors can be used; 1 if there are no tables, or broken ones.
 * Before paging_init, for paging_window. */
unsigned acpi_processors(void);
