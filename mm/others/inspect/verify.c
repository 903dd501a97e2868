/*
 * Checking one of the other allocators: see verify.h.
 */
#include "mm/others/inspect/verify.h"
#include "kernel/lib/string.h"

/* ---- free blocks -------------------------------------------------------- */

bool other_found(struct other_verify *v, const void *block, size_t bytes)
{
    const char *base = v->verify_heap->heap_supply->supply_base;
    size_t begin = ((uintptr_t)block - (uintptr_t)base) / VERIFY_GRAIN;
    size_t first = v->verify_first * VERIFY_WORDS * 32; /* of the part */
    size_t end = first + 32 * ARRAY_SIZE(v->verify_found);

    end = MIN(end, begin + bytes / VERIFY_GRAIN);
    for (size_t bit = MAX(begin, first); bit < end; bit++) {
        uint32_t *word = &v->verify_found[(bit - first) / 32];

        if (*word & (uint32_t)1 << bit % 32)
            return false;
        *word |= (uint32_t)1 << bit % 32;
        v->verify_free += VERIFY_GRAIN;
    }
    return true;
}

size_t other_bits(const uint32_t *words, size_t n)
{
    size_t bits = 0;

    for (size_t i = 0; i < n; i++)
        for (uint32_t rest = words[i]; rest != 0; rest &= rest - 1)
            bits++;
    return bits;
}

size_t other_found_in(const struct other_verify *v, const void *info)
{
    const uintptr_t(*entry)[SUPPLY_INFO_WORDS] = info;
    size_t page = (size_t)(entry - v->verify_heap->heap_supply->supply_info) -
                  v->verify_first;

    return VERIFY_GRAIN *
           other_bits(&v->verify_found[page * VERIFY_WORDS], VERIFY_WORDS);
}

/* ---- all of an allocator ------------------------------------------------ */

static const char *verify_part(struct other_verify *v,
                               const struct other_verify_ops *ops)
{
    const struct supply *s = v->verify_heap->heap_supply;
    size_t end = MIN(v->verify_first + VERIFY_PAGES, s->supply_pages);
    const char *wrong = NULL;

    memset(v->verify_found, 0, sizeof(v->verify_found));
    for (unsigned i = 0; wrong == NULL && i < ops->verify_lists; i++)
        wrong = ops->verify_list(v, i);
    for (size_t i = v->verify_first; ops->verify_page != NULL && i < end; i++)
        if (wrong == NULL)
            wrong = ops->verify_page(v, s->supply_info[i]);
    return wrong;
}

const char *other_verify(struct other_heap *h,
                         const struct other_verify_ops *ops, void *sums)
{
    static struct other_verify v; /* between other_stop and other_resume */
    const char *wrong = NULL;

    other_stop(h);
    v.verify_heap = h;
    v.verify_sums = sums;
    v.verify_free = 0;
    for (v.verify_first = 0;
         wrong == NULL && v.verify_first < h->heap_supply->supply_pages;
         v.verify_first += VERIFY_PAGES)
        wrong = verify_part(&v, ops);
    if (wrong == NULL)
        wrong = ops->verify_counts(&v);
    if (wrong == NULL)
        wrong = other_check(h, v.verify_free);
    other_resume(h);
    return wrong;
}
