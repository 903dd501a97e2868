/*
 * What processors cost each other: atomic instructions, and lines of memory
 * that move from one processor's cache to another's.
 *
 *     mmscale CPUS [SIZE]     objects of SIZE bytes, 60 if not given
 *
 * mm/ is compiled with a call before each access (mm/tests/races/instrumented.h
 * has them). The processors have caches without end, and a line is in those of
 * all that have read it since it was last written, or of the one that wrote it.
 * A line moves when a processor that does not have it accesses it, and another
 * one has it. The processors take turns, operation by operation: none ever
 * waits for a lock. Every run prints the same, as a line of JSON.
 *
 * There is a program for the slab layer alone, one with magazines, and one for
 * each allocator of mm/others/, behind mm/others/serve.c and without counts.
 *
 * How many lines the head of a structure is in depends on where it begins. So
 * each figure is a mean over caches that follow each other in memory.
 */
#include "mm/buddy.h"
#include "mm/debug/debug.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/others/others.h"
#include "mm/segkmem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CPUS   8
#define FRAMES 16384 /* 64 MiB */
#define CACHES 8
#define EACH   2000u /* objects of a processor */
#define WINDOW 64u   /* objects on their way from one to another */
#define MOVES  100000u

char *scale_arena;

static unsigned cpus;

#ifdef SCALE_OTHERS
#define cpu other_cpu /* as mm/others/ calls the processor that runs */
#else
static unsigned cpu; /* that runs */
#endif

enum phase {
    ALLOC,
    FREE,
    PAIR,
    STREAM,
    PHASES
};

static struct figures {
    uint64_t atomics, moved, operations;
} figures[PHASES];
static struct figures *counted; /* NULL: none are */

/* ---- lines -------------------------------------------------------------- */

#define LINE_SHIFT 6
#define LINES_LOG2 20

/* By number; those of a hash chain follow each other. */
static struct line {
    uintptr_t line_number;
    uint8_t line_cpus; /* a bit for each that has it */
} lines[1u << LINES_LOG2];

static struct line *line_at(uintptr_t number)
{
    size_t i = (number * 0x9e3779b97f4a7c15u) >> (64 - LINES_LOG2);

    while (lines[i].line_number != number && lines[i].line_number != 0)
        i = (i + 1) % ARRAY_SIZE(lines);
    lines[i].line_number = number;
    return &lines[i];
}

static void touch_line(uintptr_t number, bool writes)
{
    struct line *l = line_at(number);
    uint8_t mine = (uint8_t)(1u << cpu);

    if (counted != NULL && (l->line_cpus & mine) == 0 && l->line_cpus != 0)
        counted->moved++;
    l->line_cpus = writes ? mine : l->line_cpus | mine;
}

static uintptr_t stack_end; /* main's frame */

/* A stack is its processor's own; here all have one, at an address that differs
 * from run to run. */
static bool on_stack(const void *at)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

    return (uintptr_t)at - frame < stack_end - frame;
}

static void touch(const void *at, size_t size, bool writes)
{
    uintptr_t end = ((uintptr_t)at + size - 1) >> LINE_SHIFT;

    if (on_stack(at))
        return;
    for (uintptr_t n = (uintptr_t)at >> LINE_SHIFT; n <= end; n++)
        touch_line(n, writes);
}

static void change(const void *at, size_t size)
{
    if (counted != NULL)
        counted->atomics++;
    touch(at, size, true);
}

#define ON_READ(at, size)  touch(at, size, false)
#define ON_WRITE(at, size) touch(at, size, true)
#define ON_STORE(at, size) touch(at, size, true)
#define ON_LOAD(at, size, order)                                               \
    do {                                                                       \
        (void)(order);                                                         \
        touch(at, size, false);                                                \
    } while (0)
#define ON_CHANGE(at, size) change(at, size)

#include "mm/tests/races/instrumented.h"

/* ---- the platform ------------------------------------------------------- */

void mm_lock(mm_lock_t *lock)
{
    change(lock, sizeof(*lock));
    lock->lock_word = 1;
}

void mm_unlock(mm_lock_t *lock)
{
    touch(lock, sizeof(*lock), true);
    lock->lock_word = 0;
}

#if MM_MAGAZINES
unsigned mm_cpu_number(void)
{
    return cpu;
}

void mm_call_all(void (*fn)(void *arg), void *arg)
{
    unsigned caller = cpu;

    for (cpu = 0; cpu < CPUS; cpu++)
        fn(arg);
    cpu = caller;
}

bool mm_memory_low(void)
{
    return false;
}
#endif

/* Nothing runs meanwhile. */
void mm_stop_others(void)
{
}

void mm_resume_others(void)
{
}

uint64_t mm_clock_ms(void)
{
    return 0;
}

bool mm_wait_for_memory(void)
{
    return false;
}

