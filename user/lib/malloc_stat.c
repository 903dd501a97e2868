/*
 * malloc_stats: statistics of a program's heap, like kmastat.
 */
#include "mm/inspect/kmem_stat.h"
#include "user/lib/heap.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"

static void print_cache(struct kmem_cache *cp)
{
    struct kmem_cache_stat s;

    kmem_cache_stat(cp, &s);
    if (s.stat_allocs == 0)
        return;
    printf("%-16s %6zu %7zu %7zu %6zu %7zu %9llu %6llu\n", s.stat_name,
           s.stat_size, s.stat_inuse, s.stat_total, s.stat_slabs,
           s.stat_mem / 1024, (unsigned long long)s.stat_allocs,
           (unsigned long long)s.stat_fails);
}

void malloc_stats(void)
{
    struct kmem_oversize_stat oversize;
    struct heap_stat heap;

    printf("cache              size  in use   total  slabs mem KiB"
           "    allocs  fails\n");
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp))
        print_cache(cp);
    kmem_oversize_stat(&oversize);
    printf("%-16s %6s %7zu %7s %6s %7zu %9llu %6llu\n", "larger", "-",
           oversize.stat_inuse, "-", "-",
           oversize.stat_pages * PAGE_SIZE / 1024,
           (unsigned long long)oversize.stat_allocs,
           (unsigned long long)oversize.stat_fails);
    heap_stat(&heap);
    printf("heap: %zu KiB, of which %zu are free in %zu runs; grown %llu and "
           "shrunk %llu times\n",
           heap.stat_pages * PAGE_SIZE / 1024,
           heap.stat_free * PAGE_SIZE / 1024, heap.stat_runs,
           (unsigned long long)heap.stat_grows,
           (unsigned long long)heap.stat_shrinks);
}
