/*
 * Every invariant of the allocator of 4.4BSD (mm/others/bsd.c), as code.
 */
#include "mm/others/bsd.h"
#include "mm/others/inspect/verify.h"

static const char *bsd_verify_bucket(struct other_verify *v, unsigned i)
{
    const struct bsd_bucket *b = &bsd_bucket[i];
    const struct bsd_block *last = NULL;
    size_t bytes = (size_t)1 << i, blocks = 0;

    for (const struct bsd_block *f = b->bucket_next; f != NULL;
         f = f->block_next) {
        const struct bsd_page *page =
            supply_info(v->verify_heap->heap_supply, f);

        if (page == NULL || page->page_bucket != i ||
            ((uintptr_t)f & (MIN(bytes, (size_t)PAGE_SIZE) - 1)) != 0)
            return "a list has a block of another bucket";
        if (++blocks > b->bucket_free)
            break;
        if (!other_found(v, f, bytes))
            return "a list has a block twice";
        last = f;
    }
    if (blocks != b->bucket_free)
        return "a list has not as many blocks as its bucket counts";
    return last == b->bucket_last ? NULL : "a list does not end at its last";
}

/* Counts free blocks again, and adds up the pages of all records. */
static const char *bsd_verify_page(struct other_verify *v, void *info)
{
    const struct bsd_page *page = info;
    size_t bytes = (size_t)1 << page->page_bucket;
    size_t *pages = v->verify_sums;

    if (page->page_bucket == 0)
        return NULL;
    if (bytes > BSD_MAX_SAVE) {
        *pages += page->page_count;
        return NULL;
    }
    *pages += PAGES_FOR(bytes);
    return other_found_in(v, page) ==
                   page->page_count * MIN(bytes, (size_t)PAGE_SIZE)
               ? NULL
               : "a page has not as many blocks on the list as it counts";
}

/* All blocks are free or allocated, and all pages have a record. */
static const char *bsd_verify_counts(struct other_verify *v)
{
    struct other_stat st = other_total(v->verify_heap);
    const size_t *pages = v->verify_sums;
    size_t allocated = 0;

    for (unsigned i = 0; i < BSD_BUCKETS; i++)
        allocated += bsd_bucket[i].bucket_total - bsd_bucket[i].bucket_free;
    if (allocated != st.stat_allocs - st.stat_frees)
        return "blocks are neither free nor allocated";
    return *pages << PAGE_SHIFT == st.stat_held
               ? NULL
               : "pages with a record are not as many as are held";
}

static const struct other_verify_ops bsd_ops = {
    .verify_lists = BSD_BUCKETS,
    .verify_list = bsd_verify_bucket,
    .verify_page = bsd_verify_page,
    .verify_counts = bsd_verify_counts,
};

const char *bsd_verify(struct other_heap *h)
{
    size_t pages = 0;

    return other_verify(h, &bsd_ops, &pages);
}
