/*
 * Finds the table of processors: a pointer in the BIOS area leads to a table of
 * tables, "RSDT", and of these one, "APIC", has an entry for each processor.
 *
 *     EBDA, 0xE0000 ... 1 MiB: "RSD PTR " --> "RSDT" --> "APIC"
 *
 * The tables have no alignment. They are above usable memory, on a large
 * machine above the direct map too, so they are read through a window. No table
 * is trusted: a wrong checksum or length ends the search.
 */
#include "kernel/x86/acpi.h"
#include "kernel/lib/string.h"
#include "kernel/x86/paging.h"

#define EBDA_SEGMENT 0x40E /* where the BIOS says where its data area is */
#define TABLE_MAX    KIB(256)
#define LOCAL_APIC   0    /* the type of an entry */
#define ENABLED      1    /* its flag */
#define EVERY        0xFF /* no number of a processor: that of all */

/* The start of every table. */
struct table {
    char signature[4];
    uint32_t length;
    uint8_t checksum[28]; /* and maker and versions */
} __attribute__((packed));

struct apic_table {
    struct table header;
    uint32_t registers;
    uint32_t flags;
    uint8_t entries[];
} __attribute__((packed));

/* The tables' addresses follow. */
struct root_entry {
    uint32_t addr;
} __attribute__((packed));

/* In the BIOS area, on a multiple of 16. */
struct pointer {
    char signature[8];
    uint8_t checksum[8]; /* and maker and version */
    uint32_t root;
} __attribute__((packed));

struct acpi acpi;

/* The bytes of a structure add up to 0. */
static bool adds_up(const void *start, size_t n)
{
    const uint8_t *byte = start;
    uint8_t sum = 0;

    while (n-- > 0)
        sum += *byte++;
    return sum == 0;
}

/* The table at `addr` in the window if it has the signature and `least` bytes
 * or more; NULL if not, or if it is broken. */
static const void *table_at(uint32_t addr, const char *signature, size_t least)
{
    const struct table *t = paging_window(addr, sizeof(*t));
    uint32_t length = t->length;

    if (memcmp(t->signature, signature, 4) != 0 || length < least ||
        length > TABLE_MAX)
        return NULL;
    t = paging_window(addr, length);
    return adds_up(t, length) ? t : NULL;
}

/* The address of "RSDT" by a pointer in this area; 0: there is none. */
static uint32_t find_in(paddr_t start, size_t bytes)
{
    const uint8_t *at = paging_window(start, bytes);
    const uint8_t *end = at + bytes - sizeof(struct pointer);

    for (; at <= end; at += 16)
        if (memcmp(at, "RSD PTR ", 8) == 0 &&
            adds_up(at, sizeof(struct pointer)))
            return ((const struct pointer *)at)->root;
    return 0;
}

/* Most BIOSes have it in the upper half, so that comes first. */
static uint32_t find_root(void)
{
    const uint8_t *ebda = paging_window(EBDA_SEGMENT, 2);

    return find_in((paddr_t)(ebda[0] | ebda[1] << 8) << 4, KIB(1))
               ?: find_in(0xF0000, KIB(64))
               ?: find_in(0xE0000, KIB(64));
}

/* A table may list a processor twice. */
static void add_cpu(uint8_t id)
{
    if (id == EVERY)
        return;
    for (unsigned i = 0; i < MIN(acpi.acpi_count, CPUS_MAX); i++)
        if (acpi.acpi_id[i] == id)
            return;
    if (acpi.acpi_count < CPUS_MAX)
        acpi.acpi_id[acpi.acpi_count] = id;
    acpi.acpi_count++;
}

/* An entry is a type, its length and more: that of a processor has its number
 * in byte 3 and flags in byte 4 of 8. */
static void read_entries(const uint8_t *entry, size_t bytes)
{
    while (bytes >= 2 && entry[1] >= 2 && entry[1] <= bytes) {
        if (entry[0] == LOCAL_APIC && entry[1] >= 8 && (entry[4] & ENABLED))
            add_cpu(entry[3]);
        bytes -= entry[1];
        entry += entry[1];
    }
}

unsigned acpi_processors(void)
{
    uint32_t root = find_root();
    const struct table *t =
        root == 0 ? NULL : table_at(root, "RSDT", sizeof(*t));
    uint32_t end = t == NULL ? 0 : t->length;
    const struct apic_table *apic = NULL;

    acpi = (struct acpi){0};
    for (uint32_t at = sizeof(*t); apic == NULL && at + 4 <= end; at += 4) {
        const struct root_entry *e = paging_window(root + at, sizeof(*e));

        apic = table_at(e->addr, "APIC", sizeof(*apic));
    }
    if (apic != NULL) {
        acpi.acpi_apic = apic->registers;
        read_entries(apic->entries, apic->header.length - sizeof(*apic));
    }
    return MAX(acpi.acpi_count, 1u);
}
