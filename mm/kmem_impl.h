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

#ifndef KMEM_LARGE_MIN                 /* a test may have larger pointers */
#define KMEM_LARGE_MIN (PAGE_SIZE / 8) /* chunks of this size are large */
#endif
#define KMEM_SLAB_PAGES_TRY 8  /* the largest slab tried for 1/16 unused */
#define KMEM_HASH_INITIAL   64 /* buckets of a new hash table, the minimum */
#define KMEM_HASH_SMALL     (PAGE_SIZE / 8) /* smaller tables: in kmem_hash */

/* cache_flags is 0 in the common case, small objects without debugging, so that
 * one test finds everything uncommon (section 6). MM_DEBUG is 0 or 1. */
#define KMF_HASH      1u      /* large objects */
#define KMF_DESTROYED 2u      /* any use of the handle is an error */
#define KMF_WATCH     4u      /* a test watches each operation */
#define KMF_MODES     0x7f00u /* debugging modes: mm/kmem_debug.h */
#define KMF_DEBUG     (MM_DEBUG * (KMF_WATCH | KMF_MODES))
#define KMF_ANY       0x7fffu

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
    uint32_t cache_rounds; /* of a full magazine; 0: none may be loaded now */
    uint32_t cache_mag_disabled; /* how often */
    bool cache_mag_off;          /* kmem_mag_set */
    uint32_t cache_refilled;     /* objects that went from slabs to magazines */
    uint32_t cache_drained;      /* and back */
    uint32_t cache_mag_allocs; /* by processors that gave back what they had */
    uint32_t cache_mag_frees;
    uint32_t cache_served_seen; /* at the last fold */
    uint64_t cache_served_total;
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
    uint32_t cache_allocs_seen; /* cache_allocs at the last fold */
    uint32_t cache_frees_seen;
    uint64_t cache_allocs_total;
    uint64_t cache_frees_total;
    uint64_t cache_fails;
    uint64_t cache_ctors;
    uint64_t cache_dtors;
    uint64_t cache_slab_creates;
    uint64_t cache_slab_destroys;
    uint64_t cache_hash_rescales;
    uint64_t cache_hash_depth; /* all lookups: steps after the first */
    uint64_t cache_reaps;
    uint64_t cache_reaped_slabs;
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

#include "mm/kmem_calls.h"
