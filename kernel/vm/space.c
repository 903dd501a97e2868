/*
 * Address spaces: what a program may access (regions), and the pages that exist
 * (page tables).
 *
 *     directory ──> table ──> frame        regions: image, image, heap, stack
 *
 * Directories, tables, regions and spaces each have a slab cache. A cached
 * table is empty and a cached directory has the kernel's part filled in, so a
 * fork clears and copies almost nothing.
 *
 * After fork both spaces map the same frames read-only. The first to write gets
 * a copy; the last to hold a frame gets write permission back.
 */
#include "kernel/vm/space.h"
#include "kernel/lib/string.h"
#include "kernel/vm/frame.h"
#include "kernel/vm/space_impl.h"
#include "kernel/x86/copy.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"
#include "kernel/task/cache.h"
#include "kernel/object/session.h"
#include "kernel/task/task.h"
#include "mm/kmem.h"

static struct kmem_cache *space_cache;
static struct kmem_cache *region_cache;
static struct kmem_cache *directory_cache;
static struct kmem_cache *table_cache;

/* ---- the caches --------------------------------------------------------- */

static void space_ctor(void *obj, size_t size)
{
    struct space *s = obj;

    memset(s, 0, size);
    list_init(&s->space_regions);
}

static void directory_ctor(void *obj, size_t size)
{
    copy_zero(obj, size);
    paging_copy_kernel(obj);
}

static void table_ctor(void *obj, size_t size)
{
    copy_zero(obj, size);
}

void space_caches_init(void)
{
    space_cache =
        cache_create("space", sizeof(struct space), 0, space_ctor, NULL);
    region_cache = cache_create("region", sizeof(struct region), 0, NULL, NULL);
    directory_cache = cache_create("page_directory", PAGE_SIZE, PAGE_SIZE,
                                   directory_ctor, NULL);
    table_cache =
        cache_create("page_table", PAGE_SIZE, PAGE_SIZE, table_ctor, NULL);
}

/* ---- page tables -------------------------------------------------------- */

static uint32_t *table_of(uint32_t pde)
{
    return mm_phys_to_virt(pde & ~PAGE_MASK);
}

uint32_t *space_entry(const struct space *s, uaddr_t addr)
{
    uint32_t pde = s->space_directory[addr >> 22];

    return (pde & PTE_PRESENT) == 0
               ? NULL
               : table_of(pde) + (addr >> PAGE_SHIFT) % PAGE_ENTRIES;
}

struct page *space_frame(uint32_t pte)
{
    return &page_array[pte >> PAGE_SHIFT];
}

/* The end of the range of one table, at most `end`. */
static uaddr_t table_end(uaddr_t addr, uaddr_t end)
{
    uaddr_t next = (addr | (MIB(4) - 1)) + 1;

    return next == 0 || next > end ? end : next;
}

/* Allocates the tables for [start, end), which stay until the space ends. */
static int make_tables(struct space *s, uaddr_t start, uaddr_t end)
{
    for (; start < end; start = table_end(start, end)) {
        uint32_t *pde = &s->space_directory[start >> 22];
        void *table;

        if ((*pde & PTE_PRESENT) != 0)
            continue;
        table = kmem_cache_alloc(table_cache, KM_NOSLEEP);
        if (table == NULL)
            return -ENOMEM;
        *pde = mm_virt_to_phys(table) | PTE_PRESENT | PTE_WRITE | PTE_USER;
        s->space_tables++;
    }
    return 0;
}

/* Drops the pages in [start, end); their tables stay. */
static void drop_pages(struct space *s, uaddr_t start, uaddr_t end)
{
    while (start < end) {
        uaddr_t stop = table_end(start, end);
        uint32_t *pte = space_entry(s, start);

        for (; pte != NULL && start < stop; start += PAGE_SIZE, pte++) {
            if (*pte == 0)
                continue;
            if ((*pte & PTE_UNCOUNTED) == 0)
                frame_put(space_frame(*pte));
            *pte = 0;
            s->space_pages--;
        }
        start = stop;
    }
}

