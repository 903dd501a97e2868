/*
 * The slab allocator's structures (paper, section 3.2), for mm/ and for the
 * tests and tools that look inside. Clients include mm/kmem.h.
 *
 * A cache keeps its slabs on one circular list, sorted in three parts. The
 * freelist pointer points to the first slab that has a free buffer (3.3):
 *
 *   cache_null - full - full - partial - partial - free - free -+
 *       ^                         ^                             |
 *       |                   cache_freelist                      |
 *       +-------------------------------------------------------+
 *
 * cache_null is a slab without buffers: the freelist pointer of a cache that
 * has no free buffer points to it. (The paper calls a full slab "empty", since
 * its freelist is, and a free slab "complete", since all its buffers are back.)
 *
 * Small objects, chunks of less than 1/8 page (3.2.2): everything is on one
 * page, and every address is computed. The last word of a free buffer is its
 * link to the next.
 *
 *   |colour|  buf  |  buf  |  buf  | ... |  buf  | unused | kmem_slab |
 *
 * Large objects (3.2.3): slab data and bufctls are objects themselves; a hash
 * table leads from the address of an allocated buffer to its bufctl.
 *
 *   kmem_slab --> bufctl --> bufctl --> bufctl          (the free ones)
 *       |            |          |          |
 *   |colour| buf |  buf  |     buf   |    buf   | unused |
 */
#pragma once

#include "kernel/lib/list.h"
#include "mm/kmem.h"
#include "mm/kmem_mag.h"
#include "mm/platform.h"
#include "mm/segkmem.h"

#ifndef KMEM_LARGE_MIN                 /* a test may have larger pointers */
#define KMEM_LARGE_MIN (PAGE_SIZE / 8) /* chunks of this size are large */
#endif
#define KMEM_SLAB_PAGES_TRY 8  /* the largest slab tried for 1/16 unused */
#define KMEM_HASH_INITIAL   64 /* buckets of a new hash table, the minimum */
#define KMEM_HASH_SMALL     (PAGE_SIZE / 8) /* smaller tables: in kmem_hash */

/* cache_flags is 0 in the common case, small objects without debugging, so that
 * one test finds everything uncommon (section 6). MM_DEBUG is 0 or 1. */
#define KMF_HASH      1u /* large objects */
#define KMF_DESTROYED 2u /* any use of the handle is an error */
#define KMF_WATCH     4u /* a test watches each operation */
#define KMF_DEBUG     (MM_DEBUG * (KMF_WATCH | KMF_MODES))
#define KMF_ANY       (KMF_MODES | 0xffu)

/* A buffer's control block (3.2.1). A small buffer has only the first word. */
struct kmem_bufctl {
    struct kmem_bufctl *bufctl_next; /* on the freelist, or in a hash chain */
    void *bufctl_addr;               /* the buffer */
    struct kmem_slab *bufctl_slab;   /* the slab that it belongs to */
};

/* A slab (3.2.1). The lock of slab_cache guards it. */
struct kmem_slab {
    struct list slab_link;
    struct kmem_cache *slab_cache;
    void *slab_base;               /* its first page */
    struct kmem_bufctl *slab_head; /* freelist; NULL: the slab is full */
    uint32_t slab_refcnt;          /* allocated buffers */
    uint16_t slab_chunks;          /* all buffers */
    uint16_t slab_colour; /* bytes from slab_base to the first buffer */
    uint32_t slab_since;  /* kmem_updates when it became free */
};

/* A cache. cache_lock guards fields that change, except cache_holds (atomic)
 * and cache_link, cache_number (kmem_list_lock). The layout may be read without
 * it while the cache is held or has an allocated object. */
