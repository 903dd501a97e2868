/*
 * magazines: what the processors keep of each cache (paper, section 7.2), in
 * kernels for several processors.
 */
#include "kernel/lib/option.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"

static bool set_magazines(char *value)
{
    bool on = strcmp(value, "on") == 0;

    if (!on && strcmp(value, "off") != 0)
        return false;
    kmem_mag_set(on);
    return true;
}

BOOT_OPTION(magazines, "magazines=", "magazines=on|off",
            "whether processors keep free objects", set_magazines);

struct mag_row {
    struct kmem_cache_stat row_stat;
    struct kmem_mag_stat row_mag;
    uint64_t row_operations;   /* allocations and frees */
    char row_share[HEAP_CELL]; /* of them, those without the slabs */
};

#define MAG(member, ...) COLUMN(struct mag_row, row_##member, __VA_ARGS__)

static const struct column mag_columns[] = {
    MAG(stat.stat_name, CHARS, -HEAP_NAME, "CACHE", "cache"),
    MAG(mag.stat_rounds, NUMBER, 6, "ROUNDS", "rounds"),
    MAG(mag.stat_cpus, NUMBER, 4, "CPUS", "cpus"),
    MAG(mag.stat_full.stat_total, NUMBER, 4, "FULL", "full"),
    MAG(mag.stat_full.stat_min, NUMBER, 4, "m", "full_min"),
    MAG(mag.stat_full.stat_limit, NUMBER, 4, "L", "full_limit"),
    MAG(mag.stat_empty.stat_total, NUMBER, 5, "EMPTY", "empty"),
    MAG(mag.stat_empty.stat_min, NUMBER, 4, "m", "empty_min"),
    MAG(mag.stat_empty.stat_limit, NUMBER, 4, "L", "empty_limit"),
    MAG(stat.stat_trapped, NUMBER, 7, "TRAPPED", "trapped"),
    MAG(share, CHARS, 7, "SERVED%", NULL),
    MAG(mag.stat_served, NUMBER, 0, NULL, "served"),
    MAG(operations, NUMBER, 0, NULL, "operations"),
    {0},
};

static void print_mag_row(const struct table *t, struct mag_row *row)
{
    uint64_t all = row->row_stat.stat_allocs + row->row_stat.stat_frees;
    uint64_t served = MIN(row->row_mag.stat_served, all);

    row->row_operations = all;
    heap_percent(served, all, row->row_share);
    table_row(t, row);
}

static void print_magazines(struct kmem_cache *only)
{
    struct table t = shell_table(mag_columns);
    size_t trapped = 0, rows = 0;
    struct kmem_cache *cp;
    struct mag_row row;

    heap_each (cp, only, &row.row_stat) {
        kmem_mag_stat(cp, &row.row_mag);
        if (!only && !row.row_mag.stat_served && !row.row_mag.stat_cpus)
            continue; /* it has not used any */
        print_mag_row(&t, &row);
        trapped += row.row_stat.stat_trapped * row.row_stat.stat_size;
        rows++;
    }
    if (t.table_json)
        return;
    if (rows == 0 && !shell_interrupted())
        kprintf("(no cache has used magazines yet)\n");
    kprintf("magazines are %s; %zu KiB of free objects in them\n",
            kmem_mag_is_on() ? "on" : "off", trapped >> 10);
}

static int cmd_magazines(char **argv)
{
    struct kmem_cache *cp;

    if (!heap_cache_argument(argv[1], &cp))
        return 1;
    print_magazines(cp);
    return 0;
}

static int switch_magazines(char **argv)
{
    set_magazines(argv[1]);
    print_magazines(NULL);
    return 0;
}

SHELL_COMMAND(magazines, {"on|off", switch_magazines, SHELL_ACTION},
              {"[-j] [CACHE]", cmd_magazines, SHELL_REPORT});