static size_t pages_in(uaddr_t start, uaddr_t end)
{
    return (end - start) >> PAGE_SHIFT;
}

/* Flushes the processor's cached translations if it runs in the space. */
static void flush(const struct space *s)
{
    if (read_cr3() == space_cr3(s))
        write_cr3(read_cr3());
}

/* ---- charging ----------------------------------------------------------- */

static bool charge_regions(struct space *s, uint32_t n)
{
    if (!session_charge(s->space_commit.commit_session, SESSION_REGIONS, n))
        return false;
    s->space_charged += n;
    return true;
}

static void refund_regions(struct space *s, uint32_t n)
{
    session_refund(s->space_commit.commit_session, SESSION_REGIONS, n);
    s->space_charged -= n;
}

/* ---- creating and destroying -------------------------------------------- */

paddr_t space_cr3(const struct space *s)
{
    return mm_virt_to_phys(s->space_directory);
}

struct space *space_create(struct session *session)
{
    struct space *s = kmem_cache_alloc(space_cache, KM_NOSLEEP);

    if (s == NULL)
        return NULL;
    s->space_directory = kmem_cache_alloc(directory_cache, KM_NOSLEEP);
    if (s->space_directory == NULL) {
        kmem_cache_free(space_cache, s);
        return NULL;
    }
    s->space_charged = 0;
    s->space_break = s->space_break_base = 0;
    s->space_packed = &s->space_regions;
    commit_enter(&s->space_commit, session);
    return s;
}

static struct region *region_at(const struct list *link)
{
    return list_entry(link, struct region, region_link);
}

/* The frames of a run for DMA are freed as a whole. */
static void drop_region(struct space *s, struct region *r)
{
    bool dma = r->region_kind == REGION_DMA;
    struct page *run =
        dma ? space_frame(*space_entry(s, r->region_start)) : NULL;

    drop_pages(s, r->region_start, r->region_end);
    if (dma) {
        size_t pages = pages_in(r->region_start, r->region_end);

        frame_free_run(run, pages);
        s->space_dma -= pages;
    }
    if (s->space_packed != &s->space_regions &&
        r->region_start <= region_at(s->space_packed)->region_start)
        s->space_packed = r->region_link.prev;
    list_remove(&r->region_link);
    kmem_cache_free(region_cache, r);
}

/* All pages are dropped, so every table is in its constructed state. */
static void drop_tables(struct space *s)
{
    uint32_t *pde = s->space_directory;

    for (; s->space_tables != 0; pde++) {
        if (*pde == 0)
            continue;
        kmem_cache_free(table_cache, table_of(*pde));
        *pde = 0;
        s->space_tables--;
    }
}

void space_destroy(struct space *s)
{
    while (!list_empty(&s->space_regions))
        drop_region(s, region_at(s->space_regions.next));
    drop_tables(s);
    refund_regions(s, s->space_charged);
    commit_leave(&s->space_commit);
    kmem_cache_free(directory_cache, s->space_directory);
    kmem_cache_free(space_cache, s);
}

/* ---- regions ------------------------------------------------------------ */

struct region *space_region(const struct space *s, uaddr_t addr)
{
    list_for_each (l, &s->space_regions) {
        struct region *r = region_at(l);

        if (addr < r->region_end)
            return addr >= r->region_start ? r : NULL;
    }
    return NULL;
}

/* The link after which [start, end) belongs; NULL if it overlaps. Searched from
 * the end, where fork and mmap add most regions. */
static struct list *place_for(struct space *s, uaddr_t start, uaddr_t end)
{
    struct list *at = s->space_regions.prev;

    for (; at != &s->space_regions; at = at->prev) {
        const struct region *r = region_at(at);

        if (start >= r->region_end)
            break;
        if (end > r->region_start)
            return NULL;
    }
    return at;
}

/* Adds a region without pages; *out gets it. */
static int insert_region(struct space *s, uaddr_t start, uaddr_t end, int prot,
                         enum region_kind kind, struct region **out)
{
    struct list *after;
    struct region *r;

