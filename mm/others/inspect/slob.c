/*
 * Every invariant of SLOB and of SLMB, as code (mm/others/slob.c, slmb.c).
 */
#include "mm/others/slob.h"
#include "mm/others/inspect/verify.h"

struct slob_sums {
    struct list *sum_lists;
    unsigned sum_n;
    unsigned sum_classes;
    size_t sum_open; /* pages with free units */
};

static const char *slob_verify_blocks(const struct slob_page *p,
                                      const slob_unit *page)
{
    int units = 0, end = -1;

    for (int at = p->slob_first; at != SLOB_UNITS;
         at = slob_block_next(page, at)) {
        int length;

        if (at <= end || at > SLOB_UNITS ||
            (length = slob_block_length(page, at)) > SLOB_UNITS - at)
            return "the free list of a page does not ascend, or has neighbours";
        end = at + length;
        units += length;
    }
    return units == p->slob_units && units != SLOB_UNITS
               ? NULL
               : "the free units of a page are not as many as are counted";
}

static const char *slob_verify_page(struct other_verify *v, void *info)
{
    const struct slob_page *p = info;
    struct slob_sums *sums = v->verify_sums;

    if (!p->slob_used)
        return NULL;
    v->verify_free += p->slob_units * sizeof(slob_unit);
    sums->sum_open += p->slob_units != 0;
    return slob_verify_blocks(p, supply_page(v->verify_heap->heap_supply, p));
}

/* Pages with free units are on the list that they name, and only they. */
static const char *slob_verify_counts(struct other_verify *v)
{
    const struct slob_sums *sums = v->verify_sums;
    size_t listed = 0;

    for (unsigned i = 0; i < sums->sum_n; i++)
        list_for_each (l, &sums->sum_lists[i]) {
            const struct slob_page *p =
                list_entry(l, struct slob_page, slob_link);

            if (++listed > sums->sum_open || p->slob_units == 0 ||
                p->slob_cpu * sums->sum_classes + p->slob_class != i)
                return "a list has a page that is full, or of another list";
        }
    if (listed != sums->sum_open)
        return "a page with free units is on no list";
    return v->verify_free == other_total(v->verify_heap).stat_external
               ? NULL
               : "free bytes are not as many as are counted";
}

static const struct other_verify_ops slob_ops = {
    .verify_page = slob_verify_page,
    .verify_counts = slob_verify_counts,
};

const char *slob_verify(struct other_heap *h, struct list *lists, unsigned n,
                        unsigned classes)
{
    struct slob_sums sums = {lists, n, classes, 0};

    return other_verify(h, &slob_ops, &sums);
}
