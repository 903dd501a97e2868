/*
 * The rows of `slabtop`: see slabtop.h.
 *
 * Two tables take turns, the last look and this one. Both are in the order of
 * the list of caches, so that a cache is found again by going on from where
 * the one before it was found.
 */
#include "kernel/shell/slabtop.h"
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

static void fill_row(struct slabtop_row *row, const struct kmem_cache_stat *st)
{
    memcpy(row->row_name, st->stat_name, sizeof(row->row_name));
    row->row_mem = st->stat_mem;
    row->row_inuse = st->stat_inuse;
    row->row_slabs = st->stat_slabs;
    row->row_total[SLABTOP_ALLOCS] = st->stat_allocs;
    row->row_total[SLABTOP_FREES] = st->stat_frees;
    row->row_total[SLABTOP_GROWS] = st->stat_slab_creates;
}

/* The row called `name` from *from on, which then moves behind it, or NULL. */
static const struct slabtop_row *find(const struct slabtop_row *rows, size_t n,
                                      size_t *from, const char *name)
{
    for (size_t i = *from; i < n; i++)
        if (strcmp(rows[i].row_name, name) == 0) {
            *from = i + 1;
            return &rows[i];
        }
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

/* Each of these allocations takes pages of its own. */
static void fill_oversize(struct slabtop_row *row)
{
    struct kmem_large_stat st;

    kmem_large_stat(&st);
    *row = (struct slabtop_row){
        .row_name = "oversize",
        .row_mem = (uint64_t)st.stat_pages * PAGE_SIZE,
        .row_inuse = st.stat_inuse,
        .row_total = {st.stat_allocs, st.stat_frees, st.stat_allocs},
    };
}

/* A size class, or oversize, that has no memory and had no traffic. */
static bool idle(const struct slabtop_row *row, enum kmem_kind kind)
{
    return kind == KMEM_KIND_CLASS && row->row_mem == 0 &&
           row->row_delta[SLABTOP_ALLOCS] == 0;
}

static void look(struct slabtop_table *t)
{
    const struct slabtop_row *old = t->table_row[t->table_half];
    struct slabtop_row *row = t->table_row[1 - t->table_half];
    struct kmem_cache_stat st = {.stat_kind = KMEM_KIND_CLASS};
    size_t from = 0;
    size_t n = 0;

    t->table_sum = (struct slabtop_row){.row_name = "TOTAL"};
    fill_oversize(&row[0]);
    do {
        if (n > 0)
            fill_row(&row[n], &st);
        slabtop_delta(&row[n],
                      find(old, t->table_rows, &from, row[n].row_name));
        row[n].row_idle = idle(&row[n], st.stat_kind);
        add_row(&t->table_sum, &row[n]);
        n++;
    } while (n < SLABTOP_ROWS && kmem_cache_stat_number(n - 1, &st));
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

/* What is sorted by, the largest first. Who allocates nothing misses nothing:
 * it comes after those who miss nothing either. */
static uint64_t key(const struct slabtop_row *row, enum slabtop_order order)
{
    switch (order) {
    case SLABTOP_BY_ALLOC:
        return row->row_delta[SLABTOP_ALLOCS];
    case SLABTOP_BY_FREE:
        return row->row_delta[SLABTOP_FREES];
    case SLABTOP_BY_GROW:
        return row->row_delta[SLABTOP_GROWS];
    case SLABTOP_BY_HIT:
        return slabtop_hit(row) < 0 ? 0 : 1001u - (unsigned)slabtop_hit(row);
    default:
        return row->row_mem;
    }
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