    if (((start | end) & PAGE_MASK) != 0 || start < USER_BASE || end < start ||
        end > USER_TOP)
        return -EINVAL;
    after = place_for(s, start, end);
    if (after == NULL)
        return -EEXIST;
    r = kmem_cache_alloc(region_cache, KM_NOSLEEP);
    if (r == NULL)
        return -ENOMEM;
    r->region_start = start;
    r->region_end = end;
    r->region_prot = (uint8_t)prot;
    r->region_kind = kind;
    list_insert_after(after, &r->region_link);
    *out = r;
    return 0;
}

/* Promises the pages of [start, end) and allocates the tables for them. */
static int promise(struct space *s, uaddr_t start, uaddr_t end)
{
    size_t pages = pages_in(start, end);
    int error = commit_promise(&s->space_commit, pages);

    if (error == 0) {
        error = make_tables(s, start, end);
        if (error != 0)
            commit_release(&s->space_commit, pages);
    }
    return error;
}

size_t space_promised(const struct region *r)
{
    return (r->region_prot & PROT_WRITE) == 0 || r->region_kind == REGION_DEVICE
               ? 0
               : pages_in(r->region_start, r->region_end);
}

/* Allocates a page that has been promised. */
static void fill_page(struct space *s, const struct region *r, uaddr_t addr)
{
    struct page *p = frame_alloc();
    bool writable = (r->region_prot & PROT_WRITE) != 0;

    copy_zero(page_to_virt(p), PAGE_SIZE);
    *space_entry(s, addr) =
        page_to_phys(p) | PTE_PRESENT | PTE_USER | (writable ? PTE_WRITE : 0);
    s->space_pages++;
    if (!writable)
        commit_make_read_only(&s->space_commit, p);
}

int space_add_region(struct space *s, uaddr_t start, uaddr_t end, int prot,
                     enum region_kind kind)
{
    struct region *r;
    int error;

    if (!charge_regions(s, 1))
        return -ENOMEM;
    error = insert_region(s, start, end, prot, kind, &r);
    if (error == 0) {
        error = promise(s, start, end);
        if (error != 0)
            drop_region(s, r);
    }
    if (error != 0)
        refund_regions(s, 1);
    for (; error == 0 && (prot & PROT_WRITE) == 0 && start < end;
         start += PAGE_SIZE)
        fill_page(s, r, start);
    return error;
}

/* ---- fork --------------------------------------------------------------- */

/* Shares the pages of [start, end) read-only. */
static int share_pages(struct space *to, struct space *from, uaddr_t start,
                       uaddr_t end)
{
    if (make_tables(to, start, end) != 0)
        return -ENOMEM;
    while (start < end) {
        uaddr_t stop = table_end(start, end);
        uint32_t *pte = space_entry(from, start);
        uint32_t *copy = space_entry(to, start);

        for (; start < stop; start += PAGE_SIZE, pte++, copy++) {
            if (*pte == 0)
                continue;
            *pte &= ~PTE_WRITE;
            *copy = *pte;
            frame_get(space_frame(*pte));
            to->space_pages++;
        }
    }
    return 0;
}

/* Whether its frames have a fixed physical address. */
static bool is_fixed(const struct region *r)
{
    return r->region_kind == REGION_DEVICE || r->region_kind == REGION_DMA;
}

static int copy_region(struct space *to, struct space *from,
                       const struct region *r)
{
    struct region *copy;
    int error;

    if (task_self()->task_pending & PENDING_KILL)
        return -EINTR;
    if (is_fixed(r))
        return 0;
    error = insert_region(to, r->region_start, r->region_end, r->region_prot,
                          r->region_kind, &copy);
    return error != 0 ? error
                      : share_pages(to, from, r->region_start, r->region_end);
}

struct space *space_copy(struct space *from)
{
    struct space *s = space_create(from->space_commit.commit_session);
    int error;

