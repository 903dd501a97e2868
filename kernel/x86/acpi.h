/*
 * The processors that the firmware's tables list (ACPI Specification 1.0b,
 * chapter 5).
 */
#pragma once

#include "kernel/lib/types.h"

/* How many processors can be used; 1 if there are no tables, or broken ones.
 * Before paging_init: it maps the tables with the page directory of boot. */
unsigned acpi_processors(void);

/* How many of the `bytes` after the header of a table "APIC" are usable. */
unsigned acpi_count(const uint8_t *entries, size_t bytes);
