/*
 * cache: all there is to know of one cache; its geometry line by line (paper,
 * section 3.2), where each byte of its memory goes, and the table from buffer
 * to bufctl of large-object caches (3.2.3).
 */
#include "kernel/lib/string.h"
#include "kernel/lib/symbol.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "mm/debug/debug.h"

#define LINK_BYTES 4 /* the free list's link, as the extra word has it */

#define COLOUR_WALK_MAX 8192 /* slabs whose colours are summed */

/* ---- geometry ----------------------------------------------------------- */

static size_t slab_bytes(const struct kmem_cache_stat *st)
{
    return st->stat_slab_pages * PAGE_SIZE;
}

/* The word appended for the link of a small buffer with a constructed state,
 * which the link would overwrite. */
static size_t extra_word(const struct kmem_cache_stat *st)
{
    if (st->stat_flags & KMEM_STAT_LARGE ||
        !(st->stat_flags & (KMEM_STAT_CTOR | KMEM_STAT_DTOR)))
        return 0;
    return LINK_BYTES;
}

static void print_kind(const struct kmem_cache_stat *st)
{
    static const char *const kinds[HEAP_KINDS] = {
        [KMEM_KIND_NAMED] = "a named cache",
        [KMEM_KIND_CLASS] = "a size class of kmem_alloc",
        [KMEM_KIND_INTERNAL] = "the allocator's own",
    };

    char modes[8];

    kprintf("%s: %s, %s layout%s%s%s%s\n", st->stat_name, kinds[st->stat_kind],
            st->stat_flags & KMEM_STAT_LARGE ? "large" : "small",
            st->stat_modes ? ", modes " : "",
            st->stat_modes ? kmem_debug_text(st->stat_modes, modes) : "",
            st->stat_flags & KMEM_STAT_SUPPLY ? ", pages from its own supplier"
                                              : "",
            heap_bad_row(st) ? " ! counts contradict each other" : "");
}

static void print_function(const char *label, unsigned has, uintptr_t addr)
{
    char buf[64];

    kprintf("%-12s %s\n", label,
            has ? symbol_format(addr, buf, sizeof(buf)) : "none");
}

static void print_colours(const struct kmem_cache_stat *st)
{
    size_t step = st->stat_align;
    size_t least = st->stat_colour_min;

    kprintf("colours   %6zu = %zu / %zu + 1: %zu", heap_colours(st),
            st->stat_colour_max - least, step, least);
    if (st->stat_colour_max >= least + 2 * step)
        kprintf(", %zu", least + step);
    if (st->stat_colour_max >= least + 3 * step)
        kprintf(", ...");
    if (st->stat_colour_max > least)
        kprintf(", %zu", st->stat_colour_max);
    kprintf("; the next slab gets %zu\n", st->stat_colour_next);
}

/* Bytes that a debugging mode adds to a chunk: redzones; in mode G the page
 * after the object, which is never mapped. */
static size_t debug_tag(const struct kmem_cache_stat *st)
{
    if (st->stat_modes & KMF_OWN_PAGES)
        return PAGE_SIZE;
    return st->stat_modes & KMF_REDZONE ? 2 * KMEM_GUARD_FRONT : 0;
}

/* In mode G a chunk is counted from the slab's start, and so is the colour. */
static size_t chunk_bytes(const struct kmem_cache_stat *st)
{
    return st->stat_modes & KMF_OWN_PAGES ? st->stat_chunk - st->stat_colour_min
                                          : st->stat_chunk;
}

static void print_chunk(const struct kmem_cache_stat *st)
{
    size_t extra = extra_word(st), tag = debug_tag(st);
    size_t chunk = chunk_bytes(st);

    kprintf("chunk     %6zu = %zu asked for + %zu %s", chunk, st->stat_size,
            tag ? tag : extra, tag ? "debug tag" : "extra word");
    kprintf(" + %zu to a multiple of %zu\n",
            chunk - st->stat_size - extra - tag, st->stat_align);
}

static void print_geometry(const struct kmem_cache_stat *st)
{
    size_t header = heap_header_bytes(st);
    char buf[HEAP_CELL];

    print_chunk(st);
    kprintf("slab      %6zu = %zu page%s\n", slab_bytes(st),
            st->stat_slab_pages, plural(st->stat_slab_pages));
    kprintf("header    %6zu   %s\n", header,
            header ? "kmem_slab at the end of the page"
                   : "kmem_slab and bufctls are outside the slab");
    kprintf("objects   %6zu = (%zu - %zu) / %zu\n", st->stat_slab_objects,
            slab_bytes(st), header, st->stat_chunk);
    kprintf("unused    %6zu = %zu - %zu - %zu * %zu, %s%% of the slab\n",
            st->stat_slab_left, slab_bytes(st), header, st->stat_slab_objects,
            st->stat_chunk,
            heap_percent(st->stat_slab_left, slab_bytes(st), buf));
    print_colours(st);
    print_function("constructor", st->stat_flags & KMEM_STAT_CTOR,
                   st->stat_ctor);
    print_function("destructor", st->stat_flags & KMEM_STAT_DTOR,
                   st->stat_dtor);
}

