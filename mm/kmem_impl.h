/*
 * The slab allocator's structures (paper, section 3.2), for mm/ and for the
 * tests and tools that look inside. What takes and gives buffers (section 3.3)
 * is mm/kmem_list.h. Clients include mm/kmem.h.
 *
 * A cache keeps its slabs on one circular list, sorted in three parts, with
 * the freelist pointer at the first slab that has something to give:
 *
 *   cache_null ─ full ─ full ─ partial ─ partial ─ complete ─ complete ─┐
 *       ^                        ^                                      │
 *       │                  cache_freelist                               │
 *       └───────────────────────────────────────────────────────────────┘
 *
 * cache_null is a slab without buffers that closes the circle: an exhausted
 * cache's freelist pointer points to it, and finding no buffer there is the
 * one test for "grow". (The paper calls a slab that has nothing left "empty"
 * and one whose buffers are all free "complete". Here and on screen the former
 * is "full".)
 *
 * Small objects, less than 1/8 page (section 3.2.2). Everything is on one
 * page, and every address is computed:
 *
 *   |colour|  buf  |  buf  |  buf  | ... |  buf  | unused | kmem_slab |
 *                ^ the last word of a free buffer is its bufctl: the link
 *
 * Large objects (section 3.2.3). Slab and bufctls live in caches of their own;
 * a hash table leads from an allocated buffer to its bufctl:
 *
 *   kmem_slab ──> bufctl ──> bufctl ──> bufctl          (free ones)
 *      │            │          │          │
 *      v            v          v          v
 *   |colour| buf |   buf    |   buf    |   buf    | unused |
 */
#pragma once

#include "kernel/lib/list.h"
#include "mm/kmem.h"
#include "mm/debug/debug.h"
#include "mm/platform.h"

/* Objects of this size and more take the large layout: 1/8 page. */
#define KMEM_LARGE_MIN (PAGE_SIZE / 8)

/* The biggest slab that is tried for a waste of 1/16 before 1/8 is enough. */
#define KMEM_SLAB_PAGES_TRY 8

/* A new hash table, in buckets; the table's smallest size for ever. */
#define KMEM_HASH_INITIAL 64

/* Hash tables smaller than this come from the kmem_hash cache. */
#define KMEM_HASH_SMALL (PAGE_SIZE / 8)

/*
 * cache_flags: the one flag word of section 6. In the common case (small
 * objects, no debugging) no bit of KMF_SLOW is set, so that one test tells it
 * from all others. Debugging modes add bits there.
 */
#define KMF_HASH        1u /* large objects: off-slab data and a hash table */
#define KMF_DESTROYED   2u /* the handle is dead: any use is an error */
#define KMF_FAIL        4u /* an allocation is to fail: mm/debug/fail.h */
#define KMF_ELDERS      (MM_DEBUG * 8u)  /* an elder's slabs hold objects */
#define KMF_VERIFY      (MM_DEBUG * 16u) /* operations are counted */
#define KMF_DEBUG       (MM_DEBUG * 32u) /* the debug layout */
#define KMF_MODES_SHIFT 8                /* KMEM_DEBUG_… are bits 8 to 14 */
#define KMF_MODE(modes) ((uint32_t)(modes) << KMF_MODES_SHIFT)
#define KMF_MODES       KMF_MODE(0x7f)
#define KMF_ANY         0xffffu
#define KMF_SLOW        (KMF_ANY & ~KMF_ELDERS)
/* Each slab that dies is an event; those of other caches are counted by the
 * event of the reap that took them. */
#define KMF_SLAB_EVENTS (KMF_DESTROYED | KMF_MODES)
#define KMF_SLOW_FREE   (KMF_ANY & ~KMF_FAIL)

/* A buffer's control block (3.2.1). A small buffer has only the first word of
 * it, in its own last word, while it is free. */
