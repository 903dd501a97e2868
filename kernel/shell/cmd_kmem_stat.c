/*
 * kmastat: a row per cache, subtotals, and the check against the supplier
 * (paper, section 3.1: "statistics").
 *
 * The table fits 80 columns and writes large numbers short. /proc/kmastat has
 * them in full, and the JSON lines have everything.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/pager.h"
#include "kernel/shell/shell.h"
#include "mm/debug/debug.h"
#include "mm/platform.h"

/* A row of the table: a cache, or a sum. In the first, row_name may have a
 * mark. */
struct kmastat_row {
    char row_name[40];
    struct kmem_cache_stat row_stat;
    struct heap_sum row_sum; /* what is not known is all ones */
    size_t row_kib;
    char row_states[HEAP_CELL];
    char row_waste[40]; /* or a remark */
    /* of JSON */
    const char *row_kind;
    char row_flags[HEAP_CELL], row_modes[HEAP_CELL];
    bool row_bad;
};

#define ROW(member, ...)  COLUMN(struct kmastat_row, row_##member, __VA_ARGS__)
#define JSON(member, key) ROW(stat.stat_##member, NUMBER, 0, NULL, key)

/* With magazines there is TRAPPED instead of CHUNK. The label of a sum takes
 * the room of the columns before INUSE, which are blank in its row. */
static const struct column kmastat_columns[] = {
    ROW(stat.stat_name, CHARS, 0, NULL, "cache"),
    ROW(name, CHARS, MM_MAGAZINES ? -15 : -16, "CACHE", NULL),
    ROW(stat.stat_size, COUNT, 5, "SIZE", "size"),
    ROW(stat.stat_chunk, COUNT, 5, MM_MAGAZINES ? NULL : "CHUNK", "chunk"),
    ROW(sum.sum_inuse, COUNT, 5, "INUSE", "inuse"),
    ROW(sum.sum_trapped, COUNT, 7, MM_MAGAZINES ? "TRAPPED" : NULL, "trapped"),
    ROW(sum.sum_total, COUNT, 5, "TOTAL", "total"),
    ROW(states, CHARS, 14, "FULL/PART/FREE", NULL),
    ROW(kib, COUNT, 5, "MEM/K", NULL),
    ROW(waste, CHARS, 6, "WASTE%", NULL),
    ROW(sum.sum_allocs, COUNT, 5, "ALLOC", "allocs"),
    ROW(sum.sum_fails, COUNT, 4, "FAIL", "fails"),
    ROW(kind, STRING, 0, NULL, "kind"),
    ROW(flags, CHARS, 0, NULL, "flags"),
    ROW(modes, CHARS, 0, NULL, "modes"),
    ROW(bad, FLAG, 0, NULL, "bad"),
    JSON(align, "align"),
    JSON(slab_pages, "slab_pages"),
    JSON(slab_objects, "slab_objects"),
    JSON(slab_left, "slab_left"),
    JSON(colour_max, "colour_max"),
    JSON(colour_next, "colour_next"),
    JSON(slabs, "slabs"),
    JSON(full_slabs, "full"),
    JSON(partial_slabs, "partial"),
    JSON(free_slabs, "free"),
    JSON(mem, "mem"),
    JSON(slab_bytes, "slab_mem"),
    JSON(hash_bytes, "hash_mem"),
    JSON(max_slabs, "max_slabs"),
    JSON(frees, "frees"),
    JSON(slab_creates, "slab_creates"),
    JSON(slab_destroys, "slab_destroys"),
    JSON(ctors, "ctors"),
    JSON(dtors, "dtors"),
    JSON(hash_size, "hash_entries"),
    JSON(hash_rescales, "hash_rescales"),
    JSON(hash_depth, "hash_depth"),
    JSON(ws_min, "ws_min"),
    JSON(ws_limit, "ws_limit"),
    JSON(reaps, "reaps"),
    {0},
};

struct kmastat {
    struct table ks_table;
    heap_key_t *ks_key;
    const char *ks_pattern;
    struct heap_sum ks_sum; /* of what the pattern selects */
    bool ks_zero;
};

/* ---- a row -------------------------------------------------------------- */

/* Numbers of all ones are blank. */
static void begin_row(struct kmastat_row *row, const char *mark,
                      const char *label)
{
    memset(row, 0xff, sizeof(*row));
    snprintf(row->row_name, sizeof(row->row_name), "%s%s", mark, label);
    row->row_states[0] = row->row_waste[0] = '\0';
}

