/*
 * The zone of the tests of lab 2.
 */
#include "docs/labs/02-buddies/tests/zone.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "mm/segkmem.h"

#define TAG_NONE PAGE_TAG(PAGE_TAIL, PAGE_NO_ORDER)

bool zone_make(void)
{
    static struct page *entries;
    size_t bytes = ZONE_FRAMES * sizeof(struct page);

    if (entries == NULL)
        entries = lab_arena(bytes, bytes);
    if (entries == NULL) {
        KT_FAIL("the machine has too little memory for this test");
        return false;
    }
    page_array = entries;
    page_count = ZONE_FRAMES;
    memset(entries, 0, bytes);
    for (size_t i = 0; i < ZONE_FRAMES; i++)
        entries[i].page_tag = TAG_NONE;
    memset(&buddy_zone, 0, sizeof(buddy_zone));
    mm_lock_init(&buddy_zone.zone_lock, "buddy", LOCK_RANK_BUDDY);
    for (unsigned k = 0; k < BUDDY_ORDERS; k++)
        list_init(&buddy_zone.zone_list[k]);
    return true;
}

void zone_free(size_t frame, unsigned order)
{
    struct page *p = &page_array[frame];

    p->page_tag = PAGE_TAG(PAGE_FREE, order);
    list_insert_before(&buddy_zone.zone_list[order], &p->page_link);
    buddy_zone.zone_total_pages += (size_t)1 << order;
    buddy_zone.zone_free += (size_t)1 << order;
}

void zone_allocated(size_t frame, unsigned order)
{
    page_array[frame].page_tag = PAGE_TAG(PAGE_ALLOC, order);
    buddy_zone.zone_total_pages += (size_t)1 << order;
    buddy_zone.zone_allocs[order]++;
}

void zone_reserve_rest(void)
{
    for (size_t i = 0; i < ZONE_FRAMES;) {
        struct page *p = &page_array[i];

        if (p->page_tag == TAG_NONE)
            p->page_state = PAGE_RESERVED;
        i += p->page_order <= BUDDY_MAX_ORDER ? (size_t)1 << p->page_order : 1;
    }
}

/* ---- expectations ------------------------------------------------------- */

/* "free, order 3" */
static const char *tag_text(uint32_t tag, char buf[48])
{
    unsigned order = tag >> 8 & 0xff;

    if (tag == TAG_NONE)
        return "TAIL (inside a block)";
    if (order == PAGE_NO_ORDER)
        snprintf(buf, 48, "%s, no order", page_state_name(tag & 0xff));
    else
        snprintf(buf, 48, "%s, order %u", page_state_name(tag & 0xff), order);
    return buf;
}

static bool expect_tag(size_t frame, uint32_t tag)
{
    uint32_t is = page_array[frame].page_tag;
    char got[48];
    char want[48];

    if (is == tag)
        return true;
    KT_FAIL("frame %zu is tagged %s; want %s", frame, tag_text(is, got),
            tag_text(tag, want));
    return false;
}

void zone_expect_got(const struct page *got, size_t frame, unsigned order)
{
    if (got == NULL)
        KT_FAIL("got no block of order %u; want frame %zu", order, frame);
    else if (page_index(got) != frame)
        KT_FAIL("got frame %zu for a block of order %u; want frame %zu",
                page_index(got), order, frame);
    else
        zone_expect_allocated(frame, order);
}

void zone_expect_allocated(size_t frame, unsigned order)
{
    expect_tag(frame, PAGE_TAG(PAGE_ALLOC, order));
}

/* The entry that contains a link, or NULL. */
static const struct page *entry_of(struct list *l)
{
    uintptr_t off = (uintptr_t)l - (uintptr_t)page_array;

    return off < ZONE_FRAMES * sizeof(struct page) &&
                   off % sizeof(struct page) == 0
               ? buddy_list_page(l)
               : NULL;
}

/* Counts the blocks of a list; *there: `frame` is one of them. False if the
 * list is broken. */
static bool count_list(unsigned order, size_t frame, size_t *n, bool *there)
{
    struct list *head = &buddy_zone.zone_list[order];
    struct list *prev = head;

    *n = 0;
    *there = false;
    for (struct list *l = head->next; l != head; prev = l, l = l->next) {
        const struct page *p = entry_of(l);

        if (p == NULL || l->prev != prev || ++*n > ZONE_FRAMES) {
            KT_FAIL("the list of order %u is broken: its links lead %s", order,
                    p == NULL ? "out of the page array"
                              : "in a circle, or not back again");
            return false;
        }
        *there |= page_index(p) == frame;
    }
    return true;
}

void zone_expect_list(unsigned order, const size_t *frames, size_t n)
{
    size_t got;
    bool there;

    if (!count_list(order, 0, &got, &there))
        return;
    if (got != n)
        KT_FAIL("order %u has %zu free blocks on its list; want %zu", order,
                got, n);
    for (size_t i = 0; i < n; i++) {
        count_list(order, frames[i], &got, &there);
        if (!there)
            KT_FAIL("frame %zu is not on the list of order %u; want it there",
                    frames[i], order);
        else if (!expect_tag(frames[i], PAGE_TAG(PAGE_FREE, order)))
            return;
    }
}

void zone_expect_blocks(size_t n)
{
    size_t got = 0;

    for (size_t i = 0; i < ZONE_FRAMES; i++)
        got += page_array[i].page_tag != TAG_NONE;
    if (got != n)
        KT_FAIL("%zu frames are tagged as the start of a block; want %zu. Only "
                "the first frame of a block is, all others are TAIL",
                got, n);
}

bool zone_verify(void)
{
    const struct page *where;
    const char *why = buddy_verify(&where);

    if (why == NULL)
        return true;
    if (where == NULL)
        KT_FAIL("buddy_verify says: %s", why);
    else
        KT_FAIL("buddy_verify says of frame %zu: %s", page_index(where), why);
    return false;
}
