/*
 * malloc: mm/'s slab allocator in a program (paper, section 7.3).
 *
 * The layers are those of the kernel: size classes, slabs, segkmem, pages; only
 * the lowest is sbrk (mm_sbrk.c) instead of buddy. free() needs no header
 * before a block: its page leads to its cache, which knows the size. The first
 * malloc initializes everything.
 */
#include "mm/kmem_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "user/lib/errno.h"
#include "user/lib/heap.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

static bool heap_start(void)
{
    if (!heap_init())
        return false;
    kmem_init();
    return true;
}

void *malloc(size_t size)
{
    void *p = NULL;

    if (likely(kmem_state == KMEM_UP) || heap_start())
        p = kmem_alloc(size != 0 ? size : 1, KM_NOSLEEP);
    if (unlikely(p == NULL))
        errno = ENOMEM;
    return p;
}

/* The page with a block of malloc's; other addresses end the program. */
static struct page *page_of(const void *p, const char *caller)
{
    struct page *page = virt_to_page(p);

    if (page != NULL && page->page_state == PAGE_SLAB) {
        const struct kmem_cache *cp = page->page_owner;

        if (cp->cache_kind == KMEM_KIND_CLASS)
            return page;
    } else if (page != NULL && page->page_state == PAGE_OVERSIZE &&
               page->page_order != PAGE_NO_ORDER &&
               ((uintptr_t)p & PAGE_MASK) == 0) {
        return page;
    }
    mm_panic("%s: %p did not come from malloc", caller, p);
}

static size_t usable(const struct page *page)
{
    const struct kmem_cache *cp = page->page_owner;

    return page->page_state == PAGE_SLAB
               ? cp->cache_size
               : PAGES_FOR(page->page_bytes) << PAGE_SHIFT;
}

size_t malloc_usable_size(void *p)
{
    return p == NULL ? 0 : usable(page_of(p, "malloc_usable_size"));
}

/* Whether a small block is on its slab's freelist. The link of a free block is
 * NULL or in its slab: with any other word there a block is in use. */
static bool is_free(const struct kmem_cache *cp, const void *p)
{
    const struct kmem_slab *sp = kmem_slab_of(p);
    const struct kmem_bufctl *bcp =
        (const void *)((const char *)p + cp->cache_bufctl);
    const struct kmem_bufctl *at = sp->slab_head;

    if (bcp->bufctl_next != NULL && kmem_slab_of(bcp->bufctl_next) != sp)
        return false;
    for (uint32_t n = sp->slab_refcnt;
         n < sp->slab_chunks && at != NULL && at != bcp; n++)
        at = at->bufctl_next;
    return at == bcp;
}

static void free_block(struct kmem_cache *cp, void *p)
{
    if ((cp->cache_flags & KMF_HASH) == 0 && is_free(cp, p))
        mm_panic("free: %p, a block of %zu bytes, is free already", p,
                 cp->cache_size);
    kmem_cache_free(cp, p);
}

void free(void *p)
{
    const struct page *page;

    if (p == NULL)
        return;
    page = page_of(p, "free");
    if (page->page_state == PAGE_SLAB)
        free_block(page->page_owner, p);
    else
        kmem_free(p, page->page_bytes);
}

void *calloc(size_t n, size_t size)
{
    size_t bytes;
    void *p;

    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    p = malloc(bytes);
    return p == NULL ? NULL : memset(p, 0, bytes);
}

/* The block stays where it is unless it becomes too small, or more than half of
 * it would be unused. Shrinking never fails. */
void *realloc(void *p, size_t size)
{
    size_t old = malloc_usable_size(p);
    void *q;

    if (p != NULL && size <= old && size > old / 2)
        return p;
    q = malloc(size);
    if (q == NULL)
        return size <= old ? p : NULL;
    if (p != NULL)
        memcpy(q, p, MIN(old, size));
    free(p);
    return q;
}

size_t malloc_trim(void)
{
    size_t pages = page_count;

    if (kmem_state != KMEM_UP)
        return 0;
    kmem_reap(KMEM_REAP_ALL);
    heap_trim(1);
    return pages - page_count;
}

const char *malloc_verify(const char **where)
{
    const char *why = kmem_state == KMEM_UP ? kmem_verify(where) : NULL;

    return why != NULL ? why : heap_verify(where);
}
