/*
 * The other allocators of the sources, and what they share.
 *
 * The slab paper argues against other allocators, and the Linux talk compares
 * three. Each of them is one file here and one record of operations, so that
 * tests, traces and a whole kernel (mm/others/serve.c, `make ALLOCATOR=slob`)
 * can use any of them:
 *
 *     client ──> struct other_allocator ──> struct supply ──> pages
 *                slob.c sunos.c             supply.c, serve.c
 *                bsd.c svr4.c
 *                slmb.c linux_slab.c
 *                linux_slub.c
 *
 * They share the page supplier, the lock and the counts; Linux's also blocks of
 * whole pages (whole.h), and SLAB and SLUB how slabs come and go (slabs.h). How
 * an allocator finds a block is in its own file alone, but SLMB calls SLOB's
 * functions, from which it differs. What checks an allocator is apart, as it is
 * for Slate's own: mm/others/inspect/.
 */
#pragma once

#include "kernel/lib/list.h"
#include "mm/page.h"
#include "mm/platform.h"

/* ---- pages -------------------------------------------------------------- */

/* Room in the descriptor of a page for what its allocator notes of it. */
#define SUPPLY_INFO_WORDS 6

/*
 * A source of pages, with counts and a quota; each allocator has one of its
 * own. The owner fills in the first block of members.
 */
struct supply {
    /* `pages` contiguous pages at a multiple of `align` bytes, or NULL. Called
     * without locks; may not sleep. supply_put frees any of them. */
    void *(*supply_get)(struct supply *s, size_t pages, size_t align);
    void (*supply_put)(struct supply *s, void *addr, size_t pages);
    char *supply_base;   /* no page is below, nor in or above the page */
    size_t supply_pages; /* of this number; each has a descriptor: */
    uintptr_t (*supply_info)[SUPPLY_INFO_WORDS]; /* zeroed */
    uint8_t *supply_used; /* for supply_arena: whether a page is allocated */
    size_t supply_quota;  /* pages that it hands out at most */

    mm_lock_t supply_lock;       /* guards the others */
    struct record *supply_freed; /* records */
    char *supply_room;           /* for more of them: these bytes */
    size_t supply_room_bytes;
    size_t supply_fixed; /* bytes of all pages of records */
    size_t supply_held;
    size_t supply_peak;
    uint64_t supply_returns; /* pages */
};

/* Contiguous pages, or NULL. Their contents are undefined, their descriptors
 * zero. No lock is held. */
void *supply_alloc(struct supply *s, size_t pages, size_t align);

/* Frees a run of pages, whether one call has returned them or several. */
void supply_free(struct supply *s, void *addr, size_t pages);

/* The descriptor of the page that holds `addr`; NULL if none does. */
static inline void *supply_info(const struct supply *s, const void *addr)
{
    size_t i = ((uintptr_t)addr - (uintptr_t)s->supply_base) >> PAGE_SHIFT;

    return i < s->supply_pages ? s->supply_info[i] : NULL;
}

/* And the page that has this descriptor. */
void *supply_page(const struct supply *s, const void *info);

/* Links of free blocks, in 4 bytes: how many 8 bytes a block is from the begin
 * of all pages, plus 1; 0: there is none. */
static inline uint32_t supply_number(const struct supply *s, const void *block)
{
    return (uint32_t)(((uintptr_t)block - (uintptr_t)s->supply_base) / 8) + 1;
}

static inline void *supply_block(const struct supply *s, uint32_t number)
{
    return s->supply_base + (size_t)8 * (number - 1);
}

/*
 * A record of an allocator for each of its caches, zeroed; NULL: there is no
 * memory. Records are descriptors of fixed size, so that they do not count as
 * held, nor are they of the heap, which would have to serve itself then: they
 * come from pages of their own, and begin a line. A record that is freed is for
 * the next cache that needs one of that size. No lock is held.
 */
void *supply_record(struct supply *s, size_t bytes);
void supply_record_free(struct supply *s, void *record, size_t bytes);

/* Pages from `pages` of them at `base`, the lowest suitable address first, so
 * that a run is the same each time. `info` and `used` have an entry each. */
void supply_arena(struct supply *s, void *base, size_t pages, void *info,
                  uint8_t *used);

/* ---- processors --------------------------------------------------------- */

#define OTHER_CPUS 8
#define OTHER_LINE 64 /* bytes that processors share as a whole */

