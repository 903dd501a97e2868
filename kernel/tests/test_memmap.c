/*
 * Memory maps (kernel/memmap.c): as boot loaders give them, and as they should
 * not.
 */
#include "kernel/memmap.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/x86/paging.h"

#define RAM   MULTIBOOT_RAM
#define TAKEN 2
#define ENTRY (sizeof(struct multiboot_map) - sizeof(uint32_t)) /* map_size */

static uint8_t map[512];
static size_t length;
static struct mem_region got[8];

/* Appends an entry that says it is `size` bytes long, and is. */
static void add(uint32_t size, uint64_t base, uint64_t bytes, uint32_t type)
{
    struct multiboot_map e = {size, base, bytes, type};

    memcpy(map + length, &e, sizeof(e));
    length += size + sizeof(uint32_t);
}

static void start(void)
{
    memset(map, 0xee, sizeof(map));
    memset(got, 0, sizeof(got));
    length = 0;
}

static size_t parse(void)
{
    return memmap_parse(map, length, got, ARRAY_SIZE(got));
}

static void expect(size_t i, uint64_t from, uint64_t to, bool usable)
{
    KT_EQ(got[i].region_start, from);
    KT_EQ(got[i].region_end, to);
    KT_EQ(got[i].region_usable, usable);
}

/* QEMU's map of 64 MiB. */
static void add_pc(void)
{
    add(ENTRY, 0, 0x9fc00, RAM);
    add(ENTRY, 0x9fc00, 0x400, TAKEN);
    add(ENTRY, 0xf0000, 0x10000, TAKEN);
    add(ENTRY, 0x100000, 0x3ee0000, RAM);
    add(ENTRY, 0x3fe0000, 0x20000, TAKEN);
    add(ENTRY, 0xfffc0000, 0x40000, TAKEN);
}

KTEST(memmap, a_pc)
{
    start();
    add_pc();
    KT_EQ(parse(), 6);
    expect(0, 0, 0x9fc00, true);
    expect(2, 0xf0000, 0x100000, false);
    expect(3, 0x100000, 0x3fe0000, true);
    expect(5, 0xfffc0000, 0x100000000, false);
    KT_EQ(memmap_usable_end(got, 6, 0x100000), 0x3fe0000);
    KT_EQ(memmap_usable_end(got, 6, 0x3fdffff), 0x3fe0000);
    KT_EQ(memmap_usable_end(got, 6, 0x3fe0000), 0);
    KT_EQ(memmap_usable_end(got, 6, 0xa0000), 0);
}

KTEST(memmap, entries_of_other_sizes)
{
    start();
    add(ENTRY + 4, 0, MIB(1), RAM);
    add(ENTRY + 44, MIB(1), MIB(2), TAKEN);
    add(ENTRY, MIB(4), MIB(1), RAM);
    KT_EQ(parse(), 3);
    expect(1, MIB(1), MIB(3), false);
    expect(2, MIB(4), MIB(5), true);
}

KTEST(memmap, empty_entries_are_left_out)
{
    start();
    add(ENTRY, MIB(1), 0, RAM);
    add(ENTRY, MIB(2), MIB(1), RAM);
    add(ENTRY, MIB(3), 0, TAKEN);
    KT_EQ(parse(), 1);
    expect(0, MIB(2), MIB(3), true);
}

KTEST(memmap, an_entry_too_small_ends_the_map)
{
    start();
    add(ENTRY, 0, MIB(1), RAM);
    add(ENTRY, MIB(1), MIB(1), RAM);
    map[ENTRY + 4] = ENTRY - 1;
    KT_EQ(parse(), 1);
    map[ENTRY + 4] = 0;
    KT_EQ(parse(), 1);
    map[ENTRY + 4] = ENTRY;
    KT_EQ(parse(), 2);
}

KTEST(memmap, an_entry_beyond_the_end_is_the_last)
{
    start();
    add(ENTRY, 0, MIB(1), RAM);
    add(ENTRY, MIB(1), MIB(1), RAM);
    memset(map, 0xff, sizeof(uint32_t)); /* the size of the first */
    KT_EQ(parse(), 1);
    expect(0, 0, MIB(1), true);
}

KTEST(memmap, a_map_cut_short)
{
    start();
    add(ENTRY, 0, MIB(1), RAM);
    add(ENTRY, MIB(1), MIB(1), RAM);
    length--;
    KT_EQ(parse(), 1);
    length = sizeof(struct multiboot_map) - 1;
    KT_EQ(parse(), 0);
    length = 0;
    KT_EQ(parse(), 0);
}