struct kmem_bufctl {
    struct kmem_bufctl *bufctl_next; /* free: freelist; else: hash chain */
    void *bufctl_addr;               /* the buffer */
    struct kmem_slab *bufctl_slab;   /* the slab that it belongs to */
};

/* An allocation or a free out of the common, lock held; lets it go. */
typedef void *kmem_slow_t(struct kmem_cache *cp, int flags);
typedef void kmem_slow_free_t(struct kmem_cache *cp, void *buf);

/* A slab (3.2.1). All members are guarded by the lock of slab_cache. */
struct kmem_slab {
    struct list slab_link; /* first: from link to slab is no arithmetic */
    struct kmem_cache *slab_cache;
    void *slab_base;               /* its first page */
    struct kmem_bufctl *slab_head; /* freelist; NULL if nothing is left */
    uint32_t slab_refcnt;          /* buffers handed out */
    uint32_t slab_chunks;          /* buffers in all */
    uint16_t slab_colour; /* bytes from slab_base to the first buffer */
    uint16_t slab_since;  /* kmem_seconds when it became complete */
};

/*
 * A cache. The first part is what every allocation touches. All that changes
 * is guarded by cache_lock, but cache_link (the list's lock).
 */
struct kmem_cache {
    mm_lock_t cache_lock;
    uint32_t cache_flags;             /* KMF_… */
    struct kmem_slab *cache_freelist; /* first slab with a free buffer */
    size_t cache_bufctl;              /* small: from buffer to its bufctl */
    uint32_t cache_allocs;            /* modulo 2^32; see kmem_count_fold */
    uint32_t cache_frees;
    struct kmem_bufctl **cache_hash; /* large: the table */
    size_t cache_hash_mask;          /* buckets - 1 */
    uint32_t cache_hash_shift;       /* address bits that say nothing */
    kmem_slow_t *cache_alloc_slow;   /* if a bit of KMF_SLOW is set */
    kmem_slow_free_t *cache_free_slow;

    /* slabs and the working set (section 3.4) */
    uint32_t cache_free_slabs;   /* T: complete slabs now */
    uint32_t cache_ws_min;       /* m: least T since the last update */
    uint32_t cache_ws_limit;     /* L: m of the interval before */
    uint32_t cache_full_slabs;   /* slabs with nothing left */
    uint32_t cache_slabs;        /* slabs on the list */
    uint32_t cache_max_slabs;    /* most at any time */
    struct kmem_slab cache_null; /* list head and sentinel */

    /* what it was created with, and what follows from that */
    char cache_name[KMEM_NAME_MAX + 1];
    size_t cache_size;
    size_t cache_align;
    size_t cache_chunk;       /* bytes from one buffer to the next */
    size_t cache_slab_pages;  /* pages in a slab */
    size_t cache_slab_chunks; /* buffers in a slab */
    size_t cache_colour;      /* of the next slab */
    size_t cache_colour_max;
    kmem_ctor_t *cache_ctor;
    kmem_dtor_t *cache_dtor;
    struct kmem_supplier cache_supplier; /* getpages NULL: segkmem */
    uint8_t cache_kind;                  /* enum kmem_kind */
    struct list cache_link;
    uint32_t cache_number;     /* no other cache had it or will */
    uint32_t cache_busy;       /* slabs are made or given up just now */
    uint32_t cache_generation; /* of an elder: the number in its name */

    /* debugging modes (section 6) */
    size_t cache_colour_min;         /* the least colour: room for a redzone */
    uint32_t cache_isolated;         /* buffers of slabs given up */
    size_t cache_redzone_end;        /* Z: from a buffer to its redzone's end */
    struct kmem_cache *cache_elders; /* with older layouts; guarded by */
    struct kmem_cache *cache_heir;   /* kmem_list_lock, as its cache_elders is
                                        the next of the same heir */

