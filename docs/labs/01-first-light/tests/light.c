/*
 * Lab 1: a boot loader's memory map with mistakes, the error code of a page
 * fault in words, and the list of frames on a stack.
 */
#include "tools/workshop/labs/guard.h"
#include "tools/workshop/labs/lab.h"
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/memmap.h"
#include "kernel/x86/backtrace.h"
#include "kernel/x86/paging.h"
#include "kernel/x86/trap.h"
#include "mm/page.h"

/* ---- the memory map ----------------------------------------------------- */

#define ENTRIES 6
#define TAKEN   2

static const uint32_t honest = sizeof(struct multiboot_map) - sizeof(uint32_t);

static struct multiboot_map map[ENTRIES] __attribute__((aligned(4)));
static struct mem_region got[ENTRIES + 2];

/* A valid entry: `mib` MiB from `base` on. */
static struct multiboot_map entry(uint32_t at, uint32_t mib, uint32_t type)
{
    return (struct multiboot_map){.map_size = honest,
                                  .map_base = (uint64_t)at << 20,
                                  .map_length = (uint64_t)mib << 20,
                                  .map_type = type};
}

/* Six entries, some of which a test then damages. */
static void begin(void)
{
    for (unsigned i = 0; i < ENTRIES; i++)
        map[i] = entry(16 * i + 1, 4, i % 2 == 0 ? MULTIBOOT_RAM : TAKEN);
    memset(got, 0xee, sizeof(got));
}

static size_t parse(size_t length)
{
    return memmap_parse(map, length, got, ENTRIES);
}

static void expect_count(size_t n, size_t want)
{
    if (n != want)
        KT_FAIL("memmap_parse found %zu regions, want %zu", n, want);
}

static void expect_region(unsigned i, uint64_t start, uint64_t end)
{
    if (got[i].region_start != start || got[i].region_end != end)
        KT_FAIL("region %u is 0x%llx to 0x%llx, want 0x%llx to 0x%llx", i,
                (unsigned long long)got[i].region_start,
                (unsigned long long)got[i].region_end,
                (unsigned long long)start, (unsigned long long)end);
}

LAB_TEST(1, map_empty, LAB_EARLY)
{
    begin();
    map[0].map_length = 0;
    map[3].map_length = 0;
    expect_count(parse(sizeof(map)), ENTRIES - 2);
    expect_region(0, MIB(17), MIB(21));
    expect_region(2, MIB(65), MIB(69));
    KT_TRUE(!got[0].region_usable && got[1].region_usable);
}

LAB_TEST(1, map_wraps, LAB_EARLY)
{
    begin();
    map[1].map_base = UINT64_MAX - MIB(1);
    map[2].map_length = UINT64_MAX;
    expect_count(parse(sizeof(map)), ENTRIES);
    expect_region(1, UINT64_MAX - MIB(1), UINT64_MAX);
    expect_region(2, MIB(33), UINT64_MAX);
    expect_region(3, MIB(49), MIB(53));
}

/* An entry that is too short for what it should hold ends the map. */
LAB_TEST(1, map_short, LAB_EARLY)
{
    begin();
    map[2].map_size = honest - 1;
    expect_count(parse(sizeof(map)), 2);
    begin();
    map[0].map_size = 0;
    expect_count(parse(sizeof(map)), 0);
}

/* The next entry would begin after the end: this one is the last. */
LAB_TEST(1, map_beyond, LAB_EARLY)
{
    begin();
    map[1].map_size = UINT32_MAX;
    expect_count(parse(sizeof(map)), 2);
    expect_region(1, MIB(17), MIB(21));
    begin();
    expect_count(parse(3 * sizeof(map[0]) - 1), 2);
    expect_count(parse(sizeof(map[0]) - 1), 0);
    expect_count(parse(3 * sizeof(map[0])), 3);
    map[1].map_size += sizeof(map[0]); /* ends where map[2] does */
    expect_count(parse(3 * sizeof(map[0])), 2);
    expect_count(parse(3 * sizeof(map[0]) - 1), 2);
    begin();
    lab_guard("the word at `length`", &map[2].map_type, NULL);
    expect_count(parse(3 * sizeof(map[0]) - sizeof(map[2].map_type)), 2);
}

LAB_TEST(1, map_room, LAB_EARLY)
{
    begin();
    expect_count(memmap_parse(map, sizeof(map), got, 2), 2);
    expect_region(1, MIB(17), MIB(21));
    KT_EQ(got[2].region_start, 0xeeeeeeeeeeeeeeee);
    expect_count(memmap_parse(map, sizeof(map), got, 0), 0);
    begin();
    map[0].map_length = 0; /* takes no element */
    expect_count(memmap_parse(map, sizeof(map), got, 2), 2);
    expect_region(1, MIB(33), MIB(37));
}

/* ---- page faults in words ----------------------------------------------- */

#define PRESENT  1u
#define WRITE    2u
#define USER     4u
#define RESERVED 8u
#define FETCH    16u

enum {
    READING,
    WRITING,
    EXECUTING
};
static const char *const access[] = {"reading from 0xc0123456",
                                     "writing to 0xc0123456",
                                     "executing 0xc0123456", NULL};