KTEST(memmap, more_entries_than_room)
{
    start();
    for (unsigned i = 0; i < ARRAY_SIZE(got) + 2; i++)
        add(ENTRY, MIB(i), MIB(1), RAM);
    KT_EQ(memmap_parse(map, length, got, ARRAY_SIZE(got) - 1),
          ARRAY_SIZE(got) - 1);
    expect(ARRAY_SIZE(got) - 1, 0, 0, false);
}

KTEST(memmap, a_length_that_wraps_around)
{
    start();
    add(ENTRY, UINT64_MAX - MIB(1), MIB(2), RAM);
    add(ENTRY, MIB(1), UINT64_MAX, TAKEN);
    KT_EQ(parse(), 2);
    expect(0, UINT64_MAX - MIB(1), UINT64_MAX, true);
    expect(1, MIB(1), UINT64_MAX, false);
}

KTEST(memmap, above_4_GiB)
{
    start();
    add(ENTRY, MIB(1), MIB(63), RAM);
    add(ENTRY, 1ull << 32, 1ull << 31, RAM);
    KT_EQ(parse(), 2);
    expect(1, 1ull << 32, (1ull << 32) + (1ull << 31), true);
    KT_EQ(memmap_usable_end(got, 2, 1ull << 32), got[1].region_end);
    KT_EQ(memmap_space(got, 2, MIB(1), MIB(64)), 0);
}

KTEST(memmap, regions_that_overlap)
{
    start();
    add(ENTRY, MIB(8), MIB(8), RAM);
    add(ENTRY, MIB(1), MIB(9), RAM);
    add(ENTRY, MIB(12), MIB(1), TAKEN);
    KT_EQ(parse(), 3);
    KT_EQ(memmap_usable_end(got, 2, MIB(1)), MIB(16));
    KT_EQ(memmap_usable_end(got, 3, MIB(1)), MIB(12));
    KT_EQ(memmap_usable_end(got, 3, MIB(12)), 0);
    KT_EQ(memmap_usable_end(got, 3, MIB(13)), MIB(16));
}

KTEST(memmap, bios_area_called_free)
{
    start();
    add(ENTRY, 0, MIB(64), RAM);
    KT_EQ(parse(), 1);
    KT_EQ(memmap_space(got, 1, MIB(2), MIB(1)), MIB(2));
    KT_EQ(memmap_space(got, 1, MIB(2), MIB(62)), MIB(2));
    KT_EQ(memmap_space(got, 1, MIB(2), MIB(62) + 1), 0);
}

KTEST(memmap, space_after_modules)
{
    start();
    add_pc();
    add(ENTRY, 0x190000, MIB(20), TAKEN);
    add(ENTRY, 0x1590000, 0x1234, TAKEN);
    KT_EQ(parse(), 8);
    KT_EQ(memmap_space(got, 8, 0x190000, KIB(100)), 0x1592000);
    KT_EQ(memmap_space(got, 8, 0x18f000, PAGE_SIZE), 0x18f000);
    KT_EQ(memmap_space(got, 8, 0x18f000, PAGE_SIZE + 1), 0x1592000);
    KT_EQ(memmap_space(got, 8, 0x190000, MIB(50)), 0);
}

KTEST(memmap, space_after_holes)
{
    start();
    add(ENTRY, MIB(1), MIB(14), RAM);
    add(ENTRY, MIB(16) + 1, MIB(16), RAM);
    KT_EQ(parse(), 2);
    KT_EQ(memmap_space(got, 2, MIB(2), MIB(13)), MIB(2));
    KT_EQ(memmap_space(got, 2, MIB(2), MIB(14)), MIB(16) + PAGE_SIZE);
    KT_EQ(memmap_space(got, 2, MIB(2), MIB(16)), 0);
}

KTEST(memmap, space_is_the_lowest)
{
    start();
    add(ENTRY, MIB(1), MIB(2), RAM);
    add(ENTRY, MIB(8), MIB(8), RAM);
    add(ENTRY, MIB(32), MIB(8), RAM);
    add(ENTRY, MIB(20), MIB(8), RAM);
    KT_EQ(parse(), 4);
    KT_EQ(memmap_space(got, 4, MIB(2), MIB(4)), MIB(8));
    KT_EQ(memmap_space(got, 4, MIB(9), MIB(8)), MIB(20));
    KT_EQ(memmap_space(got, 4, MIB(21), MIB(8)), MIB(32));
}

KTEST(memmap, space_ends_with_the_direct_map)
{
    start();
    add(ENTRY, MIB(1), MIB(2047), RAM);
    add(ENTRY, MIB(2), PAGING_MAX_RAM - MIB(3), TAKEN);
    KT_EQ(parse(), 2);
    KT_EQ(memmap_space(got, 2, MIB(2), MIB(1)), PAGING_MAX_RAM - MIB(1));
    KT_EQ(memmap_space(got, 2, MIB(2), MIB(1) + 1), 0);
}