    if (s == NULL)
        return NULL;
    error =
        charge_regions(s, from->space_charged)
            ? commit_promise(&s->space_commit,
                             from->space_commit.commit_pages - from->space_dma)
            : -ENOMEM;
    s->space_break = from->space_break;
    s->space_break_base = from->space_break_base;
    list_for_each (l, &from->space_regions)
        if (error == 0)
            error = copy_region(s, from, region_at(l));
    flush(from);
    if (error == 0)
        return s;
    space_destroy(s);
    return NULL;
}

/* ---- filling in pages --------------------------------------------------- */

/* Extends the stack's region, the first, down to `addr`; its pages are in the
 * same table. */
static int grow_stack(struct space *s, uaddr_t addr)
{
    struct region *r = region_at(s->space_regions.next);
    uaddr_t start = addr & ~PAGE_MASK;
    int error;

    if (list_empty(&s->space_regions) || r->region_kind != REGION_STACK ||
        addr < SPACE_STACK_TOP - SPACE_STACK_MAX || addr >= r->region_start)
        return -EFAULT;
    error = commit_promise(&s->space_commit, pages_in(start, r->region_start));
    if (error == 0)
        r->region_start = start;
    return error;
}

/* The first write to a page that may be shared. */
static void make_private(uint32_t *pte, uaddr_t addr)
{
    struct page *old = space_frame(*pte);

    if (old->page_refs != 1) {
        struct page *p = frame_alloc();

        copy_bytes(page_to_virt(p), page_to_virt(old), PAGE_SIZE);
        frame_put(old);
        *pte = page_to_phys(p) | (*pte & PAGE_MASK);
    }
    *pte |= PTE_WRITE;
    invlpg(addr);
}

int space_fault(struct space *s, uaddr_t addr, bool write)
{
    const struct region *r = space_region(s, addr);
    int error = r == NULL ? grow_stack(s, addr) : 0;
    uint32_t *pte;

    if (error != 0)
        return error;
    if (r == NULL)
        r = space_region(s, addr);
    if (write && (r->region_prot & PROT_WRITE) == 0)
        return -EFAULT;
    pte = space_entry(s, addr);
    if (*pte == 0)
        fill_page(s, r, addr);
    else if (write && (*pte & PTE_WRITE) == 0)
        make_private(pte, addr);
    return 0;
}

void *space_touch(struct space *s, uaddr_t addr, bool write, int *error)
{
    uint32_t pte;

    if (s == NULL) {
        *error = 0;
        return (void *)addr;
    }
    *error = addr < USER_TOP ? space_fault(s, addr, write) : -EFAULT;
    if (*error != 0)
        return NULL;
    pte = *space_entry(s, addr);
    if (unlikely(pte & PTE_NOCACHE)) {
        *error = -EFAULT;
        return NULL;
    }
    return (char *)page_to_virt(space_frame(pte)) + (addr & PAGE_MASK);
}

/* ---- requests of programs ----------------------------------------------- */

static struct region *heap_of(const struct space *s)
{
    list_for_each (l, &s->space_regions) {
        struct region *r = region_at(l);

        if (r->region_kind == REGION_HEAP)
            return r;
    }
    return NULL;
}

int32_t space_sbrk(struct space *s, int32_t change)
{
    uaddr_t old = s->space_break;
    uaddr_t wanted = old + (uint32_t)change;
    struct region *heap = heap_of(s);
    uaddr_t end = ROUND_UP(wanted, PAGE_SIZE);

    if (heap == NULL ||
        (change < 0 && (wanted > old || wanted < s->space_break_base)))
        return -EINVAL;
    if (change > 0 && (wanted < old || end > SPACE_MMAP_BASE ||
                       promise(s, heap->region_end, end) != 0))
        return -ENOMEM;
    if (end < heap->region_end) {
        drop_pages(s, end, heap->region_end);
        flush(s);
        commit_release(&s->space_commit, pages_in(end, heap->region_end));
    }
    heap->region_end = end;
    s->space_break = wanted;
    return (int32_t)old;
}

