/*
 * The data that `slabtop` shows: the traffic of each cache in the interval
 * between two looks, rates of it, and an order. Nothing here prints, waits or
 * allocates; tools/workshop/observe/cmd_slabtop.c does the first two.
 */
#pragma once

#include "mm/kmem_stat.h"

#define SLABTOP_ROWS 160 /* more caches are left out; the head says so */

enum slabtop_count {
    SLABTOP_ALLOCS,
    SLABTOP_FREES,
    SLABTOP_GROWS, /* slabs created */
    SLABTOP_COUNTS
};

enum slabtop_order {
    SLABTOP_BY_MEM,
    SLABTOP_BY_ALLOC,
    SLABTOP_BY_FREE,
    SLABTOP_BY_GROW,
    SLABTOP_BY_HIT, /* the lowest first: most misses */
    SLABTOP_BY_NAME,
    SLABTOP_ORDERS
};

struct slabtop_row {
    char row_name[KMEM_NAME_MAX + 1];
    bool row_class; /* a size class, or "oversize" */
    uint64_t row_mem;
    size_t row_inuse, row_slabs;
    uint64_t row_total[SLABTOP_COUNTS]; /* since the cache was created */
    uint64_t row_delta[SLABTOP_COUNTS]; /* in the interval */
};

struct slabtop_table {
    uint64_t table_at_ms;         /* clock at the last look */
    uint32_t table_ms;            /* the interval before it */
    size_t table_rows;            /* SLABTOP_ROWS: there may be more */
    size_t table_half;            /* which of the two is in use */
    struct slabtop_row table_sum; /* of all rows; row_name is "TOTAL" */
    struct slabtop_row table_row[2][SLABTOP_ROWS];
    uint8_t table_order[SLABTOP_ROWS]; /* indices, first row first */
};

/* The command's; its tests use it too. Too large for a stack, and the shell
 * runs one command at a time. */
extern struct slabtop_table slabtop_table;

/* Begins a table with a look that takes in all traffic since boot. */
void slabtop_begin(struct slabtop_table *t, uint64_t now_ms);

/* Looks at all caches, and at requests that are too large for any, which have
 * a row called "oversize", at time `now_ms`. An interval of no length leaves
 * the table as it was and returns false. A new cache has had all its traffic in
 * the interval. */
bool slabtop_look(struct slabtop_table *t, uint64_t now_ms);

/* Computes a row's deltas from its totals `now` and `old` (NULL: a new cache).
 * The delta of a total that has decreased counts from zero. */
void slabtop_delta(struct slabtop_row *now, const struct slabtop_row *old);

/* A size class that has no memory and had no traffic: not worth a line. */
static inline bool slabtop_idle(const struct slabtop_row *row)
{
    return row->row_class && row->row_mem == 0 &&
           row->row_delta[SLABTOP_ALLOCS] == 0;
}

/* Puts the rows in order; equal ones as they were created. */
void slabtop_sort(struct slabtop_table *t, enum slabtop_order order);

/* Row number `i` of the order. */
const struct slabtop_row *slabtop_row(const struct slabtop_table *t, size_t i);

/* `count` in `ms` milliseconds as tenths per second, rounded. */
uint64_t slabtop_rate(uint64_t count, uint32_t ms);

/* How many of a thousand allocations found a free buffer, rounded down, so that
 * 1000 means all; -1 if there were none. */
int slabtop_hit(const struct slabtop_row *row);

/* The number that the table is sorted by; sorted by name or by hits, the
 * memory. The length of the row's bar. */
uint64_t slabtop_value(const struct slabtop_row *row, enum slabtop_order order);
