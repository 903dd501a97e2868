/*
 * `bench kinds`: what object caching saves, for every kind of object that the
 * kernel has. The paper's last table of section 5.1, from the running kernel:
 * no list of kinds, but all caches that clients have made.
 *
 * With caching, an object costs an allocation from the cache of its kind and a
 * free. Without, it costs what section 2.1 shows: memory from kmem_alloc, the
 * constructor, the destructor, kmem_free. The use in between is left out. The
 * last row is the paper's last, makepipe: with the use in between, what is
 * saved is a smaller part.
 */
#include "drivers/console.h"
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/lib/printf.h"
#include "kernel/shell/cmd_bench.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "kernel/x86/cpu.h"
#include "mm/kmem_impl.h"
#include "mm/kmem_stat.h"

#define TRIES 3 /* the least counts: the others may have a clock tick in them */

uint64_t benchcmd_without(const struct kmem_cache *cp)
{
    /* LAB 6.3 BEGIN: ROUNDS objects of this kind without its cache */
    uint64_t start = rdtsc();

    for (uint32_t i = 0; i < ROUNDS; i++) {
        void *obj = kmem_alloc(cp->cache_size, KM_SLEEP);

        if (cp->cache_ctor != NULL)
            cp->cache_ctor(obj, cp->cache_size);
        if (cp->cache_dtor != NULL)
            cp->cache_dtor(obj, cp->cache_size);
        kmem_free(obj, cp->cache_size);
    }
    return rdtsc() - start - benchcmd_empty_loop();
    /* LAB 6.3 INSTEAD
     * (void)cp;
     * LAB_MISSING
     */
    /* LAB 6.3 END */
}

/* ROUNDS pipes made, and both ends closed. 0: there is no memory. */
static uint64_t make_pipes(void)
{
    struct file *end[2];
    uint64_t start = rdtsc();

    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (pipe_create(&end[0], &end[1]) != 0)
            return 0;
        object_put(&end[0]->file_object);
        object_put(&end[1]->file_object);
    }
    return rdtsc() - start - benchcmd_empty_loop();
}

static void report(const char *kind, size_t size, uint64_t without,
                   uint64_t with)
{
    uint32_t tenths = (uint32_t)(without * 10 / with);
    char key[KMEM_NAME_MAX + 16];
    char bytes[MEMCMD_CELL] = "";

    if (size != 0)
        snprintf(bytes, sizeof(bytes), "%zu", size);
    kprintf("  %-*s %6s %7u %7u %7u.%ux\n", MEMCMD_NAME, kind, bytes,
            (uint32_t)(without / ROUNDS), (uint32_t)(with / ROUNDS),
            tenths / 10, tenths % 10);
    snprintf(key, sizeof(key), "kinds.without.%s", kind);
    benchcmd_event(key, without, ROUNDS);
    snprintf(key, sizeof(key), "kinds.with.%s", kind);
    benchcmd_event(key, with, ROUNDS);
}

/* One object of the kind and one of its size stay out, so that no slab comes or
 * goes meanwhile. */
static void bench_kind(struct kmem_cache *cp)
{
    void *object = kmem_cache_alloc(cp, KM_NOSLEEP);
    void *memory = kmem_alloc(cp->cache_size, KM_NOSLEEP);
    uint64_t without = UINT64_MAX;
    uint64_t with = UINT64_MAX;

    if (object != NULL && memory != NULL) {
        for (unsigned i = 0; i < TRIES; i++) {
            without = MIN(without, benchcmd_without(cp));
            with = MIN(with, benchcmd_cache_pair(cp));
        }
        report(cp->cache_name, cp->cache_size, without, with);
    } else {
        kprintf("  %s: left out, too little memory\n", cp->cache_name);
    }
    if (object != NULL)
        kmem_cache_free(cp, object);
    if (memory != NULL)
        kmem_free(memory, cp->cache_size);
}

static int bench_makepipe(void)
{
    uint64_t count[2] = {UINT64_MAX, UINT64_MAX};

    for (unsigned i = 0; i < 2 * TRIES; i++) {
        pipe_caching = i % 2 != 0;
        count[i % 2] = MIN(count[i % 2], make_pipes());
    }
    if (count[0] == 0 || count[1] == 0)
        return shell_error("too little memory for a pipe");
    report("makepipe", 0, count[0], count[1]);
    return 0;
}

int benchcmd_kinds(void)
{
    kprintf("  %-*s %6s %7s %7s %8s\n", MEMCMD_NAME, "KIND", "BYTES", "WITHOUT",
            "WITH", "FACTOR");
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp))
        if (cp->cache_kind == KMEM_KIND_NAMED && !shell_interrupted())
            bench_kind(cp);
    return bench_makepipe();
}