/* How many an allocator keeps lists for, if it keeps any; set before op_init.
 * And which one runs, where only one does: tests and replays pretend that it is
 * another than 0. Where several run, other_enter() says which. */
extern unsigned other_cpus;
extern unsigned other_cpu;

/* Counts cost what the originals, which are compiled to be measured, do not
 * have: with OTHER_COUNTED 0 there are none. */
#ifndef OTHER_COUNTED
#define OTHER_COUNTED 1
#endif

/* ---- an allocator ------------------------------------------------------- */

/*
 * A cache, which the client owns. An allocator that does not know what a cache
 * is constructs an object when it is allocated and destroys it when it is
 * freed. Others construct the objects of a slab when they make it, keep free
 * ones constructed, and destroy them when they return the slab.
 */
struct other_cache {
    size_t other_size;
    size_t other_align; /* a power of two up to PAGE_SIZE; 0: any */
    void (*other_ctor)(void *obj, size_t size); /* NULL: none */
    void (*other_dtor)(void *obj, size_t size);
    void *other_own; /* the allocator's, from op_cache_create on */
    /* counted by the allocator; for clients: other_calls() */
#if MM_MAGAZINES
    struct other_cpu_calls {
        size_t other_allocs; /* words, modulo 2^32, since others read them */
        size_t other_frees;
        size_t other_fails;
        char other_gap[OTHER_LINE - 3 * sizeof(size_t)];
    } other_cpu_calls[OTHER_COUNTED ? OTHER_CPUS : 1];
#else
    uint64_t other_allocs;
    uint64_t other_frees;
    uint64_t other_fails;
#endif
};

/* What the allocator has counted of a cache. */
struct other_calls {
    uint64_t other_allocs;
    uint64_t other_frees; /* never more */
    uint64_t other_fails;
};

struct other_calls other_calls(const struct other_cache *c);

/*
 * Where each byte is. Total fragmentation, the waste of the paper's tables, is
 * what of all held bytes nobody asked for:
 *
 *     stat_held = stat_requested + stat_internal + stat_external +
 *                 stat_metadata
 */
struct other_stat {
    uint64_t stat_allocs;
    uint64_t stat_frees;
    uint64_t stat_fails;
    uint64_t stat_locks; /* how often a lock was taken that processors share */
    size_t stat_held;    /* bytes, as are the next; of all pages */
    size_t stat_requested;
    size_t stat_internal; /* blocks are larger than what was requested */
    size_t stat_external; /* free blocks, also those that wait in queues */
    size_t stat_metadata; /* headers, pages of nodes */
    size_t stat_peak;     /* the most that was held */
    size_t stat_fixed;    /* beside what is held: pages of records */
};

struct other_allocator {
    const char *op_name;
    /* Starts with an empty heap, whatever was there. Holds no page. */
    void (*op_init)(struct supply *s);
    /* Prepares a cache of which the client has set the first members. False:
     * there is no memory for it. NULL: nothing is to be done. */
    bool (*op_cache_create)(struct other_cache *c);
    /* Ends a cache that has no allocated object, and returns the pages that
     * only it uses. NULL: as above. */
    void (*op_cache_destroy)(struct other_cache *c);
    /* NULL: there is no memory. Addresses are multiples of 8, unless the
     * allocator has another least alignment. alloc(0) is OTHER_NOTHING, which
     * free ignores. From interrupts too; no lock is held. */
    void *(*op_cache_alloc)(struct other_cache *c);
    void (*op_cache_free)(struct other_cache *c, void *obj);
    void *(*op_alloc)(size_t size);
    void (*op_free)(void *p, size_t size);
    /* The clock says so many milliseconds: does what is due. NULL: nothing ever
     * is. */
    void (*op_tick)(uint64_t now_ms);
    /* Returns pages that it keeps to save time. NULL: it keeps none. */
    void (*op_pressure)(void);
    void (*op_stat)(struct other_stat *out);
    /* NULL, or the first broken invariant. */
    const char *(*op_check)(void);
};

#define OTHER_NOTHING ((void *)8)

extern const struct other_allocator slob_allocator, sunos_allocator,
    bsd_allocator, svr4_allocator, slmb_allocator, linux_slab_allocator,
    linux_slub_allocator, yours_allocator;

/* The one with which mm/others/serve.c serves mm/kmem.h: the linker's name for
 * one of these. */
extern const struct other_allocator other_served;