struct kmem_cache {
    mm_lock_t cache_lock; /* first: what every allocation touches */
    uint32_t cache_flags;
    struct kmem_slab *cache_freelist; /* first slab with a free buffer */
    size_t cache_bufctl;              /* small: offset of a buffer's link */
    uint32_t cache_allocs;            /* modulo 2^32: see kmem_count_fold */
    uint32_t cache_frees;
    /* large objects: the hash table */
    struct kmem_bufctl **cache_hash;
    size_t cache_hash_mask;    /* buckets - 1 */
    uint32_t cache_hash_shift; /* log2 of the chunk: address bits to drop */
    /* the list of slabs */
    struct kmem_slab cache_null; /* its head */
    uint32_t cache_slabs;
    uint32_t cache_full_slabs;
    uint32_t cache_free_slabs; /* T of the working set (3.4) */
    uint32_t cache_max_slabs;  /* most at any time */
    uint32_t cache_holds;      /* kmem_hold */
    /* the working set (3.4) */
    uint32_t cache_ws_min;   /* m: least T since the last update */
    uint32_t cache_ws_limit; /* L: m of the interval before */
    uint32_t cache_last_reap_freed;
    uint32_t cache_last_reap_kept;
    uint64_t cache_last_reap_ms;
#if MM_MAGAZINES
    uint32_t cache_rounds;   /* of a full magazine; 0: none may be loaded now */
    uint32_t cache_refilled; /* objects that went from slabs to magazines */
    uint32_t cache_drained;  /* and back */
    uint32_t cache_mag_allocs; /* by processors that gave back what they had */
    uint32_t cache_mag_frees;
    uint64_t cache_served_total; /* at the last fold */
    struct kmem_depot cache_depot[KMEM_DEPOTS];
    struct kmem_cpu_cache *cache_cpu[MM_CPUS_MAX]; /* never NULL */
#endif
    /* set at creation */
    char cache_name[KMEM_NAME_MAX + 1];
    uint32_t cache_number; /* never used by another cache */
    uint8_t cache_kind;    /* enum kmem_kind */
    kmem_ctor_t *cache_ctor;
    kmem_dtor_t *cache_dtor;
    struct kmem_supplier cache_supplier; /* getpages NULL: segkmem */
    struct list cache_link;
    /* geometry: follows from size, alignment, constructor, debugging modes */
    size_t cache_size;
    size_t cache_align;
    size_t cache_chunk;       /* bytes from one buffer to the next */
    size_t cache_slab_pages;  /* pages in a slab */
    size_t cache_slab_chunks; /* buffers in a slab */
    size_t cache_colour;      /* of the next slab (4.3) */
    size_t cache_colour_min;  /* more than 0: room for a redzone */
    size_t cache_colour_max;
    size_t cache_redzone_end; /* debugging: from buffer to redzone's end */
    /* counts */
    uint64_t cache_allocs_total; /* at the last fold */
    uint64_t cache_frees_total;
    uint64_t cache_fails;
    uint64_t cache_ctors;
    uint64_t cache_dtors;
    uint64_t cache_slab_creates;
    uint64_t cache_slab_destroys;
    uint64_t cache_hash_rescales;
    uint64_t cache_hash_depth; /* all lookups: steps after the first */
    uint64_t cache_reaps;
};

/* The slab data of the page that holds a small buffer (3.2.2). */
static inline struct kmem_slab *kmem_slab_of(const void *buf)
{
    return (struct kmem_slab *)(((uintptr_t)buf | PAGE_MASK) + 1) - 1;
}

static inline struct kmem_slab *kmem_slab_next(const struct kmem_slab *sp)
{
    return list_entry(sp->slab_link.next, struct kmem_slab, slab_link);
}

/* Buffer number `i` of a slab. */
static inline void *kmem_slab_chunk(const struct kmem_slab *sp, size_t i)
{
    return (char *)sp->slab_base + sp->slab_colour +
           i * sp->slab_cache->cache_chunk;
}

/* Allocated objects of a cache. */
static inline uint32_t kmem_inuse(const struct kmem_cache *cp)
{
    return cp->cache_allocs - cp->cache_frees;
}

/* How far the allocator is initialized: the caches that can be created. */
enum kmem_state {
    KMEM_DOWN,    /* nothing */
    KMEM_PARTIAL, /* its own caches, of small objects */
    KMEM_LARGE,   /* the size classes, of any objects */
    KMEM_UP,      /* those of clients */
};

extern enum kmem_state kmem_state;
extern mm_lock_t kmem_list_lock; /* LOCK_RANK_CACHE_LIST: guards kmem_caches */
extern struct list kmem_caches;  /* in creation order */

/* The allocator's own caches: it is its own first client. */
extern struct kmem_cache kmem_cache_cache;
extern struct kmem_cache *kmem_slab_cache, *kmem_bufctl_cache, *kmem_hash_cache;

/* The flags, without the lock. Those that say what the layout is stay while the
 * cache is held or has an allocated object. */
#define KMEM_FLAGS(cp) MM_UNLOCKED((cp)->cache_flags)

