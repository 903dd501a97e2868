/*
 * User frames: blocks of order 0 from buddy, with a count of references.
 */
#include "kernel/vm/frame.h"
#include "mm/buddy.h"
#include "mm/kmem_debug.h"

static size_t frames_out;

struct page *frame_alloc(void)
{
    struct page *p = kmem_page_fails() ? NULL : buddy_alloc(0);

    if (p == NULL)
        return NULL;
    p->page_state = PAGE_USER;
    p->page_refs = 1;
    __atomic_add_fetch(&frames_out, 1, __ATOMIC_RELAXED);
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
    buddy_free(p, 0);
    __atomic_sub_fetch(&frames_out, 1, __ATOMIC_RELAXED);
    mm_memory_returned();
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
    struct page *p = kmem_page_fails() ? NULL : buddy_alloc_run(pages);

    if (p == NULL)
        return NULL;
    set_states(p, pages, PAGE_ALLOC, PAGE_USER);
    __atomic_add_fetch(&frames_out, pages, __ATOMIC_RELAXED);
    return p;
}

void frame_free_run(struct page *p, size_t pages)
{
    set_states(p, pages, PAGE_USER, PAGE_ALLOC);
    buddy_free_run(p, pages);
    __atomic_sub_fetch(&frames_out, pages, __ATOMIC_RELAXED);
    mm_memory_returned();
}

size_t frame_count(void)
{
    return frames_out;
}
