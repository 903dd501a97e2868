/*
 * Snapshots of the slab allocator as data (paper, section 3.1); the caller
 * decides how to print them.
 *
 * Nothing here allocates. A cache's lock is held only while one row is
 * copied. Walks are bounded by the cache's own counts.
 */
#pragma once

#include "mm/kmem.h"

#define KMEM_STAT_LARGE  1 /* off-slab data and a hash table */
#define KMEM_STAT_CTOR   2
#define KMEM_STAT_DTOR   4
#define KMEM_STAT_SUPPLY 8 /* pages from a supplier of its own */

struct kmem_cache_stat {
    char stat_name[KMEM_NAME_MAX + 1];
    enum kmem_kind stat_kind;
    unsigned stat_flags;
    unsigned stat_modes; /* KMF_… */
    /* geometry */
    size_t stat_size; /* bytes that the client asked for */
    size_t stat_align;
    size_t stat_chunk; /* bytes from one buffer to the next */
    size_t stat_slab_pages;
    size_t stat_slab_objects;
    size_t stat_slab_left;  /* unused bytes in a slab, coloured or not */
    size_t stat_colour_min; /* more than 0: room for a redzone */
    size_t stat_colour_max;
    size_t stat_colour_next;
    size_t stat_redzone_end; /* from a buffer to the end of its redzone; 0: it
                                has none */
    uintptr_t stat_ctor;
    uintptr_t stat_dtor;
    /* objects and slabs now */
    size_t stat_inuse;
    size_t stat_trapped; /* free, in magazines */
    size_t stat_total;
    size_t stat_slabs;
    size_t stat_full_slabs; /* all objects allocated: the paper's "empty" */
    size_t stat_partial_slabs;
    size_t stat_free_slabs; /* all objects free; equals T */
    size_t stat_slab_bytes; /* pages of slabs */
    size_t stat_hash_bytes; /* hash table: whole pages, or 0 if it is a
                               kmem_hash object, counted there */
    size_t stat_mem;        /* slab_bytes + hash_bytes */
    size_t stat_max_slabs;
    /* traffic since creation */
    uint64_t stat_allocs;
    uint64_t stat_frees;
    uint64_t stat_fails;
    uint64_t stat_slab_creates;
    uint64_t stat_slab_destroys;
    uint64_t stat_ctors;
    uint64_t stat_dtors;
    /* hash, if large */
    size_t stat_hash_size; /* buckets */
    uint64_t stat_hash_rescales;
    uint64_t stat_hash_depth; /* steps beyond the first, all frees */
    /* working set */
    size_t stat_ws_min;   /* m */
    size_t stat_ws_limit; /* L */
    size_t stat_reapable; /* slabs that a reap would free now */
    uint64_t stat_reaps;
    uint64_t stat_last_reap_ms; /* clock at the last reap; 0 = never */
    size_t stat_last_reap_freed;
    size_t stat_last_reap_kept;
};

struct kmem_oversize_stat {
    size_t stat_inuse; /* allocated now, of more than the last class */
    size_t stat_pages;
    uint64_t stat_allocs;
    uint64_t stat_frees;
    uint64_t stat_fails;
};

enum kmem_slab_state {
    KMEM_SLAB_FULL,
    KMEM_SLAB_PARTIAL,
    KMEM_SLAB_FREE
};

#define KMEM_CHUNKS_MAX 512 /* no slab has more: 8 bytes in a page */

struct kmem_slab_stat {
    uintptr_t stat_slab; /* address of the kmem_slab */
    uintptr_t stat_base; /* its first page */
    size_t stat_bytes;
    size_t stat_colour;
    size_t stat_refcnt;
    size_t stat_chunks;
    enum kmem_slab_state stat_state;
    bool stat_freelist;         /* the cache's freelist pointer points here */
    bool stat_bad;              /* the slab breaks an invariant */
    uint32_t stat_idle_updates; /* working-set updates since it became free;
                                   0 if it is not */
    uint8_t stat_map[KMEM_CHUNKS_MAX / 8]; /* a bit per chunk: allocated */
};

static inline bool kmem_slab_used(const struct kmem_slab_stat *st, size_t i)
{
    return st->stat_map[i / 8] >> (i % 8) & 1;
}

/* The caches in creation order: first(), then next() until NULL. No other task
 * may destroy the cache that the caller looks at; only the shell destroys
 * caches. */
struct kmem_cache *kmem_cache_first(void);
struct kmem_cache *kmem_cache_next(struct kmem_cache *cp);

void kmem_cache_stat(struct kmem_cache *cp, struct kmem_cache_stat *out);

/* Magazines (mm/kmem_mag.h), where MM_MAGAZINES is 1. */
struct kmem_depot_stat {
    uint32_t stat_total; /* T */
    uint32_t stat_min;   /* m */
    uint32_t stat_limit; /* L */
};

struct kmem_mag_stat {
    uint32_t stat_rounds; /* of a full magazine; 0: the cache has none */
    uint32_t stat_cpus;   /* processors that have some of this cache */
    uint64_t stat_served; /* allocations and frees of the cache's */
    struct kmem_depot_stat stat_full; /* those that no processor has */
    struct kmem_depot_stat stat_empty;
};

void kmem_mag_stat(struct kmem_cache *cp, struct kmem_mag_stat *out);

/* The row of cache number `n` in that order; other tasks may destroy caches
 * meanwhile. False if there are no more. */
bool kmem_cache_stat_number(size_t n, struct kmem_cache_stat *out);

void kmem_oversize_stat(struct kmem_oversize_stat *out);

/* Slab number `n` of the cache in list order. False if there is none, or the
 * list has an invalid link before it. */
bool kmem_slab_stat(struct kmem_cache *cp, size_t n,
                    struct kmem_slab_stat *out);

/* What an allocated object of one of the allocator's own caches is. */
enum kmem_own {
    KMEM_OWN_OTHER,
    KMEM_OWN_BUFCTL, /* of the buffer at own_at */
    KMEM_OWN_SLAB,   /* the slab data of own_cache; own_at: its first page */
    KMEM_OWN_HASH,   /* the hash table of own_cache, NULL: of none */
    KMEM_OWN_CACHE,  /* own_cache itself */
};

struct kmem_own_stat {
    enum kmem_own own_kind;
    const struct kmem_cache *own_cache; /* may be invalid */
    uintptr_t own_at;
};

void kmem_own_stat(const struct kmem_cache *cp, const void *obj,
                   struct kmem_own_stat *out);

/* Chain lengths of a hashed cache: histogram[i] counts buckets with i entries,
 * the last one those with at least `len - 1`. Returns the longest chain. */
size_t kmem_hash_stat(struct kmem_cache *cp, size_t *histogram, size_t len);

/* The cache and slab that hold `addr`, and the index of its chunk. NULL if no
 * slab does. *index is SIZE_MAX for slab bytes outside every chunk. */
struct kmem_cache *kmem_slab_lookup(const void *addr,
                                    struct kmem_slab_stat *slab, size_t *index);
