/*
 * The invariants of an address space, as code; and lookup of mappings.
 */
#include "kernel/vm/space_impl.h"
#include "kernel/task/task.h"
#include "kernel/x86/paging.h"

/* Checks a page of a device or for DMA against the region's first page. */
static const char *verify_fixed(const struct space *s, const struct region *r,
                                uint32_t pte, uaddr_t addr)
{
    size_t first = *space_entry(s, r->region_start) >> PAGE_SHIFT;
    bool device = r->region_kind == REGION_DEVICE;
    size_t frame = pte >> PAGE_SHIFT;

    if ((pte & PTE_UNCOUNTED) == 0 || device != ((pte & PTE_NOCACHE) != 0))
        return "a page of a device or for DMA has wrong attributes";
    if (frame - first != (addr - r->region_start) >> PAGE_SHIFT)
        return "a region of a device or for DMA is not contiguous";
    if (device && frame < page_count &&
        page_array[frame].page_state != PAGE_RESERVED)
        return "a device's page is memory";
    if (!device &&
        (frame >= page_count || (page_array[frame].page_state != PAGE_USER &&
                                 page_array[frame].page_state != PAGE_TAIL)))
        return "a frame for DMA is not a program's";
    return NULL;
}

static const char *verify_page(const struct space *s, uint32_t pte,
                               uaddr_t addr)
{
    const struct region *r = space_region(s, addr);
    const struct page *p;

    if (r == NULL)
        return "a page is mapped outside the regions";
    if (r->region_kind == REGION_DEVICE || r->region_kind == REGION_DMA)
        return verify_fixed(s, r, pte, addr);
    if (pte & PTE_UNCOUNTED)
        return "a program's page is not reference-counted";
    if (pte >> PAGE_SHIFT >= page_count)
        return "a page table entry maps a frame outside memory";
    p = space_frame(pte);
    if (p->page_state != PAGE_USER || p->page_refs == 0)
        return "a mapped frame is not a program's";
    if ((pte & PTE_WRITE) != 0 &&
        ((r->region_prot & PROT_WRITE) == 0 || p->page_refs != 1))
        return "a shared or read-only page is writable";
    if (commit_is_read_only(p) != ((r->region_prot & PROT_WRITE) == 0))
        return "a page is promised twice, or not at all";
    return NULL;
}

static const char *verify_table(const struct space *s, uaddr_t base,
                                size_t *pages)
{
    const uint32_t *pte = space_entry(s, base);
    const char *wrong = NULL;

    for (unsigned i = 0; i < PAGE_ENTRIES && wrong == NULL; i++) {
        if (pte[i] == 0)
            continue;
        ++*pages;
        wrong = verify_page(s, pte[i], base + i * PAGE_SIZE);
    }
    return wrong;
}

/* A fault on a promised page needs no table, and one on a read-only page no
 * frame. */
static bool has_tables(const struct space *s, const struct region *r)
{
    bool whole = (r->region_prot & PROT_WRITE) == 0;

    for (uaddr_t a = r->region_start; a < r->region_end; a += PAGE_SIZE) {
        const uint32_t *pte = space_entry(s, a);

        if (pte == NULL || (whole && *pte == 0))
            return false;
    }
    return true;
}

static const char *verify_regions(const struct space *s)
{
    uaddr_t last = USER_BASE;
    size_t promised = 0;
    size_t dma = 0;

    list_for_each (l, &s->space_regions) {
        const struct region *r = list_entry(l, struct region, region_link);

        if (r->region_start < last || r->region_end < r->region_start)
            return "the regions overlap or are not in order";
        if (r->region_kind == REGION_DMA)
            dma += (r->region_end - r->region_start) >> PAGE_SHIFT;
        if (r->region_kind == REGION_HEAP &&
            r->region_end != ROUND_UP(s->space_break, PAGE_SIZE))
            return "the heap does not end at the break";
        if (!has_tables(s, r))
            return "a promised page has no table, or a read-only page no frame";
        promised += space_promised(r);
        last = r->region_end;
    }
    if (promised != s->space_commit.commit_pages)
        return "a space was promised more or less than its regions have";
    return dma == s->space_dma ? NULL : "a space's count of DMA pages is wrong";
}

const char *space_verify(struct space *s)
{
    const char *wrong = verify_regions(s);
    size_t tables = 0;
    size_t pages = 0;

    for (uaddr_t a = 0; a < USER_TOP && wrong == NULL; a += MIB(4)) {
        if (space_entry(s, a) == NULL)
            continue;
        tables++;
        wrong = verify_table(s, a, &pages);
    }
    if (wrong == NULL && (tables != s->space_tables || pages != s->space_pages))
        wrong = "a space's count of pages or tables is wrong";
    return wrong;
}

/* ---- lookup ------------------------------------------------------------- */

bool space_frame_at(const struct space *s, uaddr_t addr, size_t *frame)
{
    const uint32_t *pte = addr < USER_TOP ? space_entry(s, addr) : NULL;

    if (pte == NULL || *pte == 0)
        return false;
    *frame = *pte >> PAGE_SHIFT;
    return true;
}

uaddr_t space_mapping(const struct space *s, size_t frame)
{
    for (uaddr_t base = 0; base < USER_TOP; base += MIB(4)) {
        const uint32_t *pte = space_entry(s, base);

        for (unsigned i = 0; pte != NULL && i < PAGE_ENTRIES; i++)
            if (pte[i] != 0 && pte[i] >> PAGE_SHIFT == frame)
                return base + i * PAGE_SIZE;
    }
    return 0;
}

size_t space_dma_pages(pid_t pid)
{
    const struct task *t;
    size_t pages = 0;

    spin_lock(&sched_lock);
    t = task_find_at_rest(pid);
    if (t != NULL && t->task_space != NULL)
        pages = t->task_space->space_dma;
    spin_unlock(&sched_lock);
    return pages;
}