static inline bool other_cache_create(const struct other_allocator *a,
                                      struct other_cache *c)
{
    return a->op_cache_create == NULL || a->op_cache_create(c);
}

static inline void other_cache_destroy(const struct other_allocator *a,
                                       struct other_cache *c)
{
    if (a->op_cache_destroy != NULL)
        a->op_cache_destroy(c);
}

/* ---- locks and counts --------------------------------------------------- */

/* Counts of what an allocator does inside, which tests read. All processors
 * would write to them: where several run there are none. */
#define OTHER_ADD(count, n)                                                    \
    (OTHER_COUNTED && !MM_MAGAZINES ? (void)((count) += (n)) : (void)0)

/* What each allocator has. heap_lock guards all of its state, but for what
 * processors keep for themselves. */
struct other_heap {
    mm_lock_t heap_lock;
    struct supply *heap_supply;
    struct other_stat heap_stat; /* where several processors run: of pages; */
#if MM_MAGAZINES
    struct other_cpu_stat {
        size_t stat_allocs; /* the others, as in struct other_cache */
        size_t stat_frees;
        size_t stat_fails;
        size_t stat_locks;
        size_t stat_requested;
        size_t stat_internal;
        size_t stat_external;
        size_t stat_metadata;
    } __attribute__((aligned(OTHER_LINE))) heap_cpu_stat[OTHER_CPUS];
#endif
    struct other_run *heap_back; /* pages to return */
    size_t heap_whole;           /* blocks of other_whole_alloc */
    const char *heap_name;
};

/* The running processor, and the counts to which it adds: interrupts are
 * disabled. */
#if MM_MAGAZINES
#define OTHER_STAT(h)  (&(h)->heap_cpu_stat[mm_cpu_number()])
#define OTHER_CALLS(c) (&(c)->other_cpu_calls[mm_cpu_number()])
#define OTHER_CPU      mm_cpu_number()
#else
#define OTHER_STAT(h)  (&(h)->heap_stat)
#define OTHER_CALLS(c) (c)
#define OTHER_CPU      other_cpu
#endif

void other_init(struct other_heap *h, const char *name, struct supply *s);

/* The descriptor of the page that holds an address which a client frees. */
static inline void *other_page(const struct other_heap *h, const void *addr)
{
    void *page = supply_info(h->heap_supply, addr);

    if (page == NULL)
        mm_panic("%s: %p is not memory", h->heap_name, addr);
    return page;
}

/* The least i such that 1 << i bytes are enough for `size`, which is not 0. */
static inline unsigned other_power(size_t size)
{
    return size == 1 ? 0 : 32 - (unsigned)__builtin_clz((uint32_t)size - 1);
}

/* Here the original takes a lock that its processors share. */
static inline void other_count_lock(struct other_heap *h)
{
    if (OTHER_COUNTED)
        OTHER_STAT(h)->stat_locks++;
}

static inline void other_lock(struct other_heap *h)
{
    mm_lock(&h->heap_lock);
    other_count_lock(h);
}

static inline void other_unlock(struct other_heap *h)
{
    mm_unlock(&h->heap_lock);
}

/*
 * What a processor keeps for itself the original uses with interrupts disabled,
 * and without a lock: from other_enter, which returns its number, to
 * other_leave. In between, from other_share to other_unshare, it may use what
 * processors share; from other_share_part to other_unshare_part, what a lock of
 * its own guards, whose rank is lower. Where only one runs, the heap's lock is
 * what disables interrupts, so that nothing else is needed to share.
 */
static inline unsigned other_enter(struct other_heap *h)
{
#if MM_MAGAZINES
    (void)h;
    mm_cpu_enter();
    return mm_cpu_number();
#else
    mm_lock(&h->heap_lock);
    return other_cpu;
#endif
}

static inline void other_leave(struct other_heap *h)
{
#if MM_MAGAZINES
    (void)h;
    mm_cpu_leave();
#else
    mm_unlock(&h->heap_lock);
#endif
}

static inline void other_share_part(mm_lock_t *lock)
{
#if MM_MAGAZINES
    mm_lock(lock);
#else
    (void)lock;
#endif
}

static inline void other_unshare_part(mm_lock_t *lock)
{
#if MM_MAGAZINES
    mm_unlock(lock);
#else
    (void)lock;
#endif
}

static inline void other_share(struct other_heap *h)
{
    other_share_part(&h->heap_lock);
}

static inline void other_unshare(struct other_heap *h)
{
    other_unshare_part(&h->heap_lock);
}