enum {
    RING_0,
    RING_3
};
static const char *const ring[] = {"in ring 0:", "in ring 3:", NULL};
enum {
    UNMAPPED,
    PROTECTED,
    ODD_ENTRY
};
static const char *const reason[] = {
    ": nothing is mapped there", ": the page is protected",
    ": a reserved bit is set in its entry", NULL};

/* The report of a fault with this error code must contain words[want], and
 * none of the others. */
static void expect_words(uint32_t error, const char *const *words,
                         unsigned want)
{
    struct trapframe tf = {.vector = TRAP_PAGE_FAULT, .error = error};
    char text[96];

    trap_describe(&tf, 0xC0123456, text, sizeof(text));
    for (unsigned i = 0; words[i] != NULL; i++)
        if ((strstr(text, words[i]) != NULL) != (i == want))
            KT_FAIL("error code 0x%x: \"%s\" %s \"%s\"", (unsigned)error, text,
                    i == want ? "does not say" : "says", words[i]);
}

LAB_TEST(1, fault_access, LAB_EARLY)
{
    expect_words(0, access, READING);
    expect_words(PRESENT | USER, access, READING);
    expect_words(WRITE, access, WRITING);
    expect_words(PRESENT | WRITE | USER, access, WRITING);
    expect_words(FETCH, access, EXECUTING);
    expect_words(FETCH | PRESENT | USER, access, EXECUTING);
}

LAB_TEST(1, fault_ring, LAB_EARLY)
{
    expect_words(0, ring, RING_0);
    expect_words(PRESENT | WRITE, ring, RING_0);
    expect_words(USER, ring, RING_3);
    expect_words(USER | FETCH, ring, RING_3);
}

LAB_TEST(1, fault_reason, LAB_EARLY)
{
    expect_words(0, reason, UNMAPPED);
    expect_words(WRITE | USER, reason, UNMAPPED);
    expect_words(PRESENT, reason, PROTECTED);
    expect_words(PRESENT | WRITE | USER, reason, PROTECTED);
    expect_words(RESERVED | PRESENT, reason, ODD_ENTRY);
    expect_words(RESERVED | PRESENT | WRITE, reason, ODD_ENTRY);
}

/* ---- frames ------------------------------------------------------------- */

#define FRAMES 5

/* A stack built by the test: frame i is stack[4 * i], and its caller is i +
 * 1. */
static uintptr_t stack[4 * FRAMES];
static uintptr_t pc[FRAMES + 1];

static uintptr_t code(unsigned i)
{
    return (uintptr_t)text_start + 16 * (i + 1);
}

static void make_stack(void)
{
    memset(pc, 0, sizeof(pc));
    for (unsigned i = 0; i < FRAMES; i++) {
        bool last = i == FRAMES - 1;

        stack[4 * i] = last ? 0 : (uintptr_t)&stack[4 * (i + 1)];
        stack[4 * i + 1] = code(i);
    }
}

/* Walks it from frame `from` on and expects these callers. */
static void expect_frames(unsigned from, unsigned max, unsigned want)
{
    unsigned n = backtrace((uintptr_t)&stack[4 * from], pc, max);

    if (n != want)
        KT_FAIL("backtrace found %u callers, want %u", n, want);
    for (unsigned i = 0; i < MIN(n, want); i++)
        if (pc[i] != code(from + i))
            KT_FAIL("caller %u is 0x%lx, want 0x%lx", i, (unsigned long)pc[i],
                    (unsigned long)code(from + i));
}

LAB_TEST(1, frames_chain, LAB_UP)
{
    make_stack();
    expect_frames(0, FRAMES + 1, FRAMES);
    expect_frames(3, FRAMES + 1, 2);
}

LAB_TEST(1, frames_limit, LAB_UP)
{
    make_stack();
    expect_frames(0, 2, 2);
    KT_EQ(pc[2], 0);
    expect_frames(1, 1, 1);
}

/* The last word of memory: nothing is mapped after it. */
static uintptr_t last_word(void)
{
    return KERNEL_BASE + (page_count << PAGE_SHIFT) - sizeof(uintptr_t);
}

/* Frames that cannot be read, and words that are not return addresses. */
LAB_TEST(1, frames_bad, LAB_UP)
{
    make_stack();
    stack[4] = 0xfff00000; /* nothing is mapped there */
    expect_frames(0, FRAMES, 2);
    make_stack();
    stack[4] = (uintptr_t)&stack[8] + 1;
    expect_frames(0, FRAMES, 2);
    make_stack();
    stack[9] = (uintptr_t)stack; /* data */
    expect_frames(0, FRAMES, 2);
    make_stack();
    stack[4] = last_word(); /* the second word of that frame is nowhere */
    expect_frames(0, FRAMES, 2);
}

/* A list that leads back to one of its frames has no end. */
LAB_TEST(1, frames_circle, LAB_UP)
{
    make_stack();
    stack[8] = (uintptr_t)&stack[0];
    expect_frames(0, FRAMES, 3);
    make_stack();
    stack[0] = (uintptr_t)&stack[0];
    expect_frames(0, FRAMES, 1);
}