    /* counters that only the back end touches */
    uint32_t cache_allocs_seen; /* folded into the 64-bit counts */
    uint32_t cache_frees_seen;
    uint64_t cache_allocs_total;
    uint64_t cache_frees_total;
    uint64_t cache_fails;
    uint64_t cache_slab_creates;
    uint64_t cache_slab_destroys;
    uint64_t cache_hash_rescales;
    uint64_t cache_hash_depth;
    uint64_t cache_reaps;
    uint64_t cache_reaped_slabs;
    uint64_t cache_last_reap_ms;
    uint32_t cache_last_reap_freed;
    uint32_t cache_last_reap_kept;
};

/* How far the allocator has come up; the reason why a call may be too early. */
enum kmem_state {
    KMEM_DOWN,    /* nothing works */
    KMEM_PARTIAL, /* caches of small objects */
    KMEM_LARGE,   /* caches of any objects */
    KMEM_UP,      /* and kmem_alloc */
};

extern enum kmem_state kmem_state;
extern mm_lock_t kmem_list_lock; /* MM_RANK_CACHE_LIST */
extern struct list kmem_caches;  /* in creation order */
extern uint16_t kmem_seconds;    /* a coarse clock, for slab_since */

/* The allocator's own caches: it is its own first client. */
extern struct kmem_cache *kmem_slab_cache;
extern struct kmem_cache *kmem_bufctl_cache;
extern struct kmem_cache *kmem_hash_cache;

/* ---- kmem_cache.c ------------------------------------------------------- */

/* A slab more for a cache that has nothing left, or a wait for memory: true,
 * try again. False: KM_NOSLEEP, and there is none. No lock held. */
bool kmem_grow_or_wait(struct kmem_cache *cp, int flags);

/* The cache of caches. */
extern struct kmem_cache kmem_cache_cache;

/* Fills in a cache of zeroes; no pages yet. The arguments are right. */
void kmem_cache_setup(struct kmem_cache *cp, const char *name, size_t size,
                      size_t align, kmem_ctor_t *ctor, kmem_dtor_t *dtor,
                      const struct kmem_supplier *supplier);

/* The cache of caches and what the large layout stands on. Boot only. */
void kmem_init_caches(void);

/* Ends a KM_SLEEP that nobody can satisfy. */
void kmem_out_of_memory(const char *name, size_t size)
    __attribute__((noreturn, cold));

/* ---- kmem_slab.c (3.2) -------------------------------------------------- */

/* Whether objects of this kind take the large layout: the chunk decides, with
 * the extra word of constructed objects. */
bool kmem_is_large(size_t size, size_t align, bool constructed);

/* Chunk, pages, objects and colours of a cache from its size, alignment and
 * constructor (3.2.2, 3.2.3, 4.3). Sets KMF_HASH. */
void kmem_geometry(struct kmem_cache *cp);

/* A slab of constructed objects, on no list, or NULL. No lock held. */
struct kmem_slab *kmem_slab_create(struct kmem_cache *cp, size_t colour);

/* Destroys the objects and gives the pages back. No lock held; on no list. */
void kmem_slab_destroy(struct kmem_cache *cp, struct kmem_slab *sp);

/* Its two halves: destroys the objects; gives back slab data and bufctls of
 * the large layout, pages. */
void kmem_slab_end(struct kmem_cache *cp, struct kmem_slab *sp);
void kmem_slab_free_data(struct kmem_slab *sp);
void kmem_slab_free_pages(struct kmem_cache *cp, void *base);

/* Pages for a slab of large objects whose first is at `front` or later. */
size_t kmem_large_pages(size_t front, size_t chunk);

/* Adds one slab to the cache. False if there is no memory. No lock held. */
bool kmem_cache_grow(struct kmem_cache *cp);

/* Large objects. */
kmem_slow_t kmem_alloc_large;
kmem_slow_free_t kmem_free_large;

/* ---- kmem_hash.c (3.2.3) ------------------------------------------------ */

bool kmem_hash_create(struct kmem_cache *cp);
void kmem_hash_destroy(struct kmem_cache *cp);

