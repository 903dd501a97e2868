/*
 * kmastat: a row per cache, subtotals, and the check against the supplier
 * (paper, section 3.1: "statistics").
 *
 * The narrow table fits 80 columns: it leaves out SLABS (the sum of the three
 * in FULL/PART/FREE), FREE (ALLOC less INUSE) and FLAGS, and writes large
 * numbers short. The wide one (-w) has every column, in full; its rows are also
 * /proc/kmastat. GDB prints the same columns: it reads `kmastat_columns`.
 */
#include "drivers/console.h"
#include "kernel/fs/proc.h"
#include "kernel/lib/hook.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/pager.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/words.h"
#include "mm/debug/debug.h"
#include "mm/platform.h"

/* With magazines the narrow table has TRAPPED instead of CHUNK. */
#define NARROW_NAME (MM_MAGAZINES ? 15 : 16)

/* A row of the table: a cache, or a sum. In the first, row_name may have a
 * mark. */
struct kmastat_row {
    char row_name[KMEM_NAME_MAX + 2];
    struct kmem_cache_stat row_stat;
    struct heap_sum row_sum; /* what is not known is all ones */
    char row_states[HEAP_CELL], row_mem[HEAP_CELL], row_waste[HEAP_CELL];
    char row_flags[HEAP_CELL];
    const char *row_remark;
    /* of JSON */
    const char *row_kind;
    char row_letters[HEAP_CELL], row_modes[HEAP_CELL];
    bool row_bad;
};

#define ROW(member, ...) COLUMN(struct kmastat_row, row_##member, __VA_ARGS__)

enum {
    COL_INUSE = 2,
    COL_MEM = 7,
    COLUMNS = 13
};

/* Width 0: not in that table. The first ones are of caches, not of sums. */
static const struct {
    struct column narrow;
    uint8_t wide;
} kmastat_columns[COLUMNS] = {
    {ROW(stat.stat_size, COUNT, 5, "SIZE", NULL), 5},
    {ROW(stat.stat_chunk, COUNT, MM_MAGAZINES ? 0 : 5, "CHUNK", NULL), 5},
    [COL_INUSE] = {ROW(sum.sum_inuse, COUNT, 5, "INUSE", NULL), 6},
    {ROW(sum.sum_trapped, COUNT, MM_MAGAZINES ? 7 : 0, "TRAPPED", NULL),
     MM_MAGAZINES ? 7 : 0},
    {ROW(sum.sum_total, COUNT, 5, "TOTAL", NULL), 6},
    {ROW(sum.sum_slabs, COUNT, 0, "SLABS", NULL), 5},
    {ROW(states, CHARS, 14, "FULL/PART/FREE", NULL), 14},
    [COL_MEM] = {ROW(mem, CHARS, 5, "MEM", NULL), 8},
    {ROW(waste, CHARS, 6, "WASTE%", NULL), 6},
    {ROW(sum.sum_allocs, COUNT, 5, "ALLOC", NULL), 8},
    {ROW(sum.sum_frees, COUNT, 0, "FREE", NULL), 8},
    {ROW(sum.sum_fails, COUNT, 4, "FAIL", NULL), 4},
    {ROW(flags, CHARS, 0, "FLAGS", NULL), 5},
};

