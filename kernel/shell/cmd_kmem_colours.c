/*
 * cache -c: where slab colouring (paper, section 4) puts objects in a processor
 * cache of 64 sets with lines of 64 bytes.
 */
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"

#define SETS       64
#define LINE_BYTES 64
#define HOT_BYTES  48   /* of each object, from its start */
#define COLOURS    512  /* more are counted together */
#define WALK_MAX   4096 /* slabs */
#define PAIRS      5    /* of COLOUR and SLABS in a line */

struct heat {
    size_t heat_slabs[COLOURS]; /* by place in the sequence of colours */
    size_t heat_other;
    size_t heat_set[SETS];   /* objects whose hot bytes touch the set */
    size_t heat_plain[SETS]; /* the same, had all slabs colour 0 */
};

/* Too big for a stack; one shell, one command at a time. */
static struct heat heat;

static void touch(size_t *sets, size_t offset)
{
    size_t first = offset / LINE_BYTES;
    size_t last = (offset + HOT_BYTES - 1) / LINE_BYTES;

    for (size_t line = first; line <= last; line++)
        sets[line % SETS]++;
}

static void heat_slab(const struct kmem_cache_stat *st,
                      const struct kmem_slab_stat *slab)
{
    size_t colour = (slab->stat_colour - st->stat_colour_min) /
                    MAX(st->stat_align, 1u); /* 0: broken */

    if (colour < COLOURS)
        heat.heat_slabs[colour]++;
    else
        heat.heat_other++;
    for (size_t i = 0; i < MIN(slab->stat_chunks, st->stat_slab_objects); i++) {
        size_t offset = slab->stat_base + i * st->stat_chunk;

        touch(heat.heat_plain, offset);
        touch(heat.heat_set, offset + slab->stat_colour);
    }
}

/* Returns how many slabs it looked at. */
static size_t heat_cache(struct kmem_cache *cp,
                         const struct kmem_cache_stat *st)
{
    struct kmem_slab_stat slab;
    size_t slabs = MIN(st->stat_slabs, (size_t)WALK_MAX);
    size_t n = 0;

    memset(&heat, 0, sizeof(heat));
    for (; n < slabs && kmem_slab_stat(cp, n, &slab); n++) {
        heat_slab(st, &slab);
        if (shell_interrupted())
            break;
    }
    return n;
}

static size_t sets_touched(const size_t *sets)
{
    size_t n = 0;

    for (size_t i = 0; i < SETS; i++)
        n += sets[i] != 0;
    return n;
}

static void print_heat(const char *label, const size_t *sets)
{
    size_t most = 1;

    for (size_t i = 0; i < SETS; i++)
        most = MAX(most, sets[i]);
    kprintf("%-9s", label);
    for (size_t i = 0; i < SETS; i++)
        kprintf("%c", sets[i] ? (char)('0' + sets[i] * 9 / most) : '.');
    kprintf("\n%-9s%zu of %u sets; most objects in one: %zu\n", "",
            sets_touched(sets), SETS, most);
}

static void print_colour_rows(const struct kmem_cache_stat *st)
{
    size_t colours = MIN(heap_colours(st), (size_t)COLOURS);
    bool next = false; /* the last one printed is the next slab's */

    for (size_t i = 0; i < MIN(colours, (size_t)PAIRS); i++)
        kprintf("%sCOLOUR  SLABS", i ? "   " : "");
    for (size_t i = 0; i < colours; i++) {
        size_t colour = st->stat_colour_min + i * st->stat_align;

        kprintf("%s%6zu %6zu",
                i % PAIRS == 0 ? "\n"
                : next         ? "  "
                               : "   ",
                colour, heat.heat_slabs[i]);
        next = colour == st->stat_colour_next;
        if (next)
            kprintf("<");
    }
    kprintf("\n< the next slab's colour");
    if (heat.heat_other)
        kprintf("; %zu slabs have higher ones", heat.heat_other);
    kprintf("\n");
}

void heap_print_colours(struct kmem_cache *cp, const struct kmem_cache_stat *st)
{
    size_t walked = heat_cache(cp, st);

    print_colour_rows(st);
    kprintf("\nThe first %u bytes of each object in a cache of %u sets with "
            "lines of %u\nbytes: digits are tenths of the fullest set, a dot "
            "is a set never touched.\n",
            HOT_BYTES, SETS, LINE_BYTES);
    print_heat("coloured", heat.heat_set);
    print_heat("all at 0", heat.heat_plain);
    if (walked < st->stat_slabs)
        kprintf("(the first %zu slabs of %zu)\n", walked, st->stat_slabs);
}
