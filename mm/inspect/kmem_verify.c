/*
 * Every invariant of the slab allocator, as code.
 *
 * A walk over all caches, slabs, freelists and hash chains that stops at the
 * first error, and follows no pointer that it has not checked. It needs no
 * debugging mode: counts, lists and links already say a lot. Each walk is
 * bounded by a count, so it ends on a circle too.
 */
#include "kernel/lib/printf.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/inspect/kmem_walk.h"

static char where_text[96];

static const char *at_cache(const struct kmem_cache *cp, const char *why)
{
    snprintf(where_text, sizeof(where_text), "cache %.31s (%p)", cp->cache_name,
             (const void *)cp);
    return why;
}

static const char *at_slab(const struct kmem_slab *sp, const char *why)
{
    snprintf(where_text, sizeof(where_text), "slab %p", (const void *)sp);
    return why;
}

static const char *at_bufctl(const struct kmem_bufctl *bcp, const char *why)
{
    snprintf(where_text, sizeof(where_text), "bufctl %p", (const void *)bcp);
    return why;
}

/* ---- geometry ----------------------------------------------------------- */

static const char *verify_geometry(const struct kmem_cache *cp)
{
    size_t align = cp->cache_align;
    size_t bytes = cp->cache_slab_pages * PAGE_SIZE;

    if (MM_DEBUG && ((cp->cache_flags & KMF_HASH) != 0) !=
                        kmem_debug_hashed(cp, cp->cache_flags & KMF_MODES))
        return at_cache(cp, "hash table does not follow from size and modes");
    if (align < KMEM_ALIGN_MIN || (align & (align - 1)) != 0)
        return at_cache(cp, "alignment is not a power of two");
    if (cp->cache_chunk < cp->cache_size)
        return at_cache(cp, "chunk is smaller than the object");
    if (cp->cache_chunk % align != 0)
        return at_cache(cp, "chunk is not a multiple of the alignment");
    if ((cp->cache_flags & KMF_HASH) == 0)
        bytes -= sizeof(struct kmem_slab);
    if (cp->cache_flags & KMF_OWN_PAGES)
        bytes += cp->cache_colour_min; /* the chunk begins before its buffer */
    if (cp->cache_slab_chunks == 0 ||
        cp->cache_slab_chunks * cp->cache_chunk + cp->cache_colour_max > bytes)
        return at_cache(cp, "chunks and colour do not fit the slab");
    if (cp->cache_colour > cp->cache_colour_max ||
        cp->cache_colour < cp->cache_colour_min ||
        cp->cache_colour % align != 0)
        return at_cache(cp, "next colour is out of range");
    return NULL;
}

/* ---- one slab ----------------------------------------------------------- */

static bool pages_marked(const struct kmem_cache *cp,
                         const struct kmem_slab *sp)
{
    const struct page *p = virt_to_page(sp->slab_base);

    if (cp->cache_supplier.getpages != NULL)
        return true;
    if (p == NULL || page_index(p) + cp->cache_slab_pages > page_count)
        return false;
    for (size_t i = 0; i < cp->cache_slab_pages; i++)
        if (p[i].page_state != PAGE_SLAB || p[i].page_owner != cp)
            return false;
    return true;
}

/* NULL, or the error in the data of a slab, apart from its links and its
 * freelist. */
const char *kmem_slab_data_error(const struct kmem_cache *cp,
                                 const struct kmem_slab *sp)
{
    if (sp->slab_cache != cp)
        return "slab belongs to another cache";
    if (((uintptr_t)sp->slab_base & PAGE_MASK) != 0)
        return "slab base is not page aligned";
    if (sp->slab_chunks != cp->cache_slab_chunks)
        return "slab has another number of chunks";
    if (sp->slab_colour > cp->cache_colour_max ||
        sp->slab_colour < cp->cache_colour_min ||
        (sp->slab_colour & (cp->cache_align - 1)) != 0)
        return "slab colour is out of range";
    if (sp->slab_refcnt > sp->slab_chunks)
        return "reference count exceeds the chunks";
    return NULL;
}

/* NULL, or the broken invariant of one slab. */
const char *kmem_slab_verify(const struct kmem_cache *cp,
                             const struct kmem_slab *sp)
{
    uint8_t map[KMEM_CHUNKS_MAX / 8];
    const char *why = kmem_slab_data_error(cp, sp);

    if (why != NULL)
        return why;
    if ((cp->cache_flags & KMF_HASH) == 0 && kmem_slab_of(sp->slab_base) != sp)
        return "slab data is not at the end of its page";
    if (!pages_marked(cp, sp))
        return "slab pages are not marked as the cache's";
    if (!kmem_slab_bitmap(sp, map, KMEM_CHUNKS_MAX))
        return "freelist does not match the reference count";
    return NULL;
}

/* ---- the slab list ------------------------------------------------------ */

struct tally {
    size_t slabs;
    size_t inuse;
    size_t full;
    size_t free;
    unsigned last;                 /* rank of the slab before */
    const struct kmem_slab *first; /* with a free buffer */
};