static const struct column json_columns[] = {
    ROW(stat.stat_name, CHARS, 0, NULL, "cache"),
    ROW(kind, STRING, 0, NULL, "kind"),
    ROW(letters, CHARS, 0, NULL, "flags"),
    ROW(modes, CHARS, 0, NULL, "modes"),
    ROW(bad, FLAG, 0, NULL, "bad"),
    ROW(stat.stat_size, NUMBER, 0, NULL, "size"),
    ROW(stat.stat_align, NUMBER, 0, NULL, "align"),
    ROW(stat.stat_chunk, NUMBER, 0, NULL, "chunk"),
    ROW(stat.stat_slab_pages, NUMBER, 0, NULL, "slab_pages"),
    ROW(stat.stat_slab_objects, NUMBER, 0, NULL, "slab_objects"),
    ROW(stat.stat_slab_left, NUMBER, 0, NULL, "slab_left"),
    ROW(stat.stat_colour_max, NUMBER, 0, NULL, "colour_max"),
    ROW(stat.stat_colour_next, NUMBER, 0, NULL, "colour_next"),
    ROW(stat.stat_inuse, NUMBER, 0, NULL, "inuse"),
    ROW(stat.stat_trapped, NUMBER, 0, NULL, "trapped"),
    ROW(stat.stat_total, NUMBER, 0, NULL, "total"),
    ROW(stat.stat_slabs, NUMBER, 0, NULL, "slabs"),
    ROW(stat.stat_full_slabs, NUMBER, 0, NULL, "full"),
    ROW(stat.stat_partial_slabs, NUMBER, 0, NULL, "partial"),
    ROW(stat.stat_free_slabs, NUMBER, 0, NULL, "free"),
    ROW(stat.stat_mem, NUMBER, 0, NULL, "mem"),
    ROW(stat.stat_slab_bytes, NUMBER, 0, NULL, "slab_mem"),
    ROW(stat.stat_hash_bytes, NUMBER, 0, NULL, "hash_mem"),
    ROW(stat.stat_max_slabs, NUMBER, 0, NULL, "max_slabs"),
    ROW(stat.stat_allocs, NUMBER, 0, NULL, "allocs"),
    ROW(stat.stat_frees, NUMBER, 0, NULL, "frees"),
    ROW(stat.stat_fails, NUMBER, 0, NULL, "fails"),
    ROW(stat.stat_slab_creates, NUMBER, 0, NULL, "slab_creates"),
    ROW(stat.stat_slab_destroys, NUMBER, 0, NULL, "slab_destroys"),
    ROW(stat.stat_ctors, NUMBER, 0, NULL, "ctors"),
    ROW(stat.stat_dtors, NUMBER, 0, NULL, "dtors"),
    ROW(stat.stat_hash_size, NUMBER, 0, NULL, "hash_entries"),
    ROW(stat.stat_hash_rescales, NUMBER, 0, NULL, "hash_rescales"),
    ROW(stat.stat_hash_depth, NUMBER, 0, NULL, "hash_depth"),
    ROW(stat.stat_ws_min, NUMBER, 0, NULL, "ws_min"),
    ROW(stat.stat_ws_limit, NUMBER, 0, NULL, "ws_limit"),
    ROW(stat.stat_reaps, NUMBER, 0, NULL, "reaps"),
    ROW(stat.stat_reaped_slabs, NUMBER, 0, NULL, "reaped_slabs"),
    {0},
};

struct kmastat {
    struct table ks_table; /* to the console, or into /proc/kmastat */
    heap_key_t *ks_key;
    const char *ks_pattern;
    unsigned ks_shift; /* MEM is in units of 2^shift bytes */
    unsigned ks_name;  /* width of the first column */
    bool ks_unit;      /* -k or -m was given */
    bool ks_zero;
    bool ks_wide;
    struct column ks_caches[COLUMNS + 2]; /* the columns of caches, of sums, */
    struct column ks_sums[COLUMNS + 2];
    struct column ks_supplier[4]; /* and of rows that only have MEM */
};

#define LABEL(width) ROW(name, CHARS, width, "CACHE", NULL)

/* The label of a sum takes the room of SIZE and CHUNK, too. */
static void choose_columns(struct kmastat *ks)
{
    int8_t label = (int8_t)-ks->ks_name;
    struct column *cache = ks->ks_caches;
    struct column *sum = ks->ks_sums;

    *cache++ = (struct column)LABEL(label);
    for (int i = 0; i < COLUMNS; i++) {
        struct column c = kmastat_columns[i].narrow;

        c.col_width =
            ks->ks_wide ? (int8_t)kmastat_columns[i].wide : c.col_width;
        if (i == COL_INUSE)
            *sum++ = (struct column)LABEL(label);
        if (i == COL_MEM) {
            c.col_head = ks->ks_shift == 20   ? "MEM/M"
                         : ks->ks_shift == 10 ? "MEM/K"
                                              : "MEM/B";
            ks->ks_supplier[0] = (struct column)LABEL(label);
            ks->ks_supplier[1] = c;
            ks->ks_supplier[2] =
                (struct column)ROW(remark, STRING, -20, "", NULL);
        }
        if (c.col_width == 0)
            continue;
        *cache++ = c;
        if (i >= COL_INUSE)
            *sum++ = c;
        label = (int8_t)(label - c.col_width - 1);
    }
}

