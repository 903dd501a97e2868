/*
 * `bench`: what the allocator costs, and what programs pay, in instructions.
 *
 * Under `make run ICOUNT=1` and `make bench` the time-stamp counter advances
 * by exactly one per guest instruction, so a difference of two readings is a
 * count, and the same in every run. A figure counts all that an
 * allocation or a free takes: argument loads, call, the whole callee and its
 * return. Loops, and the stores that keep the pointers, are measured without
 * the call and subtracted; `bench self` checks that none of them remains.
 *
 * Each figure goes to the console and, as {"event":"bench",…}, to the debug
 * port, from where tools/measure/bench.py collects build/bench.json.
 */
#include "drivers/console.h"
#include "drivers/debugcon.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/fs/file.h"
#include "tools/workshop/bench/cmd_bench.h"
#include "kernel/shell/cmd_task.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/cpu.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "tools/workshop/ktest/ktest.h"

static const uint16_t speed_sizes[] = {8,   16,  32,   64,   128,
                                       256, 512, 1024, 2048, 4096};

static const uint16_t util_sizes[] = {
    8,   16,  24,  32,  40,  48,  64,   72,   96,   128,  200,
    256, 300, 400, 512, 600, 700, 1024, 1500, 2048, 3000, 4096};

static bool exact; /* the figures of this group are */

/* ---- reporting ---------------------------------------------------------- */

void benchcmd_event(const char *key, uint64_t total, uint32_t n)
{
    uint64_t hundredths = (total * 100 + n / 2) / n;

    debugcon_event("{\"event\":\"bench\",\"key\":\"%s\",\"value\":%llu.%02u}",
                   key, hundredths / 100, (unsigned)(hundredths % 100));
}

void benchcmd_report(const char *key, uint64_t total, uint32_t n)
{
    uint64_t hundredths = (total * 100 + n / 2) / n;

    if (exact)
        kprintf("  %-26s %9llu.%02u\n", key, hundredths / 100,
                (unsigned)(hundredths % 100));
    else
        kprintf("  %-26s %9llu\n", key, (hundredths + 50) / 100);
    benchcmd_event(key, total, n);
}

void benchcmd_report_size(const char *what, uint32_t size, uint64_t total,
                          uint32_t n)
{
    char key[40];

    snprintf(key, sizeof(key), "%s.%u", what, size);
    benchcmd_report(key, total, n);
}

/* ---- caches ------------------------------------------------------------- */

static uint64_t alloc_all(struct kmem_cache *cp, void **p, uint32_t n)
{
    uint64_t start = rdtsc();

    REPEAT (n)
        *p++ = kmem_cache_alloc(cp, KM_NOSLEEP);
    return rdtsc() - start;
}

static uint64_t free_all(struct kmem_cache *cp, void **p, uint32_t n)
{
    uint64_t start = rdtsc();

    REPEAT (n)
        kmem_cache_free(cp, *p++);
    return rdtsc() - start;
}

/* A cache has magazines on this processor after some allocations. */
static void warm_up(struct kmem_cache *cp)
{
    if (MM_MAGAZINES)
        REPEAT (kmem_mag_enough + 2)
            kmem_cache_free(cp, kmem_cache_alloc(cp, KM_NOSLEEP));
}

uint64_t benchcmd_cache_pair(struct kmem_cache *cp)
{
    uint64_t start, end;
    uint32_t flags;

    warm_up(cp);
    flags = irq_save(); /* the timer's interrupt is no part of a pair */
    start = rdtsc();
    REPEAT (ROUNDS)
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_NOSLEEP));
    end = rdtsc();
    irq_restore(flags);
    return end - start - benchcmd_empty_loop();
}

void benchcmd_free_some(struct kmem_cache *cp, void **p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (p[i] != NULL)
            kmem_cache_free(cp, p[i]);
}

/* Means over OBJECTS objects, from an empty cache and from a populated one. */
static void bench_means(struct kmem_cache *cp, uint32_t size, void **p)
{
    uint64_t cold = alloc_all(cp, p, OBJECTS);
    uint64_t alloc;
    uint64_t free;

    if (!benchcmd_have_all(p, OBJECTS)) {
        benchcmd_free_some(cp, p, OBJECTS);
        kprintf("  %u bytes: skipped: too little memory\n", size);
        return;
    }
    free_all(cp, p, OBJECTS);
    alloc = alloc_all(cp, p, OBJECTS);
    free = free_all(cp, p, OBJECTS);
    benchcmd_report_size("kmem_cache.cold", size,
                         cold - benchcmd_store_loop(p, OBJECTS), OBJECTS);
    benchcmd_report_size("kmem_cache.alloc", size,
                         alloc - benchcmd_store_loop(p, OBJECTS), OBJECTS);
    benchcmd_report_size("kmem_cache.free", size,
                         free - benchcmd_pointer_loop(p, OBJECTS), OBJECTS);
}