/*
 * The functions that files of the slab allocator call in each other, by file.
 * Each is described where it is defined.
 */

/* ---- kmem_cache.c: sections 2.3, 3.1, 3.3 ------------------------------- */

struct kmem_bufctl *kmem_slab_take(struct kmem_cache *cp);
void kmem_slab_give(struct kmem_cache *cp, struct kmem_slab *sp,
                    struct kmem_bufctl *bcp);
void kmem_slab_to_front(struct kmem_cache *cp, struct kmem_slab *sp);
void kmem_slab_to_tail(struct kmem_cache *cp, struct kmem_slab *sp);
void kmem_ws_take(struct kmem_cache *cp);
struct kmem_bufctl **kmem_hash_bucket(const struct kmem_cache *cp,
                                      const void *buf);
void kmem_hash_enter(struct kmem_cache *cp, struct kmem_bufctl *bcp);
struct kmem_bufctl *kmem_hash_remove(struct kmem_cache *cp, const void *buf);
bool kmem_give(struct kmem_cache *cp, void *buf);
struct kmem_cache *kmem_list_find(const char *name, const void *handle);
bool kmem_grow_or_wait(struct kmem_cache *cp, int flags);
void kmem_out_of_memory(const char *name, size_t size);
void kmem_cache_setup(struct kmem_cache *cp, const char *name, size_t size,
                      size_t align, kmem_ctor_t *ctor, kmem_dtor_t *dtor,
                      const struct kmem_supplier *supplier);
struct kmem_cache *kmem_must_create(const char *name, size_t size);
void kmem_init_caches(void);

/* ---- kmem_mag.c: section 7.2, where MM_MAGAZINES is 1 -------------------- */

/* kmem_cache_alloc and kmem_cache_free are there then; those of
 * mm/kmem_cache.c, which use the slabs, have these names. */
void *kmem_slab_alloc(struct kmem_cache *cp, int flags);
void kmem_slab_free(struct kmem_cache *cp, void *buf);
uint32_t kmem_take_some(struct kmem_cache *cp, void **to, uint32_t n);

extern uint32_t kmem_mag_enough, kmem_mag_most;

/* What a processor has of a cache while it has nothing: no rounds and no room,
 * so that every operation looks further. */
extern struct kmem_cpu_cache kmem_cpu_none;

#if MM_MAGAZINES
/* What a processor has of the cache. Another processor goes on meanwhile, but
 * gives nothing back as long as cache_lock is held. Volatile: each read is made
 * when it is due, which kmem_mag_fold needs. */
static inline const volatile struct kmem_cpu_cache *
kmem_cpu_cache(const struct kmem_cache *cp, size_t cpu)
{
    struct kmem_cpu_cache *const volatile *cc = &cp->cache_cpu[cpu];

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    return MM_UNLOCKED(*cc);
}
#endif

void kmem_mag_init(void);
void kmem_mag_setup(struct kmem_cache *cp);
void kmem_mag_decide(struct kmem_cache *cp);
void kmem_mag_decide_all(void);
void kmem_mag_disable(void);
void kmem_mag_enable(void);
uint32_t kmem_mag_capacity(const struct kmem_cache *cp);
void kmem_mag_update(struct kmem_cache *cp);
void kmem_mag_reap(struct kmem_cache *cp, enum kmem_reap_mode mode);
void kmem_mag_empty(struct kmem_cache *cp);
void kmem_mag_fold(struct kmem_cache *cp, uint32_t *allocs, uint32_t *frees);
bool kmem_mag_holds(const struct kmem_cache *cp, const void *buf);
const char *kmem_mag_verify(const struct kmem_cache *cp);

/* ---- kmem_slab.c: sections 3.2, 4.3 ------------------------------------- */

bool kmem_is_large(size_t size, size_t align, bool constructed);
size_t kmem_large_pages(size_t colour_min, size_t chunk);
void kmem_geometry(struct kmem_cache *cp);
bool kmem_cache_grow(struct kmem_cache *cp);
struct kmem_cache *kmem_bufctls_of(const struct kmem_cache *cp);
bool kmem_per_alloc(const struct kmem_cache *cp);
struct kmem_slab *kmem_slab_create(struct kmem_cache *cp, size_t colour);
void kmem_slab_destroy(struct kmem_cache *cp, struct kmem_slab *sp);
void kmem_slab_destroy_objects(struct kmem_cache *cp, struct kmem_slab *sp);
void kmem_slab_free_data(struct kmem_slab *sp);
void kmem_slab_free_pages(struct kmem_cache *cp, void *base);