/* ---- the ledger --------------------------------------------------------- */

/* The colour offsets of all slabs. Where there are too many to walk, those
 * beyond count as tail. */
static size_t colour_bytes(struct kmem_cache *cp,
                           const struct kmem_cache_stat *st)
{
    size_t slabs = MIN(st->stat_slabs, (size_t)COLOUR_WALK_MAX);
    struct kmem_slab_stat slab;
    size_t sum = 0;

    for (size_t n = 0; n < slabs && kmem_slab_stat(cp, n, &slab); n++)
        sum += slab.stat_colour;
    return sum;
}

size_t heap_ledger(struct kmem_cache *cp, const struct kmem_cache_stat *st,
                   size_t entry[LEDGER_ENTRIES])
{
    size_t extra = extra_word(st), tag = debug_tag(st);
    size_t chunk = chunk_bytes(st);
    size_t sum = 0;

    entry[LEDGER_REQUESTED] = st->stat_inuse * st->stat_size;
    entry[LEDGER_ROUNDING] =
        st->stat_inuse * (chunk - st->stat_size - extra - tag);
    entry[LEDGER_EXTRA_WORD] = st->stat_inuse * extra;
    entry[LEDGER_DEBUG_TAG] = st->stat_inuse * tag;
    entry[LEDGER_COLOUR] = colour_bytes(cp, st);
    entry[LEDGER_TAIL] =
        st->stat_slabs * (slab_bytes(st) - heap_header_bytes(st) -
                          st->stat_slab_objects * chunk) -
        entry[LEDGER_COLOUR];
    entry[LEDGER_HEADER] = st->stat_slabs * heap_header_bytes(st);
    entry[LEDGER_BUFCTL] = 0;
    entry[LEDGER_HASH] = st->stat_hash_bytes;
    entry[LEDGER_FREE] = (st->stat_total - st->stat_inuse) * chunk;
    for (int i = 0; i < LEDGER_ENTRIES; i++)
        sum += entry[i];
    return sum;
}

/* Names, and remarks: for the large layout another one, if not NULL. */
static const char *const ledger_text[LEDGER_ENTRIES][3] = {
    [LEDGER_REQUESTED] = {"REQUESTED", "objects in use, as asked for"},
    [LEDGER_ROUNDING] = {"ROUNDING", "up to the alignment"},
    [LEDGER_EXTRA_WORD] = {"EXTRA-WORD",
                           "keeps the link off the constructed state",
                           "none: the link is in the bufctl"},
    [LEDGER_DEBUG_TAG] = {"DEBUG-TAG", "no debugging modes",
                          "redzones (Z), a page that is never mapped (G)"},
    [LEDGER_COLOUR] = {"COLOUR", "before the first object of each slab"},
    [LEDGER_TAIL] = {"TAIL", "unused after the last object of each slab"},
    [LEDGER_HEADER] = {"HEADER", "a kmem_slab in each slab",
                       "counted in cache kmem_slab"},
    [LEDGER_BUFCTL] = {"BUFCTL", "none: a free buffer is its own",
                       "counted in cache kmem_bufctl"},
    [LEDGER_HASH] = {"HASH", "none: the slab's address is computed",
                     "whole pages; a small table is counted in kmem_hash"},
    [LEDGER_FREE] = {"FREE", "free objects"},
};

static void print_ledger(struct kmem_cache *cp,
                         const struct kmem_cache_stat *st)
{
    bool large = st->stat_flags & KMEM_STAT_LARGE;
    size_t entry[LEDGER_ENTRIES];
    size_t sum = heap_ledger(cp, st, entry);

    kprintf("\n%-12s %9s\n", "LEDGER", "BYTES");
    for (int i = 0; i < LEDGER_ENTRIES; i++)
        kprintf(
            "%-12s %9zu  %s%s\n", ledger_text[i][0], entry[i],
            large && ledger_text[i][2] ? ledger_text[i][2] : ledger_text[i][1],
            i == LEDGER_BUFCTL && st->stat_modes & KMF_MODES ? "_debug" : "");
    kprintf("%-12s %9zu  ", "MEM", st->stat_mem);
    if (sum == st->stat_mem)
        kprintf("= the sum\n");
    else
        kprintf("! the sum is %zu\n", sum);
}

/* ---- counters ----------------------------------------------------------- */

