/*
 * Slabs, the back end (paper, sections 3.2 and 4.3): how many pages and
 * buffers a slab has, creating one, colouring it, destroying it.
 *
 * All buffers of a new slab are constructed, and all are free when the slab is
 * destroyed. Between the two only the front end uses it.
 */
#include "mm/kmem_impl.h"

/* ---- geometry (3.2, 4.3) ------------------------------------------------ */

/* The small layout's chunk. Constructed objects keep their state while free,
 * so the link gets a word of its own (3.2.2). */
static size_t small_chunk(size_t size, size_t align, bool constructed)
{
    return ROUND_UP(size + (constructed ? sizeof(void *) : 0), align);
}

/* Whether objects of this kind take the large layout: the chunk decides, with
 * the extra word of constructed objects. */
bool kmem_is_large(size_t size, size_t align, bool constructed)
{
    align = MAX(align, (size_t)KMEM_ALIGN_MIN);
    return small_chunk(size, align, constructed) >= KMEM_LARGE_MIN;
}

/* Whether a slab of `bytes` leaves at most 1/part of itself unused. */
static inline bool fits(size_t bytes, size_t colour_min, size_t chunk,
                        size_t part)
{
    return bytes >= colour_min + chunk &&
           (bytes - colour_min) % chunk * part <= bytes;
}

/*
 * Pages for a slab of large objects whose first is at `colour_min` or later.
 * Internal fragmentation is at most 12.5 % (3.2, 4th point). A slab of few
 * pages is likelier to become free, so the smallest such slab is taken, unless
 * one of at most KMEM_SLAB_PAGES_TRY pages leaves half as much unused.
 */
size_t kmem_large_pages(size_t colour_min, size_t chunk)
{
    size_t pages = 1;

    for (; pages <= KMEM_SLAB_PAGES_TRY; pages++)
        if (fits(pages * PAGE_SIZE, colour_min, chunk, 16))
            return pages;
    for (pages = 1; !fits(pages * PAGE_SIZE, colour_min, chunk, 8);)
        pages++;
    return pages;
}

/* Chunk, pages, objects and colours of a cache from its size, alignment,
 * constructor and debugging modes (3.2.2, 3.2.3, 4.3). Sets KMF_HASH. */
void kmem_geometry(struct kmem_cache *cp)
{
    bool constructed = cp->cache_ctor != NULL || cp->cache_dtor != NULL;
    size_t space = PAGE_SIZE - sizeof(struct kmem_slab);

    if (MM_DEBUG && kmem_debug_geometry(cp))
        return;
    if (kmem_is_large(cp->cache_size, cp->cache_align, constructed)) {
        cp->cache_flags |= KMF_HASH;
        cp->cache_chunk = ROUND_UP(cp->cache_size, cp->cache_align);
        cp->cache_slab_pages = kmem_large_pages(0, cp->cache_chunk);
        space = cp->cache_slab_pages * PAGE_SIZE;
    } else {
        cp->cache_chunk =
            small_chunk(cp->cache_size, cp->cache_align, constructed);
        cp->cache_slab_pages = 1;
        cp->cache_bufctl = cp->cache_chunk - sizeof(void *);
    }
    cp->cache_slab_chunks = space / cp->cache_chunk;
    cp->cache_colour_max = space % cp->cache_chunk & ~(cp->cache_align - 1);
}

/* ---- pages (7.1) -------------------------------------------------------- */

/* Frees a slab's pages. No lock held. */
void kmem_slab_free_pages(struct kmem_cache *cp, void *base)
{
    const struct kmem_supplier *s = &cp->cache_supplier;

    if (s->getpages != NULL)
        s->freepages(base, cp->cache_slab_pages, s->arg);
    else
        kmem_freepages(base, cp->cache_slab_pages);
}

/* ---- what debugging modes change (6) ------------------------------------ */