static void put_sum(struct kmastat_row *row, const struct heap_sum *s)
{
    char full[COUNT_SIZE], partial[COUNT_SIZE], free[COUNT_SIZE];

    row->row_sum = *s;
    row->row_kib = (size_t)(s->sum_mem / 1024);
    if (s->sum_caches == 0) { /* whole pages: no slabs, no known waste */
        row->row_sum.sum_trapped = row->row_sum.sum_total = SIZE_MAX;
        return;
    }
    snprintf(row->row_states, sizeof(row->row_states), "%s/%s/%s",
             count_text(s->sum_full, 4, full),
             count_text(s->sum_partial, 4, partial),
             count_text(s->sum_free, 4, free));
    heap_percent(s->sum_mem - MIN(s->sum_mem, s->sum_used), s->sum_mem,
                 row->row_waste);
}

static const char *const kind_names[HEAP_KINDS] = {
    [KMEM_KIND_NAMED] = "named",
    [KMEM_KIND_CLASS] = "class",
    [KMEM_KIND_INTERNAL] = "internal",
};

void heap_cache_row(const struct table *t, const struct kmem_cache_stat *st)
{
    static const char letters[] = "LCDS"; /* KMEM_STAT_LARGE, … */
    bool bad = heap_bad_row(st);
    struct heap_sum sum = {0};
    struct kmastat_row row;
    size_t n = 0;

    begin_row(&row, bad ? "!" : "", st->stat_name);
    heap_add(&sum, st);
    put_sum(&row, &sum);
    row.row_stat = *st;
    row.row_kind = kind_names[st->stat_kind];
    row.row_bad = bad;
    for (unsigned i = 0; letters[i]; i++)
        if (st->stat_flags & (1u << i))
            row.row_flags[n++] = letters[i];
    row.row_flags[n] = row.row_modes[0] = '\0';
    if (st->stat_modes)
        kmem_debug_text(st->stat_modes, row.row_modes);
    table_row(t, &row);
}

struct table heap_cache_table(void)
{
    return shell_table(kmastat_columns);
}

static void print_sum(const struct table *t, const char *label,
                      const struct heap_sum *sum)
{
    struct kmastat_row row;

    begin_row(&row, "", label);
    put_sum(&row, sum);
    table_row(t, &row);
}

/* A row that has only MEM, and a remark. */
static void print_mem(const struct table *t, const char *label, uint64_t bytes,
                      const char *remark)
{
    struct kmastat_row row;

    begin_row(&row, "", label);
    row.row_kib = (size_t)(bytes / 1024);
    strlcpy(row.row_waste, remark, sizeof(row.row_waste));
    table_row(t, &row);
}

/* ---- totals ------------------------------------------------------------- */

static void print_kinds(const struct table *table, const struct heap_totals *t)
{
    static const char *const labels[HEAP_KINDS] = {
        [KMEM_KIND_NAMED] = "named caches",
        [KMEM_KIND_CLASS] = "kmem_alloc classes",
        [KMEM_KIND_INTERNAL] = "the allocator's own",
    };
    char label[40];

    for (int kind = 0; kind < HEAP_KINDS; kind++) {
        snprintf(label, sizeof(label), "%s (%zu)", labels[kind],
                 t->total_kind[kind].sum_caches);
        print_sum(table, label, &t->total_kind[kind]);
    }
    snprintf(label, sizeof(label), "oversize (above %u)", KMEM_MAXBUF);
    print_sum(table, label, &t->total_large);
    print_sum(table, "TOTAL", &t->total_all);
}

/* Bytes that caches have, less those that segkmem says it gave. */
static long long supplier_off(const struct heap_totals *t)
{
    return (long long)(t->total_all.sum_mem - t->total_own + t->total_unmapped -
                       t->total_supplier);
}

static void print_supplier(const struct table *table,
                           const struct heap_totals *t)
{
    long long off = supplier_off(t);
    char remark[40];

    if (t->total_own)
        print_mem(table, "own suppliers (flag S)", t->total_own,
                  " not segkmem's");
    if (t->total_unmapped)
        print_mem(table, "unmapped (mode S)", t->total_unmapped,
                  " of no cache");
    snprintf(remark, sizeof(remark), " ! off by %+lld", off);
    print_mem(table, "SUPPLIER (segkmem)", t->total_supplier,
              off ? remark : " = supplier");
}

static void json_sum(const char *key, const struct heap_sum *s)
{
    kprintf("\"%s\":{\"caches\":%zu,\"inuse\":%zu,\"total\":%zu,"
            "\"slabs\":%zu,\"full\":%zu,\"partial\":%zu,\"free\":%zu,"
            "\"mem\":%llu,\"used\":%llu,\"allocs\":%llu,\"frees\":%llu,"
            "\"fails\":%llu},",
            key, s->sum_caches, s->sum_inuse, s->sum_total, s->sum_slabs,
            s->sum_full, s->sum_partial, s->sum_free, s->sum_mem, s->sum_used,
            s->sum_allocs, s->sum_frees, s->sum_fails);
}

