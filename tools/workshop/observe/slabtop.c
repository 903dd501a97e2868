/*
 * The rows of `slabtop`: see slabtop.h.
 *
 * Two tables alternate: the last look and this one.
 */
#include "tools/workshop/observe/slabtop.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"

/* ---- a look ------------------------------------------------------------- */

void slabtop_delta(struct slabtop_row *now, const struct slabtop_row *old)
{
    for (unsigned i = 0; i < SLABTOP_COUNTS; i++) {
        uint64_t before = old ? old->row_total[i] : 0;

        now->row_delta[i] = now->row_total[i];
        if (before <= now->row_total[i])
            now->row_delta[i] -= before;
    }
}

/* The row called `name`, or NULL. */
static struct slabtop_row *find(struct slabtop_row *rows, size_t n,
                                const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].row_name, name) == 0)
            return &rows[i];
    return NULL;
}

static void add_row(struct slabtop_row *sum, const struct slabtop_row *row)
{
    sum->row_mem += row->row_mem;
    sum->row_inuse += row->row_inuse;
    sum->row_slabs += row->row_slabs;
    for (unsigned i = 0; i < SLABTOP_COUNTS; i++) {
        sum->row_total[i] += row->row_total[i];
        sum->row_delta[i] += row->row_delta[i];
    }
}

static void fill_row(struct slabtop_row *row, const struct kmem_cache_stat *st)
{
    *row = (struct slabtop_row){
        .row_class = st->stat_kind == KMEM_KIND_CLASS,
        .row_mem = st->stat_mem,
        .row_inuse = st->stat_inuse,
        .row_slabs = st->stat_slabs,
        .row_total = {st->stat_allocs, st->stat_frees, st->stat_slab_creates},
    };
    memcpy(row->row_name, st->stat_name, sizeof(row->row_name));
}

/* Each of these allocations takes pages of its own. */
static void fill_oversize(struct slabtop_row *row)
{
    struct kmem_oversize_stat st;

    kmem_oversize_stat(&st);
    *row = (struct slabtop_row){
        .row_name = "oversize",
        .row_class = true,
        .row_mem = (uint64_t)st.stat_pages * PAGE_SIZE,
        .row_inuse = st.stat_inuse,
        .row_total = {st.stat_allocs, st.stat_frees, st.stat_allocs},
    };
}

/* A row for each cache. Returns how many. */
static size_t gather(struct slabtop_row *rows)
{
    struct kmem_cache_stat st;
    size_t n = 1;

    fill_oversize(&rows[0]);
    for (size_t i = 0; n < SLABTOP_ROWS && kmem_cache_stat_number(i, &st); i++)
        fill_row(&rows[n++], &st);
    return n;
}

static void look(struct slabtop_table *t)
{
    struct slabtop_row *old = t->table_row[t->table_half];
    struct slabtop_row *row = t->table_row[1 - t->table_half];
    size_t n = gather(row);

    t->table_sum = (struct slabtop_row){.row_name = "TOTAL"};
    for (size_t i = 0; i < n; i++) {
        slabtop_delta(&row[i], find(old, t->table_rows, row[i].row_name));
        add_row(&t->table_sum, &row[i]);
    }
    t->table_rows = n;
    t->table_half = 1 - t->table_half;
}

bool slabtop_look(struct slabtop_table *t, uint64_t now_ms)
{
    if (now_ms <= t->table_at_ms)
        return false;
    t->table_ms = (uint32_t)MIN(now_ms - t->table_at_ms, (uint64_t)UINT32_MAX);
    t->table_at_ms = now_ms;
    look(t);
    return true;
}

void slabtop_begin(struct slabtop_table *t, uint64_t now_ms)
{
    t->table_at_ms = 0;
    t->table_rows = 0;
    slabtop_look(t, MAX(now_ms, (uint64_t)1));
}

/* ---- rates -------------------------------------------------------------- */

uint64_t slabtop_rate(uint64_t count, uint32_t ms)
{
    return ms == 0 ? 0 : (count * 10000 + ms / 2) / ms;
}

int slabtop_hit(const struct slabtop_row *row)
{
    uint64_t allocs = row->row_delta[SLABTOP_ALLOCS];
    uint64_t missed = MIN(row->row_delta[SLABTOP_GROWS], allocs);

    return allocs == 0 ? -1 : (int)((allocs - missed) * 1000 / allocs);
}

/* ---- order -------------------------------------------------------------- */

const struct slabtop_row *slabtop_row(const struct slabtop_table *t, size_t i)
{
    return &t->table_row[t->table_half][t->table_order[i]];
}

uint64_t slabtop_value(const struct slabtop_row *row, enum slabtop_order order)
{
    switch (order) {
    case SLABTOP_BY_ALLOC:
        return row->row_delta[SLABTOP_ALLOCS];
    case SLABTOP_BY_FREE:
        return row->row_delta[SLABTOP_FREES];
    case SLABTOP_BY_GROW:
        return row->row_delta[SLABTOP_GROWS];
    default:
        return row->row_mem;
    }
}

/* The key of the order, the largest first. A cache without allocations has no
 * misses: it comes after those where all allocations found a free buffer. */
static uint64_t key(const struct slabtop_row *row, enum slabtop_order order)
{
    if (order == SLABTOP_BY_HIT)
        return slabtop_hit(row) < 0 ? 0 : 1001u - (unsigned)slabtop_hit(row);
    return slabtop_value(row, order);
}

static bool before(const struct slabtop_row *a, const struct slabtop_row *b,
                   enum slabtop_order order)
{
    if (order == SLABTOP_BY_NAME)
        return strcmp(a->row_name, b->row_name) < 0;
    return key(a, order) > key(b, order);
}

/* By insertion, which keeps equal rows in place. */
void slabtop_sort(struct slabtop_table *t, enum slabtop_order order)
{
    const struct slabtop_row *rows = t->table_row[t->table_half];

    for (size_t i = 0; i < t->table_rows; i++) {
        size_t at = i;

        for (; at > 0 && before(&rows[i], &rows[t->table_order[at - 1]], order);
             at--)
            t->table_order[at] = t->table_order[at - 1];
        t->table_order[at] = (uint8_t)i;
    }
}
