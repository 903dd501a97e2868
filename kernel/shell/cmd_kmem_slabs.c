/*
 * slabs: a cache's slabs in the order of its list (paper, section 3.3), a
 * cell per object.
 */
#include "drivers/console.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "mm/platform.h"

#define CELLS_BESIDE 28 /* as many fit after a row's other columns */
#define CELLS_BELOW  64 /* in a row of their own */
#define SHOWN        8  /* slabs of each state that are shown without -v */
#define BINS         11 /* of the histogram */
#define BAR          40

/* ---- slabs -------------------------------------------------------------- */

/* A row of the slabs of a cache. */
struct slab_row {
    struct kmem_cache *row_cp;
    char row_cache[KMEM_NAME_MAX + 1];
    struct kmem_slab_stat row_stat;
    char row_shown[HEAP_CELL]; /* its address with marks */
    char row_used[HEAP_CELL];  /* of how many objects */
    const char *row_state;
    uint32_t row_idle;                 /* all ones: it is not free */
    char row_cells[HEAP_MAP_BITS + 1]; /* a character for each object */
};

/* One shell, one command at a time. */
static struct slab_row row;

static void put_cells(size_t n, const struct kmem_cache_stat *st)
{
    uint8_t map[HEAP_MAP_BITS / 8] = {0};
    size_t got = MIN(kmem_slab_map(row.row_cp, n, map, HEAP_MAP_BITS),
                     (size_t)HEAP_MAP_BITS);

    for (size_t i = 0; i < got; i++)
        row.row_cells[i] =
            heap_object_cell(row.row_stat.stat_base + row.row_stat.stat_colour +
                                 i * st->stat_chunk,
                             heap_map_used(map, i));
    row.row_cells[got] = '\0';
}

static enum console_colour colour_of_cell(char cell)
{
    switch (cell) {
    case '#':
        return CONSOLE_CYAN;
    case '.':
        return CONSOLE_GREEN;
    case 'o':
        return CONSOLE_YELLOW;
    default:
        return CONSOLE_RED;
    }
}

/* In the table beside the other columns, or below if there are many. */
static void print_slab_cells(const struct table *t UNUSED, const void *r UNUSED)
{
    const char *cells = row.row_cells;
    bool below = strlen(cells) > CELLS_BESIDE;

    for (size_t i = 0; cells[i] != '\0'; i++) {
        if (below && i % CELLS_BELOW == 0)
            kprintf("\n       %4zu ", i);
        else if (i == 0)
            kprintf(" ");
        if (i == 0 || cells[i] != cells[i - 1])
            console_colour(colour_of_cell(cells[i]));
        kprintf("%c", cells[i]);
    }
    console_colour(CONSOLE_PLAIN);
}

static const enum console_colour colour_of[] = {
    [KMEM_SLAB_FULL] = CONSOLE_CYAN,
    [KMEM_SLAB_PARTIAL] = CONSOLE_YELLOW,
    [KMEM_SLAB_FREE] = CONSOLE_GREEN,
};

static void print_slab_state(const struct table *t UNUSED, const void *r UNUSED)
{
    kprintf(" ");
    console_colour(colour_of[row.row_stat.stat_state]);
    kprintf("%-7s", row.row_state);
    console_colour(CONSOLE_PLAIN);
}

#define SLAB(member, ...) COLUMN(struct slab_row, row_##member, __VA_ARGS__)

static const struct column slab_columns[] = {
    SLAB(cache, CHARS, 0, NULL, "cache"),
    SLAB(stat.stat_slab, NUMBER, 0, NULL, "slab"),
    SLAB(shown, CHARS, -12, "  SLAB", NULL),
    SLAB(stat.stat_base, ADDRESS, -10, "BASE", "base"),
    SLAB(stat.stat_bytes, NUMBER, 0, NULL, "bytes"),
    SLAB(stat.stat_colour, NUMBER, 6, "COLOUR", "colour"),
    SLAB(stat.stat_refcnt, NUMBER, 0, NULL, "used"),
    SLAB(stat.stat_chunks, NUMBER, 0, NULL, "objects"),
    SLAB(used, CHARS, -7, " USED/N", NULL),
    COLUMN_BY(print_slab_state, -7, "STATE", NULL),
    SLAB(state, STRING, 0, NULL, "state"),
    SLAB(stat.stat_freelist, FLAG, 0, NULL, "freelist"),
    SLAB(stat.stat_bad, FLAG, 0, NULL, "bad"),
    SLAB(stat.stat_idle_updates, NUMBER, 0, NULL, "idle_updates"),
    SLAB(idle, OPTIONAL, 6, "IDLE", NULL),
    COLUMN_BY(print_slab_cells, -28,
              MM_MAGAZINES ? "# used . free o round" : "# used . free", NULL),
    SLAB(cells, CHARS, 0, NULL, "cells"),
    {0},
};

