/*
 * The functions that files of the slab allocator call in each other, by file.
 * Each is described where it is defined. mm/kmem_impl.h includes this file.
 */
#pragma once

#include "mm/kmem_debug.h"

/* How far the allocator is initialized: the caches that can be created. */
enum kmem_state {
    KMEM_DOWN,    /* nothing */
    KMEM_PARTIAL, /* caches of small objects */
    KMEM_LARGE,   /* caches of any objects */
    KMEM_UP,      /* and kmem_alloc */
};

extern enum kmem_state kmem_state;
extern mm_lock_t kmem_list_lock; /* MM_RANK_CACHE_LIST: guards kmem_caches */
extern struct list kmem_caches;  /* in creation order */

/* The allocator's own caches: it is its own first client. */
extern struct kmem_cache kmem_cache_cache;
extern struct kmem_cache *kmem_slab_cache, *kmem_bufctl_cache, *kmem_hash_cache;

/* The flags, without the lock. Those that say what the layout is stay while the
 * cache is held or has an allocated object. */
#define KMEM_FLAGS(cp) MM_UNLOCKED((cp)->cache_flags)

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

void kmem_mag_init(void);
void kmem_mag_setup(struct kmem_cache *cp);
void kmem_mag_decide(struct kmem_cache *cp);
void kmem_mag_decide_all(void);
void kmem_mag_disable(struct kmem_cache *cp);
void kmem_mag_enable(struct kmem_cache *cp);
void kmem_mag_disable_all(void);
void kmem_mag_enable_all(void);
void kmem_mag_update(struct kmem_cache *cp);
void kmem_mag_reap(struct kmem_cache *cp, enum kmem_reap_mode mode);
void kmem_mag_empty(struct kmem_cache *cp);
void kmem_mag_count(const struct kmem_cache *cp, uint32_t *allocs,
                    uint32_t *frees);
void kmem_mag_fold(struct kmem_cache *cp);
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

/* The largest size for which kmem_alloc takes its fast path: KMEM_MAXBUF, or 0
 * while a class is in a mode that needs the requested size: all but T. */
extern size_t kmem_class_max;

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
void kmem_reap_init(void);

/* ---- kmem_stat.c: section 3.1 ------------------------------------------- */

void kmem_oversize_check(const void *buf, size_t size);
void kmem_count_fold(struct kmem_cache *cp);
struct kmem_cache *kmem_list_find(const char *name, const void *handle);

/* Allocated objects of a cache. */
static inline uint32_t kmem_inuse(const struct kmem_cache *cp)
{
    return cp->cache_allocs - cp->cache_frees;
}

/* ---- kmem_verify.c ------------------------------------------------------ */

/* Tasks that are moving pages between segkmem and a cache, or have not counted
 * them yet. While there is one, the sums need not agree. */
extern uint32_t kmem_transfers;

void kmem_transfer_begin(void);
void kmem_transfer_end(void);