/* Whether what `lock` guards may be used: for assertions. */
static inline bool other_shares(const struct other_heap *h,
                                const mm_lock_t *lock)
{
    return mm_lock_held(MM_MAGAZINES ? lock : &h->heap_lock);
}

/*
 * Pages for the heap, which counts them. The lock is held; it is released
 * meanwhile, so that others may allocate and free. NULL: there are none.
 */
void *other_get_pages(struct other_heap *h, size_t pages, size_t align);

/* Pages that the heap has no more. They go back when the operation ends, with
 * other_end in the place of other_unlock. */
void other_put_pages(struct other_heap *h, void *at, size_t pages);

void other_return_pages(struct other_heap *h);
static inline void other_end(struct other_heap *h)
{
    if (unlikely(h->heap_back != NULL))
        other_return_pages(h);
    else
        other_unlock(h);
}

/* For allocators that do not know what a cache is: a new object, if there is
 * one, becomes what the cache's client expects; and before it is freed. */
static inline void *other_construct(const struct other_cache *c, void *obj)
{
    if (obj != NULL && c->other_ctor != NULL)
        c->other_ctor(obj, c->other_size);
    return obj;
}

static inline void other_destroy(const struct other_cache *c, void *obj)
{
    if (c->other_dtor != NULL)
        c->other_dtor(obj, c->other_size);
}

/* Calls fn(cpu, arg) for each processor: on it, as an interrupt would, so that
 * fn may use what that processor keeps. No lock is held. While interrupts are
 * disabled, and several processors run, only for this one. */
void other_each_cpu(struct other_heap *h, void (*fn)(unsigned cpu, void *arg),
                    void *arg);

/* From here to other_resume no other processor runs, and the heap's lock and
 * that of its pages are held: for check(), which looks at everything.
 * Interrupts are enabled, and no lock is held. */
void other_stop(struct other_heap *h);
void other_resume(struct other_heap *h);

/* Count the allocation or free of a block of `bytes` for a request of `size`;
 * `header` of them are metadata. `c` is the cache, or NULL. Interrupts are
 * disabled. */
static inline void other_count_alloc(struct other_heap *h,
                                     struct other_cache *c, size_t size,
                                     size_t bytes, size_t header)
{
    __auto_type st = OTHER_STAT(h);

    MM_ASSERT(MM_MAGAZINES || mm_lock_held(&h->heap_lock));
    if (!OTHER_COUNTED)
        return;
    st->stat_allocs++;
    st->stat_requested += size;
    st->stat_metadata += header;
    st->stat_internal += bytes - header - size;
    if (c != NULL)
        OTHER_CALLS(c)->other_allocs++;
}

static inline void other_count_free(struct other_heap *h, struct other_cache *c,
                                    size_t size, size_t bytes, size_t header)
{
    __auto_type st = OTHER_STAT(h);

    MM_ASSERT(MM_MAGAZINES || mm_lock_held(&h->heap_lock));
    if (!OTHER_COUNTED)
        return;
    st->stat_frees++;
    st->stat_requested -= size;
    st->stat_metadata -= header;
    st->stat_internal -= bytes - header - size;
    if (c != NULL)
        OTHER_CALLS(c)->other_frees++;
}

/* So many more bytes are free in held pages: for allocators that do not keep
 * that number themselves. Likewise metadata. */
static inline void other_count_external(struct other_heap *h, ptrdiff_t bytes)
{
    if (OTHER_COUNTED)
        OTHER_STAT(h)->stat_external += (size_t)bytes;
}

static inline void other_count_metadata(struct other_heap *h, ptrdiff_t bytes)
{
    if (OTHER_COUNTED)
        OTHER_STAT(h)->stat_metadata += (size_t)bytes;
}

void other_count_fail(struct other_heap *h, struct other_cache *c);

/* Pages that the heap has got, or returns. Under the lock. */
void other_count_pages(struct other_heap *h, ptrdiff_t pages);

/* All that is counted so far. */
struct other_stat other_total(const struct other_heap *h);

/* The counts of a heap that counts what is free by other_count_external. */
void other_counted_stat(struct other_heap *h, struct other_stat *out);

/* The counts; `external` is what is free. Under the lock. */
void other_stat(struct other_heap *h, size_t external, struct other_stat *out);

/* The check that all allocators share: every byte is accounted for. Under the
 * lock. */
const char *other_check(const struct other_heap *h, size_t external);
