/*
 * The firmware's tables (kernel/x86/acpi.c) as a program of this machine, under
 * the sanitizers: tables that are right, broken ones, and random changes.
 *
 *     acpitest           the cases, a line of TAP each
 *
 * Tests: kernel/x86/acpi.c
 *
 * The window is a copy of just the bytes that were asked for, so that reading
 * more of them is found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/x86/acpi.h"
#include "kernel/x86/paging.h"
#include "tools/test/budget.h"

#define MUTATIONS  10000u
#define CASE_STEPS 1500000000 /* 20 times what the longest case takes */

#define EBDA  0x9FC00u
#define LOW   MIB(1)
#define HIGH  0xFFFE0000u /* the tables end with the address space */
#define BYTES 0x20000u
#define ROOT  (HIGH + 0x10001) /* they have no alignment */
#define OTHER (HIGH + 0x10203)
#define APIC  (HIGH + 0x10405)

#define POINTER_AT 0xF59D0u
#define HEADER     36
#define ENTRIES    44

static uint8_t low[LOW], high[BYTES];
static uint8_t *window;

static uint8_t *at(uint32_t addr)
{
    if (addr < LOW)
        return &low[addr];
    return addr >= HIGH ? &high[addr - HIGH] : NULL;
}

/* With the alignment of the address. Where there is no memory, all bits are
 * set. */
const void *paging_window(paddr_t addr, size_t bytes)
{
    size_t skip = addr % 16;

    free(window);
    window = malloc(skip + bytes);
    if (window == NULL || bytes > MIB(4))
        abort();
    if (addr + bytes <= LOW)
        return memcpy(window + skip, &low[addr], bytes);
    for (size_t i = 0; i < bytes; i++) {
        const uint8_t *from = at((uint32_t)(addr + i));

        window[skip + i] = from == NULL ? 0xFF : *from;
    }
    return window + skip;
}

/* ---- building ----------------------------------------------------------- */

static void put32(uint32_t addr, uint32_t value)
{
    memcpy(at(addr), &value, 4);
}

static uint32_t get32(uint32_t addr)
{
    uint32_t value;

    memcpy(&value, at(addr), 4);
    return value;
}

/* Makes `n` bytes add up, by one of them. */
static void sum(uint32_t addr, uint32_t n, uint32_t byte)
{
    uint8_t total = 0;

    *at(addr + byte) = 0;
    for (uint32_t i = 0; i < n && at(addr + i) != NULL; i++)
        total += *at(addr + i);
    *at(addr + byte) = (uint8_t)-total;
}

/* A table's length, with a checksum that fits. */
static void length(uint32_t addr, uint32_t n)
{
    put32(addr + 4, n);
    sum(addr, n < BYTES ? n : HEADER, 9);
}

static void pointer(uint32_t addr, uint32_t root)
{
    memcpy(at(addr), "RSD PTR ", 8);
    put32(addr + 16, root);
    sum(addr, 20, 8);
}

static uint32_t entry(uint32_t where, uint8_t type, uint8_t bytes, uint8_t id,
                      uint8_t flags)
{
    const uint8_t e[8] = {type, bytes, id, id, flags};

    memcpy(at(where), e, sizeof(e));
    return where + bytes;
}

/* Four processors, of which the third cannot be used, and an I/O APIC. */
static void build(void)
{
    uint32_t e = APIC + ENTRIES;

    memset(low + EBDA, 0, LOW - EBDA);
    memset(high, 0, sizeof(high));
    low[0x40E] = (uint8_t)(EBDA >> 4);
    low[0x40F] = (uint8_t)(EBDA >> 12);
    pointer(POINTER_AT, ROOT);
    memcpy(at(ROOT), "RSDT", 4);
    put32(ROOT + HEADER, OTHER);
    put32(ROOT + HEADER + 4, APIC);
    length(ROOT, HEADER + 8);
    memcpy(at(OTHER), "FACP", 4);
    length(OTHER, HEADER + 80);
    memcpy(at(APIC), "APIC", 4);
    put32(APIC + HEADER, 0xFEE00000);
    e = entry(e, 0, 8, 0, 1);
    e = entry(e, 0, 8, 2, 1);
    e = entry(e, 0, 8, 4, 0);
    e = entry(e, 1, 12, 0, 1);
    e = entry(e, 0, 8, 6, 3);
    length(APIC, e - APIC);
}