static void print_counters(const struct kmem_cache_stat *st)
{
    kprintf("\nobjects      %zu in use of %zu, %llu allocs, %llu frees, "
            "%llu failed\n",
            st->stat_inuse, st->stat_total, st->stat_allocs, st->stat_frees,
            st->stat_fails);
    kprintf("slabs        %zu: %zu full, %zu partial, %zu free; at most %zu; "
            "%llu created, %llu destroyed\n",
            st->stat_slabs, st->stat_full_slabs, st->stat_partial_slabs,
            st->stat_free_slabs, st->stat_max_slabs, st->stat_slab_creates,
            st->stat_slab_destroys);
    kprintf("constructed  %llu, destroyed %llu\n", st->stat_ctors,
            st->stat_dtors);
}

#define CHAINS 9 /* lengths 0 … 7 and above */

size_t heap_hash_grow(size_t entries)
{
    return (8 * entries - 4 + 2) / 3;
}

size_t heap_hash_shrink(size_t entries)
{
    return entries >= 128 ? (entries - 5) / 3 : 0;
}

/* The hash table of large objects (3.2.3). Its size is checked when a slab is
 * created or destroyed. */
static void print_hash(struct kmem_cache *cp, const struct kmem_cache_stat *st)
{
    size_t chain[CHAINS];
    size_t longest = kmem_hash_stat(cp, chain, CHAINS);
    size_t load = st->stat_inuse * 100 / MAX(st->stat_hash_size, (size_t)1);
    const char *before = "";

    kprintf("hash         ENTRIES %zu LOAD %zu.%02zu MAXCHAIN %zu RESCALES "
            "%llu\n             entries by length of chain:",
            st->stat_hash_size, load / 100, load % 100, longest,
            st->stat_hash_rescales);
    for (size_t i = 0; i < CHAINS; i++)
        if (chain[i] != 0) {
            kprintf("%s %zu of %zu%s", before, chain[i], i,
                    i == CHAINS - 1 ? "+" : "");
            before = ",";
        }
    kprintf("\n             %zu object%s, free ones too; it grows at %zu",
            st->stat_total, plural(st->stat_total),
            heap_hash_grow(st->stat_hash_size));
    if (heap_hash_shrink(st->stat_hash_size) != 0)
        kprintf(", shrinks at %zu", heap_hash_shrink(st->stat_hash_size));
    kprintf("\n");
}

static void print_working_set(const struct kmem_cache_stat *st)
{
    char due[HEAP_CELL];

    kprintf("working set  T %zu (free slabs now) m %zu (fewest lately) "
            "L %zu (before); reapable %zu\n",
            st->stat_free_slabs, st->stat_ws_min, st->stat_ws_limit,
            st->stat_reapable);
    if (st->stat_reaps != 0)
        kprintf("             last reap %s ago: %zu freed, %zu kept\n",
                heap_age(mm_clock_ms() - st->stat_last_reap_ms, due),
                st->stat_last_reap_freed, st->stat_last_reap_kept);
    kprintf("             next update, L = m and m = T, in %s",
            heap_age(kmem_update_due(), due));
    if (kmem_ws_interval == KMEM_WS_INFINITE)
        kprintf("; but a reap keeps everything (`reap -i`)");
    else if (kmem_ws_interval == 0)
        kprintf("; but a reap frees every free slab (`reap -i`)");
    kprintf("\n");
}

int (*heap_partial_order)(const char *name, bool sorted);

static int set_partial_order(const char *name, const char *word)
{
    if (!shell_may_change())
        return 1;
    if (!heap_partial_order)
        return shell_error("only the workshop kernel sorts partial slabs; boot "
                           "it with: make run WORKSHOP=1");
    return heap_partial_order(name, strcmp(word, "partial=sorted") == 0);
}

static int cmd_cache(char **argv)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp;
    struct table t;

    cp = heap_cache_named(argv[1]);
    if (!cp)
        return 1;
    if (argv[2])
        return set_partial_order(argv[1], argv[2]);
    kmem_cache_stat(cp, &st);
    if (shell_option('j')) {
        t = heap_cache_table();
        heap_cache_row(&t, &st);
        return 0;
    }
    if (shell_option('c')) {
        heap_print_colours(cp, &st);
        return 0;
    }
    print_kind(&st);
    print_geometry(&st);
    print_ledger(cp, &st);
    print_counters(&st);
    if (st.stat_flags & KMEM_STAT_LARGE)
        print_hash(cp, &st);
    print_working_set(&st);
    return 0;
}

SHELL_COMMAND(cache,
              {"[-c] [-j] CACHE [partial=sorted|partial=own]", cmd_cache,
               SHELL_REPORT},
              {"-o alloc|free [-j] [-n N] [CACHE]", heap_print_objects,
               SHELL_REPORT},
              {"-u [-j] [-m AGE] [CACHE]", heap_print_users, SHELL_REPORT});
