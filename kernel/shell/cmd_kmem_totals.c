/*
 * kmastat -T: averages, extremes and totals over the caches that have memory,
 * in the manner of Linux's slabinfo -T.
 */
#include "drivers/console.h"
#include "kernel/shell/cmd_kmem.h"

/* One line of the sheet: a figure of each cache, gathered. */
struct figure {
    uint64_t fig_min;
    uint64_t fig_max;
    uint64_t fig_sum;
    uint64_t fig_weight; /* what the average divides by */
};

static void gather_figure(struct figure *f, uint64_t value, uint64_t weight)
{
    if (f->fig_weight == 0 || value < f->fig_min)
        f->fig_min = value;
    if (value > f->fig_max)
        f->fig_max = value;
    f->fig_sum += value * weight;
    f->fig_weight += weight;
}

static void print_figure(const char *label, const struct figure *f, bool total)
{
    uint64_t average = f->fig_weight ? f->fig_sum / f->fig_weight : 0;

    kprintf("%-15s %12llu %12llu %12llu", label, average, f->fig_min,
            f->fig_max);
    if (total)
        kprintf(" %12llu", f->fig_sum);
    kprintf("\n");
}

enum per_cache {
    OBJECTS,
    SLABS,
    PARTIAL,
    MEMORY,
    USED,
    LOSS,
    PER_CACHE
};
enum per_object {
    OBJ_MEMORY,
    OBJ_USER,
    OBJ_LOSS,
    PER_OBJECT
};

static void gather_cache(struct figure *cache, struct figure *object,
                         const struct kmem_cache_stat *st)
{
    uint64_t used = (uint64_t)st->stat_inuse * st->stat_size;

    gather_figure(&cache[OBJECTS], st->stat_inuse, 1);
    gather_figure(&cache[SLABS], st->stat_slabs, 1);
    gather_figure(&cache[PARTIAL], st->stat_partial_slabs, 1);
    gather_figure(&cache[MEMORY], st->stat_mem, 1);
    gather_figure(&cache[USED], used, 1);
    gather_figure(&cache[LOSS],
                  st->stat_mem - MIN((uint64_t)st->stat_mem, used), 1);
    if (st->stat_inuse == 0)
        return;
    gather_figure(&object[OBJ_MEMORY], st->stat_chunk, st->stat_inuse);
    gather_figure(&object[OBJ_USER], st->stat_size, st->stat_inuse);
    gather_figure(&object[OBJ_LOSS], st->stat_chunk - st->stat_size,
                  st->stat_inuse);
}

static void print_figures(const struct figure *cache,
                          const struct figure *object)
{
    static const char *const cache_labels[PER_CACHE] = {
        [OBJECTS] = "objects in use",
        [SLABS] = "slabs",
        [PARTIAL] = "partial slabs",
        [MEMORY] = "memory",
        [USED] = "used",
        [LOSS] = "loss",
    };
    static const char *const object_labels[PER_OBJECT] = {
        [OBJ_MEMORY] = "memory (chunk)",
        [OBJ_USER] = "user (size)",
        [OBJ_LOSS] = "loss",
    };

    kprintf("%-15s %12s %12s %12s %12s\n", "PER CACHE", "AVERAGE", "MIN", "MAX",
            "TOTAL");
    for (int i = 0; i < PER_CACHE; i++)
        print_figure(cache_labels[i], &cache[i], true);
    kprintf("\n%-15s %12s %12s %12s\n", "PER OBJECT", "AVERAGE", "MIN", "MAX");
    for (int i = 0; i < PER_OBJECT; i++)
        print_figure(object_labels[i], &object[i], false);
}

void heap_totals_table(const char *pattern)
{
    struct figure cache[PER_CACHE] = {0};
    struct figure object[PER_OBJECT] = {0};
    struct kmem_cache_stat st;
    struct kmem_cache *cp;
    size_t all = 0, active = 0;

    heap_all (cp, &st) {
        if (!heap_match(st.stat_name, pattern))
            continue;
        all++;
        if (st.stat_mem == 0)
            continue;
        active++;
        gather_cache(cache, object, &st);
    }
    kprintf("%zu caches, %zu of them with memory and counted here; "
            "memory in bytes\n\n",
            all, active);
    print_figures(cache, object);
}
