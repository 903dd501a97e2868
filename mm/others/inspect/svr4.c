/*
 * Every invariant of the allocator of SVr4 (mm/others/svr4.c), as code.
 */
#include "mm/others/svr4.h"
#include "kernel/lib/string.h"
#include "mm/others/inspect/verify.h"

/* In all pages. */
struct svr4_sums {
    size_t sum_pages[SVR4_OVERSIZED + 1];
    size_t sum_global; /* blocks in bitmaps */
};

static unsigned top_class(unsigned i)
{
    return i <= SVR4_SMALL_CLASS ? SVR4_SMALL_CLASS : SVR4_LARGE_CLASS;
}

/* Whether a block can be one of class i. */
static bool is_of_class(const struct supply *s, unsigned i, const void *b)
{
    const struct svr4_page *page = supply_info(s, svr4_pool(i, b));

    return page != NULL &&
           page->page_kind ==
               (i <= SVR4_SMALL_CLASS ? SVR4_SMALL : SVR4_LARGE) &&
           ((uintptr_t)b & (((uintptr_t)1 << i) - 1)) == 0;
}

/* The list of a class: local blocks, then global ones, whose buddies are not
 * global. */
static const char *svr4_verify_class(struct other_verify *v, unsigned i)
{
    const struct supply *s = v->verify_heap->heap_supply;
    const struct svr4_class *c = &svr4_class[i];
    const struct svr4_link *b;
    size_t local = 0, global = 0;
    uint32_t prev = 0;

    for (uint32_t n = c->class_first; n != 0; n = b->link_next) {
        const char *buddy;

        b = supply_block(s, n);
        buddy = svr4_buddy(i, (const char *)b);
        if (!is_of_class(s, i, b))
            return "a list has a block of another class";
        if (b->link_prev != prev)
            return "a list has a block twice, or one without a way back";
        if (!other_found(v, b, (size_t)1 << i))
            return "a free block is part of another";
        if (svr4_is_global(i, b))
            global++;
        else if (global == 0)
            local++;
        else
            return "a locally free block is after globally free ones";
        if (i != top_class(i) && svr4_is_global(i, b) &&
            svr4_is_global(i, buddy))
            return "two buddies are globally free, but not joined";
        prev = n;
    }
    if (prev != c->class_last || global != c->class_global ||
        local != c->class_local)
        return "a list has not as many blocks as its class counts";
    return NULL;
}

static const char *svr4_verify_page(struct other_verify *v, void *info)
{
    const struct svr4_page *page = info;
    struct svr4_sums *sums = v->verify_sums;

    sums->sum_pages[page->page_kind] += page->page_count;
    sums->sum_global +=
        page->page_kind == SVR4_SMALL
            ? other_bits(supply_page(v->verify_heap->heap_supply, page),
                         SVR4_SMALL_WORDS)
            : other_bits(page->page_bits, ARRAY_SIZE(page->page_bits));
    return NULL;
}

/* Each block of a class is half of one of the class above, and all blocks of
 * clients and free ones are all of the pools. */
static const char *svr4_verify_counts(struct other_verify *v)
{
    const struct svr4_sums *sums = v->verify_sums;
    struct other_stat st = other_total(v->verify_heap);
    size_t clients = svr4_pages[SVR4_OVERSIZED] << PAGE_SHIFT;
    size_t split = 0, global = 0;

    for (unsigned i = SVR4_MIN_CLASS; i < SVR4_CLASSES; i++) {
        const struct svr4_class *c = &svr4_class[i];
        size_t all = c->class_used + c->class_local + c->class_global;

        if (!svr4_eager && c->class_local > c->class_used)
            return "a class has more locally free blocks than blocks in use";
        if (c->class_used < split)
            return "a class has more split blocks than blocks in use";
        clients += (c->class_used - split) << i;
        split = i == top_class(i) ? 0 : all / 2;
        global += c->class_global;
    }
    if (clients != st.stat_requested + st.stat_internal)
        return "blocks in use are neither split nor allocated";
    if (sums->sum_global != global)
        return "blocks in bitmaps are not as many as are globally free";
    return memcmp(sums->sum_pages + 1, svr4_pages + 1,
                  sizeof(svr4_pages) - sizeof(*svr4_pages)) == 0
               ? NULL
               : "pages are not as many as are counted";
}

static const struct other_verify_ops svr4_ops = {
    .verify_lists = SVR4_CLASSES,
    .verify_list = svr4_verify_class,
    .verify_page = svr4_verify_page,
    .verify_counts = svr4_verify_counts,
};

const char *svr4_verify(struct other_heap *h)
{
    struct svr4_sums sums = {0};

    return other_verify(h, &svr4_ops, &sums);
}
