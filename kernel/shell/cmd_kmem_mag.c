/*
 * magazines: what the processors keep of each cache (paper, section 7.2), in
 * kernels for several processors.
 */
#include "drivers/console.h"
#include "kernel/lib/option.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"

static bool set_magazines(char *value)
{
    bool on = strcmp(value, "on") == 0;

    if (!on && strcmp(value, "off") != 0)
        return false;
    kmem_mag_set(NULL, on);
    return true;
}

BOOT_OPTION(magazines, "magazines=", "magazines=on|off",
            "whether processors keep free objects", set_magazines);

/* Allocations and frees that magazines served, in thousandths. */
static unsigned share(const struct kmem_cache_stat *st, uint64_t served)
{
    uint64_t all = st->stat_allocs + st->stat_frees;

    return all == 0 ? 0 : (unsigned)(MIN(served, all) * 1000 / all);
}

struct mag_row {
    char row_name[KMEM_NAME_MAX + 1];
    struct kmem_mag_stat row_mag;
    size_t row_trapped;
    uint64_t row_operations; /* allocations and frees */
    char row_share[HEAP_CELL];
};

#define MAG(member, ...) COLUMN(struct mag_row, row_##member, __VA_ARGS__)

static const struct column mag_columns[] = {
    MAG(name, CHARS, -HEAP_NAME, "CACHE", "cache"),
    MAG(mag.stat_rounds, NUMBER, 6, "ROUNDS", "rounds"),
    MAG(mag.stat_cpus, NUMBER, 4, "CPUS", "cpus"),
    MAG(mag.stat_full.stat_total, NUMBER, 4, "FULL", "full"),
    MAG(mag.stat_full.stat_min, NUMBER, 4, "m", "full_min"),
    MAG(mag.stat_full.stat_limit, NUMBER, 4, "L", "full_limit"),
    MAG(mag.stat_empty.stat_total, NUMBER, 5, "EMPTY", "empty"),
    MAG(mag.stat_empty.stat_min, NUMBER, 4, "m", "empty_min"),
    MAG(mag.stat_empty.stat_limit, NUMBER, 4, "L", "empty_limit"),
    MAG(trapped, NUMBER, 7, "TRAPPED", "trapped"),
    MAG(share, CHARS, 7, "SERVED%", NULL),
    MAG(mag.stat_served, NUMBER, 0, NULL, "served"),
    MAG(operations, NUMBER, 0, NULL, "operations"),
    {0},
};

static void print_mag_row(const struct table *t,
                          const struct kmem_cache_stat *st,
                          const struct kmem_mag_stat *mag)
{
    struct mag_row row = {
        .row_mag = *mag,
        .row_trapped = st->stat_trapped,
        .row_operations = st->stat_allocs + st->stat_frees,
    };

    strlcpy(row.row_name, st->stat_name, sizeof(row.row_name));
    heap_percent(share(st, mag->stat_served), row.row_share);
    table_row(t, &row);
}

static bool mag_is_used(const struct kmem_mag_stat *mag)
{
    return mag->stat_served != 0 || mag->stat_cpus != 0;
}

static void print_magazines(struct kmem_cache *only)
{
    struct kmem_cache_stat st;
    struct kmem_mag_stat mag;
    struct kmem_cache *cp;
    struct table t = shell_table(mag_columns);
    size_t trapped = 0, rows = 0;

    heap_each (cp, only, &st) {
        kmem_mag_stat(cp, &mag);
        if (only == NULL && !mag_is_used(&mag))
            continue;
        print_mag_row(&t, &st, &mag);
        trapped += st.stat_trapped * st.stat_size;
        rows++;
    }
    if (t.table_json)
        return;
    if (rows == 0 && !shell_interrupted())
        kprintf("(no cache has used magazines yet)\n");
    kprintf("magazines are %s; %zu KiB of free objects in them\n",
            kmem_mag_all_off() ? "off" : "on", trapped >> 10);
}

static int switch_them(struct kmem_cache *cp, bool on)
{
    struct kmem_cache_stat st;

    if (cp == NULL) {
        kmem_mag_set(NULL, on);
        return 0;
    }
    kmem_cache_stat(cp, &st);
    if (st.stat_kind == KMEM_KIND_INTERNAL)
        return shell_error("%s is the allocator's own and has no magazines",
                           st.stat_name);
    if (on && kmem_mag_all_off())
        return shell_error("the magazines of all caches are off: "
                           "`magazines on` first");
    if (on && st.stat_modes != 0)
        return shell_error("%s is in a debugging mode, which sees every "
                           "allocation: `debug =none` first",
                           st.stat_name);
    kmem_mag_set(cp, on);
    return 0;
}

static int cmd_magazines(char **argv)
{
    bool on = argv[1] != NULL && strcmp(argv[1], "on") == 0;
    bool off = argv[1] != NULL && strcmp(argv[1], "off") == 0;
    struct kmem_cache *cp;
    int error = 0;

    if (!heap_cache_argument(on || off ? argv[2] : argv[1], &cp))
        return 1;
    if ((on || off) && !shell_may_change())
        return 1;
    if (on || off)
        error = switch_them(cp, on);
    if (error == 0)
        print_magazines(cp);
    return error;
}

SHELL_COMMAND(magazines, cmd_magazines,
              "[-j] [CACHE]\n"
              "on|off [CACHE]",
              SHELL_REPORT);