static void print_with(struct kmastat *ks, const struct column *with,
                       const struct kmastat_row *row)
{
    ks->ks_table.table_columns = with;
    table_row(&ks->ks_table, row);
}

/* ---- a row -------------------------------------------------------------- */

/* Without a suffix such as M: the whole column has one unit. */
static void put_mem(const struct kmastat *ks, struct kmastat_row *row,
                    uint64_t bytes)
{
    unsigned tenths = (unsigned)((bytes * 10 + MIB(1) / 2) >> 20);

    if (ks->ks_shift != 20)
        snprintf(row->row_mem, HEAP_CELL, "%llu", bytes >> ks->ks_shift);
    else if (tenths >= 10000)
        snprintf(row->row_mem, HEAP_CELL, "%u", tenths / 10);
    else
        snprintf(row->row_mem, HEAP_CELL, "%u.%u", tenths / 10, tenths % 10);
}

static void put_sum(const struct kmastat *ks, struct kmastat_row *row,
                    const struct heap_sum *s)
{
    char full[COUNT_SIZE], partial[COUNT_SIZE], free[COUNT_SIZE];

    row->row_sum = *s;
    put_mem(ks, row, s->sum_mem);
    if (s->sum_caches == 0) { /* whole pages: no slabs, no known waste */
        row->row_sum.sum_trapped = row->row_sum.sum_total = SIZE_MAX;
        row->row_sum.sum_slabs = SIZE_MAX;
        return;
    }
    snprintf(row->row_states, HEAP_CELL, "%s/%s/%s",
             count_text(s->sum_full, 4, full),
             count_text(s->sum_partial, 4, partial),
             count_text(s->sum_free, 4, free));
    heap_percent(heap_waste(s->sum_used, s->sum_mem), row->row_waste);
}

static void put_flags(struct kmastat_row *row, const struct kmem_cache_stat *st)
{
    unsigned flags = st->stat_flags;
    char *p = row->row_letters;

    if (flags & KMEM_STAT_LARGE)
        *p++ = 'L';
    if (flags & KMEM_STAT_CTOR)
        *p++ = 'C';
    if (flags & KMEM_STAT_DTOR)
        *p++ = 'D';
    if (flags & KMEM_STAT_SUPPLY)
        *p++ = 'S';
    *p = '\0';
    if (st->stat_modes)
        kmem_debug_text(st->stat_modes, row->row_modes);
    snprintf(row->row_flags, HEAP_CELL, "%s%s%s",
             flags ? row->row_letters : "-", st->stat_modes ? "/" : "",
             row->row_modes);
}

static void put_cache(const struct kmastat *ks, struct kmastat_row *row,
                      const struct kmem_cache_stat *st)
{
    struct heap_sum sum = {0};

    heap_add(&sum, st);
    *row = (struct kmastat_row){.row_stat = *st, .row_bad = heap_bad_row(st)};
    snprintf(row->row_name, sizeof(row->row_name), "%s%s",
             row->row_bad ? "!" : "", st->stat_name);
    put_sum(ks, row, &sum);
    put_flags(row, st);
}

static void print_cache(struct kmastat *ks, const struct kmem_cache_stat *st)
{
    struct kmastat_row row;

    put_cache(ks, &row, st);
    print_with(ks, ks->ks_caches, &row);
}

static void print_sum(struct kmastat *ks, const char *label,
                      const struct heap_sum *sum)
{
    struct kmastat_row row = {.row_stat = {.stat_size = 0}};

    strlcpy(row.row_name, label, sizeof(row.row_name));
    put_sum(ks, &row, sum);
    print_with(ks, ks->ks_sums, &row);
}

