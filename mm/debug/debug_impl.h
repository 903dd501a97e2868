/*
 * Section 6 of the paper, for the files of mm/ and for the tests and tools that
 * look inside. Each function is described where it is defined. In a home
 * without debugging modes (MM_DEBUG 0) nothing of it is called.
 */
#pragma once

#include "mm/debug/debug.h"
#include "mm/debug/platform.h"
#include "mm/kmem_impl.h"

/* The bufctl of the debug layout (6.1), one for each buffer as long as its slab
 * exists. The cache's lock guards it; that of a KMEM_BUF_BUSY buffer belongs to
 * the task that allocates or frees the buffer. */
struct kmem_bufctl_debug {
    struct kmem_bufctl bufctl; /* first: the rest of mm/ sees only this */
    uint32_t bufctl_state;     /* enum kmem_buf_state */
    uint32_t bufctl_size;      /* bytes asked for last; 0: never allocated */
    uint32_t bufctl_log;       /* its last transaction's number in the log */
    struct kmem_transaction bufctl_alloc;
    struct kmem_transaction bufctl_free;
};

extern struct kmem_cache *kmem_bufctl_debug_cache;

/* ---- check.c: sections 6.2 to 6.4, 6.6 ---------------------------------- */

void *kmem_alloc_debug(struct kmem_cache *cp, size_t size, int flags);
void kmem_free_debug(struct kmem_cache *cp, void *buf, size_t size);
void *kmem_alloc_sized(struct kmem_cache *cp, size_t size, int flags);
void kmem_free_sized(struct kmem_cache *cp, void *buf, size_t size);
void kmem_debug_slab(struct kmem_cache *cp, struct kmem_slab *sp);
void kmem_debug_slab_end(struct kmem_cache *cp, struct kmem_slab *sp);
const char *kmem_debug_damage(const struct kmem_cache *cp,
                              const struct kmem_bufctl_debug *bdp, bool free,
                              const void **at, enum kmem_error *kind);

/* ---- modes.c ------------------------------------------------------------ */

void kmem_debug_init(void);
bool kmem_debug_geometry(struct kmem_cache *cp);
uint32_t kmem_debug_flags(const struct kmem_cache *cp);
void kmem_verify_count(struct kmem_cache *cp);

/* Where the bufctls of a large cache come from. */
static inline struct kmem_cache *kmem_bufctls_of(const struct kmem_cache *cp)
{
    return MM_DEBUG && (cp->cache_flags & KMF_LAYOUT) != 0
               ? kmem_bufctl_debug_cache
               : kmem_bufctl_cache;
}

/* Whether objects are constructed with each allocation, not with the slab. */
static inline bool kmem_per_alloc(const struct kmem_cache *cp)
{
    return MM_DEBUG && (cp->cache_flags & (KMF_POISON | KMF_FIREWALL)) != 0;
}

/* ---- isolate.c ---------------------------------------------------------- */

const char *kmem_slab_error(const struct kmem_cache *cp,
                            const struct kmem_slab *sp);
const char *kmem_head_error(const struct kmem_cache *cp,
                            const struct kmem_slab *sp,
                            const struct kmem_bufctl *bcp,
                            enum kmem_error *kind);
void kmem_slab_isolate(struct kmem_cache *cp, struct kmem_slab *sp);

/* ---- unmap.c: section 6.5 ----------------------------------------------- */

void kmem_unmap_free_slabs(struct kmem_cache *cp);

/* ---- pattern.c: sections 6.3, 6.4 --------------------------------------- */

void kmem_pattern_fill(void *buf, size_t size, uint32_t word);
const void *kmem_pattern_mismatch(const void *buf, size_t size, uint32_t word);

#define KMEM_GUARD_WORD  (KMEM_GUARD * 0x01010101u)
#define KMEM_GUARD_FRONT 8u /* bytes of redzone before a buffer */

/* ---- report.c: section 6.8 ---------------------------------------------- */

void kmem_bad_free(struct kmem_cache *cp, const void *buf, size_t size);
void kmem_error_damage(struct kmem_cache *cp,
                       const struct kmem_bufctl_debug *bdp,
                       enum kmem_error kind, const void *at);

/* ---- walk.c: bounded, follows no link that it has not checked ----------- */

/* From one chunk to the next, to divide by: 1 if the cache is so damaged that
 * it says 0. */
static inline size_t kmem_chunk_step(const struct kmem_cache *cp)
{
    return MAX(cp->cache_chunk, (size_t)1);
}

void *kmem_bufctl_buf(const struct kmem_cache *cp,
                      const struct kmem_bufctl *bcp);
bool kmem_bufctl_plausible(const struct kmem_cache *cp,
                           const struct kmem_bufctl *bcp);
bool kmem_slab_plausible(const struct kmem_slab *sp);
struct kmem_bufctl *kmem_hash_find(struct kmem_cache *cp, const void *buf,
                                   bool *astray);
void kmem_bufctl_stat(const struct kmem_bufctl_debug *bdp,
                      struct kmem_buf_stat *out);
struct kmem_slab *kmem_slab_after(struct kmem_cache *cp,
                                  const struct kmem_slab *sp);
struct kmem_slab *kmem_slab_number(struct kmem_cache *cp, size_t n);
struct kmem_slab *kmem_slab_holding(struct kmem_cache *cp, const void *addr);

/* ---- kmem_stat.c, kmem_verify.c ----------------------------------------- */

bool kmem_slab_bitmap(const struct kmem_slab *sp, uint8_t *map, size_t bits);
size_t kmem_bufctl_chunk(const struct kmem_slab *sp,
                         const struct kmem_bufctl *bcp);
const char *kmem_slab_verify(const struct kmem_cache *cp,
                             const struct kmem_slab *sp);
bool kmem_slab_link_plausible(const struct kmem_cache *cp,
                              const struct list *l);
