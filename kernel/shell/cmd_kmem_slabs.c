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
#define BAR          40 /* characters of the histogram */

/* ---- cells -------------------------------------------------------------- */

/* Of an object or a slab: # in use or full, . free, others between them. */
static void set_colour(char cell)
{
    console_colour(cell == '#'   ? CONSOLE_CYAN
                   : cell == '.' ? CONSOLE_GREEN
                                 : CONSOLE_YELLOW);
}

/* In the table beside the other columns, or below if there are many. The rows
 * of both tables begin with their cells. */
static void print_cells(const struct table *t UNUSED, const void *row)
{
    const char *cells = row;
    bool below = strlen(cells) > CELLS_BESIDE;

    for (size_t i = 0; cells[i] != '\0'; i++) {
        if (below && i % CELLS_BELOW == 0)
            kprintf("\n       %4zu ", i);
        else if (i == 0)
            kprintf(" ");
        if (i == 0 || cells[i] != cells[i - 1])
            set_colour(cells[i]);
        kprintf("%c", cells[i]);
    }
    console_colour(CONSOLE_PLAIN);
}

static const char state_cell[] = {
    [KMEM_SLAB_FULL] = '#', [KMEM_SLAB_PARTIAL] = '+', [KMEM_SLAB_FREE] = '.'};

/* ---- the slabs of a cache ----------------------------------------------- */

struct slab_row {
    char row_cells[KMEM_CHUNKS_MAX + 1]; /* a character for each object */
    const char *row_cache;
    struct kmem_slab_stat row_stat;
    char row_shown[HEAP_CELL]; /* its address with marks */
    char row_used[HEAP_CELL];  /* of how many objects */
    const char *row_state;
    uint32_t row_idle; /* all ones: it is not free */
};

static void put_cells(struct slab_row *row, const struct kmem_cache_stat *cache)
{
    uintptr_t first = row->row_stat.stat_base + row->row_stat.stat_colour;
    size_t n = MIN(cache->stat_slab_objects, (size_t)KMEM_CHUNKS_MAX);

    for (size_t i = 0; i < n; i++)
        row->row_cells[i] = heap_object_cell(first + i * cache->stat_chunk,
                                             kmem_slab_used(&row->row_stat, i));
    row->row_cells[n] = '\0';
}

static void print_slab_state(const struct table *t UNUSED, const void *r)
{
    const struct slab_row *row = r;

    kprintf(" ");
    set_colour(state_cell[row->row_stat.stat_state]);
    kprintf("%-7s", row->row_state);
    console_colour(CONSOLE_PLAIN);
}

#define SLAB(member, ...) COLUMN(struct slab_row, row_##member, __VA_ARGS__)

static const struct column slab_columns[] = {
    SLAB(cache, STRING, 0, NULL, "cache"),
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
    COLUMN_BY(print_cells, -28,
              MM_MAGAZINES ? "# used . free o round" : "# used . free", NULL),
    SLAB(cells, CHARS, 0, NULL, "cells"),
    {0},
};

static void print_slab(const struct table *t,
                       const struct kmem_cache_stat *cache,
                       const struct kmem_slab_stat *st)
{
    struct slab_row row = {
        .row_cache = cache->stat_name,
        .row_stat = *st,
        .row_state = heap_state_name(st->stat_state),
        .row_idle = st->stat_state == KMEM_SLAB_FREE ? st->stat_idle_updates
                                                     : UINT32_MAX,
    };

    snprintf(row.row_shown, HEAP_CELL, "%c%c0x%08lx",
             st->stat_freelist ? '>' : ' ', st->stat_bad ? '!' : ' ',
             (unsigned long)st->stat_slab);
    snprintf(row.row_used, HEAP_CELL, "%3zu/%zu", st->stat_refcnt,
             st->stat_chunks);
    put_cells(&row, cache);
    table_row(t, &row);
}

/* Slabs by objects in use. Too big for a stack; one shell, one command at a
 * time. */
static size_t using[KMEM_CHUNKS_MAX + 1];

/* A row for none in use, one for all, and at most ten between. */
static void print_histogram(const struct kmem_cache_stat *st)
{
    size_t all = MIN(st->stat_slab_objects, (size_t)KMEM_CHUNKS_MAX);
    size_t step = (all + 9) / 10;
    char range[24];

    kprintf("\n%7s %7s   objects used of %zu\n", "USED", "SLABS", all);
    for (size_t low = 0, next; low <= all; low = next) {
        size_t count = 0;

        next = low == 0 || low == all ? low + 1 : MIN(low + step, all);
        for (size_t used = low; used < next; used++)
            count += using[used];
        snprintf(range, sizeof(range), "%zu-%zu", low, next - 1);
        if (next - low == 1)
            snprintf(range, sizeof(range), "%zu", low);
        kprintf("%7s %7zu", range, count);
        for (size_t i = 0; i * st->stat_slabs < count * BAR; i++)
            kprintf("%s", i ? "=" : "  =");
        kprintf("\n");
    }
}

