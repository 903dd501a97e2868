/*
 * kmastat: a row per cache, subtotals, and the check against the supplier
 * (paper, section 3.1: "statistics").
 *
 * The narrow table fits 80 columns: it leaves out SLABS (the sum of the three
 * in FULL/PART/FREE), FREE (ALLOC less INUSE) and FLAGS, and writes large
 * numbers short. The wide one (-w) has every column, in full; its rows are also
 * /proc/kmastat. GDB prints the same columns: it reads `columns` in the image.
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

struct kmastat {
    proc_print_t *ks_print; /* to the console, or into /proc/kmastat */
    void *ks_to;
    heap_key_t *ks_key;
    const char *ks_pattern;
    unsigned ks_shift; /* MEM is in units of 2^shift bytes */
    unsigned ks_name;  /* width of the first column */
    bool ks_unit;      /* -k or -m was given */
    bool ks_zero;
    bool ks_wide;
    bool ks_json;
};

enum column {
    COL_SIZE,
    COL_CHUNK,
    COL_INUSE,
    COL_TRAPPED,
    COL_TOTAL,
    COL_SLABS,
    COL_STATES,
    COL_MEM,
    COL_WASTE,
    COL_ALLOC,
    COL_FREE,
    COL_FAIL,
    COL_FLAGS,
    COLUMNS
};

/* Width 0: not in that table. */
static const struct {
    const char *head;
    uint8_t narrow;
    uint8_t wide;
} columns[COLUMNS] = {
    [COL_SIZE] = {"SIZE", 5, 5},
    [COL_CHUNK] = {"CHUNK", MM_MAGAZINES ? 0 : 5, 5},
    [COL_INUSE] = {"INUSE", 5, 6},
    [COL_TRAPPED] = {"TRAPPED", MM_MAGAZINES ? 7 : 0, MM_MAGAZINES ? 7 : 0},
    [COL_TOTAL] = {"TOTAL", 5, 6},
    [COL_SLABS] = {"SLABS", 0, 5},
    [COL_STATES] = {"FULL/PART/FREE", 14, 14},
    [COL_MEM] = {"MEM", 5, 8},
    [COL_WASTE] = {"WASTE%", 6, 6},
    [COL_ALLOC] = {"ALLOC", 5, 8},
    [COL_FREE] = {"FREE", 0, 8},
    [COL_FAIL] = {"FAIL", 4, 4},
    [COL_FLAGS] = {"FLAGS", 0, 5},
};

typedef char row_t[COLUMNS][HEAP_CELL];

static unsigned column_width(const struct kmastat *ks, int col)
{
    return ks->ks_wide ? columns[col].wide : columns[col].narrow;
}

/* Of the name and the columns before this one. */
static unsigned width_before(const struct kmastat *ks, int end)
{
    unsigned width = ks->ks_name;

    for (int col = 0; col < end; col++)
        if (column_width(ks, col))
            width += column_width(ks, col) + 1;
    return width;
}

static char unit_letter(const struct kmastat *ks)
{
    return ks->ks_shift == 20 ? 'M' : ks->ks_shift == 10 ? 'K' : 'B';
}

/* ---- a row -------------------------------------------------------------- */

static void put_count(const struct kmastat *ks, row_t row, int col, uint64_t n)
{
    heap_count(n, ks->ks_wide ? 20 : MAX(column_width(ks, col), 4u), row[col]);
}

/* Without a suffix such as M: the whole column has one unit. */
static void put_mem(const struct kmastat *ks, row_t row, uint64_t bytes)
{
    unsigned tenths = (unsigned)((bytes * 10 + MIB(1) / 2) >> 20);

    if (ks->ks_shift != 20)
        snprintf(row[COL_MEM], HEAP_CELL, "%llu", bytes >> ks->ks_shift);
    else if (tenths >= 10000)
        snprintf(row[COL_MEM], HEAP_CELL, "%u", tenths / 10);
    else
        snprintf(row[COL_MEM], HEAP_CELL, "%u.%u", tenths / 10, tenths % 10);
}

