/*
 * Finds the table of processors: a pointer in the BIOS area leads to a table of
 * tables, "RSDT", and of these one, "APIC", has an entry for each processor.
 *
 *     0xE0000 ... 1 MiB: "RSD PTR " --> "RSDT" --> "APIC"
 *
 * The tables have no alignment. They are above usable memory, on a large
 * machine above the direct map too, so they are read through a window. No table
 * is trusted: a wrong checksum or length ends the search.
 */
#include "kernel/x86/acpi.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"

#define WINDOW     0xFF800000u /* two large pages */
#define LARGE_PAGE MIB(4)
#define PTE_LARGE  128u
#define TABLE_MAX  MIB(1)

/* The start of every table, and the entries of "RSDT". */
struct table {
    char signature[4];
    uint32_t length;
    uint8_t checksum[28]; /* and maker and versions */
    paddr_t entries[];
} __attribute__((packed));

#define APIC_HEADER (sizeof(struct table) + 8)

/* The bytes of a structure add up to 0. */
static bool adds_up(const void *start, size_t n)
{
    const uint8_t *byte = start;
    uint8_t sum = 0;

    while (n-- > 0)
        sum += *byte++;
    return sum == 0;
}

/* The table at `addr` in the window, until the next call; NULL if broken. */
static const struct table *look(paddr_t addr)
{
    uint32_t *directory = (uint32_t *)(read_cr3() + KERNEL_BASE);
    uint32_t page = (addr & ~(LARGE_PAGE - 1)) | PTE_LARGE | PTE_PRESENT;
    const struct table *t = (const void *)(WINDOW + addr % LARGE_PAGE);

    directory[WINDOW / LARGE_PAGE] = page;
    directory[WINDOW / LARGE_PAGE + 1] = page + LARGE_PAGE;
    write_cr3(read_cr3());
    return t->length >= sizeof(*t) && t->length <= TABLE_MAX &&
                   adds_up(t, t->length)
               ? t
               : NULL;
}

/* The address of "RSDT", which the pointer in the BIOS area ends with. */
static paddr_t find_tables(void)
{
    for (vaddr_t at = KERNEL_BASE + 0xE0000; at < KERNEL_BASE + MIB(1);
         at += 16)
        if (memcmp((const void *)at, "RSD PTR ", 8) == 0 &&
            adds_up((const void *)at, 20))
            return *(const paddr_t *)(at + 16);
    return 0;
}

/* An entry is a type, its length and more; type 0 is a processor, with flags in
 * byte 4 of 8, of which the lowest says that it can be used. */
unsigned acpi_count(const uint8_t *entry, size_t bytes)
{
    unsigned n = 0;

    while (bytes >= 2 && entry[1] >= 2 && entry[1] <= bytes) {
        n += entry[0] == 0 && entry[1] >= 8 && (entry[4] & 1) != 0;
        bytes -= entry[1];
        entry += entry[1];
    }
    return n;
}

unsigned acpi_processors(void)
{
    paddr_t tables = find_tables();
    const struct table *t = tables == 0 ? NULL : look(tables);
    size_t n = t == NULL ? 0 : (t->length - sizeof(*t)) / sizeof(paddr_t);

    for (size_t i = 0; i < n; i++) {
        t = look(look(tables)->entries[i]);
        if (t != NULL && memcmp(t->signature, "APIC", 4) == 0 &&
            t->length >= APIC_HEADER)
            return acpi_count((const uint8_t *)t + APIC_HEADER,
                              t->length - APIC_HEADER);
    }
    return 1;
}
