/*
 * `scale`: instructions of the slab layer and of magazines on all processors.
 * The command moves from one to the next, so that none waits for another: what
 * that costs beyond instructions, `make scale` counts on the host.
 */
#include "kernel/lib/printf.h"
#include "kernel/shell/shell.h"
#include "kernel/task/task.h"
#include "mm/kmem_impl.h"
#include "tools/workshop/bench/cmd_bench.h"

#define SIZE   60u   /* bytes of an object */
#define EACH   2000u /* objects of a processor */
#define WINDOW 64u   /* objects on their way from one to another */
#define TURNS  50u   /* of them; as many before that are not counted */

/* So that each layer has direct calls of its own, as clients have. */
#define INLINE static inline __attribute__((always_inline))

struct layer {
    const char *layer_name;
    void *(*layer_alloc)(struct kmem_cache *cp, int flags);
    void (*layer_free)(struct kmem_cache *cp, void *buf);
};

static void report(const struct layer *l, const char *phase, uint64_t total,
                   uint32_t n)
{
    char key[40];

    snprintf(key, sizeof(key), "scale.%s.%s", l->layer_name, phase);
    benchcmd_report(key, total, n);
}

INLINE uint64_t alloc_all(const struct layer *l, struct kmem_cache *cp,
                          void **p, uint32_t n)
{
    uint64_t start = rdtsc();

    REPEAT (n)
        *p++ = l->layer_alloc(cp, KM_NOSLEEP);
    return rdtsc() - start;
}

INLINE uint64_t free_all(const struct layer *l, struct kmem_cache *cp, void **p,
                         uint32_t n)
{
    uint64_t start = rdtsc();

    REPEAT (n)
        l->layer_free(cp, *p++);
    return rdtsc() - start - benchcmd_pointer_loop(p, n);
}

INLINE uint64_t pairs(const struct layer *l, struct kmem_cache *cp)
{
    uint64_t start = rdtsc();

    REPEAT (ROUNDS)
        l->layer_free(cp, l->layer_alloc(cp, KM_NOSLEEP));
    return rdtsc() - start - benchcmd_empty_loop();
}

static void move_to(unsigned cpu)
{
    sched_move_self((uint8_t)(1u << cpu));
}

/* Whether all n objects were allocated. If not, frees those that were. */
static bool complete(struct kmem_cache *cp, void **p, uint32_t n)
{
    bool all = benchcmd_have_all(p, n);

    if (!all)
        benchcmd_free_some(cp, p, n);
    return all;
}

/* Each processor allocates, then each frees: first with an empty cache, then
 * again. False: there is no memory; the same in the next two functions. */
INLINE bool phases(const struct layer *l, struct kmem_cache *cp, void **p)
{
    uint64_t alloc = 0, free = 0;

    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        move_to(cpu);
        alloc += alloc_all(l, cp, p + cpu * EACH, EACH);
    }
    if (!complete(cp, p, cpu_count * EACH))
        return false;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        move_to(cpu);
        free += free_all(l, cp, p + cpu * EACH, EACH);
    }
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        alloc -= benchcmd_store_loop(p + cpu * EACH, EACH);
    report(l, "alloc", alloc, cpu_count * EACH);
    report(l, "free", free, cpu_count * EACH);
    return true;
}

INLINE bool pair(const struct layer *l, struct kmem_cache *cp)
{
    void *live = l->layer_alloc(cp, KM_NOSLEEP); /* no slab becomes free */
    uint64_t total = 0;

    if (live == NULL)
        return false;
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        move_to(cpu);
        pairs(l, cp);
        total += pairs(l, cp);
    }
    l->layer_free(cp, live);
    report(l, "pair", total, cpu_count * ROUNDS);
    return true;
}

/* The first processor allocates, the last one frees. */
INLINE bool stream(const struct layer *l, struct kmem_cache *cp, void **p)
{
    uint64_t total = 0;

    for (unsigned turn = 0; turn < 2 * TURNS; turn++) {
        uint64_t t;

        move_to(0);
        t = alloc_all(l, cp, p, WINDOW);
        if (!complete(cp, p, WINDOW))
            return false;
        move_to(cpu_count - 1);
        t += free_all(l, cp, p, WINDOW);
        total += turn < TURNS ? 0 : t - benchcmd_store_loop(p, WINDOW);
    }
    report(l, "stream", total, TURNS * WINDOW);
    return true;
}

INLINE bool measure(const struct layer *l, void **p)
{
    struct kmem_cache *cp = kmem_cache_create("scale", SIZE, 0, NULL, NULL);
    bool enough;

    if (cp == NULL)
        return false;
    enough = phases(l, cp, p) && pair(l, cp) && stream(l, cp, p);
    kmem_cache_destroy(cp);
    return enough;
}

static int cmd_scale(char **argv UNUSED)
{
    static const struct layer slabs = {"slab", kmem_slab_alloc, kmem_slab_free};
    static const struct layer magazines = {"magazines", kmem_cache_alloc,
                                           kmem_cache_free};
    void **p = benchcmd_pointers(cpu_count * EACH);
    bool done = p != NULL;

    benchcmd_title("60 bytes, an operation; in the pair and the stream two",
                   true);
    done = done && measure(&slabs, p) && measure(&magazines, p);
    sched_move_self((uint8_t)((1u << cpu_count) - 1));
    if (p != NULL)
        benchcmd_pointers_free(p, cpu_count * EACH);
    return done ? 0 : shell_error("too little memory");
}

SHELL_COMMAND(scale, {"", cmd_scale, SHELL_ACTION});
