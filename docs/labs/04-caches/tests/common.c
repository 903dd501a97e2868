/*
 * Functions shared by the tests of lab 4.
 */
#include "docs/labs/04-caches/tests/common.h"
#include "drivers/pic.h"

struct lab4_pages lab4_pages;

static struct kmem_cache cache;

static void look(struct lab4_pages *p)
{
    p->locked += (read_eflags() & EFLAGS_IF) == 0;
    p->idle += p->cache->cache_holds == 0;
    p->still += kmem_transfers == 0;
}

/* Pages are filled, so that zeroes show what the allocator has written. */
static void *get(size_t pages, void *arg)
{
    struct lab4_pages *p = arg;
    void *base;

    look(p);
    cache.cache_flags |= p->mode;
    if (p->out + pages > p->limit)
        return NULL;
    base = kmem_getpages(pages, PAGE_SLAB, &cache);
    if (base == NULL)
        return NULL;
    p->out += pages;
    memset(base, 0xa5, pages * PAGE_SIZE);
    return base;
}

static void put(void *base, size_t pages, void *arg)
{
    struct lab4_pages *p = arg;

    p->out -= pages;
    kmem_freepages(base, pages);
}

struct kmem_cache *lab4_cache_of(size_t size, size_t align, kmem_ctor_t *ctor,
                                 kmem_dtor_t *dtor)
{
    lab4_pages = (struct lab4_pages){
        .supplier = {.getpages = get, .freepages = put, .arg = &lab4_pages},
        .cache = &cache,
        .limit = 8,
    };
    kmem_cache_setup(&cache, "lab4", size, align, ctor, dtor,
                     &lab4_pages.supplier);
    return &cache;
}

struct kmem_cache *lab4_cache(size_t size, size_t align)
{
    return lab4_cache_of(size, align, NULL, NULL);
}

void lab4_irq_on(void)
{
    pic_init();
    irq_enable();
}

bool lab4_slabs(struct kmem_cache *cp, struct kmem_slab **slab, size_t n)
{
    struct list *before = &cp->cache_null.slab_link;

    for (size_t i = 0; i < n; i++) {
        slab[i] = kmem_slab_create(cp, 0);
        if (slab[i] == NULL) {
            KT_FAIL("there are no pages for slab %zu", i);
            return false;
        }
        slab[i]->slab_link.prev = before;
        before->next = &slab[i]->slab_link;
        before = before->next;
    }
    before->next = &cp->cache_null.slab_link;
    cp->cache_null.slab_link.prev = before;
    cp->cache_freelist = slab[0];
    cp->cache_slabs = cp->cache_free_slabs = n;
    return true;
}

void lab4_pages_back(struct kmem_slab **slab, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kmem_slab_free_pages(&cache, slab[i]->slab_base);
    lab4_pages_left();
}

void lab4_pages_left(void)
{
    lab_held("pages", lab4_pages.out, 0);
}