static void put_states(row_t row, const struct heap_sum *s)
{
    char full[HEAP_CELL], partial[HEAP_CELL], free[HEAP_CELL];

    snprintf(row[COL_STATES], HEAP_CELL, "%s/%s/%s",
             heap_count(s->sum_full, 4, full),
             heap_count(s->sum_partial, 4, partial),
             heap_count(s->sum_free, 4, free));
}

static void put_sum(const struct kmastat *ks, row_t row,
                    const struct heap_sum *s)
{
    memset(row, 0, sizeof(row_t));
    put_count(ks, row, COL_INUSE, s->sum_inuse);
    put_mem(ks, row, s->sum_mem);
    put_count(ks, row, COL_ALLOC, s->sum_allocs);
    put_count(ks, row, COL_FREE, s->sum_frees);
    put_count(ks, row, COL_FAIL, s->sum_fails);
    if (s->sum_caches == 0) /* whole pages: no slabs, no known waste */
        return;
    put_count(ks, row, COL_TRAPPED, s->sum_trapped);
    put_count(ks, row, COL_TOTAL, s->sum_total);
    put_count(ks, row, COL_SLABS, s->sum_slabs);
    put_states(row, s);
    heap_percent(heap_waste(s->sum_used, s->sum_mem), row[COL_WASTE]);
}

static void put_flags(row_t row, const struct kmem_cache_stat *st)
{
    unsigned flags = st->stat_flags;
    char *p = row[COL_FLAGS];

    if (flags & KMEM_STAT_LARGE)
        *p++ = 'L';
    if (flags & KMEM_STAT_CTOR)
        *p++ = 'C';
    if (flags & KMEM_STAT_DTOR)
        *p++ = 'D';
    if (flags & KMEM_STAT_SUPPLY)
        *p++ = 'S';
    if (p == row[COL_FLAGS])
        *p++ = '-';
    *p = '\0';
    if (st->stat_modes) {
        *p++ = '/';
        kmem_debug_text(st->stat_modes, p);
    }
}

static void print_cells(const struct kmastat *ks, row_t row, int from)
{
    int end = COLUMNS;

    while (end > from && row[end - 1][0] == '\0')
        end--;
    for (int col = from; col < end; col++)
        if (column_width(ks, col))
            ks->ks_print(ks->ks_to, " %*s", (int)column_width(ks, col),
                         row[col]);
    ks->ks_print(ks->ks_to, "\n");
}

/* A name that is one character too long takes the gap before a short SIZE. */
static void print_first(const struct kmastat *ks, const char *name, row_t row)
{
    unsigned width = column_width(ks, COL_SIZE);

    if (strlen(name) == ks->ks_name + 1 && strlen(row[COL_SIZE]) < width) {
        ks->ks_print(ks->ks_to, "%s%*s", name, (int)width, row[COL_SIZE]);
        print_cells(ks, row, COL_SIZE + 1);
    } else {
        if (strlen(name) > ks->ks_name)
            ks->ks_print(ks->ks_to, "%s\n%*s", name, (int)ks->ks_name, "");
        else
            ks->ks_print(ks->ks_to, "%-*s", (int)ks->ks_name, name);
        print_cells(ks, row, COL_SIZE);
    }
}

static void print_cache(const struct kmastat *ks,
                        const struct kmem_cache_stat *st)
{
    char name[KMEM_NAME_MAX + 2];
    struct heap_sum sum = {0};
    row_t row;

    heap_add(&sum, st);
    put_sum(ks, row, &sum);
    put_count(ks, row, COL_SIZE, st->stat_size);
    put_count(ks, row, COL_CHUNK, st->stat_chunk);
    put_flags(row, st);
    snprintf(name, sizeof(name), "%s%s", heap_bad_row(st) ? "!" : "",
             st->stat_name);
    print_first(ks, name, row);
}