/* The cost of creating and destroying a slab, per object in it. */
static void bench_slab(struct kmem_cache *cp, uint32_t size)
{
    uint32_t n = (uint32_t)cp->cache_slab_chunks;
    uint64_t create = 0;
    uint64_t destroy = 0;

    REPEAT (2) { /* the second counts */
        uint64_t t = rdtsc();
        struct kmem_slab *sp = kmem_slab_create(cp, 0);

        create = rdtsc() - t;
        if (sp == NULL) {
            kprintf("  %u bytes: skipped: too little memory\n", size);
            return;
        }
        t = rdtsc();
        kmem_slab_destroy(cp, sp);
        destroy = rdtsc() - t;
    }
    benchcmd_report_size("slab.create", size, create, n);
    benchcmd_report_size("slab.destroy", size, destroy, n);
}

static struct kmem_cache *bench_cache(uint32_t size)
{
    return kmem_cache_create("bench", size, 0, NULL, NULL);
}

void **benchcmd_pointers(uint32_t n)
{
    void **p = kmem_alloc(n * sizeof(void *), KM_NOSLEEP);

    if (p == NULL)
        shell_error("too little memory for %u pointers", n);
    return p;
}

void benchcmd_pointers_free(void **p, uint32_t n)
{
    kmem_free(p, n * sizeof(void *));
}

static int bench_kmem_cache(void)
{
    void **p = benchcmd_pointers(OBJECTS);

    if (p == NULL)
        return 1;
    for (size_t i = 0; i < ARRAY_SIZE(speed_sizes); i++) {
        uint32_t size = speed_sizes[i];
        struct kmem_cache *cp = bench_cache(size);
        void *live;

        if (cp == NULL)
            break;
        live = kmem_cache_alloc(cp, KM_SLEEP);
        benchcmd_report_size("kmem_cache.pair", size, benchcmd_cache_pair(cp),
                             ROUNDS);
        kmem_cache_free(cp, live);
        kmem_cache_reap(cp, KMEM_REAP_ALL);
        bench_means(cp, size, p);
        bench_slab(cp, size);
        kmem_cache_destroy(cp);
    }
    benchcmd_pointers_free(p, OBJECTS);
    return 0;
}

/* ---- kmem_alloc --------------------------------------------------------- */

static uint64_t kmem_pair(uint32_t size)
{
    uint64_t start, end;
    uint32_t flags;

    warm_up(kmem_size_class(size));
    flags = irq_save();
    start = rdtsc();
    REPEAT (ROUNDS)
        kmem_free(kmem_alloc(size, KM_NOSLEEP), size);
    end = rdtsc();
    irq_restore(flags);
    return end - start - benchcmd_empty_loop();
}

static int bench_kmem(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(speed_sizes); i++) {
        uint32_t size = speed_sizes[i];
        void *live = kmem_alloc(size, KM_SLEEP);

        benchcmd_report_size("kmem.pair", size, kmem_pair(size), ROUNDS);
        kmem_free(live, size);
    }
    return 0;
}

/* ---- debugging modes (section 6) ---------------------------------------- */

static const char *const debug_modes[] = {"F", "P", "Z",    "U",
                                          "S", "G", "FPZU", ""};

/* A hot pair in the modes `letters`; "", none after others, is "off". */
static void debug_pair(const char *what, const char *letters,
                       struct kmem_cache *cp)
{
    char key[40];
    unsigned modes;
    char bad;

    snprintf(key, sizeof(key), "%s.debug_%s", what,
             *letters == '\0' ? "off" : letters);
    kmem_debug_letters(letters, NULL, &modes, &bad);
    if (kmem_debug_set(cp, modes) == 0) {
        void *live = kmem_cache_alloc(cp, KM_SLEEP);

        benchcmd_report(key, benchcmd_cache_pair(cp), ROUNDS);
        kmem_cache_free(cp, live);
    }
}

