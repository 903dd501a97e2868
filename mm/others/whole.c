/*
 * Blocks of whole pages: see whole.h.
 */
#include "mm/others/whole.h"
#include "mm/page.h"

static size_t whole_bytes(size_t size)
{
    return (size_t)1 << MAX(other_power(size), (unsigned)PAGE_SHIFT);
}

static uintptr_t *whole_size(const struct other_heap *h, const void *p)
{
    return other_page(h, p);
}

void *other_whole_alloc(struct other_heap *h, struct other_cache *c,
                        size_t size)
{
    size_t bytes = whole_bytes(size);
    void *p = supply_alloc(h->heap_supply, bytes >> PAGE_SHIFT, bytes);

    if (p != NULL)
        *whole_size(h, p) = size;
    other_enter(h);
    other_share(h);
    other_count_lock(h);
    if (p != NULL) {
        h->heap_whole++;
        other_count_pages(h, (ptrdiff_t)(bytes >> PAGE_SHIFT));
        other_count_alloc(h, c, size, bytes, 0);
    } else {
        other_count_fail(h, c);
    }
    other_unshare(h);
    other_leave(h);
    return p;
}

void other_whole_free(struct other_heap *h, struct other_cache *c, void *p,
                      size_t size)
{
    size_t bytes = whole_bytes(size);

    if (*whole_size(h, p) != size)
        mm_panic("%s: %p is not a block of %zu bytes", h->heap_name, p, size);
    other_enter(h);
    other_share(h);
    other_count_lock(h);
    h->heap_whole--;
    other_count_free(h, c, size, bytes, 0);
    other_count_pages(h, -(ptrdiff_t)(bytes >> PAGE_SHIFT));
    other_unshare(h);
    other_leave(h);
    supply_free(h->heap_supply, p, bytes >> PAGE_SHIFT);
}