/* The cache that the bufctls of a large cache come from. */
inline struct kmem_cache *kmem_bufctls_of(const struct kmem_cache *cp)
{
    return MM_DEBUG && (KMEM_FLAGS(cp) & KMF_MODES) != 0
               ? kmem_bufctl_debug_cache
               : kmem_bufctl_cache;
}

/* Whether objects are constructed at each allocation, not with the slab. */
inline bool kmem_per_alloc(const struct kmem_cache *cp)
{
    return MM_DEBUG && (KMEM_FLAGS(cp) & (KMF_POISON | KMF_OWN_PAGES)) != 0;
}

/* ---- the two layouts ---------------------------------------------------- */

/* Small (3.2.2): threads the freelist through the last words of the buffers,
 * in ascending order. */
static void link_small(struct kmem_cache *cp, struct kmem_slab *sp)
{
    char *link = (char *)kmem_slab_chunk(sp, 0) + cp->cache_bufctl;
    char *last = link + (sp->slab_chunks - 1) * cp->cache_chunk;

    sp->slab_head = (struct kmem_bufctl *)link;
    for (; link != last; link += cp->cache_chunk)
        ((struct kmem_bufctl *)link)->bufctl_next =
            (struct kmem_bufctl *)(link + cp->cache_chunk);
    ((struct kmem_bufctl *)last)->bufctl_next = NULL;
}

/* Frees slab data and bufctls of the large layout. No lock held. */
void kmem_slab_free_data(struct kmem_slab *sp)
{
    struct kmem_cache *from = kmem_bufctls_of(sp->slab_cache);
    struct kmem_bufctl *bcp;

    while ((bcp = sp->slab_head) != NULL) {
        sp->slab_head = bcp->bufctl_next;
        kmem_cache_free(from, bcp);
    }
    kmem_cache_free(kmem_slab_cache, sp);
}

/* Large (3.2.3): a bufctl per buffer; the last comes first, so the freelist is
 * in ascending order too. */
static bool link_large(struct kmem_slab *sp)
{
    struct kmem_cache *from = kmem_bufctls_of(sp->slab_cache);

    for (size_t i = sp->slab_chunks; i-- > 0;) {
        struct kmem_bufctl *bcp = kmem_cache_alloc(from, KM_NOSLEEP);

        if (bcp == NULL)
            return false;
        bcp->bufctl_addr = kmem_slab_chunk(sp, i);
        bcp->bufctl_slab = sp;
        bcp->bufctl_next = sp->slab_head;
        sp->slab_head = bcp;
    }
    return true;
}

/* Slab data and freelist for the pages at `base`; NULL if there is no memory
 * for the slab data of large objects. */
static struct kmem_slab *slab_build(struct kmem_cache *cp, void *base,
                                    size_t colour)
{
    bool large = (KMEM_FLAGS(cp) & KMF_HASH) != 0;
    struct kmem_slab *sp = large ? kmem_cache_alloc(kmem_slab_cache, KM_NOSLEEP)
                                 : kmem_slab_of(base);

    if (sp == NULL)
        return NULL;
    *sp = (struct kmem_slab){
        .slab_cache = cp,
        .slab_base = base,
        .slab_chunks = (uint16_t)cp->cache_slab_chunks,
        .slab_colour = (uint16_t)colour,
        .slab_since = MM_UNLOCKED(kmem_updates),
    };
    if (!large)
        link_small(cp, sp);
    else if (!link_large(sp)) {
        kmem_slab_free_data(sp);
        return NULL;
    }
    return sp;
}

/* ---- creating and destroying a slab (3.2) ------------------------------- */

static void construct_objects(struct kmem_cache *cp, struct kmem_slab *sp)
{
    if (cp->cache_ctor != NULL && !kmem_per_alloc(cp))
        for (size_t i = 0; i < sp->slab_chunks; i++)
            cp->cache_ctor(kmem_slab_chunk(sp, i), cp->cache_size);
}

