/*
 * The table of processors (kernel/x86/acpi.c): entries that are right, that are
 * none of processors, and that are cut off.
 */
#include "kernel/x86/acpi.h"
#include "tools/workshop/ktest/ktest.h"

/* Type, length, two numbers, flags. */
#define CPU(flags) 0, 8, 1, 1, flags, 0, 0, 0
#define IO_APIC    1, 12, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0

#define COUNT(...)                                                             \
    ({                                                                         \
        const uint8_t e[] = {__VA_ARGS__};                                     \
        acpi_count(e, sizeof(e));                                              \
    })

KTEST(acpi, enabled_processors_are_counted)
{
    KT_EQ(COUNT(CPU(1), IO_APIC, CPU(0), CPU(1), CPU(3), CPU(2)), 3);
    KT_EQ(COUNT(IO_APIC), 0);
    KT_EQ(acpi_count(NULL, 0), 0);
}

KTEST(acpi, a_broken_length_ends_the_table)
{
    KT_EQ(COUNT(CPU(1), 0, 0, 1, 1, 1, 0, 0, 0, CPU(1)), 1);
    KT_EQ(COUNT(CPU(1), 0, 1, CPU(1)), 1);
    KT_EQ(COUNT(CPU(1), 0, 9, 1, 1, 1, 0, 0, 0), 1);
    KT_EQ(COUNT(CPU(1), 0, 255), 1);
    KT_EQ(COUNT(CPU(1), 0), 1);
}

KTEST(acpi, a_processor_entry_without_flags_is_none)
{
    KT_EQ(COUNT(0, 4, 1, 1, CPU(1)), 1);
}