static void print_slab(const struct table *t, struct kmem_cache *cp, size_t n,
                       const struct kmem_slab_stat *st)
{
    struct kmem_cache_stat cache;

    kmem_cache_stat(cp, &cache);
    row = (struct slab_row){
        .row_cp = cp,
        .row_stat = *st,
        .row_state = heap_state_name(st->stat_state),
        .row_idle = st->stat_state == KMEM_SLAB_FREE ? st->stat_idle_updates
                                                     : UINT32_MAX,
    };
    strlcpy(row.row_cache, cache.stat_name, sizeof(row.row_cache));
    snprintf(row.row_shown, HEAP_CELL, "%c%c0x%08lx",
             st->stat_freelist ? '>' : ' ', st->stat_bad ? '!' : ' ',
             (unsigned long)st->stat_slab);
    snprintf(row.row_used, HEAP_CELL, "%3zu/%zu", st->stat_refcnt,
             st->stat_chunks);
    put_cells(n, &cache);
    table_row(t, &row);
}

/* The settings and the results of one walk over the slabs. */
struct slab_walk {
    bool walk_all;
    struct table walk_table;
    size_t walk_state[3]; /* by enum kmem_slab_state */
    size_t walk_used[BINS];
    bool walk_freelist;
};

/* The bin of `used` out of `n`: the first is 0 alone, the last n alone. */
static size_t used_bin(size_t used, size_t n)
{
    if (used == 0)
        return 0;
    return used >= n ? BINS - 1 : 1 + (used - 1) * (BINS - 2) / MAX(n - 1, 1u);
}

static void end_of_run(const struct slab_walk *walk, enum kmem_slab_state state)
{
    if (!walk->walk_all && walk->walk_state[state] > SHOWN)
        kprintf("  ... and %zu more %s slabs (-v shows them)\n",
                walk->walk_state[state] - SHOWN, heap_state_name(state));
}

static void visit_slab(struct kmem_cache *cp, size_t n,
                       const struct kmem_slab_stat *st, struct slab_walk *walk)
{
    size_t seen = walk->walk_state[st->stat_state]++;

    walk->walk_used[used_bin(st->stat_refcnt, st->stat_chunks)]++;
    walk->walk_freelist |= st->stat_freelist;
    if (walk->walk_all || seen < SHOWN)
        print_slab(&walk->walk_table, cp, n, st);
}

/* False if ^C ended it. Bounded by the count that the cache had before. */
static bool walk_slabs(struct kmem_cache *cp, size_t slabs,
                       struct slab_walk *walk)
{
    struct kmem_slab_stat st, last = {0};
    size_t n = 0;

    for (; n < slabs && kmem_slab_stat(cp, n, &st); n++) {
        if (n && st.stat_state != last.stat_state)
            end_of_run(walk, last.stat_state);
        visit_slab(cp, n, &st, walk);
        last = st;
        if (shell_interrupted())
            return false;
    }
    if (n)
        end_of_run(walk, last.stat_state);
    return true;
}

/* The first and last number of used objects that belong in a bin. */
static bool bin_range(size_t bin, size_t n, size_t *low, size_t *high)
{
    bool any = false;

    for (size_t used = 0; used <= n; used++)
        if (used_bin(used, n) == bin) {
            *low = any ? *low : used;
            *high = used;
            any = true;
        }
    return any;
}

static void print_bin(size_t bin, size_t n, size_t count, size_t slabs)
{
    size_t low = 0, high = 0;
    char range[24];

    if (!bin_range(bin, n, &low, &high))
        return;
    if (low == high)
        snprintf(range, sizeof(range), "%zu", low);
    else
        snprintf(range, sizeof(range), "%zu-%zu", low, high);
    kprintf("%7s %7zu", range, count);
    for (size_t b = 0; b < (count * BAR + slabs - 1) / slabs; b++)
        kprintf("%s", b ? "=" : "  =");
    kprintf("\n");
}

static void print_histogram(const struct kmem_cache_stat *st,
                            const struct slab_walk *walk)
{
    if (!walk->walk_freelist)
        kprintf("> no slab has a free object: the next one creates a slab\n");
    kprintf("\n%7s %7s   objects used of %zu\n", "USED", "SLABS",
            st->stat_slab_objects);
    for (size_t bin = 0; bin < BINS; bin++)
        print_bin(bin, st->stat_slab_objects, walk->walk_used[bin],
                  MAX(st->stat_slabs, 1u));
}

