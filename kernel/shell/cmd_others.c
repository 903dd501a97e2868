/*
 * The memory commands of a kernel with another allocator (`make
 * ALLOCATOR=slob`, mm/others/serve.c): kmastat shows what the allocator counts,
 * and each command about Slate's own slabs says that there are none. This file
 * is in the place of those that define them in other kernels.
 */
#include "kernel/fs/inode.h"
#include "kernel/lib/hook.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/pager.h"
#include "mm/others/others.h"

#define CACHE(member, ...) COLUMN(struct kmem_cache_stat, member, __VA_ARGS__)

static const struct column other_columns[] = {
    CACHE(stat_name, CHARS, -24, "CACHE", "cache"),
    CACHE(stat_size, NUMBER, 5, "SIZE", "size"),
    CACHE(stat_inuse, NUMBER, 7, "INUSE", "inuse"),
    CACHE(stat_mem, NUMBER, 9, "BYTES", NULL),
    CACHE(stat_allocs, NUMBER, 9, "ALLOC", "allocs"),
    CACHE(stat_frees, NUMBER, 9, "FREE", "frees"),
    CACHE(stat_fails, NUMBER, 4, "FAIL", "fails"),
    {0},
};

static void print_rows(const struct table *t, const char *pattern)
{
    struct heap_order at = {0};
    struct kmem_cache_stat row;

    while (heap_next(&at, heap_key_mem, &row))
        if (heap_match(row.stat_name, pattern))
            table_row(t, &row);
}

/* The parts of what the allocator holds. */
static void print_parts(const struct other_stat *st)
{
    /* all but the caches; tasks may allocate while these are subtracted */
    uint64_t inuse = st->stat_allocs - st->stat_frees;
    uint64_t bytes = st->stat_requested;
    struct kmem_cache_stat row;
    struct kmem_cache *cp;
    char waste[HEAP_CELL];

    heap_all (cp, &row) {
        inuse -= MIN(inuse, row.stat_inuse);
        bytes -= MIN(bytes, row.stat_mem);
    }
    kprintf("%-24s %5s %7llu %9llu\n", "kmem_alloc", "-", inuse, bytes);
    kprintf("%-38s %9zu %9llu %9llu %4llu\n", "TOTAL requested",
            st->stat_requested, st->stat_allocs, st->stat_frees,
            st->stat_fails);
    kprintf("%-38s %9zu\n", "in blocks that are larger than requested",
            st->stat_internal);
    kprintf("%-38s %9zu\n", "free blocks", st->stat_external);
    kprintf("%-38s %9zu\n", "metadata", st->stat_metadata);
    heap_percent(st->stat_held - MIN(st->stat_held, st->stat_requested),
                 st->stat_held, waste);
    kprintf("%-38s %9zu  waste %s %%; at most %zu\n", "HELD, in pages",
            st->stat_held, waste, st->stat_peak);
    if (st->stat_fixed != 0)
        kprintf("%-38s %9zu\n", "beside it: records of caches", st->stat_fixed);
    kprintf("allocator: %s; there are no working sets and debugging modes\n",
            other_served.op_name);
}

struct total {
    const char *total_name;
    struct other_stat total_stat;
};

#define TOTAL(member, key)                                                     \
    COLUMN(struct total, total_stat.stat_##member, NUMBER, 0, NULL, key)

static const struct column json_total[] = {
    COLUMN(struct total, total_name, STRING, 0, NULL, "allocator"),
    TOTAL(held, "held"),
    TOTAL(requested, "requested"),
    TOTAL(internal, "internal"),
    TOTAL(external, "external"),
    TOTAL(metadata, "metadata"),
    TOTAL(peak, "peak"),
    TOTAL(fixed, "fixed"),
    TOTAL(allocs, "allocs"),
    TOTAL(frees, "frees"),
    TOTAL(fails, "fails"),
    TOTAL(locks, "locks"),
    {0},
};

static bool has_match(const char *pattern)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp;

    heap_all (cp, &st)
        if (heap_match(st.stat_name, pattern))
            return true;
    return false;
}

static int cmd_kmastat(char **argv)
{
    struct total total = {.total_name = other_served.op_name};
    struct table t;

    if (shell_option('s'))
        return shell_error("-s is about the slab allocator, and this kernel's "
                           "is %s; without it: all that is counted",
                           other_served.op_name);
    if (!has_match(argv[1]))
        return shell_error("no cache matches '%s'; `kmastat` lists them all",
                           argv[1]);
    pager_to_end();
    t = shell_table(other_columns);
    print_rows(&t, argv[1]);
    other_served.op_stat(&total.total_stat);
    if (t.table_json) {
        t.table_columns = json_total;
        table_row(&t, &total);
    } else if (argv[1] == NULL) {
        print_parts(&total.total_stat);
    }
    return 0;
}

SHELL_COMMAND(kmastat, {"[-z] [-j] [-s mem|waste|rate|fail] [PATTERN]",
                        cmd_kmastat, SHELL_REPORT});

static int no_working_sets(char **argv UNUSED)
{
    return shell_error("the allocator is %s, which has no working sets; "
                       "`reap` and `reap -a` return pages that it keeps",
                       other_served.op_name);
}

/* Returns pages that the allocator keeps; -a: frees unused inodes before, as
 * under memory pressure. */
static int cmd_reap(char **argv)
{
    struct other_stat before, after;

    if (argv[1] != NULL)
        return no_working_sets(argv);
    if (shell_option('a'))
        kprintf("unused inodes freed first: %zu\n", inode_reclaim(SIZE_MAX));
    if (other_served.op_pressure == NULL)
        kprintf("%s keeps no pages that it could return\n",
                other_served.op_name);
    other_served.op_stat(&before);
    kmem_reap(KMEM_REAP_ALL);
    other_served.op_stat(&after);
    kprintf("heap %zu -> %zu KiB\n", before.stat_held / 1024,
            after.stat_held / 1024);
    return 0;
}

SHELL_COMMAND(reap, {"[-a] [CACHE]", cmd_reap, SHELL_ACTION},
              {"-n [CACHE]", no_working_sets, SHELL_REPORT},
              {"-i SECONDS|never", no_working_sets, SHELL_REPORT});

static void announce(const void *arg UNUSED)
{
    kprintf("Allocator: %s, in the place of the slab allocator.\n",
            other_served.op_name);
}

HOOK(HOOK_UP, announce);

/* For the command pages: segkmem's pages are all the allocator's. */
const char *heap_owner_name(const void *owner UNUSED)
{
    return other_served.op_name;
}

/* ---- commands that this kernel does not have ---------------------------- */

static int cmd_of_slabs(char **argv UNUSED)
{
    return shell_error("this kernel's allocator is %s; the command is about "
                       "the slab allocator, which `make run` boots",
                       other_served.op_name);
}

SHELL_COMMAND(cache, {"[WORD ...]", cmd_of_slabs, SHELL_REPORT});
SHELL_COMMAND(kmem, {"[WORD ...]", cmd_of_slabs, SHELL_REPORT});
SHELL_COMMAND(slabs, {"[WORD ...]", cmd_of_slabs, SHELL_REPORT});
SHELL_COMMAND(whatis, {"[WORD ...]", cmd_of_slabs, SHELL_REPORT});
SHELL_COMMAND(debug, {"[WORD ...]", cmd_of_slabs, SHELL_REPORT});
SHELL_COMMAND(leaks, {"[WORD ...]", cmd_of_slabs, SHELL_REPORT});
SHELL_COMMAND(log, {"[WORD ...]", cmd_of_slabs, SHELL_REPORT});