/* The same of kmem_alloc, while its class is debugged, or only another. */
static void debug_sizes(void)
{
    static const uint16_t debugged[] = {64, 1024};

    for (size_t i = 0; i < ARRAY_SIZE(debugged); i++) {
        struct kmem_cache *cp = kmem_size_class(debugged[i]);
        void *live;

        if (kmem_debug_set(cp, KMF_CHECK | KMF_REDZONE) != 0)
            continue;
        live = kmem_alloc(64, KM_SLEEP);
        benchcmd_report(i == 0 ? "kmem.pair.64.debug_FZ"
                               : "kmem.pair.64.debug_another",
                        kmem_pair(64), ROUNDS);
        kmem_free(live, 64);
        kmem_debug_set(cp, 0);
    }
}

static int bench_debug(void)
{
    struct kmem_cache *small = bench_cache(64);
    struct kmem_cache *large = kmem_cache_create("large", 512, 0, NULL, NULL);

    for (size_t i = 0; i < ARRAY_SIZE(debug_modes); i++) {
        if (small != NULL)
            debug_pair("kmem_cache.pair.64", debug_modes[i], small);
        if (large != NULL)
            debug_pair("kmem_cache.pair.512", debug_modes[i], large);
    }
    if (small != NULL)
        kmem_cache_destroy(small);
    if (large != NULL)
        kmem_cache_destroy(large);
    debug_sizes();
    return 0;
}

/* ---- object caching (the second table of paper, section 5.1) ------------ */

static uint64_t uncached_pair(uint32_t size)
{
    uint64_t start = rdtsc();

    REPEAT (ROUNDS) {
        void *obj = kmem_alloc(size, KM_NOSLEEP);

        benchcmd_construct(obj, size);
        kmem_free(obj, size);
    }
    return rdtsc() - start - benchcmd_empty_loop();
}

static int bench_object(void)
{
    for (uint32_t size = 64; size <= 1024; size *= 2) {
        struct kmem_cache *cp =
            kmem_cache_create("bench", size, 0, benchcmd_construct, NULL);
        void *live[2];

        if (cp == NULL)
            return 1;
        live[0] = kmem_cache_alloc(cp, KM_SLEEP);
        live[1] = kmem_alloc(size, KM_SLEEP);
        benchcmd_report_size("object.cached", size, benchcmd_cache_pair(cp),
                             ROUNDS);
        benchcmd_report_size("object.uncached", size, uncached_pair(size),
                             ROUNDS);
        kmem_cache_free(cp, live[0]);
        kmem_free(live[1], size);
        kmem_cache_destroy(cp);
    }
    return 0;
}

/* ---- memory utilisation ------------------------------------------------- */

/* Payload per cent of all memory that OBJECTS objects cost: slabs, headers,
 * bufctls and hash table, to the page. */
static void util_of(uint32_t size, void **p)
{
    struct kmem_cache *cp = bench_cache(size);
    size_t before;

    if (cp == NULL)
        return;
    kmem_reap(KMEM_REAP_ALL);
    before = benchcmd_held_pages();
    alloc_all(cp, p, OBJECTS);
    if (benchcmd_have_all(p, OBJECTS))
        benchcmd_report_size(
            "util", size, (uint64_t)size * OBJECTS * 100,
            (uint32_t)((benchcmd_held_pages() - before) * PAGE_SIZE));
    else
        kprintf("  %u bytes: skipped: too little memory\n", size);
    benchcmd_free_some(cp, p, OBJECTS);
    kmem_cache_destroy(cp);
}

static int bench_util(void)
{
    void **p = benchcmd_pointers(OBJECTS);

    if (p == NULL)
        return 1;
    for (size_t i = 0; i < ARRAY_SIZE(util_sizes); i++)
        util_of(util_sizes[i], p);
    benchcmd_pointers_free(p, OBJECTS);
    return 0;
}

/* ---- cost stays flat ---------------------------------------------------- */

/* A hot pair while `live` objects are allocated, small and large. */
static void flat_live(uint32_t size, const char *what, uint32_t live, void **p)
{
    struct kmem_cache *cp = bench_cache(size);

    if (cp == NULL)
        return;
    alloc_all(cp, p, live);
    if (benchcmd_have_all(p, live))
        benchcmd_report_size(what, live, benchcmd_cache_pair(cp), ROUNDS);
    benchcmd_free_some(cp, p, live);
    kmem_cache_destroy(cp);
}

/* A hot pair while `n` other caches exist, or as many as there can be. */
static void flat_caches(uint32_t n, void **p)
{
    struct kmem_cache *cp = bench_cache(64);
    char name[16];
    uint32_t created = 0;
    void *live;

    if (cp == NULL)
        return;
    for (; created < n; created++) {
        snprintf(name, sizeof(name), "bench_%u", created);
        p[created] = kmem_cache_create(name, 64, 0, NULL, NULL);
        if (p[created] == NULL)
            break;
    }
    live = kmem_cache_alloc(cp, KM_SLEEP);
    benchcmd_report_size("flat.alloc.caches", created, benchcmd_cache_pair(cp),
                         ROUNDS);
    kmem_cache_free(cp, live);
    while (created-- > 0)
        kmem_cache_destroy(p[created]);
    kmem_cache_destroy(cp);
}

