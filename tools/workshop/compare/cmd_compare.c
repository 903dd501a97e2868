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
 * the paper's section 5.1. A single block that is allocated again and again is
 * found at once by every allocator. So there are also mixed sizes, of which a
 * random one is freed before each allocation.
 *
 * Pages are counted where they come from: the linker leads kmem_getpages
 * through this file. Its own arrays are pages of buddy, not of the heap.
 */
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/shell.h"
#include "mm/buddy.h"
#include "mm/segkmem.h"
#include "tools/workshop/bench/cmd_bench.h"

#define BLOCKS 2000u  /* allocated, then freed */
#define LIVE   1024u  /* of mixed sizes, at a time */
#define MIXED  10000u /* exchanges; as many before that are not counted */
#define TICKS  4096u /* for the percentile, one that takes longer takes these */

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

/* An array outside of the heap, zeroed. */
static void *array(size_t bytes, struct page **pages)
{
    *pages = buddy_alloc_run(PAGES_FOR(bytes));
    return *pages == NULL ? NULL : memset(page_to_virt(*pages), 0, bytes);
}

static void array_free(size_t bytes, struct page *pages)
{
    if (pages != NULL)
        buddy_free_run(pages, PAGES_FOR(bytes));
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

static bool have_all(void **p)
{
    for (uint32_t i = 0; i < BLOCKS; i++)
        if (p[i] == NULL)
            return false;
    return true;
}

static bool measure_blocks(uint32_t size, void **p)
{
    uint64_t alloc = allocate_all(size, p);

    if (!have_all(p)) {
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

    if (!enough)
        return false;
    pairs(size);
    report("pair", size, pairs(size), ROUNDS);
    enough = measure_blocks(size, p);
    kmem_free(live, size);
    return enough;
}

/* ---- constructed objects ------------------------------------------------ */

static void construct(void *obj, size_t size)
{
    uint32_t *word = obj;

    for (size_t i = 0; i < size / sizeof(*word); i++)
        word[i] = (uint32_t)i;
}

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
    void *live;

    if (cp == NULL)
        return false;
    live = kmem_cache_alloc(cp, KM_NOSLEEP);
    if (live != NULL) {
        object_pairs(cp);
        report(what, size, object_pairs(cp), ROUNDS);
        kmem_cache_free(cp, live);
    }
    return kmem_cache_destroy(cp) == 0 && live != NULL;
}

/* ---- mixed sizes -------------------------------------------------------- */

struct mixed {
    void *mixed_block[LIVE];
    uint16_t mixed_size[LIVE];
    uint32_t mixed_random;
    uint32_t mixed_count[2][TICKS + 1]; /* frees, allocations: by ticks */
    uint64_t mixed_total[2];
    uint64_t mixed_most[2];
};

static uint32_t next_random(struct mixed *m, uint32_t n)
{
    m->mixed_random = m->mixed_random * 1664525 + 1013904223;
    return (m->mixed_random >> 16) % n;
}

/* Half are those of kinds of objects in the reference trace R1, half any. */
static uint16_t mixed_size(struct mixed *m)
{
    static const uint16_t kinds[] = {476, 228, 92, 44, 36, 148,
                                     120, 300, 84, 60, 28, 52};

    return next_random(m, 2) == 0 ? kinds[next_random(m, ARRAY_SIZE(kinds))]
                                  : (uint16_t)(16 + next_random(m, 1000));
}

static void count(struct mixed *m, bool alloc, uint64_t ticks)
{
    m->mixed_count[alloc][MIN(ticks, (uint64_t)TICKS)]++;
    m->mixed_total[alloc] += ticks;
    m->mixed_most[alloc] = MAX(m->mixed_most[alloc], ticks);
}

/* Frees the block of a random place, and allocates one. */
static bool exchange(struct mixed *m)
{
    uint32_t i = next_random(m, LIVE);
    uint16_t size = mixed_size(m);
    uint64_t start;

    if (m->mixed_block[i] != NULL) {
        start = rdtsc();
        kmem_free(m->mixed_block[i], m->mixed_size[i]);
        count(m, false, rdtsc() - start);
    }
    start = rdtsc();
    m->mixed_block[i] = kmem_alloc(size, KM_NOSLEEP);
    count(m, true, rdtsc() - start);
    m->mixed_size[i] = size;
    return m->mixed_block[i] != NULL;
}

/* The ticks that 99 of 100 operations do not exceed. */
static uint32_t percentile(const uint32_t *count_of)
{
    uint32_t n = count_of[0], ticks = 0;

    while (n < MIXED / 100 * 99)
        n += count_of[++ticks];
    return ticks;
}

static void report_mixed(const struct mixed *m, bool alloc)
{
    report(alloc ? "mixed-alloc" : "mixed-free", 0, m->mixed_total[alloc],
           MIXED);
    report(alloc ? "mixed-alloc-99" : "mixed-free-99", 0,
           percentile(m->mixed_count[alloc]), 1);
    report(alloc ? "mixed-alloc-max" : "mixed-free-max", 0,
           m->mixed_most[alloc], 1);
}

static bool measure_mixed(struct mixed *m)
{
    bool enough = true;

    m->mixed_random = 12345;
    for (uint32_t i = 0; enough && i < MIXED; i++)
        enough = exchange(m);
    for (uint32_t i = 0; enough && i < LIVE; i++)
        enough = m->mixed_block[i] != NULL;
    memset(m->mixed_count, 0, sizeof(m->mixed_count));
    memset(m->mixed_total, 0, sizeof(m->mixed_total));
    memset(m->mixed_most, 0, sizeof(m->mixed_most));
    for (uint32_t i = 0; enough && i < MIXED; i++)
        enough = exchange(m);
    if (enough) {
        report_mixed(m, true);
        report_mixed(m, false);
    }
    for (uint32_t i = 0; i < LIVE; i++)
        if (m->mixed_block[i] != NULL)
            kmem_free(m->mixed_block[i], m->mixed_size[i]);
    return enough;
}

/* ---- the heap's pages --------------------------------------------------- */

static size_t most_pages;   /* since the last mark */
static uint64_t mark_ticks; /* when that was */

void *__real_kmem_getpages(size_t pages, enum page_state use, void *owner);
void *__wrap_kmem_getpages(size_t pages, enum page_state use, void *owner);

static size_t held_pages(void)
{
    struct segkmem_stat stat;

    segkmem_stat(&stat);
    return stat.stat_pages;
}

void *__wrap_kmem_getpages(size_t pages, enum page_state use, void *owner)
{
    void *addr = __real_kmem_getpages(pages, use, owner);

    most_pages = MAX(most_pages, held_pages());
    return addr;
}

/* Instructions, and the most pages, since the mark before. */
static int mark(void)
{
    debugcon_event("{\"event\":\"compare-mark\",\"instructions\":%llu,"
                   "\"most\":%zu,\"held\":%zu}",
                   rdtsc() - mark_ticks, most_pages, held_pages());
    most_pages = held_pages();
    mark_ticks = rdtsc();
    return 0;
}

/* ---- the command -------------------------------------------------------- */

static bool measure(void **p, struct mixed *m)
{
    bool enough = p != NULL && m != NULL && measure_mixed(m);

    for (size_t i = 0; enough && i < ARRAY_SIZE(compare_sizes); i++)
        enough = measure_size(compare_sizes[i], p);
    for (uint32_t size = 64; enough && size <= 1024; size *= 2)
        enough = measure_objects("cache", size, NULL) &&
                 measure_objects("constructed", size, construct);
    return enough;
}

static int costs(const char *when)
{
    struct page *pointers, *mixed;
    void **p = array(BLOCKS * sizeof(*p), &pointers);
    struct mixed *m = array(sizeof(*m), &mixed);
    bool enough;

    compare_when = when;
    enough = measure(p, m);
    array_free(BLOCKS * sizeof(*p), pointers);
    array_free(sizeof(*m), mixed);
    return enough ? 0 : shell_error("too little memory");
}

static int cmd_compare(char **argv)
{
    return argv[1] == NULL ? mark() : costs(argv[1]);
}

SHELL_COMMAND(compare, cmd_compare);