static void json_totals(const struct heap_totals *t)
{
    kprintf("{");
    for (int kind = 0; kind < HEAP_KINDS; kind++)
        json_sum(kind_names[kind], &t->total_kind[kind]);
    json_sum("oversize", &t->total_large);
    json_sum("total", &t->total_all);
    kprintf("\"own_suppliers\":%llu,\"supplier\":%llu,\"equal\":%s}\n",
            t->total_own, t->total_supplier,
            supplier_off(t) == 0 ? "true" : "false");
}

/* ---- the command -------------------------------------------------------- */

static uint64_t key_waste(const struct kmem_cache_stat *st)
{
    return st->stat_mem - MIN((uint64_t)st->stat_mem,
                              (uint64_t)st->stat_inuse * st->stat_size);
}

static uint64_t key_rate(const struct kmem_cache_stat *st)
{
    return st->stat_allocs;
}

static uint64_t key_fail(const struct kmem_cache_stat *st)
{
    return st->stat_fails;
}

static heap_key_t *key_of(const char *order)
{
    static const struct {
        const char *name;
        heap_key_t *key;
    } orders[] = {{"waste", key_waste}, {"rate", key_rate}, {"fail", key_fail}};

    for (size_t i = 0; order && i < ARRAY_SIZE(orders); i++)
        if (strcmp(orders[i].name, order) == 0)
            return orders[i].key;
    return heap_key_mem;
}

/* Sums up what the pattern selects. */
static struct heap_sum select_caches(const char *pattern)
{
    struct heap_sum selected = {0};
    struct kmem_cache_stat st;
    struct kmem_cache *cp;

    heap_all (cp, &st)
        if (heap_match(st.stat_name, pattern))
            heap_add(&selected, &st);
    return selected;
}

/* False without memory, unless the row contradicts itself or the pattern asks
 * for a named cache. */
static bool of_interest(const struct kmastat *ks,
                        const struct kmem_cache_stat *st)
{
    return ks->ks_zero || ks->ks_table.table_json || st->stat_mem != 0 ||
           heap_bad_row(st) ||
           (ks->ks_pattern && st->stat_kind == KMEM_KIND_NAMED);
}

/* Returns how many caches it left out. */
static size_t print_rows(const struct kmastat *ks)
{
    struct heap_order at = {0};
    struct kmem_cache_stat st;
    size_t hidden = 0;

    while (!shell_interrupted() && heap_next(&at, ks->ks_key, &st))
        if (!heap_match(st.stat_name, ks->ks_pattern))
            continue;
        else if (of_interest(ks, &st))
            heap_cache_row(&ks->ks_table, &st);
        else
            hidden++;
    return hidden;
}

static void print_sums(const struct kmastat *ks, size_t hidden)
{
    const struct table *t = &ks->ks_table;
    struct heap_totals totals;

    if (ks->ks_pattern) {
        print_sum(t, "TOTAL of these", &ks->ks_sum);
    } else {
        heap_totals(&totals);
        print_kinds(t, &totals);
        print_supplier(t, &totals);
    }
    kprintf("full: every object allocated (the paper's \"empty\"); "
            "free: none (\"complete\")\n");
    if (hidden)
        kprintf("%zu more cache%s without memory: kmastat -z\n", hidden,
                plural(hidden));
}

static int cmd_kmastat(char **argv)
{
    struct kmastat ks = {.ks_key = key_of(shell_value('s')),
                         .ks_pattern = argv[1],
                         .ks_sum = select_caches(argv[1]),
                         .ks_zero = shell_option('z')};
    struct heap_totals t;
    size_t hidden;

    if (ks.ks_sum.sum_caches == 0 && !argv[1])
        return shell_error("there is no cache yet");
    if (ks.ks_sum.sum_caches == 0)
        return shell_error("no cache matches '%s'; `kmastat -z` lists them all",
                           ks.ks_pattern);
    if (!shell_option('j'))
        pager_to_end();
    ks.ks_table = shell_table(kmastat_columns);
    hidden = print_rows(&ks);
    if (ks.ks_table.table_json) {
        heap_totals(&t);
        json_totals(&t);
    } else if (!shell_interrupted()) {
        print_sums(&ks, hidden);
    }
    return 0;
}

SHELL_COMMAND(kmastat,
              {"[-z] [-j] [-s mem|waste|rate|fail] [PATTERN]", cmd_kmastat,
               SHELL_REPORT},
              {"--merged", heap_print_merged, SHELL_REPORT});