/* ---- totals ------------------------------------------------------------- */

static void print_kinds(struct kmastat *ks, const struct heap_totals *t)
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
        print_sum(ks, label, &t->total_kind[kind]);
    }
    snprintf(label, sizeof(label), "oversize (above %u)", KMEM_MAXBUF);
    print_sum(ks, label, &t->total_large);
    print_sum(ks, "TOTAL", &t->total_all);
}

/* Prints a row that has only MEM, and a remark. */
static void print_mem(struct kmastat *ks, const char *label, uint64_t bytes,
                      const char *remark)
{
    struct kmastat_row row = {.row_remark = remark};

    strlcpy(row.row_name, label, sizeof(row.row_name));
    put_mem(ks, &row, bytes);
    print_with(ks, ks->ks_supplier, &row);
}

/* Bytes that caches have, less those that segkmem says it gave. */
static long long supplier_off(const struct heap_totals *t)
{
    return (long long)(t->total_all.sum_mem - t->total_own + t->total_unmapped -
                       t->total_supplier);
}

static void print_supplier(struct kmastat *ks, const struct heap_totals *t)
{
    long long off = supplier_off(t);
    char remark[40];

    if (t->total_own)
        print_mem(ks, "own suppliers (flag S)", t->total_own, " not segkmem's");
    if (t->total_unmapped)
        print_mem(ks, "unmapped (mode S)", t->total_unmapped, " of no cache");
    snprintf(remark, sizeof(remark), " ! off by %+lld", off);
    print_mem(ks, "SUPPLIER (segkmem)", t->total_supplier,
              off ? remark : " = supplier");
}

static void print_legend(const struct kmastat *ks, size_t hidden)
{
    print_t *print = ks->ks_table.table_print;
    void *to = ks->ks_table.table_to;

    print(to, "full: every object allocated (the paper's \"empty\"); "
              "free: none (\"complete\")\n");
    if (ks->ks_wide)
        print(
            to,
            "flags: L large layout, C constructor, D destructor, "
            "S supplier of its own;\nafter the /: debugging modes (`debug`)\n");
    if (hidden)
        print(to, "%zu more cache%s without memory: kmastat -z\n", hidden,
              plural(hidden));
}

/* ---- JSON --------------------------------------------------------------- */

static const char *const kind_names[HEAP_KINDS] = {
    [KMEM_KIND_NAMED] = "named",
    [KMEM_KIND_CLASS] = "class",
    [KMEM_KIND_INTERNAL] = "internal",
};

