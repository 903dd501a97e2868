/*
 * `compare`: what an allocator costs, in instructions, and what it holds.
 *
 * Only the kernels of `make compare` have this file: one with Slate's allocator
 * and one with each of mm/others/. It uses mm/kmem.h alone, so the same code
 * measures all of them. tools/measure/compare.py collects the figures from the
 * debug port.
 *
 * What is measured is what C. Lameter's talk of 2014 measures on one processor:
 * many allocations, their frees, and pairs of both; and constructed objects, of
 * the paper's section 5.1. (A single block that is allocated again and again is
 * found at once by most allocators. For a mixture these kernels have `replay`.)
 *
 * Pages are counted where they come from: the linker leads kmem_getpages
 * through this file. Its own array is pages of buddy, not of the heap.
 */
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/shell/shell.h"
#include "mm/buddy.h"
#include "tools/workshop/bench/cmd_bench.h"

#define BLOCKS 2000u /* allocated, then freed */

static const uint16_t compare_sizes[] = {8,   16,  32,   64,   128,
                                         256, 512, 1024, 2048, 4096};

/* ---- figures ------------------------------------------------------------ */

static const char *compare_when; /* the first word of each key */

static void report(const char *what, uint32_t size, uint64_t total, uint32_t n)
{
    uint32_t hundredths = (uint32_t)(total * 100 / n);

    kprintf("  %-8s %-14s %4u %8u.%02u\n", compare_when, what, size,
            hundredths / 100, hundredths % 100);
    debugcon_event("{\"event\":\"compare\",\"when\":\"%s\",\"what\":\"%s\","
                   "\"size\":%u,\"value\":%u.%02u}",
                   compare_when, what, size, hundredths / 100,
                   hundredths % 100);
}

/* ---- one size ----------------------------------------------------------- */

static uint64_t pairs(uint32_t size)
{
    uint64_t start = rdtsc();

    REPEAT (ROUNDS)
        kmem_free(kmem_alloc(size, KM_NOSLEEP), size);
    return rdtsc() - start - benchcmd_empty_loop();
}

static uint64_t allocate_all(uint32_t size, void **p)
{
    uint64_t start = rdtsc();

    REPEAT (BLOCKS)
        *p++ = kmem_alloc(size, KM_NOSLEEP);
    return rdtsc() - start;
}

static uint64_t free_all(uint32_t size, void **p)
{
    uint64_t start = rdtsc();

    REPEAT (BLOCKS)
        kmem_free(*p++, size);
    return rdtsc() - start - benchcmd_pointer_loop(p, BLOCKS);
}

static bool measure_blocks(uint32_t size, void **p)
{
    uint64_t alloc = allocate_all(size, p);

    if (!benchcmd_have_all(p, BLOCKS)) {
        for (uint32_t i = 0; i < BLOCKS; i++)
            if (p[i] != NULL)
                kmem_free(p[i], size);
        return false;
    }
    report("free", size, free_all(size, p), BLOCKS);
    report("alloc", size, alloc - benchcmd_store_loop(p, BLOCKS), BLOCKS);
    return true;
}

static bool measure_size(uint32_t size, void **p)
{
    void *live = kmem_alloc(size, KM_NOSLEEP); /* so no page becomes free */
    bool enough = live != NULL;
    uint32_t flags;

    if (!enough)
        return false;
    flags = irq_save(); /* the timer's interrupt is no part of a figure */
    pairs(size);
    report("pair", size, pairs(size), ROUNDS);
    enough = measure_blocks(size, p);
    irq_restore(flags);
    kmem_free(live, size);
    return enough;
}

/* ---- constructed objects ------------------------------------------------ */

static uint64_t object_pairs(struct kmem_cache *cp)
{
    uint64_t start = rdtsc();

    REPEAT (ROUNDS)
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_NOSLEEP));
    return rdtsc() - start - benchcmd_empty_loop();
}

static bool measure_objects(const char *what, uint32_t size, kmem_ctor_t *ctor)
{
    struct kmem_cache *cp = kmem_cache_create("compare", size, 0, ctor, NULL);
    uint32_t flags;
    void *live;

    if (cp == NULL)
        return false;
    live = kmem_cache_alloc(cp, KM_NOSLEEP);
    if (live != NULL) {
        flags = irq_save();
        object_pairs(cp);
        report(what, size, object_pairs(cp), ROUNDS);
        irq_restore(flags);
        kmem_cache_free(cp, live);
    }
    return kmem_cache_destroy(cp) == 0 && live != NULL;
}

/* ---- the heap's pages --------------------------------------------------- */

static size_t most_pages;   /* since the last mark */
static uint64_t mark_ticks; /* when that was */

void *__real_kmem_getpages(size_t pages, enum page_state use, void *owner);
void *__wrap_kmem_getpages(size_t pages, enum page_state use, void *owner);

void *__wrap_kmem_getpages(size_t pages, enum page_state use, void *owner)
{
    void *addr = __real_kmem_getpages(pages, use, owner);

    most_pages = MAX(most_pages, benchcmd_held_pages());
    return addr;
}

/* Instructions, and the most pages, since the mark before. */
static int mark(void)
{
    debugcon_event("{\"event\":\"compare-mark\",\"instructions\":%llu,"
                   "\"most\":%zu,\"held\":%zu}",
                   rdtsc() - mark_ticks, most_pages, benchcmd_held_pages());
    most_pages = benchcmd_held_pages();
    mark_ticks = rdtsc();
    return 0;
}

/* ---- the command -------------------------------------------------------- */

static bool measure(void **p)
{
    bool enough = true;

    for (size_t i = 0; enough && i < ARRAY_SIZE(compare_sizes); i++)
        enough = measure_size(compare_sizes[i], p);
    for (uint32_t size = 64; enough && size <= 1024; size *= 2)
        enough = measure_objects("cache", size, NULL) &&
                 measure_objects("constructed", size, benchcmd_construct);
    return enough;
}

static int costs(const char *when)
{
    size_t pages = PAGES_FOR(BLOCKS * sizeof(void *));
    struct page *pointers = buddy_alloc_run(pages);
    bool enough = false;

    compare_when = when;
    if (pointers != NULL) {
        enough = measure(page_to_virt(pointers));
        buddy_free_run(pointers, pages);
    }
    return enough ? 0 : shell_error("too little memory");
}

static int cmd_compare(char **argv)
{
    return argv[1] == NULL ? mark() : costs(argv[1]);
}

SHELL_COMMAND(compare, {"[WHEN]", cmd_compare, SHELL_ACTION});
