/*
 * The debugging modes' side of the slab allocator (paper, section 6), for mm/
 * and for the tests and tools that look inside. mm/kmem_impl.h includes it; in
 * a home without them (MM_DEBUG 0) nothing of it is called.
 */
#pragma once

#include "mm/debug/debug.h"
#include "mm/debug/platform.h"

struct kmem_slab;

/*
 * The bufctl of the debug layout (section 6.1): what every buffer of a cache
 * has for as long as its slab lives. Guarded by the cache's lock while the
 * buffer is free, by whoever allocates or frees it between.
 */
struct kmem_bufctl_debug {
    struct kmem_bufctl bufctl; /* first: the rest of mm/ sees only this */
    uint32_t bufctl_state;     /* enum kmem_buf_state */
    uint32_t bufctl_size;      /* bytes asked for last; 0: never given */
    uint32_t bufctl_log;       /* its last transaction's number in the log */
    struct kmem_transaction bufctl_alloc;
    struct kmem_transaction bufctl_free;
};

/* ---- kmem_cache.c -------------------------------------------------------- */

extern struct kmem_cache *kmem_bufctl_debug_cache;

/* ---- kmem_debug.c (6) --------------------------------------------------- */

/* What cache_alloc_slow and cache_free_slow are while any bit but KMF_HASH is
 * set. */
kmem_slow_t kmem_alloc_debug;
kmem_slow_free_t kmem_free_debug;

/* The same from kmem_alloc and kmem_free, which know the size. No lock. */
void *kmem_alloc_sized(struct kmem_cache *cp, size_t size, int flags);
void kmem_free_sized(struct kmem_cache *cp, void *buf, size_t size);

/* Sets cache_alloc_slow and cache_free_slow after a change of cache_flags, and
 * kmem_direct_max. Lock held. */
void kmem_slow_paths(struct kmem_cache *cp);

/* kmem_direct_max; and the log, if kmem.debug= asked for U. Boot only. */
void kmem_debug_init(void);

/* The debug layout's geometry. False, and nothing changed, if the cache's modes
 * do not ask for it. */
bool kmem_debug_geometry(struct kmem_cache *cp);

/* The flags that a new cache begins with: kmem.debug=, kmem.verify=. */
uint32_t kmem_debug_flags(const struct kmem_cache *cp);

/* One operation is done in a cache with KMF_VERIFY. No lock. */
void kmem_verify_count(struct kmem_cache *cp);

/* Whether S and G can be had: the cache's pages are segkmem's, and this home
 * can take a page away. */
bool kmem_debug_can_unmap(const struct kmem_cache *cp);

/* Makes a slab's buffers what free buffers are in the cache's modes; and at the
 * slab's end, checks them and calls the destructors still due. */
void kmem_debug_slab(struct kmem_cache *cp, struct kmem_slab *sp);
void kmem_debug_slab_end(struct kmem_cache *cp, struct kmem_slab *sp);

/* What is wrong with a slab's data, or NULL. Lock held. */
const char *kmem_slab_error(const struct kmem_cache *cp,
                            const struct kmem_slab *sp);

/* What is wrong with the head of a slab's freelist or with the slab, or NULL;
 * *kind says which. Lock held. */
const char *kmem_head_error(const struct kmem_cache *cp,
                            const struct kmem_slab *sp,
                            const struct kmem_bufctl *bcp,
                            enum kmem_error *kind);

/* Gives up a slab whose freelist cannot be trusted. Lock held. */
void kmem_slab_isolate(struct kmem_cache *cp, struct kmem_slab *sp);

/* NULL, or what is wrong with a buffer: its redzone, or being free its poison.
 * *at gets the first wrong byte. */
const char *kmem_debug_damage(const struct kmem_cache *cp,
                              const struct kmem_bufctl_debug *bdp,
                              const void **at, enum kmem_error *kind);

/* Reports damage that kmem_debug_damage found. */
void kmem_error_damage(struct kmem_cache *cp,
                       const struct kmem_bufctl_debug *bdp,
                       enum kmem_error kind, const void *at);

/* Where the bufctls of a large cache come from. */
static inline struct kmem_cache *kmem_bufctls_of(const struct kmem_cache *cp)
{
    return cp->cache_flags & KMF_DEBUG ? kmem_bufctl_debug_cache
                                       : kmem_bufctl_cache;
}

/* Whether objects are constructed with each allocation, not with the slab. */
static inline bool kmem_per_alloc(const struct kmem_cache *cp)
{
    return (cp->cache_flags & KMF_DEBUG) != 0 &&
           (cp->cache_flags & KMF_MODE(KMF_POISON | KMF_FIREWALL)) != 0;
}