bool mm_wait_for_task(void)
{
    return false;
}

void mm_wake_waiters(void)
{
}

void mm_print(const char *fmt, ...)
{
    (void)fmt;
}

void mm_panic(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    exit(1);
}

static void start_pages(void)
{
    const struct mem_region all = {MIB(1), (uint64_t)FRAMES << PAGE_SHIFT,
                                   true};

    scale_arena =
        mmap(NULL, (size_t)FRAMES << PAGE_SHIFT, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (scale_arena == MAP_FAILED) {
        perror("mmscale: mmap");
        exit(1);
    }
    page_init(aligned_alloc(BUDDY_ALIGN,
                            ROUND_UP(page_array_bytes(FRAMES), BUDDY_ALIGN)),
              FRAMES, &all, 1, MIB(1), MIB(1) + KIB(512));
    buddy_init();
}

/* ---- phases ------------------------------------------------------------- */

static struct kmem_cache *cache;
static size_t size = 60;
static uint8_t *object[CPUS][EACH];

static void operation(void)
{
    if (counted != NULL)
        counted->operations++;
}

static void *alloc(void)
{
    operation();
    return kmem_cache_alloc(cache, KM_NOSLEEP);
}

/* The client writes to its object, which is not counted. */
static void use_objects(void)
{
    for (cpu = 0; cpu < cpus; cpu++)
        for (unsigned i = 0; i < EACH; i++)
            touch(object[cpu][i], size, true);
}

static void phases(void)
{
    counted = &figures[ALLOC];
    for (unsigned i = 0; i < EACH; i++)
        for (cpu = 0; cpu < cpus; cpu++)
            object[cpu][i] = alloc();
    counted = NULL;
    use_objects();
    counted = &figures[FREE];
    for (unsigned i = 0; i < EACH; i++)
        for (cpu = 0; cpu < cpus; cpu++, operation())
            kmem_cache_free(cache, object[cpu][i]);
    counted = NULL;
}

static void pairs(void)
{
    for (unsigned i = 0; i < EACH; i++)
        for (cpu = 0; cpu < cpus; cpu++)
            kmem_cache_free(cache, alloc());
}

/* The first processor allocates, and the last one frees a while later. */
static void stream(void)
{
    static void *window[WINDOW];

    for (unsigned i = 0; i < MOVES; i++) {
        void **at = &window[i % WINDOW];

        cpu = cpus - 1;
        if (*at != NULL)
            kmem_cache_free(cache, *at);
        cpu = 0;
        *at = alloc();
    }
    cpu = cpus - 1;
    for (unsigned i = 0; i < WINDOW; i++) {
        kmem_cache_free(cache, window[i]);
        window[i] = NULL;
    }
}

/* A phase once to warm up, and once counted. */
static void warm(enum phase phase, void (*run)(void))
{
    run();
    counted = &figures[phase];
    run();
    counted = NULL;
}

static void print_figures(void)
{
    static const char *const name[PHASES] = {[ALLOC] = "alloc",
                                             [FREE] = "free",
                                             [PAIR] = "pair",
                                             [STREAM] = "stream"};

    printf("{\"cpus\": %u, \"size\": %zu", cpus, size);
    for (unsigned i = 0; i < PHASES; i++) {
        const struct figures *f = &figures[i];

        printf(", \"%s\": {\"atomics\": %.4f, \"lines\": %.4f}", name[i],
               (double)f->atomics / (double)f->operations,
               (double)f->moved / (double)f->operations);
    }
    printf("}\n");
}

int main(int argc, char **argv)
{
    struct kmem_cache *caches[CACHES];
    char name[CACHES][8];
    const char *where;
    const char *why;

    stack_end = (uintptr_t)__builtin_frame_address(0);
    cpus = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    size = argc > 2 ? (size_t)atoi(argv[2]) : size;
    if (cpus == 0 || cpus > CPUS || size == 0 || size > 4096) {
        fprintf(stderr, "usage: mmscale CPUS [SIZE], up to %d and 4096\n",
                CPUS);
        return 2;
    }
    start_pages();
    kmem_init();
    for (unsigned i = 0; i < CACHES; i++) {
        snprintf(name[i], sizeof(name[i]), "scale%u", i);
        caches[i] = kmem_cache_create(name[i], size, 0, NULL, NULL);
    }
    for (unsigned i = 0; i < CACHES; i++) {
        cache = caches[i];
        phases();
        warm(PAIR, pairs);
        warm(STREAM, stream);
    }
    print_figures();
    cpu = 0;
    why = OTHER_COUNTED ? kmem_verify(&where) : NULL;
    if (why != NULL)
        mm_panic("kmem_verify: %s: %s", why, where);
    for (unsigned i = 0; i < CACHES; i++)
        if (kmem_cache_destroy(caches[i]) != 0)
            mm_panic("a cache has objects");
    return 0;
}
