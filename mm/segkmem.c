/*
 * segkmem: whole pages for the slab allocator (paper, sections 3.1 and 7.1).
 *
 * The slab allocator has no physical memory of its own, and buddy has no
 * caches; segkmem connects them. It marks every page with its use and owner, so
 * that an address can be traced to its slab, and the sum over all caches can be
 * compared with segkmem's own counts.
 */
#include "mm/segkmem.h"
#include "mm/buddy.h"

static struct {
    mm_lock_t lock;
    struct segkmem_stat stat;
} segkmem = {.lock = MM_LOCK_INIT("segkmem", LOCK_RANK_SEGKMEM)};

uint32_t kmem_transfers, kmem_transfers_begun;

void kmem_transfer_begin(void)
{
    __atomic_fetch_add(&kmem_transfers, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&kmem_transfers_begun, 1, __ATOMIC_SEQ_CST);
}

void kmem_transfer_end(void)
{
    __atomic_fetch_sub(&kmem_transfers, 1, __ATOMIC_SEQ_CST);
}

const char *page_state_name(enum page_state state)
{
    static const char *const names[PAGE_STATES] = {
        [PAGE_RESERVED] = "reserved", [PAGE_KERNEL] = "kernel",
        [PAGE_TAIL] = "tail",         [PAGE_FREE] = "free",
        [PAGE_ALLOC] = "allocated",   [PAGE_SLAB] = "slab",
        [PAGE_HASH] = "hash",         [PAGE_OVERSIZE] = "oversize",
        [PAGE_UNMAPPED] = "unmapped", [PAGE_USER] = "user",
    };

    return state < PAGE_STATES ? names[state] : "?";
}

/* Adds a number of pages, which may be negative, to the count of a use. */
static void count_use(enum page_state use, ptrdiff_t pages)
{
    MM_ASSERT(mm_lock_held(&segkmem.lock));
    segkmem.stat.stat_use[use] += (size_t)pages;
    segkmem.stat.stat_pages += (size_t)pages;
}

/* Marks a run and counts its pages. */
static void mark_pages(struct page *p, size_t pages, enum page_state use,
                       void *owner)
{
    count_use(use, (ptrdiff_t)pages);
    for (size_t i = 0; i < pages; i++) {
        p[i].page_state = use;
        p[i].page_owner = owner;
    }
}

void *kmem_getpages(size_t pages, enum page_state use, void *owner)
{
    struct page *p = pages == 1 ? buddy_alloc(0) : buddy_alloc_run(pages);

    if (p == NULL)
        return NULL;
    mm_lock(&segkmem.lock);
    mark_pages(p, pages, use, owner);
    mm_unlock(&segkmem.lock);
    return page_to_virt(p);
}

/* Panics if a page of the run is not segkmem's, or they differ in use. */
static void check_run(const struct page *p, size_t pages)
{
    uint8_t use = p->page_state;

    for (size_t i = 0; i < pages; i++)
        if (p[i].page_state != use || use < PAGE_SLAB || use > PAGE_UNMAPPED)
            mm_panic("kmem_freepages: page 0x%lx is %s, not segkmem's",
                     (unsigned long)page_to_phys(p + i),
                     page_state_name(p[i].page_state));
}

void kmem_setuse(void *addr, size_t pages, enum page_state use, void *owner)
{
    struct page *p = virt_to_page(addr);

    check_run(p, pages);
    mm_lock(&segkmem.lock);
    count_use(p->page_state, -(ptrdiff_t)pages);
    mark_pages(p, pages, use, owner);
    mm_unlock(&segkmem.lock);
}

/* Marks the run as buddy_alloc_run returned it; its pages count no more. */
static void unmark(struct page *p, size_t pages)
{
    count_use(p->page_state, -(ptrdiff_t)pages);
    for (size_t i = 0; i < pages; i++) {
        p[i].page_owner = NULL;
        p[i].page_state =
            p[i].page_order == PAGE_NO_ORDER ? PAGE_TAIL : PAGE_ALLOC;
    }
}

void kmem_freepages(void *addr, size_t pages)
{
    struct page *p = virt_to_page(addr);

    if (p == NULL || ((uintptr_t)addr & PAGE_MASK) != 0 || pages == 0 ||
        pages > page_count - page_index(p))
        mm_panic("kmem_freepages: %p, %zu pages: not a run of pages", addr,
                 pages);
    check_run(p, pages);
    mm_lock(&segkmem.lock);
    unmark(p, pages);
    mm_unlock(&segkmem.lock);
    buddy_free_run(p, pages);
    mm_wake_waiters();
}

void *kmem_page_owner(const void *addr, enum page_state use)
{
    const struct page *p = virt_to_page(addr);
    void *owner;

    mm_lock(&segkmem.lock);
    owner = p != NULL && p->page_state == use ? p->page_owner : NULL;
    mm_unlock(&segkmem.lock);
    return owner;
}

void segkmem_stat(struct segkmem_stat *out)
{
    mm_lock(&segkmem.lock);
    *out = segkmem.stat;
    mm_unlock(&segkmem.lock);
}
