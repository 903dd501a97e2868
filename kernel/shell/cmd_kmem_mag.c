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

static void print_depot(const struct kmem_depot_stat *d, int width)
{
    kprintf(" %*u %4u %4u", width, (unsigned)d->stat_total,
            (unsigned)d->stat_min, (unsigned)d->stat_limit);
}

static void print_mag_row(const struct kmem_cache_stat *st,
                          const struct kmem_mag_stat *mag)
{
    char cell[HEAP_CELL];

    heap_print_name(st->stat_name, HEAP_NAME);
    kprintf(" %6u %4u", (unsigned)mag->stat_rounds, (unsigned)mag->stat_cpus);
    print_depot(&mag->stat_full, 4);
    print_depot(&mag->stat_empty, 5);
    kprintf(" %7zu %7s\n", st->stat_trapped,
            heap_percent(share(st, mag->stat_served), cell));
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
    size_t trapped = 0, rows = 0;

    kprintf("%-*s ROUNDS CPUS FULL    m    L EMPTY    m    L TRAPPED SERVED%%"
            "\n",
            HEAP_NAME, "CACHE");
    heap_each (cp, only, &st) {
        kmem_mag_stat(cp, &mag);
        if (only == NULL && !mag_is_used(&mag))
            continue;
        print_mag_row(&st, &mag);
        trapped += st.stat_trapped * st.stat_size;
        rows++;
    }
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

SHELL_COMMAND(magazines, cmd_magazines, SHELL_REPORT);