/* ---- cases -------------------------------------------------------------- */

static const char *told;

static bool finds(unsigned count)
{
    static char text[80];
    unsigned n = acpi_processors();

    snprintf(text, sizeof(text), "%u, %u found, APIC %x, ids %u %u %u", n,
             acpi.acpi_count, acpi.acpi_apic, acpi.acpi_id[0], acpi.acpi_id[1],
             acpi.acpi_id[2]);
    told = text;
    if (count == 0)
        return n == 1 && acpi.acpi_count == 0;
    return n == count && acpi.acpi_count == count &&
           acpi.acpi_apic == 0xFEE00000;
}

static bool finds_the_three(void)
{
    return finds(3) && acpi.acpi_id[0] == 0 && acpi.acpi_id[1] == 2 &&
           acpi.acpi_id[2] == 6;
}

static void first_entry(uint8_t byte, uint8_t value)
{
    *at(APIC + ENTRIES + byte) = value;
    length(APIC, get32(APIC + 4));
}

struct acpi_case {
    const char *case_name;
    bool (*case_run)(void);
};

extern const struct acpi_case __start_acpi_cases[], __stop_acpi_cases[];

/* A case registers itself through a linker section, as those of ktest.h. */
#define CASE(name)                                                             \
    static bool name(void);                                                    \
    static const struct acpi_case case_##name                                  \
        __attribute__((used, section("acpi_cases"),                            \
                       aligned(sizeof(void *)))) = {#name, name};              \
    static bool name(void)
#define RIGHT(name, change)                                                    \
    CASE(name)                                                                 \
    {                                                                          \
        build();                                                               \
        change;                                                                \
        return finds_the_three();                                              \
    }
#define BROKEN(name, count, change)                                            \
    CASE(name)                                                                 \
    {                                                                          \
        build();                                                               \
        change;                                                                \
        return finds(count);                                                   \
    }

static void move_pointer(uint32_t to)
{
    memset(at(POINTER_AT), 0, 20);
    pointer(to, ROOT);
}

RIGHT(tables_are_found, (void)0)
RIGHT(pointer_in_ebda, move_pointer(EBDA + 0x3E0))
RIGHT(pointer_in_the_lower_half, move_pointer(0xE0000))
RIGHT(pointer_at_the_end, move_pointer(0xFFFE0))
RIGHT(ebda_comes_first, (pointer(EBDA, ROOT), pointer(POINTER_AT, 0x12345)))
RIGHT(second_of_two_pointers,
      (pointer(POINTER_AT - 16 * 4, 0), *at(POINTER_AT - 16 * 4 + 8) ^= 1))

BROKEN(no_pointer, 0, memset(at(POINTER_AT), 0, 20))
BROKEN(pointer_without_alignment, 0, move_pointer(POINTER_AT + 8))
BROKEN(pointer_after_ebda, 0, move_pointer(EBDA + 0x400))
BROKEN(pointer_with_a_wrong_sum, 0, *at(POINTER_AT + 9) ^= 1)
BROKEN(pointer_to_nothing, 0, pointer(POINTER_AT, 0))
BROKEN(pointer_to_no_memory, 0, pointer(POINTER_AT, 0x40000000))
BROKEN(pointer_to_the_last_byte, 0, pointer(POINTER_AT, 0xFFFFFFFF))
BROKEN(pointer_to_another_table, 0, pointer(POINTER_AT, OTHER))
BROKEN(root_with_a_wrong_sum, 0, *at(ROOT + 12) ^= 1)
BROKEN(root_without_length, 0, length(ROOT, 0))
BROKEN(root_shorter_than_its_header, 0, length(ROOT, 35))
BROKEN(root_without_entries, 0, length(ROOT, HEADER))
BROKEN(root_with_half_an_entry, 0, length(ROOT, HEADER + 7))
BROKEN(root_too_long, 0, length(ROOT, KIB(256) + 4))
BROKEN(root_of_all_memory, 0, length(ROOT, 0xFFFFFFFF))
BROKEN(root_that_names_itself, 0,
       (put32(ROOT + HEADER + 4, ROOT), length(ROOT, HEADER + 8)))
BROKEN(root_that_names_nothing, 0,
       (put32(ROOT + HEADER + 4, 0), length(ROOT, HEADER + 8)))
BROKEN(apic_with_a_wrong_sum, 0, *at(APIC + 40) ^= 4)
BROKEN(apic_without_entries, 0, length(APIC, ENTRIES))
BROKEN(apic_shorter_than_its_header, 0, length(APIC, ENTRIES - 1))
BROKEN(apic_of_all_memory, 0, length(APIC, 0xFFFFFFF0))
BROKEN(entry_without_length, 0, first_entry(1, 0))
BROKEN(entry_with_length_1, 0, first_entry(1, 1))
BROKEN(entry_longer_than_the_table, 0, first_entry(1, 200))
BROKEN(entry_without_flags, 2,
       (first_entry(1, 4), first_entry(5, 4), first_entry(4, 7)))
BROKEN(last_entry_cut, 2, length(APIC, get32(APIC + 4) - 1))
BROKEN(number_of_all, 2, first_entry(3, 0xFF))
BROKEN(number_twice, 2, first_entry(3, 2))

/* More than the kernel can use are counted, and their numbers dropped. */
CASE(many_processors)
{
    uint32_t e = APIC + ENTRIES;

    build();
    for (uint8_t id = 0; id < 2 * CPUS_MAX; id++)
        e = entry(e, 0, 8, id, 1);
    length(APIC, e - APIC);
    return finds(2 * CPUS_MAX) && acpi.acpi_id[CPUS_MAX - 1] == CPUS_MAX - 1;
}

/* What a changed byte makes of the tables does not matter, as long as nothing
 * outside of them is read, and the search ends. In half of the rounds the sums
 * fit again. */
CASE(random_changes)
{
    uint32_t state = 1;
    unsigned believed = 0;
    static char text[60];

    for (unsigned i = 0; i < MUTATIONS; i++) {
        static const uint32_t place[] = {POINTER_AT, ROOT, APIC, APIC};
        static const uint32_t bytes[] = {20, 44, 44, 88};
        uint32_t kind;

        if (i % 8 == 0)
            build();
        state = state * 1664525 + 1013904223;
        kind = state >> 30;
        *at(place[kind] + (state >> 8) % bytes[kind]) = (uint8_t)(state >> 16);
        if ((state >> 29 & 1) != 0) {
            sum(POINTER_AT, 20, 8);
            sum(ROOT, get32(ROOT + 4) < BYTES ? get32(ROOT + 4) : HEADER, 9);
            sum(APIC, get32(APIC + 4) < BYTES ? get32(APIC + 4) : HEADER, 9);
        }
        believed += acpi_processors() > 1;
    }
    snprintf(text, sizeof(text), "%u of %u believed", believed, MUTATIONS);
    told = text;
    return believed > MUTATIONS / 10 && believed < MUTATIONS * 9 / 10;
}

void budget_used_up(const char *why)
{
    printf("# %s\n", why);
    exit(1);
}

int main(void)
{
    unsigned n = 0;

    printf("1..%u\n", (unsigned)(__stop_acpi_cases - __start_acpi_cases));
    for (const struct acpi_case *c = __start_acpi_cases; c < __stop_acpi_cases;
         c++) {
        struct budget before = budget_begin(c->case_name, CASE_STEPS);
        bool good = c->case_run();

        budget_end(before);
        printf("# %s\n%s %u - %s\n", told, good ? "ok" : "not ok", ++n,
               c->case_name);
    }
    free(window);
    return 0;
}
