/*
 * kmem_alloc: memory of any size from a row of size classes (paper, 3.1).
 *
 * The paper describes about 30 caches from 8 bytes to 9 KB in steps of 10 to
 * 20 %. These 38 are chosen so that each also divides its slab well: above 64
 * bytes, at most a quarter of a buffer is more than was requested. A table
 * with an entry for every 8 bytes finds the class in one load. Larger requests
 * get whole pages from segkmem.
 */
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "mm/buddy.h"
#include "mm/kmem_impl.h"

static const uint16_t class_size[] = {
    8,    16,   24,   32,   40,   48,   56,   64,          80,   96,
    112,  128,  144,  176,  200,  224,  256,  288,         336,  400,
    448,  504,  584,  680,  816,  1024, 1168, 1360,        1632, 2048,
    2336, 2728, 3272, 4096, 5456, 6144, 8192, KMEM_MAXBUF,
};

/* class_of[(size - 1) / 8] serves `size`. Written once, by kmem_init. */
static struct kmem_cache *class_of[KMEM_MAXBUF / KMEM_ALIGN_MIN];

struct kmem_oversize kmem_oversize = {
    .oversize_lock = MM_LOCK_INIT("kmem oversize", LOCK_RANK_CACHE),
};

size_t kmem_direct_max = KMEM_MAXBUF;

#define DIRECT_MAX (MM_DEBUG ? MM_UNLOCKED(kmem_direct_max) : KMEM_MAXBUF)

static struct kmem_cache *class_for(size_t size)
{
    return class_of[(size - 1) / KMEM_ALIGN_MIN];
}

static void *oversize_alloc(size_t size, int flags)
{
    size_t pages = PAGES_FOR(size);
    void *buf;

    for (;;) {
        kmem_transfer_begin();
        buf = kmem_getpages(pages, PAGE_OVERSIZE, NULL);
        if (buf != NULL || (flags & KM_NOSLEEP) != 0)
            break;
        kmem_transfer_end();
        if (pages > BUDDY_MAX_PAGES || !mm_wait_for_memory())
            kmem_out_of_memory("kmem_alloc", size);
    }
    for (size_t i = 0; buf != NULL && i < pages; i++)
        virt_to_page(buf)[i].page_bytes = i == 0 ? size : 0;
    mm_lock(&kmem_oversize.oversize_lock);
    kmem_oversize.oversize_allocs += buf != NULL;
    kmem_oversize.oversize_fails += buf == NULL;
    kmem_oversize.oversize_pages += buf != NULL ? pages : 0;
    kmem_transfer_end();
    mm_unlock(&kmem_oversize.oversize_lock);
    return buf;
}

/* Size 0, a class while a class is in a debugging mode, and whole pages. */
static __attribute__((noinline)) void *alloc_other(size_t size, int flags)
{
    if (size == 0)
        return NULL;
    if (MM_DEBUG && size <= KMEM_MAXBUF)
        return kmem_alloc_sized(class_for(size), size, flags);
    return oversize_alloc(size, flags);
}

/* Panics, naming the buffer that is there, unless `buf` is an oversize buffer
 * of `size` bytes. */
static void check_oversize(const void *buf, size_t size)
{
    const struct page *p = virt_to_page(buf);

    if (p == NULL || p->page_state != PAGE_OVERSIZE)
        mm_panic("kmem_free: %p is not a kmem_alloc buffer of %zu bytes: its "
                 "page is %s",
                 buf, size,
                 p == NULL ? "not memory" : page_state_name(p->page_state));
    while (p->page_bytes == 0 && p[-1].page_state == PAGE_OVERSIZE)
        p--;
    if (buf != page_to_virt(p))
        mm_panic("kmem_free: %p, freed with %zu bytes, is inside %p of %zu",
                 buf, size, page_to_virt(p), p->page_bytes);
    if (size != p->page_bytes)
        mm_panic("kmem_free: %p was allocated with %zu bytes, freed with %zu",
                 buf, p->page_bytes, size);
}

static void oversize_free(void *buf, size_t size)
{
    check_oversize(buf, size);
    kmem_transfer_begin();
    kmem_freepages(buf, PAGES_FOR(size));
    mm_lock(&kmem_oversize.oversize_lock);
    kmem_oversize.oversize_frees++;
    kmem_oversize.oversize_pages -= PAGES_FOR(size);
    kmem_transfer_end();
    mm_unlock(&kmem_oversize.oversize_lock);
}

static __attribute__((noinline)) void free_other(void *buf, size_t size)
{
    if (buf == NULL && size == 0)
        return;
    if (MM_DEBUG && size != 0 && size <= KMEM_MAXBUF)
        kmem_free_sized(class_for(size), buf, size);
    else
        oversize_free(buf, size);
}

void *kmem_alloc(size_t size, int flags)
{
    if (unlikely(size == 0 || size > DIRECT_MAX))
        return alloc_other(size, flags);
    return kmem_cache_alloc(class_for(size), flags);
}

void kmem_free(void *buf, size_t size)
{
    if (unlikely(size == 0 || size > DIRECT_MAX))
        free_other(buf, size);
    else
        kmem_cache_free(class_for(size), buf);
}

void *kmem_zalloc(size_t size, int flags)
{
    void *buf = kmem_alloc(size, flags);

    if (buf != NULL)
        memset(buf, 0, size);
    return buf;
}

struct kmem_cache *kmem_size_class(size_t size)
{
    return size == 0 || size > KMEM_MAXBUF ? NULL : class_for(size);
}

static void create_classes(void)
{
    size_t from = 0;

    for (size_t i = 0; i < ARRAY_SIZE(class_size); i++) {
        char name[KMEM_NAME_MAX + 1];
        struct kmem_cache *cp;

        snprintf(name, sizeof(name), "kmem_alloc_%u", class_size[i]);
        cp = kmem_must_create(name, class_size[i]);
        for (; from < class_size[i] / KMEM_ALIGN_MIN; from++)
            class_of[from] = cp;
    }
}

void kmem_init(void)
{
    kmem_init_caches();
    create_classes();
    kmem_reap_init();
    if (MM_DEBUG)
        kmem_debug_init();
    kmem_state = KMEM_UP;
}
