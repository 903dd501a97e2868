/*
 * Memory that is allocated and freed. The linker redirects calls of the
 * allocators' public functions here (--wrap): `__real_f` is the `f` of other
 * builds. So the allocators' code knows nothing of the shadow; it reports the
 * start and end of slabs (slab.h), and its own calls are not redirected.
 *
 *     buddy        pages are closed until they are allocated
 *     a new slab   all of it is closed
 *     an object    is opened when it is allocated, to the byte, and closed
 *                  when it is freed, for its cache's other users too
 *
 * Some objects are left open: those of caches with debugging modes, which check
 * them and call constructors at any time, and those of caches that have a page
 * supplier of their own.
 */
#include "kernel/lib/string.h"
#include "tools/workshop/sanitize/kasan.h"
#include "tools/workshop/sanitize/slab.h"
#include "mm/buddy.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"

/* Reports skip the frames of these functions, as those of the allocator. */
#define HEAP __attribute__((section(".text.heap")))

void *__real_kmem_cache_alloc(struct kmem_cache *cp, int flags);
void __real_kmem_cache_free(struct kmem_cache *cp, void *buf);
void *__real_kmem_alloc(size_t size, int flags);
void __real_kmem_free(void *buf, size_t size);
struct page *__real_buddy_alloc(unsigned order);
void __real_buddy_free(struct page *p, unsigned order);
struct page *__real_buddy_alloc_run(size_t pages);
void __real_buddy_free_run(struct page *p, size_t pages);
struct page *__real_buddy_alloc_reserved(size_t pages);
void __real_buddy_free_reserved(struct page *p, size_t pages);

/* ---- pages -------------------------------------------------------------- */

/* Tests replace the machine's page array by one of their own, whose pages do
 * not exist. */
static const struct page *machine_array;

void kasan_pages_init(void)
{
    machine_array = page_array;
    for (size_t i = 0; i < page_count; i++) {
        uint8_t state = page_array[i].page_state;

        if (state == PAGE_FREE || state == PAGE_TAIL)
            kasan_close(page_to_virt(&page_array[i]), PAGE_SIZE, KASAN_PAGE);
    }
}

static struct page *open_pages(struct page *p, size_t pages)
{
    if (p != NULL && page_array == machine_array)
        kasan_open(page_to_virt(p), pages << PAGE_SHIFT);
    return p;
}

static void close_pages(const struct page *p, size_t pages)
{
    if (page_array == machine_array)
        kasan_close(page_to_virt(p), pages << PAGE_SHIFT, KASAN_PAGE);
}

struct page *__wrap_buddy_alloc(unsigned order)
{
    return open_pages(__real_buddy_alloc(order), (size_t)1 << order);
}

void __wrap_buddy_free(struct page *p, unsigned order)
{
    close_pages(p, (size_t)1 << order);
    __real_buddy_free(p, order);
}

struct page *__wrap_buddy_alloc_run(size_t pages)
{
    return open_pages(__real_buddy_alloc_run(pages), pages);
}

void __wrap_buddy_free_run(struct page *p, size_t pages)
{
    close_pages(p, pages);
    __real_buddy_free_run(p, pages);
}

struct page *__wrap_buddy_alloc_reserved(size_t pages)
{
    return open_pages(__real_buddy_alloc_reserved(pages), pages);
}

void __wrap_buddy_free_reserved(struct page *p, size_t pages)
{
    close_pages(p, pages);
    __real_buddy_free_reserved(p, pages);
}

/* ---- slabs -------------------------------------------------------------- */

/* Among others, caches whose free objects are accessed: constructed pipes are
 * linked, and a search walks along them all; and the cache of caches serves
 * kmem_cache.c alone, whose calls are not redirected. */
static bool stays_open(const struct kmem_cache *cp)
{
    static const char *const names[] = {"pipe", "kmem_cache"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(cp->cache_name, names[i]) == 0)
            return true;
    return (cp->cache_flags & KMF_MODES) != 0 ||
           cp->cache_supplier.getpages != NULL;
}

