/*
 * Memory that comes and goes. The linker leads calls of the allocators' public
 * functions here first (--wrap): `__real_f` is what `f` is in other builds. So
 * the allocators' code knows nothing of the shadow but two lines where slabs
 * are born and die (mm/platform.h), and its own inner calls are not led.
 *
 *     buddy        pages are closed until they are handed out
 *     a new slab   all of it is closed
 *     an object    is opened when it is handed out, to the byte, and closed
 *                  when it comes back: also against its cache's other users
 *
 * A cache with debugging modes watches over its objects itself, and applies
 * constructors whenever it likes: its objects are left open.
 */
#include "kernel/lib/string.h"
#include "kernel/mm_platform.h"
#include "kernel/sanitize/kasan.h"
#include "mm/buddy.h"
#include "mm/kmem_impl.h"
#include "mm/kmem_stat.h"

void *__real_kmem_cache_alloc(struct kmem_cache *cp, int flags);
void *__wrap_kmem_cache_alloc(struct kmem_cache *cp, int flags);
void __real_kmem_cache_free(struct kmem_cache *cp, void *buf);
void __wrap_kmem_cache_free(struct kmem_cache *cp, void *buf);
void *__real_kmem_alloc(size_t size, int flags);
void *__wrap_kmem_alloc(size_t size, int flags);
void *__wrap_kmem_zalloc(size_t size, int flags);
struct page *__real_buddy_alloc(unsigned order);
struct page *__wrap_buddy_alloc(unsigned order);
void __real_buddy_free(struct page *p, unsigned order);
void __wrap_buddy_free(struct page *p, unsigned order);
struct page *__real_buddy_alloc_run(size_t pages);
struct page *__wrap_buddy_alloc_run(size_t pages);
void __real_buddy_free_run(struct page *p, size_t pages);
void __wrap_buddy_free_run(struct page *p, size_t pages);

/* ---- pages -------------------------------------------------------------- */

/* Tests put a page array of their own in the place of the machine's, and speak
 * of pages that are not there. */
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

/* ---- slabs -------------------------------------------------------------- */

/* Caches whose objects are in use while they are free: constructed pipes are
 * linked with each other, and who looks for one walks along them all; and the
 * cache of caches serves kmem_cache.c alone, by inner calls. */
static bool stays_open(const struct kmem_cache *cp)
{
    static const char *const names[] = {"pipe", "kmem_cache"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(cp->cache_name, names[i]) == 0)
            return true;
    return (cp->cache_flags & KMF_DEBUG) != 0;
}

void kasan_slab_made(const struct kmem_cache *cp, const struct kmem_slab *sp)
{
    if (stays_open(cp))
        return;
    kasan_close(sp->slab_base, cp->cache_slab_pages * PAGE_SIZE, KASAN_GAP);
    for (size_t i = 0; i < sp->slab_chunks; i++)
        kasan_close(kmem_slab_chunk(sp, i), cp->cache_size, KASAN_FREE);
}

void kasan_slab_ending(const struct kmem_cache *cp, const struct kmem_slab *sp)
{
    kasan_open(sp->slab_base, cp->cache_slab_pages * PAGE_SIZE);
}

/* ---- objects ------------------------------------------------------------ */

void *__wrap_kmem_cache_alloc(struct kmem_cache *cp, int flags)
{
    void *buf = __real_kmem_cache_alloc(cp, flags);

    if (buf != NULL)
        kasan_open(buf, cp->cache_size);
    return buf;
}

/* Whether `buf` can be an object of this cache, by its page. */
static bool may_own(const struct kmem_cache *cp, const void *buf)
{
    const struct page *p = virt_to_page(buf);

    return cp->cache_supplier.getpages != NULL ||
           (p != NULL && p->page_state == PAGE_SLAB && p->page_owner == cp);
}

void __wrap_kmem_cache_free(struct kmem_cache *cp, void *buf)
{
    if (kasan_covers((uintptr_t)buf) && !stays_open(cp)) {
        if (*kasan_shadow((uintptr_t)buf) == KASAN_FREE) {
            kasan_report_free((uintptr_t)buf, CALLER);
            return;
        }
        if (may_own(cp, buf))
            kasan_close(buf, cp->cache_size, KASAN_FREE);
    }
    __real_kmem_cache_free(cp, buf);
}

/* Closes what a request got beyond what it asked for. */
static void trim(const char *buf, size_t size)
{
    const struct kmem_cache *cp = kmem_size_class(size);
    size_t room = cp != NULL ? cp->cache_size : ROUND_UP(size, PAGE_SIZE);

    kasan_open(buf, size);
    kasan_close(buf + size, room - size, KASAN_GAP);
}

void *__wrap_kmem_alloc(size_t size, int flags)
{
    void *buf = __real_kmem_alloc(size, flags);

    if (buf != NULL)
        trim(buf, size);
    return buf;
}

void *__wrap_kmem_zalloc(size_t size, int flags)
{
    void *buf = __wrap_kmem_alloc(size, flags);

    if (buf != NULL)
        memset(buf, 0, size);
    return buf;
}