/* 0 full, 1 partial, 2 free: ascending along the list. */
static unsigned rank(const struct kmem_slab *sp)
{
    if (sp->slab_head == NULL)
        return 0;
    return sp->slab_refcnt != 0 ? 1 : 2;
}

static void count_slab(struct tally *t, const struct kmem_slab *sp)
{
    t->slabs++;
    t->inuse += sp->slab_refcnt;
    t->full += rank(sp) == 0;
    t->free += rank(sp) == 2;
    if (t->first == NULL && sp->slab_head != NULL)
        t->first = sp;
}

/* One slab at its place in the list: after `prev`, of no lower rank than
 * t->last. */
static const char *verify_place(const struct kmem_cache *cp,
                                const struct list *l, const struct list *prev,
                                struct tally *t)
{
    const struct kmem_slab *sp = list_entry(l, struct kmem_slab, slab_link);
    const char *why;

    if (l->prev != prev)
        return at_slab(sp, "slab list links disagree");
    if (t->slabs == cp->cache_slabs)
        return at_cache(cp, "slab list is longer than its count");
    why = kmem_slab_verify(cp, sp);
    if (why != NULL)
        return at_slab(sp, why);
    if (rank(sp) < t->last)
        return at_slab(sp, "slab list is out of order");
    t->last = rank(sp);
    count_slab(t, sp);
    return NULL;
}

static const char *verify_list(const struct kmem_cache *cp, struct tally *t)
{
    const struct list *head = &cp->cache_null.slab_link;
    const struct list *prev = head;

    for (const struct list *l = head->next;; l = l->next) {
        const char *why;

        if (!kmem_slab_link_plausible(cp, l))
            return at_cache(cp, "slab list has an invalid link");
        if (l == head)
            break;
        why = verify_place(cp, l, prev, t);
        if (why != NULL)
            return why;
        prev = l;
    }
    if (head->prev != prev)
        return at_cache(cp, "slab list links disagree");
    return NULL;
}

static const char *verify_counts(const struct kmem_cache *cp,
                                 const struct tally *t)
{
    const struct kmem_slab *first = t->first ? t->first : &cp->cache_null;

    if (t->slabs != cp->cache_slabs)
        return at_cache(cp, "slab list is shorter than its count");
    if (cp->cache_slab_creates - cp->cache_slab_destroys != t->slabs)
        return at_cache(cp, "slabs are not those created less destroyed");
    if (cp->cache_max_slabs < t->slabs)
        return at_cache(cp, "most slabs ever is less than those there are");
    if (t->inuse != kmem_inuse(cp))
        return at_cache(cp, "objects in use are not allocations less frees");
    if (t->full != cp->cache_full_slabs)
        return at_cache(cp, "count of full slabs is wrong");
    if (t->free != cp->cache_free_slabs)
        return at_cache(cp, "count of free slabs (T) is wrong");
    if (cp->cache_ws_min > cp->cache_free_slabs)
        return at_cache(cp, "working set: m exceeds T");
    if (cp->cache_freelist != first)
        return at_cache(cp, "freelist pointer is not the first free slab");
    return NULL;
}

/* ---- the hash table ----------------------------------------------------- */

static const char *verify_entry(struct kmem_cache *cp,
                                const struct kmem_bufctl *bcp, size_t bucket)
{
    const struct kmem_slab *sp;

    if (!kmem_bufctl_plausible(cp, bcp))
        return at_bufctl(bcp, "hash chain has an invalid link");
    if (kmem_hash_bucket(cp, bcp->bufctl_addr) != &cp->cache_hash[bucket])
        return at_bufctl(bcp, "bufctl is in the wrong hash bucket");
    sp = bcp->bufctl_slab;
    if (sp == NULL || !kmem_slab_link_plausible(cp, &sp->slab_link) ||
        sp->slab_cache != cp)
        return at_bufctl(bcp, "bufctl points to a slab of another cache");
    if (kmem_bufctl_chunk(sp, bcp) == SIZE_MAX)
        return at_bufctl(bcp, "bufctl's address is no chunk of its slab");
    return NULL;
}

static const char *verify_hash(struct kmem_cache *cp)
{
    size_t entries = 0;

    for (size_t i = 0; i <= cp->cache_hash_mask; i++) {
        const struct kmem_bufctl *bcp = cp->cache_hash[i];

        for (; bcp != NULL; bcp = bcp->bufctl_next) {
            const char *why = verify_entry(cp, bcp, i);

            if (why != NULL)
                return why;
            if (++entries > kmem_inuse(cp))
                return at_cache(cp, "hash holds more than the objects in use");
        }
    }
    if (entries < kmem_inuse(cp))
        return at_cache(cp, "hash holds less than the objects in use");
    return NULL;
}

/* ---- the debugging modes (section 6) ------------------------------------ */