/* The cost of a reap per slab that it destroys. */
static void flat_reap(uint32_t objects, void **p)
{
    struct kmem_cache *cp = bench_cache(256);
    uint32_t slabs;
    uint64_t t;

    if (cp == NULL)
        return;
    alloc_all(cp, p, objects);
    benchcmd_free_some(cp, p, objects);
    t = rdtsc();
    slabs = (uint32_t)kmem_cache_reap(cp, KMEM_REAP_ALL);
    t = rdtsc() - t;
    if (slabs != 0)
        benchcmd_report_size("flat.reap.slab", slabs, t, slabs);
    kmem_cache_destroy(cp);
}

static int bench_flat(void)
{
    uint32_t most = 100000;
    void **p = benchcmd_pointers(most);

    if (p == NULL)
        return 1;
    for (uint32_t live = 10; live <= most; live *= 10)
        flat_live(64, "flat.alloc", live, p);
    for (uint32_t live = 10; live <= most; live *= 10)
        flat_live(512, "flat.large", live, p);
    for (uint32_t n = 10; n <= 500; n = n == 100 ? 500 : n * 10)
        flat_caches(n, p);
    for (uint32_t n = 150; n <= 15000; n *= 10)
        flat_reap(n, p);
    benchcmd_pointers_free(p, most);
    return 0;
}

/* A program measures the costs of programs and, run as a server, of drivers.
 * Only the switch that takes the cache of pipes out of use is not available to
 * it. */
static int bench_programs(void)
{
    char name[] = "bench";
    char key[] = "pipe.create_close.uncached";
    char *all[] = {name, NULL};
    char *uncached[] = {name, key, NULL};
    int result = taskcmd_run(all);

    pipe_caching = false;
    result |= taskcmd_run(uncached);
    pipe_caching = true;
    return result | taskcmd_run_server(all);
}

static int bench_boot(void)
{
    benchcmd_report("boot.instructions", shell_boot_instructions(), 1);
    return 0;
}

/* ---- the command -------------------------------------------------------- */

/* Only the hand-out of lab 6 has this group, which lab 6 asks for. */
__attribute__((weak)) int benchcmd_kinds(void);

static const struct {
    const char *name;
    const char *title;
    int (*run)(void);
} groups[] = {
    {"kmem_cache", "kmem_cache_alloc/free, slabs", bench_kmem_cache},
    {"kmem", "kmem_alloc/free, hot pair", bench_kmem},
    {"debug", "hot pairs in debugging modes", bench_debug},
    {"object", "constructed objects, cached or not", bench_object},
    {"kinds", "object caching, kind by kind, makepipe last", benchcmd_kinds},
    {"buddy", "pages from buddy and back", benchcmd_buddy},
    {"util", "payload, per cent of memory", bench_util},
    {"flat", "cost stays flat", bench_flat},
    {"programs", "system calls and processes", bench_programs},
    {"boot", "kernel entry to prompt", bench_boot},
    {"self", "sequences of ten and eleven instructions", benchcmd_self},
};

void benchcmd_title(const char *title, bool in_ticks)
{
    exact = !in_ticks || ktest_ticks_are_exact();
    kprintf("%s%s\n", title,
            exact ? "" : "\n  ticks, noisy; ICOUNT=1 counts instructions");
}

static int cmd_bench(char **argv)
{
    bool found = false;
    int result = 0;

    for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
        if (argv[1] && strcmp(argv[1], groups[i].name) != 0)
            continue;
        if (groups[i].run == NULL)
            continue;
        found = true;
        benchcmd_title(groups[i].title, groups[i].run != bench_util);
        result |= groups[i].run();
        if (shell_interrupted())
            break;
    }
    if (!found)
        return shell_error("no group '%.32s'; Tab lists them", argv[1]);
    debugcon_event("{\"event\":\"bench-end\"}");
    return result;
}

static void offer_groups(const struct shell_offer *o)
{
    for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
        if (groups[i].run != NULL)
            shell_offer(o, groups[i].name);
}

SHELL_COMMAND(bench, {"[GROUP]", cmd_bench, SHELL_ACTION});
SHELL_WORDS(GROUP, offer_groups);
