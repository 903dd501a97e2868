/*
 * User frames: pages of buddy's reserve, with a count of references.
 */
#include "kernel/vm/frame.h"
#include "kernel/vm/commit.h"
#include "kernel/x86/panic.h"
#include "mm/buddy.h"

struct page *frame_alloc(void)
{
    struct page *p;

    while ((p = buddy_alloc_reserved(1)) == NULL)
        if (!mm_wait_for_memory())
            panic("no page is free for a promise");
    p->page_state = PAGE_USER;
    p->page_refs = 1;
    return p;
}

void frame_get(struct page *p)
{
    __atomic_add_fetch(&p->page_refs, 1, __ATOMIC_RELAXED);
}

void frame_put(struct page *p)
{
    if (__atomic_sub_fetch(&p->page_refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    p->page_state = PAGE_ALLOC;
    if (commit_is_read_only(p))
        commit_free_read_only(p);
    else
        buddy_free_reserved(p, 1);
}

/* A run is several blocks; the first frame of each has its state. */
static void set_states(struct page *p, size_t pages, enum page_state from,
                       enum page_state to)
{
    for (; pages != 0; p++, pages--)
        if (p->page_state == from) {
            p->page_state = (uint8_t)to;
            p->page_refs = 1;
        }
}

struct page *frame_alloc_run(size_t pages)
{
    struct page *p = buddy_alloc_reserved(pages);

    if (p != NULL)
        set_states(p, pages, PAGE_ALLOC, PAGE_USER);
    return p;
}

void frame_free_run(struct page *p, size_t pages)
{
    set_states(p, pages, PAGE_USER, PAGE_ALLOC);
    buddy_free_reserved(p, pages);
}

size_t frame_count(void)
{
    struct buddy_pages b;

    buddy_pages(&b);
    return b.pages_taken;
}