/* Shows the slabs of one cache. False if ^C ended it. Bounded by the count that
 * the cache had before. */
static bool show_slabs(struct kmem_cache *cp, const struct kmem_cache_stat *st)
{
    bool json = shell_option('j'), all = json || shell_option('v');
    const size_t in_state[] = {[KMEM_SLAB_FULL] = st->stat_full_slabs,
                               [KMEM_SLAB_PARTIAL] = st->stat_partial_slabs,
                               [KMEM_SLAB_FREE] = st->stat_free_slabs};
    size_t seen[ARRAY_SIZE(in_state)] = {0};
    bool freelist = false;
    struct kmem_slab_stat slab;
    struct table t;

    if (st->stat_slabs == 0 && !json) {
        kprintf("%s has no slabs: the first allocation creates one of %zu "
                "objects\n",
                st->stat_name, st->stat_slab_objects);
        return true;
    }
    memset(using, 0, sizeof(using));
    t = shell_table(slab_columns);
    for (size_t n = 0; n < st->stat_slabs && kmem_slab_stat(cp, n, &slab);
         n++) {
        size_t before = seen[slab.stat_state]++;

        using[MIN(slab.stat_refcnt, KMEM_CHUNKS_MAX + (size_t)0)]++;
        freelist |= slab.stat_freelist;
        if (all || before < SHOWN)
            print_slab(&t, st, &slab);
        else if (before == SHOWN)
            kprintf("  ... and %zu more %s slabs (-v shows them)\n",
                    MAX(in_state[slab.stat_state], before + 1) - SHOWN,
                    heap_state_name(slab.stat_state));
        if (shell_interrupted())
            return false;
    }
    if (json)
        return true;
    if (!freelist)
        kprintf("> no slab has a free object: the next one creates a slab\n");
    print_histogram(st);
    heap_note_broken(cp);
    return true;
}

static void all_slabs(void)
{
    bool json = shell_option('j');
    struct kmem_cache_stat st;
    struct kmem_cache *cp;

    heap_each (cp, NULL, &st) {
        if (st.stat_mem == 0)
            continue;
        if (!json)
            kprintf("%s:\n", st.stat_name);
        if (!show_slabs(cp, &st))
            return;
        if (!json)
            kprintf("\n");
    }
}

/* ---- a row per cache ---------------------------------------------------- */

struct summary {
    char sum_cells[CELLS_BESIDE + 1]; /* of the slabs, or of one in so many */
    struct kmem_cache_stat sum_stat;
    char sum_used[HEAP_CELL];
};

#define SUMMARY(member, ...) COLUMN(struct summary, sum_##member, __VA_ARGS__)

static const struct column summary_columns[] = {
    SUMMARY(stat.stat_name, CHARS, -HEAP_NAME, "CACHE", NULL),
    SUMMARY(stat.stat_slabs, NUMBER, 6, "SLABS", NULL),
    SUMMARY(stat.stat_full_slabs, NUMBER, 6, "FULL", NULL),
    SUMMARY(stat.stat_partial_slabs, NUMBER, 7, "PARTIAL", NULL),
    SUMMARY(stat.stat_free_slabs, NUMBER, 6, "FREE", NULL),
    SUMMARY(used, CHARS, 5, "USED%", NULL),
    COLUMN_BY(print_cells, -28, "# full + partial . free", NULL),
    {0},
};

/* The slabs are in the order of their states. */
static void put_states(struct summary *s)
{
    const struct kmem_cache_stat *st = &s->sum_stat;
    size_t width = MIN(st->stat_slabs, (size_t)CELLS_BESIDE);

    for (size_t i = 0; i < width; i++) {
        size_t n = i * st->stat_slabs / width;

        s->sum_cells[i] =
            state_cell[n < st->stat_full_slabs ? KMEM_SLAB_FULL
                       : n < st->stat_full_slabs + st->stat_partial_slabs
                           ? KMEM_SLAB_PARTIAL
                           : KMEM_SLAB_FREE];
    }
    s->sum_cells[width] = '\0';
}

static void print_summary(void)
{
    struct table t = shell_table(summary_columns);
    struct summary s;
    struct kmem_cache *cp;

    heap_each (cp, NULL, &s.sum_stat) {
        if (s.sum_stat.stat_slabs == 0)
            continue;
        heap_percent(s.sum_stat.stat_inuse, s.sum_stat.stat_total, s.sum_used);
        put_states(&s);
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

SHELL_COMMAND(slabs, {"[-v] [-j] [CACHE]", cmd_slabs, SHELL_REPORT},
              {"ADDR", cmd_slabs, SHELL_REPORT});