/* The lowest gap of `length` bytes above SPACE_MMAP_BASE, or 0. The regions
 * without gaps between them are not searched again. */
static uaddr_t find_gap(struct space *s, size_t length)
{
    struct list *l = s->space_packed;
    uaddr_t at = l == &s->space_regions
                     ? SPACE_MMAP_BASE
                     : MAX(region_at(l)->region_end, SPACE_MMAP_BASE);

    while ((l = l->next) != &s->space_regions) {
        const struct region *r = region_at(l);

        if (r->region_start <= at && l->prev == s->space_packed)
            s->space_packed = l;
        else if (r->region_start - at >= length)
            break;
        at = MAX(r->region_end, at);
    }
    return USER_TOP - at >= length ? at : 0;
}

int32_t space_mmap(struct space *s, size_t length, int prot)
{
    uaddr_t start;
    int error;

    if (length == 0 || length > USER_TOP || (prot & PROT_READ) == 0 ||
        (prot & ~(PROT_READ | PROT_WRITE)) != 0)
        return -EINVAL;
    length = ROUND_UP(length, PAGE_SIZE);
    start = find_gap(s, length);
    if (start == 0)
        return -ENOMEM;
    error = space_add_region(s, start, start + length, prot, REGION_MMAP);
    return error != 0 ? error : (int32_t)start;
}

int32_t space_munmap(struct space *s, uaddr_t addr, size_t length)
{
    struct region *r = space_region(s, addr);
    size_t promised;

    if (r == NULL || (r->region_kind != REGION_MMAP && !is_fixed(r)) ||
        r->region_start != addr ||
        r->region_end - addr != ROUND_UP(length, PAGE_SIZE))
        return -EINVAL;
    promised = space_promised(r);
    refund_regions(s, r->region_kind == REGION_MMAP);
    drop_region(s, r);
    flush(s);
    commit_release(&s->space_commit, promised);
    return 0;
}

/* ---- frames with fixed addresses ---------------------------------------- */

/* Maps `length` bytes of physical memory from `first` on in a new region. */
static int32_t map_fixed(struct space *s, paddr_t first, size_t length,
                         uint32_t flags, enum region_kind kind)
{
    uaddr_t start = find_gap(s, length);
    struct region *r;
    int error = start == 0 ? -ENOMEM : make_tables(s, start, start + length);

    if (error == 0)
        error = insert_region(s, start, start + length, PROT_READ | PROT_WRITE,
                              kind, &r);
    if (error != 0)
        return error;
    for (size_t at = 0; at < length; at += PAGE_SIZE) {
        *space_entry(s, start + at) = (first + at) | PTE_PRESENT | PTE_WRITE |
                                      PTE_USER | PTE_UNCOUNTED | flags;
        s->space_pages++;
    }
    return (int32_t)start;
}

int32_t space_map_device(struct space *s, paddr_t first, size_t bytes)
{
    if (bytes == 0 || bytes > USER_TOP || (first & PAGE_MASK) != 0)
        return -EINVAL;
    return map_fixed(s, first, ROUND_UP(bytes, PAGE_SIZE),
                     PTE_NOCACHE | PTE_THROUGH, REGION_DEVICE);
}

int32_t space_dma_alloc(struct space *s, size_t pages, paddr_t *paddr)
{
    int32_t at = commit_promise(&s->space_commit, pages);
    struct page *p;

    if (at != 0)
        return at;
    p = frame_alloc_run(pages);
    at = -ENOMEM;
    if (p == NULL)
        goto release;
    copy_zero(page_to_virt(p), pages * PAGE_SIZE);
    *paddr = page_to_phys(p);
    at = map_fixed(s, *paddr, pages * PAGE_SIZE, 0, REGION_DMA);
    if (at < 0 && at >= -4095)
        goto free;
    s->space_dma += pages;
    return at;
free:
    frame_free_run(p, pages);
release:
    commit_release(&s->space_commit, pages);
    return at;
}
