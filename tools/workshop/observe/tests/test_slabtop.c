/*
 * slabtop's figures: intervals, rates, shares of hits, orders; and its screen.
 * tools/test/test_slabtop.py reads the screen from the display.
 */
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/shell/cmd_kmem.h"
#include "tools/workshop/observe/slabtop.h"
#include "mm/debug/debug.h"

/* The row of a cache, or NULL. */
static const struct slabtop_row *row_of(const char *name)
{
    for (size_t i = 0; i < slabtop_table.table_rows; i++)
        if (strcmp(slabtop_row(&slabtop_table, i)->row_name, name) == 0)
            return slabtop_row(&slabtop_table, i);
    return NULL;
}

KTEST(slabtop, rates_are_tenths_per_second)
{
    KT_EQ(slabtop_rate(0, 1000), 0);
    KT_EQ(slabtop_rate(1, 1000), 10);
    KT_EQ(slabtop_rate(1, 2000), 5);
    KT_EQ(slabtop_rate(1, 3000), 3);
    KT_EQ(slabtop_rate(2, 3000), 7); /* rounded, not cut */
    KT_EQ(slabtop_rate(123, 500), 2460);
    KT_EQ(slabtop_rate(7, 0), 0);
    KT_EQ(slabtop_rate(1ull << 40, 10), (1ull << 40) * 1000);
}

KTEST(slabtop, hits_are_allocations_without_a_new_slab)
{
    struct slabtop_row row = {.row_delta = {0, 5, 0}};

    KT_TRUE(slabtop_hit(&row) == -1);
    row.row_delta[SLABTOP_ALLOCS] = 10;
    KT_EQ(slabtop_hit(&row), 1000);
    row.row_delta[SLABTOP_GROWS] = 1;
    KT_EQ(slabtop_hit(&row), 900);
    row.row_delta[SLABTOP_GROWS] = 12; /* more slabs than allocations */
    KT_EQ(slabtop_hit(&row), 0);
    row.row_delta[SLABTOP_ALLOCS] = 1000000;
    row.row_delta[SLABTOP_GROWS] = 1;
    KT_EQ(slabtop_hit(&row), 999); /* 100.0 % is all */
}

KTEST(slabtop, the_interval_is_what_came_since)
{
    struct slabtop_row old = {.row_total = {100, 50, 5}};
    struct slabtop_row now = {.row_total = {130, 50, 6}};

    slabtop_delta(&now, &old);
    KT_EQ(now.row_delta[SLABTOP_ALLOCS], 30);
    KT_EQ(now.row_delta[SLABTOP_FREES], 0);
    KT_EQ(now.row_delta[SLABTOP_GROWS], 1);
    slabtop_delta(&now, NULL);
    KT_EQ(now.row_delta[SLABTOP_ALLOCS], 130);
    old.row_total[SLABTOP_ALLOCS] = 131; /* another cache of that name */
    slabtop_delta(&now, &old);
    KT_EQ(now.row_delta[SLABTOP_ALLOCS], 130);
    KT_EQ(now.row_delta[SLABTOP_FREES], 0);
}

static void pair(struct kmem_cache *cp)
{
    void *p = kmem_cache_alloc(cp, KM_NOSLEEP);

    KT_REQUIRE(p != NULL);
    kmem_cache_free(cp, p);
}

KTEST(slabtop, a_look_counts_a_cache_and_forgets_it)
{
    struct kmem_cache *cp = kmem_cache_create("st", 100, 0, NULL, NULL);
    void *p, *q;

    KT_REQUIRE(cp != NULL);
    slabtop_begin(&slabtop_table, 5000);
    p = kmem_cache_alloc(cp, KM_NOSLEEP);
    q = kmem_cache_alloc(cp, KM_NOSLEEP);
    KT_REQUIRE(p != NULL && q != NULL);
    kmem_cache_free(cp, q);
    KT_TRUE(slabtop_look(&slabtop_table, 5500));
    slabtop_sort(&slabtop_table, SLABTOP_BY_NAME);
    KT_EQ(slabtop_table.table_ms, 500);
    KT_REQUIRE(row_of("st") != NULL);
    KT_EQ(row_of("st")->row_delta[SLABTOP_ALLOCS], 2);
    KT_EQ(row_of("st")->row_delta[SLABTOP_FREES], 1);
    KT_EQ(row_of("st")->row_delta[SLABTOP_GROWS], 1);
    KT_EQ(row_of("st")->row_inuse, 1);
    KT_EQ(row_of("st")->row_mem, PAGE_SIZE);
    KT_TRUE(!slabtop_look(&slabtop_table, 5500)); /* no time has passed */
    KT_EQ(row_of("st")->row_delta[SLABTOP_ALLOCS], 2);
    kmem_cache_free(cp, p);
    KT_EQ(kmem_cache_destroy(cp), 0);
    KT_TRUE(slabtop_look(&slabtop_table, 6000));
    slabtop_sort(&slabtop_table, SLABTOP_BY_NAME);
    KT_TRUE(row_of("st") == NULL);
}