void kasan_mark_slab(const struct kmem_cache *cp, const struct kmem_slab *sp)
{
    if (stays_open(cp))
        return;
    kasan_close(sp->slab_base, cp->cache_slab_pages * PAGE_SIZE, KASAN_GAP);
    for (size_t i = 0; i < sp->slab_chunks; i++)
        kasan_close(kmem_slab_chunk(sp, i), cp->cache_size, KASAN_FREE);
}

void kasan_unmark_slab(const struct kmem_cache *cp, const struct kmem_slab *sp)
{
    kasan_open(sp->slab_base, cp->cache_slab_pages * PAGE_SIZE);
}

/* ---- objects ------------------------------------------------------------ */

HEAP void *__wrap_kmem_cache_alloc(struct kmem_cache *cp, int flags)
{
    void *buf = __real_kmem_cache_alloc(cp, flags);

    if (buf != NULL)
        kasan_open(buf, cp->cache_size);
    return buf;
}

/* The cache that has the page of `buf`, or NULL. */
static const struct kmem_cache *owner_of(const void *buf)
{
    const struct page *p = virt_to_page(buf);

    return p != NULL && p->page_state == PAGE_SLAB ? p->page_owner : NULL;
}

/* NULL, or what is wrong with a free as far as slab and shadow can tell. (The
 * hash table of large objects knows more.) */
static const char *free_error(const struct kmem_cache *cp, const char *buf)
{
    const struct kmem_cache *owner = owner_of(buf);
    const struct kmem_slab *sp = kmem_slab_of(buf);

    if (*kasan_shadow((uintptr_t)buf) == KASAN_FREE)
        return "double-free";
    if (owner != NULL && owner != cp)
        return "foreign-free";
    if (owner == cp && (cp->cache_flags & KMF_HASH) == 0 &&
        (size_t)(buf - (const char *)kmem_slab_chunk(sp, 0)) %
                cp->cache_chunk !=
            0)
        return "interior-free";
    return NULL;
}

HEAP void __wrap_kmem_cache_free(struct kmem_cache *cp, void *buf)
{
    if (kasan_covers((uintptr_t)buf) && !stays_open(cp)) {
        const char *error = free_error(cp, buf);

        if (error != NULL) {
            if (!kasan_report_free(error, (uintptr_t)buf, CALLER))
                return;
        } else if (owner_of(buf) == cp)
            kasan_close(buf, cp->cache_size, KASAN_FREE);
    }
    __real_kmem_cache_free(cp, buf);
}

/* The size of the buffer that a request of `size` bytes gets. */
static size_t room_of(size_t size)
{
    const struct kmem_cache *cp = kmem_size_class(size);

    return cp != NULL ? cp->cache_size : ROUND_UP(size, PAGE_SIZE);
}

/* Opens `size` bytes and closes the rest of the buffer. */
static void trim(const char *buf, size_t size)
{
    kasan_open(buf, size);
    kasan_close(buf + size, room_of(size) - size, KASAN_GAP);
}

HEAP void *__wrap_kmem_alloc(size_t size, int flags)
{
    void *buf = __real_kmem_alloc(size, flags);

    if (buf != NULL)
        trim(buf, size);
    return buf;
}

HEAP void *__wrap_kmem_zalloc(size_t size, int flags)
{
    void *buf = __wrap_kmem_alloc(size, flags);

    if (buf != NULL)
        memset(buf, 0, size);
    return buf;
}

/* Whether the open bytes at `buf` end elsewhere than after `size` of them: then
 * it was not allocated with this size. */
static bool other_size(const char *buf, size_t size)
{
    uintptr_t end = (uintptr_t)buf + size;
    const struct kmem_cache *cp = kmem_size_class(size);

    if (size == 0 || !kasan_covers((uintptr_t)buf) || !kasan_covers(end) ||
        kasan_closed((uintptr_t)buf) || (cp != NULL && stays_open(cp)))
        return false;
    return kasan_closed(end - 1) ||
           (room_of(size) != size && !kasan_closed(end));
}

HEAP void __wrap_kmem_free(void *buf, size_t size)
{
    if (!other_size(buf, size) ||
        kasan_report_free("wrong-size-free", (uintptr_t)buf, CALLER))
        __real_kmem_free(buf, size);
}
