/*
 * `bench kinds`: what object caching saves, for every kind of object that the
 * kernel has. The paper's last table of section 5.1, from the running kernel:
 * no list of kinds, but all caches that clients have made.
 *
 * With caching, an object costs an allocation from the cache of its kind and a
 * free. Without, it costs what section 2.1 shows: memory from kmem_alloc, the
 * constructor, the destructor, kmem_free. The use in between is left out. The
 * last row is the paper's last, makepipe: it includes the use, so caching
 * saves a smaller part.
 */
#include "drivers/console.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/lib/printf.h"
#include "tools/workshop/bench/cmd_bench.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/cpu.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"

#define TRIES 4 /* the least counts: others may have a clock tick in them */

uint64_t benchcmd_without(const struct kmem_cache *cp)
{
    uint64_t start = rdtsc();

    REPEAT (ROUNDS) {
        void *obj = kmem_alloc(cp->cache_size, KM_SLEEP);

        if (cp->cache_ctor != NULL)
            cp->cache_ctor(obj, cp->cache_size);
        if (cp->cache_dtor != NULL)
            cp->cache_dtor(obj, cp->cache_size);
        kmem_free(obj, cp->cache_size);
    }
    return rdtsc() - start - benchcmd_empty_loop();
}

static inline void close_pipe(struct file *end[2])
{
    object_put(&end[0]->file_object);
    object_put(&end[1]->file_object);
}

/* ROUNDS pipes made, and both ends closed. 0: there is no memory. */
static uint64_t make_pipes(void)
{
    struct file *end[2];
    uint64_t start = rdtsc();

    REPEAT (ROUNDS) {
        if (pipe_create(&end[0], &end[1]) != 0)
            return 0;
        close_pipe(end);
    }
    return rdtsc() - start - benchcmd_empty_loop();
}

static void report(const char *kind, size_t size, uint64_t without,
                   uint64_t with)
{
    uint32_t tenths = (uint32_t)((without * 10 + with / 2) / with);
    char key[KMEM_NAME_MAX + 16];
    char bytes[HEAP_CELL] = "";

    if (size != 0)
        snprintf(bytes, sizeof(bytes), "%zu", size);
    kprintf("  %-*s %6s %7u %7u %7u.%ux\n", HEAP_NAME, kind, bytes,
            (uint32_t)(without / ROUNDS), (uint32_t)(with / ROUNDS),
            tenths / 10, tenths % 10);
    snprintf(key, sizeof(key), "kinds.without.%s", kind);
    benchcmd_event(key, without, ROUNDS);
    snprintf(key, sizeof(key), "kinds.with.%s", kind);
    benchcmd_event(key, with, ROUNDS);
}

/* Each try leaves one more object of the kind, and one more of its size,
 * allocated. So in at least one try counting creates and destroys no slab, and
 * the figures do not depend on earlier allocations. */
static void bench_kind(struct kmem_cache *cp)
{
    void *object[TRIES];
    void *memory[TRIES];
    uint64_t without = UINT64_MAX;
    uint64_t with = UINT64_MAX;
    bool enough = true;

    for (unsigned i = 0; i < TRIES; i++) {
        object[i] = kmem_cache_alloc(cp, KM_NOSLEEP);
        memory[i] = kmem_alloc(cp->cache_size, KM_NOSLEEP);
        enough = enough && object[i] != NULL && memory[i] != NULL;
        if (!enough)
            continue;
        without = MIN(without, benchcmd_without(cp));
        with = MIN(with, benchcmd_cache_pair(cp));
    }
    if (enough)
        report(cp->cache_name, cp->cache_size, without, with);
    else
        kprintf("  %s: skipped: too little memory\n", cp->cache_name);
    for (unsigned i = 0; i < TRIES; i++) {
        if (object[i] != NULL)
            kmem_cache_free(cp, object[i]);
        if (memory[i] != NULL)
            kmem_free(memory[i], cp->cache_size);
    }
}

/* Likewise, with one pipe more each time. */
static int bench_makepipe(void)
{
    struct file *end[TRIES][2];
    uint64_t with = UINT64_MAX;
    uint64_t without = UINT64_MAX;
    unsigned n = 0;

    while (n < TRIES && pipe_create(&end[n][0], &end[n][1]) == 0) {
        with = MIN(with, make_pipes());
        pipe_caching = false;
        without = MIN(without, make_pipes());
        pipe_caching = true;
        n++;
    }
    for (unsigned i = 0; i < n; i++)
        close_pipe(end[i]);
    if (n < TRIES || with == 0 || without == 0)
        return shell_error("too little memory for a pipe");
    report("makepipe", 0, without, with);
    return 0;
}

int benchcmd_kinds(void)
{
    kprintf("  %-*s %6s %7s %7s %8s\n", HEAP_NAME, "KIND", "BYTES", "WITHOUT",
            "WITH", "FACTOR");
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp))
        if (cp->cache_kind == KMEM_KIND_NAMED && !shell_interrupted())
            bench_kind(cp);
    return bench_makepipe();
}
