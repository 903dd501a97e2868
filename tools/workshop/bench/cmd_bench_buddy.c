/*
 * `bench buddy`: the cost of allocating pages from buddy and of freeing them,
 * for each order alone and for the longest chain of splits.
 */
#include "tools/workshop/bench/cmd_bench.h"
#include "kernel/lib/printf.h"
#include "kernel/x86/cpu.h"
#include "mm/buddy.h"
#include "mm/inspect/buddy_stat.h"

static uint64_t buddy_pair(unsigned order)
{
    uint64_t start = rdtsc();

    REPEAT (ROUNDS)
        buddy_free(buddy_alloc(order), order);
    return rdtsc() - start - benchcmd_empty_loop();
}

/* Allocates blocks until one of `order` can be allocated without a split and
 * freed without a merge, because its buddy is allocated. */
static void bench_buddy_order(unsigned order)
{
    struct page *a = buddy_alloc(order);
    struct page *b = buddy_alloc(order);

    if (a != NULL && b != NULL) {
        struct page *keep_out = NULL;

        if (order < BUDDY_MAX_ORDER &&
            page_index(a) != (page_index(b) ^ ((size_t)1 << order)))
            keep_out = buddy_alloc(order);
        buddy_free(b, order);
        benchcmd_report_size("buddy.pair", order, buddy_pair(order), ROUNDS);
        if (keep_out != NULL)
            buddy_free(keep_out, order);
        b = NULL;
    }
    if (b != NULL)
        buddy_free(b, order);
    if (a != NULL)
        buddy_free(a, order);
}

/* With every smaller list empty, allocating one page splits a largest block,
 * and freeing it merges that again: the full chain of ten. */
static int bench_buddy_chain(void)
{
    void **held = benchcmd_pointers(OBJECTS);
    struct buddy_stat stat;
    uint32_t n = 0;

    if (held == NULL)
        return 1;
    for (unsigned k = 0; k < BUDDY_MAX_ORDER; k++) {
        buddy_stat(&stat);
        for (size_t i = stat.stat_free[k]; i > 0 && n < OBJECTS; i--)
            held[n++] = buddy_alloc(k);
    }
    buddy_stat(&stat);
    if (stat.stat_free[BUDDY_MAX_ORDER] != 0)
        benchcmd_report("buddy.chain.0", buddy_pair(0), ROUNDS);
    else
        kprintf("  buddy.chain.0: skipped: no block of 4 MiB is free\n");
    while (n-- > 0) {
        struct page *p = held[n];

        if (p != NULL)
            buddy_free(p, p->page_order);
    }
    benchcmd_pointers_free(held, OBJECTS);
    return 0;
}

int benchcmd_buddy(void)
{
    for (unsigned order = 0; order <= BUDDY_MAX_ORDER; order++)
        bench_buddy_order(order);
    return bench_buddy_chain();
}
