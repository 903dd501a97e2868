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

/* The cells of slab `n`, one character per object. Returns how many. */
static size_t slab_cells(struct kmem_cache *cp, size_t n,
                         const struct kmem_slab_stat *st,
                         char cells[HEAP_MAP_BITS])
{
    uint8_t map[HEAP_MAP_BITS / 8] = {0};
    size_t got =
        MIN(kmem_slab_map(cp, n, map, HEAP_MAP_BITS), (size_t)HEAP_MAP_BITS);
    struct kmem_cache_stat cache;

    kmem_cache_stat(cp, &cache);
    for (size_t i = 0; i < got; i++)
        cells[i] = heap_object_cell(
            cp, st->stat_base + st->stat_colour + i * cache.stat_chunk,
            heap_map_used(map, i));
    return got;
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

static void print_slab_cells(struct kmem_cache *cp, size_t n,
                             const struct kmem_slab_stat *st)
{
    char cells[HEAP_MAP_BITS];
    size_t got = slab_cells(cp, n, st, cells);
    bool below = got > CELLS_BESIDE;

    for (size_t i = 0; i < got; i++) {
        if (below && i % CELLS_BELOW == 0)
            kprintf("\n       %4zu ", i);
        else if (i == 0)
            kprintf(" ");
        if (i == 0 || cells[i] != cells[i - 1])
            console_colour(colour_of_cell(cells[i]));
        kprintf("%c", cells[i]);
    }
    console_colour(CONSOLE_PLAIN);
    kprintf("\n");
}

static const enum console_colour colour_of[] = {
    [KMEM_SLAB_FULL] = CONSOLE_CYAN,
    [KMEM_SLAB_PARTIAL] = CONSOLE_YELLOW,
    [KMEM_SLAB_FREE] = CONSOLE_GREEN,
};

static void print_slab_state(enum kmem_slab_state state)
{
    console_colour(colour_of[state]);
    kprintf("%-7s", heap_state_name(state));
    console_colour(CONSOLE_PLAIN);
}

static void print_slab(struct kmem_cache *cp, size_t n,
                       const struct kmem_slab_stat *st)
{
    char idle[HEAP_CELL] = "-";

    if (st->stat_state == KMEM_SLAB_FREE)
        snprintf(idle, sizeof(idle), "%u", (unsigned)st->stat_idle_updates);
    kprintf("%c%c0x%08lx 0x%08lx %6zu %3zu/%-3zu ",
            st->stat_freelist ? '>' : ' ', st->stat_bad ? '!' : ' ',
            (unsigned long)st->stat_slab, (unsigned long)st->stat_base,
            st->stat_colour, st->stat_refcnt, st->stat_chunks);
    print_slab_state(st->stat_state);
    kprintf(" %6s", idle);
    print_slab_cells(cp, n, st);
}

static void json_slab(struct kmem_cache *cp, size_t n,
                      const struct kmem_slab_stat *st)
{
    struct kmem_cache_stat cache;
    char cells[HEAP_MAP_BITS];
    size_t got = slab_cells(cp, n, st, cells);

    kmem_cache_stat(cp, &cache);
    heap_json_name(&cache);
    kprintf(",\"slab\":%lu,\"base\":%lu,\"bytes\":%zu,\"colour\":%zu,"
            "\"used\":%zu,"
            "\"objects\":%zu,\"state\":\"%s\",\"freelist\":%s,\"bad\":%s,"
            "\"idle_updates\":%u,\"cells\":\"",
            (unsigned long)st->stat_slab, (unsigned long)st->stat_base,
            st->stat_bytes, st->stat_colour, st->stat_refcnt, st->stat_chunks,
            heap_state_name(st->stat_state),
            st->stat_freelist ? "true" : "false",
            st->stat_bad ? "true" : "false", (unsigned)st->stat_idle_updates);
    for (size_t i = 0; i < got; i++)
        kprintf("%c", cells[i]);
    kprintf("\"}\n");
}

/* The settings and the results of one walk over the slabs. */
struct slab_walk {
    bool walk_all;
    bool walk_json;
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
    if (!walk->walk_all && !walk->walk_json && walk->walk_state[state] > SHOWN)
        kprintf("  ... and %zu more %s slabs (-v shows them)\n",
                walk->walk_state[state] - SHOWN, heap_state_name(state));
}

static void visit_slab(struct kmem_cache *cp, size_t n,
                       const struct kmem_slab_stat *st, struct slab_walk *walk)
{
    size_t seen = walk->walk_state[st->stat_state]++;

    walk->walk_used[used_bin(st->stat_refcnt, st->stat_chunks)]++;
    walk->walk_freelist |= st->stat_freelist;
    if (walk->walk_json)
        json_slab(cp, n, st);
    else if (walk->walk_all || seen < SHOWN)
        print_slab(cp, n, st);
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
    struct slab_walk walk = {.walk_all = shell_option('v'),
                             .walk_json = shell_option('j')};

    if (walk.walk_json)
        return walk_slabs(cp, st->stat_slabs, &walk);
    if (st->stat_slabs == 0) {
        kprintf("%s has no slabs: the first allocation creates one of %zu "
                "objects\n",
                st->stat_name, st->stat_slab_objects);
        return true;
    }
    kprintf("  %-10s %-10s %6s %7s %-7s %6s # used . free%s\n", "SLAB", "BASE",
            "COLOUR", "USED/N", "STATE", "IDLE",
            MM_MAGAZINES ? " o round" : "");
    if (!walk_slabs(cp, st->stat_slabs, &walk))
        return false;
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

/* Prints a cell for each slab in list order, or a sample if they do not fit. */
static void print_states(const struct kmem_cache_stat *st)
{
    static const char cells[] = {[KMEM_SLAB_FULL] = '#',
                                 [KMEM_SLAB_PARTIAL] = '+',
                                 [KMEM_SLAB_FREE] = '.'};
    size_t width = MIN(st->stat_slabs, (size_t)CELLS_BESIDE);

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

/* Prints a row for each cache that has slabs. */
static void summary(void)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp;
    char used[HEAP_CELL];

    kprintf("%-*s %6s %6s %7s %6s %5s # full + partial . free\n", HEAP_NAME,
            "CACHE", "SLABS", "FULL", "PARTIAL", "FREE", "USED%");
    heap_each (cp, NULL, &st) {
        if (st.stat_slabs == 0 || shell_interrupted())
            continue;
        heap_print_name(st.stat_name, HEAP_NAME);
        kprintf(" %6zu %6zu %7zu %6zu %5s ", st.stat_slabs, st.stat_full_slabs,
                st.stat_partial_slabs, st.stat_free_slabs,
                heap_percent((unsigned)((uint64_t)st.stat_inuse * 1000 /
                                        MAX(st.stat_total, 1u)),
                             used));
        print_states(&st);
        kprintf("\n");
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
        summary();
    }
    return 0;
}

SHELL_COMMAND(slabs, cmd_slabs, SHELL_REPORT);