/* ---- kmem_hash.c: section 3.2.3 ----------------------------------------- */

struct kmem_bufctl **kmem_hash_table(struct kmem_cache *cp, size_t buckets);
void kmem_hash_table_free(struct kmem_bufctl **table, size_t buckets);
void kmem_hash_install(struct kmem_cache *cp, struct kmem_bufctl **table);
void kmem_hash_rescale(struct kmem_cache *cp);
size_t kmem_hash_want(size_t buckets, size_t buffers);
size_t kmem_hash_pages(size_t buckets);

/* ---- kmem_alloc.c: section 3.1 ------------------------------------------ */

/* Requests up to this size go directly to the cache of their class. It is
 * KMEM_MAXBUF, or 0 while a class is in a debugging mode: the mode needs the
 * requested size, and a client may free a buffer of that class with the size of
 * any other class. */
extern size_t kmem_direct_max;

/* Allocations of more than the last class, oversize for short. */
extern struct kmem_oversize {
    mm_lock_t oversize_lock; /* guards the others */
    size_t oversize_pages;   /* allocated now */
    uint64_t oversize_allocs;
    uint64_t oversize_frees;
    uint64_t oversize_fails;
} kmem_oversize;

/* ---- kmem_reap.c: section 3.4 ------------------------------------------- */

/* While a cache is held it cannot be destroyed, and its layout cannot begin to
 * change. After kmem_holds has returned 0, no holder accesses it any more. */
#define kmem_hold(cp)                                                          \
    __atomic_fetch_add(&(cp)->cache_holds, 1, __ATOMIC_ACQ_REL)
#define kmem_release(cp)                                                       \
    __atomic_fetch_sub(&(cp)->cache_holds, 1, __ATOMIC_ACQ_REL)
#define kmem_holds(cp) __atomic_load_n(&(cp)->cache_holds, __ATOMIC_ACQUIRE)

extern uint32_t kmem_updates; /* working-set updates until now */

static inline struct kmem_slab *kmem_slab_prev(const struct kmem_slab *sp)
{
    return list_entry(sp->slab_link.prev, struct kmem_slab, slab_link);
}

struct kmem_slab *kmem_slab_pop(struct kmem_cache *cp, enum kmem_reap_mode m);
/* How many slabs a reap may take now. With cache_lock held. */
uint32_t kmem_reapable(const struct kmem_cache *cp, enum kmem_reap_mode mode);
struct kmem_cache *kmem_hold_previous(struct kmem_cache *cp);
void kmem_reap_init(void);
void kmem_count_fold(struct kmem_cache *cp);

/* ---- mm/debug/: section 6, where MM_DEBUG is 1 -------------------------- */

/* check.c: allocation and free in a debugging mode. */
void *kmem_alloc_debug(struct kmem_cache *cp, size_t size, int flags);
void kmem_free_debug(struct kmem_cache *cp, void *buf, size_t size);
void kmem_debug_slab(struct kmem_cache *cp, struct kmem_slab *sp);
void kmem_debug_slab_end(struct kmem_cache *cp, struct kmem_slab *sp);
const char *kmem_debug_verify(const struct kmem_cache *cp,
                              const struct kmem_bufctl *bcp, bool free,
                              const void **at);

/* modes.c: what the modes mean for a cache. */
extern struct kmem_cache *kmem_bufctl_debug_cache; /* bufctls of the layout */

void kmem_debug_init_caches(void);
void kmem_debug_init(void);
bool kmem_debug_geometry(struct kmem_cache *cp);
bool kmem_debug_hashed(const struct kmem_cache *cp, unsigned modes);
uint32_t kmem_debug_flags(const struct kmem_cache *cp);
void *kmem_alloc_sized(struct kmem_cache *cp, size_t size, int flags);
void kmem_free_sized(struct kmem_cache *cp, void *buf, size_t size);

/* handles.c: keeps the structure of a destroyed cache; returns the one to
 * free. */
struct kmem_cache *kmem_handles_exchange(struct kmem_cache *cp);

/* report.c: prints the first allocated objects, and the number of the
 * others. */
void kmem_report_live(struct kmem_cache *cp);
