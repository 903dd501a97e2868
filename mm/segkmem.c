/*
 * segkmem: whole pages for the slab allocator (paper, sections 3.1 and 7.1).
 *
 * The slab allocator knows nothing of physical memory and buddy nothing of
 * caches; here the two meet. Every page that passes is marked with its use
 * and its owner, which is how an address is traced back to its slab, and how
 * the shell proves that what the caches say they hold is what is held.
 */
#include "mm/segkmem.h"
#include "mm/buddy.h"
#include "mm/kmem_fail.h"

static struct {
    mm_lock_t lock;
    size_t pages[PAGE_STATES]; /* by use */
    uint64_t gets;
    uint64_t frees;
    uint64_t failures;
} segkmem = {.lock = MM_LOCK_INIT("segkmem", MM_RANK_SEGKMEM)};

/* segkmem's lock is held. */
static void own(struct page *p, size_t pages, enum page_state use, void *owner)
{
    segkmem.pages[use] += pages;
    for (size_t i = 0; i < pages; i++) {
        p[i].page_state = use;
        p[i].page_owner = owner;
    }
}

void *kmem_getpages(size_t pages, enum page_state use, void *owner)
{
    struct page *p = kmem_fail_page() ? NULL
                     : pages == 1     ? buddy_alloc(0)
                                      : buddy_alloc_run(pages);

    mm_lock(&segkmem.lock);
    if (unlikely(p == NULL)) {
        segkmem.failures++;
        mm_unlock(&segkmem.lock);
        return NULL;
    }
    segkmem.gets++;
    own(p, pages, use, owner);
    mm_unlock(&segkmem.lock);
    return page_to_virt(p);
}

/* Panics, having changed nothing, if the run is not segkmem's. */
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
    segkmem.pages[p->page_state] -= pages;
    own(p, pages, use, owner);
    mm_unlock(&segkmem.lock);
}

/* Marks the run as buddy handed it out. */
static void disown(struct page *p, size_t pages)
{
    segkmem.pages[p->page_state] -= pages;
    segkmem.frees++;
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
    disown(p, pages);
    mm_unlock(&segkmem.lock);
    buddy_free_run(p, pages);
    mm_memory_returned();
}

void segkmem_stat(struct segkmem_stat *out)
{
    mm_lock(&segkmem.lock);
    *out = (struct segkmem_stat){
        .stat_slab_pages = segkmem.pages[PAGE_SLAB],
        .stat_hash_pages = segkmem.pages[PAGE_HASH],
        .stat_large_pages = segkmem.pages[PAGE_LARGE],
        .stat_pages = segkmem.pages[PAGE_SLAB] + segkmem.pages[PAGE_HASH] +
                      segkmem.pages[PAGE_LARGE] + segkmem.pages[PAGE_UNMAPPED],
        .stat_unmapped_pages = segkmem.pages[PAGE_UNMAPPED],
        .stat_gets = segkmem.gets,
        .stat_frees = segkmem.frees,
        .stat_failures = segkmem.failures,
    };
    mm_unlock(&segkmem.lock);
}