/* The state and contents of one buffer. */
static const char *verify_buffer(const struct kmem_cache *cp,
                                 const struct kmem_bufctl *bcp, bool free)
{
    const void *at;
    const char *why = kmem_debug_verify(cp, bcp, free, &at);

    if (at == NULL)
        return why == NULL ? NULL : at_bufctl(bcp, why);
    snprintf(where_text, sizeof(where_text), "buffer %p of %s, at %p",
             bcp->bufctl_addr, cp->cache_name, at);
    return why;
}

/* Every buffer, free or allocated; the lists have been found right. */
static const char *verify_debug(struct kmem_cache *cp)
{
    const struct kmem_slab *sp = kmem_slab_next(&cp->cache_null);
    const char *why = NULL;

    for (; sp != &cp->cache_null; sp = kmem_slab_next(sp))
        for (const struct kmem_bufctl *bcp = sp->slab_head;
             bcp != NULL && why == NULL; bcp = bcp->bufctl_next)
            why = verify_buffer(cp, bcp, true);
    for (size_t i = 0; i <= cp->cache_hash_mask && why == NULL; i++)
        for (const struct kmem_bufctl *bcp = cp->cache_hash[i];
             bcp != NULL && why == NULL; bcp = bcp->bufctl_next)
            why = verify_buffer(cp, bcp, false);
    return why;
}

/* ---- all of it ---------------------------------------------------------- */

static const char *verify_cache(struct kmem_cache *cp)
{
    struct tally t = {0};
    const char *why = verify_geometry(cp);

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (why == NULL)
        why = verify_list(cp, &t);
    if (why == NULL)
        why = verify_counts(cp, &t);
    if (why == NULL && (cp->cache_flags & KMF_HASH))
        why = verify_hash(cp);
    if (MM_MAGAZINES && why == NULL && (why = kmem_mag_verify(cp)) != NULL)
        at_cache(cp, why);
    if (why == NULL && MM_DEBUG && (cp->cache_flags & KMF_MODES) != 0)
        why = verify_debug(cp);
    return why;
}

const char *kmem_cache_verify(struct kmem_cache *cp, const char **where)
{
    const char *why;

    mm_lock(&cp->cache_lock);
    why = verify_cache(cp);
    mm_unlock(&cp->cache_lock);
    *where = why == NULL ? NULL : where_text;
    return why;
}

/* Pages of slabs and hash tables, as the caches count them. */
static void sum_pages(size_t *slab, size_t *hash)
{
    MM_ASSERT(mm_lock_held(&kmem_list_lock));
    list_for_each (l, &kmem_caches) {
        struct kmem_cache *cp = list_entry(l, struct kmem_cache, cache_link);

        mm_lock(&cp->cache_lock);
        if (cp->cache_supplier.getpages == NULL)
            *slab += cp->cache_slabs * cp->cache_slab_pages;
        if (cp->cache_flags & KMF_HASH)
            *hash += kmem_hash_pages(cp->cache_hash_mask + 1);
        mm_unlock(&cp->cache_lock);
    }
}

/* Whether the caches hold the pages that segkmem counts, unless pages were
 * moving meanwhile. */
static const char *verify_sums(void)
{
    uint32_t begun = __atomic_load_n(&kmem_transfers_begun, __ATOMIC_SEQ_CST);
    bool moving = __atomic_load_n(&kmem_transfers, __ATOMIC_SEQ_CST) != 0;
    struct kmem_oversize_stat oversize;
    struct segkmem_stat seg;
    size_t slab = 0;
    size_t hash = 0;
    size_t unmapped = MM_DEBUG ? kmem_unmapped_pages() : 0;
    const char *why = NULL;

    sum_pages(&slab, &hash);
    kmem_oversize_stat(&oversize);
    segkmem_stat(&seg);
    if (slab != seg.stat_use[PAGE_SLAB])
        why = "slab pages of all caches are not segkmem's";
    else if (hash != seg.stat_use[PAGE_HASH])
        why = "hash pages of all caches are not segkmem's";
    else if (unmapped != seg.stat_use[PAGE_UNMAPPED])
        why = "unmapped pages are not segkmem's";
    else if (oversize.stat_pages != seg.stat_use[PAGE_OVERSIZE])
        why = "oversize pages are not segkmem's";
    if (why == NULL || moving ||
        begun != __atomic_load_n(&kmem_transfers_begun, __ATOMIC_SEQ_CST))
        return NULL;
    snprintf(where_text, sizeof(where_text),
             "segkmem: %zu slab, %zu hash, %zu oversize pages",
             seg.stat_use[PAGE_SLAB], seg.stat_use[PAGE_HASH],
             seg.stat_use[PAGE_OVERSIZE]);
    return why;
}

const char *kmem_verify(const char **where)
{
    struct kmem_cache *cp = NULL;
    const char *why = NULL;

    while (why == NULL && (cp = kmem_hold_previous(cp)) != NULL)
        why = kmem_cache_verify(cp, where);
    if (cp != NULL)
        kmem_release(cp);
    if (why == NULL) { /* with the list's lock no cache is destroyed */
        mm_lock(&kmem_list_lock);
        why = verify_sums();
        mm_unlock(&kmem_list_lock);
    }
    *where = why == NULL ? NULL : where_text;
    return why;
}