/* A slab of constructed objects, on no list; NULL if there is no memory. No
 * lock held. */
struct kmem_slab *kmem_slab_create(struct kmem_cache *cp, size_t colour)
{
    const struct kmem_supplier *s = &cp->cache_supplier;
    size_t pages = cp->cache_slab_pages;
    void *base = s->getpages != NULL ? s->getpages(pages, s->arg)
                                     : kmem_getpages(pages, PAGE_SLAB, cp);
    struct kmem_slab *sp;

    if (base == NULL)
        return NULL;
    sp = slab_build(cp, base, colour);
    if (sp == NULL) {
        kmem_slab_free_pages(cp, base);
        return NULL;
    }
    if (MM_DEBUG && (KMEM_FLAGS(cp) & KMF_MODES) != 0)
        kmem_debug_slab(cp, sp);
    construct_objects(cp, sp);
    mm_mark_slab(cp, sp);
    return sp;
}

/* Destroys the objects of a slab that is on no list; afterwards its memory
 * holds none. No lock held. */
void kmem_slab_destroy_objects(struct kmem_cache *cp, struct kmem_slab *sp)
{
    MM_ASSERT(sp->slab_refcnt == 0 && sp->slab_cache == cp);
    mm_unmark_slab(cp, sp);
    if (MM_DEBUG && (KMEM_FLAGS(cp) & KMF_MODES) != 0)
        kmem_debug_slab_end(cp, sp);
    if (cp->cache_dtor != NULL && !kmem_per_alloc(cp))
        for (size_t i = 0; i < sp->slab_chunks; i++)
            cp->cache_dtor(kmem_slab_chunk(sp, i), cp->cache_size);
}

/* Destroys the objects and releases the memory. No lock held. */
void kmem_slab_destroy(struct kmem_cache *cp, struct kmem_slab *sp)
{
    void *base = sp->slab_base;

    kmem_slab_destroy_objects(cp, sp);
    if (KMEM_FLAGS(cp) & KMF_HASH)
        kmem_slab_free_data(sp);
    kmem_slab_free_pages(cp, base);
}

/* The colour of a new slab (4.3). The next one gets the next colour. */
static size_t take_colour(struct kmem_cache *cp)
{
    size_t colour = cp->cache_colour;

    cp->cache_colour = colour < cp->cache_colour_max ? colour + cp->cache_align
                                                     : cp->cache_colour_min;
    return colour;
}

/* Links a new slab in (3.3): it is free, so it goes to the tail; if the cache
 * had no free buffer, it is the head of the freelist too. */
static void slab_enter(struct kmem_cache *cp, struct kmem_slab *sp)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    list_insert_before(&cp->cache_null.slab_link, &sp->slab_link);
    if (cp->cache_freelist == &cp->cache_null)
        cp->cache_freelist = sp;
    cp->cache_free_slabs++;
    cp->cache_slabs++;
    cp->cache_slab_creates++;
    cp->cache_max_slabs = MAX(cp->cache_max_slabs, cp->cache_slabs);
    if (cp->cache_ctor != NULL && !kmem_per_alloc(cp))
        cp->cache_ctors += sp->slab_chunks;
}

/* Adds one slab to the cache, made without its lock; while the cache is held it
 * keeps its geometry. False if there is no memory. */
bool kmem_cache_grow(struct kmem_cache *cp)
{
    struct kmem_slab *sp;
    size_t colour;

    mm_lock(&cp->cache_lock);
    kmem_hold(cp);
    kmem_transfer_begin();
    colour = take_colour(cp);
    mm_unlock(&cp->cache_lock);
    sp = kmem_slab_create(cp, colour);
    mm_lock(&cp->cache_lock);
    kmem_release(cp);
    if (sp != NULL)
        slab_enter(cp, sp);
    else
        cp->cache_colour = colour;
    kmem_transfer_end();
    mm_unlock(&cp->cache_lock);
    return sp != NULL;
}