/* A sum's label takes the room of SIZE and CHUNK too. */
static void print_sum(const struct kmastat *ks, const char *label,
                      const struct heap_sum *sum)
{
    row_t row;

    put_sum(ks, row, sum);
    ks->ks_print(ks->ks_to, "%-*s", (int)width_before(ks, COL_INUSE), label);
    print_cells(ks, row, COL_INUSE);
}

static void print_head(const struct kmastat *ks)
{
    ks->ks_print(ks->ks_to, "%-*s", (int)ks->ks_name, "CACHE");
    for (int col = 0; col < COLUMNS; col++) {
        int width = (int)column_width(ks, col);

        if (width && col == COL_MEM)
            ks->ks_print(ks->ks_to, " %*s/%c", width - 2, columns[col].head,
                         unit_letter(ks));
        else if (width)
            ks->ks_print(ks->ks_to, " %*s", width, columns[col].head);
    }
    ks->ks_print(ks->ks_to, "\n");
}

/* ---- totals ------------------------------------------------------------- */

static void print_kinds(const struct kmastat *ks, const struct heap_totals *t)
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
static void print_mem(const struct kmastat *ks, const char *label,
                      uint64_t bytes, const char *remark)
{
    row_t row;

    put_mem(ks, row, bytes);
    ks->ks_print(ks->ks_to, "%-*s %*s  %s\n", (int)width_before(ks, COL_MEM),
                 label, (int)column_width(ks, COL_MEM), row[COL_MEM], remark);
}

/* Bytes that caches have, less those that segkmem says it gave. */
static long long supplier_off(const struct heap_totals *t)
{
    return (long long)(t->total_all.sum_mem - t->total_own + t->total_unmapped -
                       t->total_supplier);
}

static void print_supplier(const struct kmastat *ks,
                           const struct heap_totals *t)
{
    long long off = supplier_off(t);
    char remark[40];

    if (t->total_own)
        print_mem(ks, "own suppliers (flag S)", t->total_own, "not segkmem's");
    if (t->total_unmapped)
        print_mem(ks, "unmapped (mode S)", t->total_unmapped, "of no cache");
    snprintf(remark, sizeof(remark), "! off by %+lld", off);
    print_mem(ks, "SUPPLIER (segkmem)", t->total_supplier,
              off ? remark : "= supplier");
}

static void print_legend(const struct kmastat *ks, size_t hidden)
{
    ks->ks_print(ks->ks_to,
                 "full: every object allocated (the paper's \"empty\"); "
                 "free: none (\"complete\")\n");
    if (ks->ks_wide)
        ks->ks_print(
            ks->ks_to,
            "flags: L large layout, C constructor, D destructor, "
            "S supplier of its own;\nafter the /: debugging modes (`debug`)\n");
    if (hidden)
        ks->ks_print(ks->ks_to, "%zu more cache%s without memory: kmastat -z\n",
                     hidden, plural(hidden));
}

/* ---- JSON --------------------------------------------------------------- */

static const char *const kind_names[HEAP_KINDS] = {
    [KMEM_KIND_NAMED] = "named",
    [KMEM_KIND_CLASS] = "class",
    [KMEM_KIND_INTERNAL] = "internal",
};