void heap_json_cache(const struct kmem_cache_stat *st)
{
    struct kmastat ks = {.ks_table = {NULL, print_console, NULL, true}};
    struct kmastat_row row;

    put_cache(&ks, &row, st);
    row.row_kind = kind_names[st->stat_kind];
    print_with(&ks, json_columns, &row);
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

/* Chooses the unit, unless the user has: bytes in the wide table, else KiB, or
 * MiB if KiB do not fit the column. */
static void choose_unit(struct kmastat *ks)
{
    struct heap_totals t;

    if (ks->ks_unit)
        return;
    heap_totals(&t);
    if (ks->ks_wide)
        ks->ks_shift = 0;
    else
        ks->ks_shift = t.total_all.sum_mem >> 10 > 99999 ? 20 : 10;
}

/* Counts what the pattern selects; the wide table's first column holds the
 * longest name. */
static void select_caches(struct kmastat *ks, struct heap_sum *selected)
{
    struct kmem_cache_stat st;
    struct kmem_cache *cp;
    size_t longest = NARROW_NAME;

    heap_all (cp, &st) {
        if (!heap_match(st.stat_name, ks->ks_pattern))
            continue;
        heap_add(selected, &st);
        longest = MAX(longest, strlen(st.stat_name));
    }
    ks->ks_name = ks->ks_wide ? (unsigned)longest : NARROW_NAME;
}

/* False without memory, unless the row contradicts itself or the pattern asks
 * for a named cache. */
static bool of_interest(const struct kmastat *ks,
                        const struct kmem_cache_stat *st)
{
    return st->stat_mem != 0 || heap_bad_row(st) ||
           (ks->ks_pattern && st->stat_kind == KMEM_KIND_NAMED);
}

/* ^C ends the command, but no program's read of /proc. */
static bool interrupted(const struct kmastat *ks)
{
    return ks->ks_table.table_print == print_console && shell_interrupted();
}

/* Returns how many it listed. *hidden counts those that of_interest
 * leaves out. */
static size_t print_rows(struct kmastat *ks, size_t *hidden)
{
    struct heap_order at = {0};
    struct kmem_cache_stat st;
    size_t rows = 0;

    *hidden = 0;
    while (!interrupted(ks) && heap_next(&at, ks->ks_key, &st)) {
        if (!heap_match(st.stat_name, ks->ks_pattern))
            continue;
        rows++;
        if (ks->ks_table.table_json)
            heap_json_cache(&st);
        else if (ks->ks_zero || of_interest(ks, &st))
            print_cache(ks, &st);
        else
            ++*hidden;
    }
    return rows;
}

static void print_table(struct kmastat *ks, const struct heap_sum *selected)
{
    struct heap_totals t;
    size_t hidden, rows;

    choose_unit(ks);
    choose_columns(ks);
    ks->ks_table.table_columns = ks->ks_caches;
    table_begin(&ks->ks_table);
    rows = print_rows(ks, &hidden);
    if (interrupted(ks))
        return;
    if (rows != selected->sum_caches)
        ks->ks_table.table_print(ks->ks_table.table_to,
                                 "! caches changed meanwhile: %zu rows of "
                                 "%zu\n",
                                 rows, selected->sum_caches);
    if (ks->ks_pattern) {
        print_sum(ks, "TOTAL of these", selected);
    } else {
        heap_totals(&t);
        print_kinds(ks, &t);
        print_supplier(ks, &t);
    }
    print_legend(ks, hidden);
}

/* /proc/kmastat: the wide table's rows, of all caches as they were created;
 * /proc/caches: what the command prints. */
static void write_proc(print_t *print, void *to, bool wide)
{
    struct kmastat ks = {.ks_table = {NULL, print, to, false},
                         .ks_wide = wide,
                         .ks_key = heap_key_mem};
    struct heap_sum all = {0};
    struct kmem_cache_stat st;

    select_caches(&ks, &all);
    if (!wide) {
        print_table(&ks, &all);
        return;
    }
    choose_columns(&ks);
    ks.ks_table.table_columns = ks.ks_caches;
    table_begin(&ks.ks_table);
    for (size_t n = 0; kmem_cache_stat_number(n, &st); n++)
        print_cache(&ks, &st);
}

static void serve(const void *arg)
{
    (void)arg;
    proc_set_kmastat(write_proc);
}

HOOK(HOOK_UP, serve);

static int cmd_kmastat(char **argv)
{
    struct kmastat ks = {
        .ks_table = {NULL, print_console, NULL, shell_option('j')},
        .ks_key = key_of(shell_value('s')),
        .ks_pattern = argv[1],
        .ks_unit = shell_option('k') || shell_option('m'),
        .ks_shift = shell_option('m') ? 20 : 10,
        .ks_zero = shell_option('z'),
        .ks_wide = shell_option('w')};
    struct heap_sum selected = {0};
    struct heap_totals t;
    size_t hidden;

    if (argv[1] && strcmp(argv[1], "--merged") == 0)
        return heap_print_merged();
    select_caches(&ks, &selected);
    if (selected.sum_caches == 0)
        return shell_error("no cache matches '%s'; `kmastat -z` lists them all",
                           ks.ks_pattern);
    if (ks.ks_table.table_json) {
        print_rows(&ks, &hidden);
        heap_totals(&t);
        json_totals(&t);
    } else {
        pager_to_end();
        print_table(&ks, &selected);
    }
    return 0;
}

SHELL_COMMAND(kmastat, cmd_kmastat,
              "[-k|-m] [-z] [-w] [-j] [-s mem|waste|rate|fail] [PATTERN]\n"
              "--merged",
              SHELL_REPORT);