/* Shows the slabs of one cache. False if ^C ended it. */
static bool show_slabs(struct kmem_cache *cp, const struct kmem_cache_stat *st)
{
    bool json = shell_option('j');
    struct slab_walk walk = {.walk_all = shell_option('v') || json};

    if (st->stat_slabs == 0 && !json) {
        kprintf("%s has no slabs: the first allocation creates one of %zu "
                "objects\n",
                st->stat_name, st->stat_slab_objects);
        return true;
    }
    walk.walk_table = shell_table(slab_columns);
    if (!walk_slabs(cp, st->stat_slabs, &walk))
        return false;
    if (json)
        return true;
    print_histogram(st, &walk);
    heap_note_broken(cp);
    return true;
}

static void all_slabs(void)
{
    bool json = shell_option('j');
    struct kmem_cache_stat st;
    struct kmem_cache *cp;

    heap_each (cp, NULL, &st) {
        if (st.stat_mem == 0) /* nor has any after it */
            return;
        if (!json)
            kprintf("%s:\n", st.stat_name);
        if (!show_slabs(cp, &st))
            return;
        if (!json)
            kprintf("\n");
    }
}

/* A row of the caches. */
struct summary {
    struct kmem_cache_stat sum_stat;
    char sum_used[HEAP_CELL];
};

/* Prints a cell for each slab in list order, or a sample if they do not fit. */
static void print_states(const struct table *t UNUSED, const void *r)
{
    static const char cells[] = {[KMEM_SLAB_FULL] = '#',
                                 [KMEM_SLAB_PARTIAL] = '+',
                                 [KMEM_SLAB_FREE] = '.'};
    const struct kmem_cache_stat *st = &((const struct summary *)r)->sum_stat;
    size_t width = MIN(st->stat_slabs, (size_t)CELLS_BESIDE);

    kprintf(" ");
    for (size_t i = 0; i < width; i++) {
        size_t n = i * st->stat_slabs / width;
        enum kmem_slab_state state =
            n < st->stat_full_slabs ? KMEM_SLAB_FULL
            : n < st->stat_full_slabs + st->stat_partial_slabs
                ? KMEM_SLAB_PARTIAL
                : KMEM_SLAB_FREE;

        console_colour(colour_of[state]);
        kprintf("%c", cells[state]);
    }
    console_colour(CONSOLE_PLAIN);
}

#define SUMMARY(member, ...) COLUMN(struct summary, sum_##member, __VA_ARGS__)

static const struct column summary_columns[] = {
    SUMMARY(stat.stat_name, CHARS, -HEAP_NAME, "CACHE", NULL),
    SUMMARY(stat.stat_slabs, NUMBER, 6, "SLABS", NULL),
    SUMMARY(stat.stat_full_slabs, NUMBER, 6, "FULL", NULL),
    SUMMARY(stat.stat_partial_slabs, NUMBER, 7, "PARTIAL", NULL),
    SUMMARY(stat.stat_free_slabs, NUMBER, 6, "FREE", NULL),
    SUMMARY(used, CHARS, 5, "USED%", NULL),
    COLUMN_BY(print_states, -28, "# full + partial . free", NULL),
    {0},
};

/* Prints a row for each cache that has slabs. */
static void print_summary(void)
{
    struct table t = shell_table(summary_columns);
    struct summary s;
    struct kmem_cache *cp;

    heap_each (cp, NULL, &s.sum_stat) {
        if (s.sum_stat.stat_slabs == 0)
            continue;
        heap_percent((unsigned)((uint64_t)s.sum_stat.stat_inuse * 1000 /
                                MAX(s.sum_stat.stat_total, 1u)),
                     s.sum_used);
        table_row(&t, &s);
    }
}

static int cmd_slabs(char **argv)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp;
    uintptr_t addr;

    if (argv[1] && !kmem_cache_find(argv[1]) && heap_is_address(argv[1], &addr))
        return heap_show_slab(addr);
    if (!heap_cache_argument(argv[1], &cp))
        return 1;
    if (cp) {
        kmem_cache_stat(cp, &st);
        show_slabs(cp, &st);
    } else if (shell_option('v') || shell_option('j')) {
        all_slabs();
    } else {
        print_summary();
    }
    return 0;
}

SHELL_COMMAND(slabs, cmd_slabs,
              "[-v] [-j] [CACHE]\n"
              "ADDR",
              SHELL_REPORT);