void heap_json_cache(const struct kmem_cache_stat *st)
{
    const struct {
        const char *key;
        uint64_t value;
    } members[] = {
        {"size", st->stat_size},
        {"align", st->stat_align},
        {"chunk", st->stat_chunk},
        {"slab_pages", st->stat_slab_pages},
        {"slab_objects", st->stat_slab_objects},
        {"slab_left", st->stat_slab_left},
        {"colour_max", st->stat_colour_max},
        {"colour_next", st->stat_colour_next},
        {"inuse", st->stat_inuse},
        {"trapped", st->stat_trapped},
        {"total", st->stat_total},
        {"slabs", st->stat_slabs},
        {"full", st->stat_full_slabs},
        {"partial", st->stat_partial_slabs},
        {"free", st->stat_free_slabs},
        {"mem", st->stat_mem},
        {"slab_mem", st->stat_slab_bytes},
        {"hash_mem", st->stat_hash_bytes},
        {"max_slabs", st->stat_max_slabs},
        {"allocs", st->stat_allocs},
        {"frees", st->stat_frees},
        {"fails", st->stat_fails},
        {"slab_creates", st->stat_slab_creates},
        {"slab_destroys", st->stat_slab_destroys},
        {"ctors", st->stat_ctors},
        {"dtors", st->stat_dtors},
        {"hash_entries", st->stat_hash_size},
        {"hash_rescales", st->stat_hash_rescales},
        {"hash_depth", st->stat_hash_depth},
        {"ws_min", st->stat_ws_min},
        {"ws_limit", st->stat_ws_limit},
        {"reaps", st->stat_reaps},
        {"reaped_slabs", st->stat_reaped_slabs},
    };
    char modes[8];
    row_t row;

    put_flags(row, st);
    *(strchr(row[COL_FLAGS], '/') ?: row[COL_FLAGS] + HEAP_CELL - 1) = '\0';
    heap_json_name(st);
    kprintf(",\"kind\":\"%s\",\"flags\":\"%s\",\"modes\":\"%s\",\"bad\":%s",
            kind_names[st->stat_kind], st->stat_flags ? row[COL_FLAGS] : "",
            st->stat_modes ? kmem_debug_text(st->stat_modes, modes) : "",
            heap_bad_row(st) ? "true" : "false");
    for (size_t i = 0; i < ARRAY_SIZE(members); i++)
        kprintf(",\"%s\":%llu", members[i].key, members[i].value);
    kprintf("}\n");
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
    return ks->ks_print == heap_print && shell_interrupted();
}

/* Returns how many it listed. *hidden counts those that of_interest
 * leaves out. */
static size_t print_rows(const struct kmastat *ks, size_t *hidden)
{
    struct heap_order at = {0};
    struct kmem_cache_stat st;
    size_t rows = 0;

    *hidden = 0;
    while (!interrupted(ks) && heap_next(&at, ks->ks_key, &st)) {
        if (!heap_match(st.stat_name, ks->ks_pattern))
            continue;
        rows++;
        if (ks->ks_json)
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
    print_head(ks);
    rows = print_rows(ks, &hidden);
    if (interrupted(ks))
        return;
    if (rows != selected->sum_caches)
        ks->ks_print(ks->ks_to, "! caches changed meanwhile: %zu rows of %zu\n",
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
static void write_proc(proc_print_t *print, void *to, bool wide)
{
    struct kmastat ks = {.ks_print = print,
                         .ks_to = to,
                         .ks_wide = wide,
                         .ks_key = heap_key_mem};
    struct heap_sum all = {0};
    struct kmem_cache_stat st;

    select_caches(&ks, &all);
    if (!wide) {
        print_table(&ks, &all);
        return;
    }
    print_head(&ks);
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
    struct kmastat ks = {.ks_print = heap_print,
                         .ks_key = key_of(shell_value('s')),
                         .ks_pattern = argv[1],
                         .ks_unit = shell_option('k') || shell_option('m'),
                         .ks_shift = shell_option('m') ? 20 : 10,
                         .ks_zero = shell_option('z'),
                         .ks_wide = shell_option('w'),
                         .ks_json = shell_option('j')};
    struct heap_sum selected = {0};
    struct heap_totals t;
    size_t hidden;

    select_caches(&ks, &selected);
    if (selected.sum_caches == 0)
        return shell_error("no cache matches '%s'; `kmastat -z` lists them all",
                           ks.ks_pattern);
    if (ks.ks_json) {
        print_rows(&ks, &hidden);
        heap_totals(&t);
        json_totals(&t);
    } else if (shell_option('T')) {
        heap_totals_table(ks.ks_pattern);
    } else {
        pager_to_end();
        print_table(&ks, &selected);
    }
    return 0;
}

SHELL_COMMAND(kmastat, cmd_kmastat, SHELL_REPORT);