/* The rows after that of a destroyed cache keep their counts. */
KTEST(slabtop, a_cache_that_goes_away_takes_no_row_along)
{
    struct kmem_cache *a = kmem_cache_create("st_a", 40, 0, NULL, NULL);
    struct kmem_cache *b = kmem_cache_create("st_b", 40, 0, NULL, NULL);

    KT_REQUIRE(a != NULL && b != NULL);
    for (unsigned i = 0; i < 3; i++)
        pair(b);
    slabtop_begin(&slabtop_table, 100);
    KT_EQ(kmem_cache_destroy(a), 0);
    pair(b);
    KT_TRUE(slabtop_look(&slabtop_table, 200));
    slabtop_sort(&slabtop_table, SLABTOP_BY_MEM);
    KT_REQUIRE(row_of("st_b") != NULL);
    KT_EQ(row_of("st_b")->row_delta[SLABTOP_ALLOCS], 1);
    KT_EQ(kmem_cache_destroy(b), 0);
}

/* A cache whose modes are set keeps its row and its counts. */
KTEST(slabtop, a_cache_keeps_its_counts_when_its_modes_change)
{
    struct kmem_cache *cp = kmem_cache_create("st_e", 40, 0, NULL, NULL);

    KT_REQUIRE(cp != NULL);
    for (unsigned i = 0; i < 9; i++)
        pair(cp);
    slabtop_begin(&slabtop_table, 100);
    KT_EQ(kmem_debug_set(cp, KMF_REDZONE), 0);
    pair(cp);
    KT_TRUE(slabtop_look(&slabtop_table, 200));
    slabtop_sort(&slabtop_table, SLABTOP_BY_MEM);
    KT_REQUIRE(row_of("st_e") != NULL);
    KT_EQ(row_of("st_e")->row_delta[SLABTOP_ALLOCS], 1);
    KT_EQ(row_of("st_e")->row_delta[SLABTOP_GROWS], 1);
    KT_EQ(row_of("st_e")->row_slabs, 1);
    KT_EQ(kmem_cache_destroy(cp), 0);
}

KTEST(slabtop, the_sum_is_what_the_supplier_gave)
{
    struct heap_totals totals;

    slabtop_begin(&slabtop_table, 1);
    heap_totals(&totals);
    KT_EQ(slabtop_table.table_sum.row_mem, totals.total_all.sum_mem);
    KT_EQ(slabtop_table.table_sum.row_mem,
          totals.total_supplier + totals.total_own);
    KT_EQ(slabtop_table.table_sum.row_inuse, totals.total_all.sum_inuse);
    KT_EQ(slabtop_table.table_sum.row_total[SLABTOP_ALLOCS],
          totals.total_all.sum_allocs);
}

static bool in_order(const struct slabtop_row *a, const struct slabtop_row *b,
                     enum slabtop_order order)
{
    switch (order) {
    case SLABTOP_BY_NAME:
        return strcmp(a->row_name, b->row_name) <= 0;
    case SLABTOP_BY_HIT:
        return slabtop_hit(b) < 0 ||
               (slabtop_hit(a) >= 0 && slabtop_hit(a) <= slabtop_hit(b));
    case SLABTOP_BY_MEM:
        return a->row_mem >= b->row_mem;
    default:
        return a->row_delta[order - SLABTOP_BY_ALLOC] >=
               b->row_delta[order - SLABTOP_BY_ALLOC];
    }
}

KTEST(slabtop, every_order_has_every_row_once)
{
    static uint8_t seen[SLABTOP_ROWS];

    slabtop_begin(&slabtop_table, 1);
    for (unsigned order = 0; order < SLABTOP_ORDERS; order++) {
        slabtop_sort(&slabtop_table, order);
        memset(seen, 0, sizeof(seen));
        for (size_t i = 0; i < slabtop_table.table_rows; i++) {
            KT_EQ(seen[slabtop_table.table_order[i]]++, 0);
            if (i > 0)
                KT_TRUE(in_order(slabtop_row(&slabtop_table, i - 1),
                                 slabtop_row(&slabtop_table, i), order));
        }
    }
}