/* Brings the table to the size that the number of buffers asks for, if there
 * is memory for it. No lock held. */
void kmem_hash_rescale(struct kmem_cache *cp);

/* The number of buckets that `buffers` buffers ask of a table of `size`. */
size_t kmem_hash_want(size_t size, size_t buffers);

/* Pages that the table takes, 0 if it is an object of kmem_hash_cache. */
size_t kmem_hash_pages(size_t buckets);

static inline struct kmem_bufctl **kmem_hash_bucket(struct kmem_cache *cp,
                                                    const void *buf)
{
    return &cp->cache_hash[(uintptr_t)buf >> cp->cache_hash_shift &
                           cp->cache_hash_mask];
}

/* Puts the bufctl of a buffer that goes out into the table. Lock held. */
static inline void kmem_hash_enter(struct kmem_cache *cp,
                                   struct kmem_bufctl *bcp)
{
    struct kmem_bufctl **bucket = kmem_hash_bucket(cp, bcp->bufctl_addr);

    bcp->bufctl_next = *bucket;
    *bucket = bcp;
}

/* ---- kmem_alloc.c (3.1) ------------------------------------------------- */

/* Sizes up to this go straight to their class: KMEM_MAXBUF, or 0
 * while the size that was asked for matters to any class. */
extern size_t kmem_direct_max;

/* ---- kmem_reap.c (3.4) -------------------------------------------------- */

/* Takes one complete slab off the tail; NULL if there is none. No lock. */
struct kmem_slab *kmem_slab_pop(struct kmem_cache *cp);

/* A reap is running: the list of caches may not shrink. Guarded by
 * kmem_list_lock. */
extern bool kmem_reaping;

/* Starts the clock of the working set and takes on buddy's pressure. */
void kmem_reap_init(void);

#include "mm/debug/debug_impl.h"

/* ---- shared arithmetic -------------------------------------------------- */

/* The slab data of the page that holds a small object (3.2.2). */
static inline struct kmem_slab *kmem_slab_of(const void *buf)
{
    return (struct kmem_slab *)(((uintptr_t)buf | PAGE_MASK) + 1) - 1;
}

static inline struct kmem_slab *kmem_slab_next(const struct kmem_slab *sp)
{
    return list_entry(sp->slab_link.next, struct kmem_slab, slab_link);
}

static inline struct kmem_slab *kmem_slab_prev(const struct kmem_slab *sp)
{
    return list_entry(sp->slab_link.prev, struct kmem_slab, slab_link);
}

/* The buffer that a bufctl on a freelist stands for. (Addresses, not pointers:
 * the link of a damaged freelist may be any number.) */
static inline void *kmem_bufctl_buf(const struct kmem_cache *cp,
                                    const struct kmem_bufctl *bcp)
{
    return (cp->cache_flags & KMF_HASH) != 0
               ? bcp->bufctl_addr
               : (void *)((uintptr_t)bcp - cp->cache_bufctl);
}

/* The buffer of chunk `i`. */
static inline void *kmem_slab_chunk(const struct kmem_slab *sp, size_t i)
{
    return (char *)sp->slab_base + sp->slab_colour +
           i * sp->slab_cache->cache_chunk;
}

/* Objects out of a cache now. */
static inline uint32_t kmem_inuse(const struct kmem_cache *cp)
{
    return cp->cache_allocs - cp->cache_frees;
}

/* Brings the 64-bit counts up to date. Often enough: an update comes every
 * working-set interval, and 2^32 operations take longer. Lock held. */
static inline void kmem_count_fold(struct kmem_cache *cp)
{
    cp->cache_allocs_total += cp->cache_allocs - cp->cache_allocs_seen;
    cp->cache_allocs_seen = cp->cache_allocs;
    cp->cache_frees_total += cp->cache_frees - cp->cache_frees_seen;
    cp->cache_frees_seen = cp->cache_frees;
}
