/*
 * Looking at page frames: which block one belongs to, and the words for states.
 */
#include "mm/buddy.h"
#include "mm/page.h"

const struct page *page_block(const struct page *p)
{
    size_t i = page_index(p);

    if (p->page_state != PAGE_TAIL)
        return p;
    for (unsigned order = 1; order <= BUDDY_MAX_ORDER; order++) {
        const struct page *head = &page_array[i & ~(((size_t)1 << order) - 1)];

        if (head->page_order != PAGE_NO_ORDER && head->page_order >= order)
            return head;
    }
    return NULL;
}

const char *page_state_name(enum page_state state)
{
    static const char *const names[PAGE_STATES] = {
        [PAGE_RESERVED] = "reserved", [PAGE_KERNEL] = "kernel",
        [PAGE_TAIL] = "tail",         [PAGE_FREE] = "free",
        [PAGE_ALLOC] = "allocated",   [PAGE_SLAB] = "slab",
        [PAGE_HASH] = "hash",         [PAGE_LARGE] = "large",
        [PAGE_UNMAPPED] = "unmapped", [PAGE_USER] = "user",
    };

    return state < PAGE_STATES ? names[state] : "?";
}