/* ---- kmem_stat.c -------------------------------------------------------- */

/* Sets a bit in map[] for each chunk that is allocated; `bits` of them at
 * most. Returns false, having followed no link that leads astray, if the
 * freelist is broken: a cycle, a wrong length, a buffer that is there twice
 * or is no chunk's.
 * Lock held. */
bool kmem_slab_bitmap(const struct kmem_slab *sp, uint8_t *map, size_t bits);

/* The chunk of the slab whose bufctl this is, SIZE_MAX if that leads astray.
 * Lock held. */
size_t kmem_bufctl_chunk(const struct kmem_slab *sp,
                         const struct kmem_bufctl *bcp);

/* ---- kmem_verify.c ------------------------------------------------------ */

/* NULL, or what is wrong with one slab of the cache. Lock held. */
const char *kmem_slab_verify(const struct kmem_cache *cp,
                             const struct kmem_slab *sp);

/* Whether a link of the cache's slab list may be followed: back to the head,
 * or into a slab's data. */
bool kmem_slab_link_plausible(const struct kmem_cache *cp,
                              const struct list *l);

/* How many are just moving pages between segkmem and what a cache or a count
 * says it holds: while anybody is, the sums need not agree. */
extern uint32_t kmem_transfers;

static inline void kmem_transfer_begin(void)
{
    __atomic_fetch_add(&kmem_transfers, 1, __ATOMIC_RELAXED);
}

static inline void kmem_transfer_end(void)
{
    __atomic_fetch_sub(&kmem_transfers, 1, __ATOMIC_RELAXED);
}

/* ---- kmem_elder.c ------------------------------------------------------- */

/* The cache of `cp` and its elders that has `buf` on one of its slabs, or
 * NULL. No lock held. */
struct kmem_cache *kmem_elder_holding(struct kmem_cache *cp, const void *buf);

/* ---- kmem_unmap.c (6.5) ------------------------------------------------- */

/* Buries all complete slabs of the cache. No lock held. */
void kmem_unmap_free_slabs(struct kmem_cache *cp);

/* ---- kmem_guard.c (6.3, 6.4) -------------------------------------------- */

/* Fills memory with a word, byte for byte in its order. */
void kmem_pattern_fill(void *buf, size_t size, uint32_t word);

/* The first byte that is not as kmem_pattern_fill left it, or NULL. */
const void *kmem_pattern_mismatch(const void *buf, size_t size, uint32_t word);

#define KMEM_GUARD_WORD  (KMEM_GUARD * 0x01010101u)
#define KMEM_GUARD_FRONT 8u /* bytes of redzone before a buffer */

/* ---- kmem_report.c (6.8) ------------------------------------------------ */

/* An address was freed that is no buffer out of `cp`: finds out what it is and
 * reports it. `size`: as freed, 0 if unknown. No lock held. */
void kmem_bad_free(struct kmem_cache *cp, const void *buf, size_t size);

/* ---- kmem_walk.c -------------------------------------------------------- */

/* From one chunk to the next, to divide by: 1 if the cache is so broken that it
 * has 0. */
static inline size_t kmem_chunk_step(const struct kmem_cache *cp)
{
    return MAX(cp->cache_chunk, (size_t)1);
}

/* Whether `bcp` can be a bufctl of the cache at all: it lies on a page of the
 * bufctl cache; of a small one, on one of its own. */
bool kmem_bufctl_plausible(const struct kmem_cache *cp,
                           const struct kmem_bufctl *bcp);

/* The same for the slab data of the large layout. */
bool kmem_slab_plausible(const struct kmem_slab *sp);

/* What is known of the buffer that a bufctl of the debug layout stands for. */
void kmem_bufctl_stat(const struct kmem_bufctl_debug *bdp,
                      struct kmem_buf_stat *out);

/* The slab behind this one, NULL at the end of the list and where it leads
 * astray. Lock held. */
struct kmem_slab *kmem_slab_after(struct kmem_cache *cp,
                                  const struct kmem_slab *sp);

/* Slab number `n` of the cache in list order, or NULL; a broken circle ends by
 * the count, and no link is followed that leads astray. Lock held. */
struct kmem_slab *kmem_slab_number(struct kmem_cache *cp, size_t n);

/* The slab of `cp` whose pages hold `addr`, or NULL. Lock held. */
struct kmem_slab *kmem_slab_holding(struct kmem_cache *cp, const void *addr);
