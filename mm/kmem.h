/*
 * The slab allocator's public interface (paper, section 2.3).
 *
 *     foo_cache = kmem_cache_create("foo", sizeof(struct foo), 0,
 *                                   foo_constructor, foo_destructor);
 *     foo = kmem_cache_alloc(foo_cache, KM_SLEEP);
 *     …
 *     kmem_cache_free(foo_cache, foo);
 *
 * An object is in its constructed state when it is allocated and must be in
 * it again when it is freed. Constructors run when a slab is created, not when
 * an object is allocated; destructors when the slab is destroyed.
 *
 * All of it may be called from interrupts with KM_NOSLEEP, but create and
 * destroy. No function here may be called with a cache's lock held.
 */
#pragma once

#include "kernel/lib/types.h"

struct kmem_cache;

/* The flags word of an allocation. KM_SLEEP waits for memory and never returns
 * NULL (but for size 0); it panics if no task can wait: in interrupts, in
 * programs. No spin lock is held. */
#define KM_SLEEP   0
#define KM_NOSLEEP 1 /* returns NULL rather than wait */

#define KMEM_NAME_MAX  31         /* characters in a cache's name */
#define KMEM_ALIGN_MIN 8          /* alignment 0 means this */
#define KMEM_SIZE_MAX  (1u << 20) /* largest object of a cache, in bytes */
#define KMEM_MAXBUF    9216u      /* largest size class of kmem_alloc */

/* Prepare or undo one object of `size` bytes. May not fail, may not sleep,
 * may not use the cache that it belongs to. */
typedef void kmem_ctor_t(void *obj, size_t size);
typedef void kmem_dtor_t(void *obj, size_t size);

/* A source of pages for one cache (section 7.1). getpages returns contiguous
 * memory, page aligned, or NULL; freepages frees it. Both are called without
 * locks, also from interrupts, and may not sleep. */
struct kmem_supplier {
    void *(*getpages)(size_t pages, void *arg);
    void (*freepages)(void *addr, size_t pages, void *arg);
    void *arg;
};

/*
 * Makes the allocator's own caches and the size classes of kmem_alloc, and
 * sets buddy's pressure callback. After buddy_init; once.
 */
void kmem_init(void);

/*
 * A cache of objects of `size` bytes (1 … KMEM_SIZE_MAX), each on a multiple
 * of `align`: 0, or a power of two up to PAGE_SIZE; KMEM_ALIGN_MIN if it is
 * less. `name` is copied: a C identifier (letters, digits, _) of at most
 * KMEM_NAME_MAX characters, not in use by another cache. ctor and dtor may be
 * NULL. Returns NULL after a message if an argument is wrong or no memory is
 * left; never waits for memory. Not in interrupts.
 */
struct kmem_cache *kmem_cache_create(const char *name, size_t size,
                                     size_t align, kmem_ctor_t *ctor,
                                     kmem_dtor_t *dtor);

/* The same with pages from `supplier` (copied), or segkmem if NULL. */
struct kmem_cache *kmem_cache_create_from(const char *name, size_t size,
                                          size_t align, kmem_ctor_t *ctor,
                                          kmem_dtor_t *dtor,
                                          const struct kmem_supplier *supplier);

/* An object in constructed state; NULL only with KM_NOSLEEP. The caller owns
 * it until kmem_cache_free. May sleep with KM_SLEEP. */
void *kmem_cache_alloc(struct kmem_cache *cp, int flags);

/* Frees an object, which must be in constructed state. Never sleeps. Any other
 * address damages a cache of small objects, unless it is in a debugging mode;
 * a cache of large objects panics. */
void kmem_cache_free(struct kmem_cache *cp, void *buf);

/*
 * Destroys a cache and releases all its pages; returns 0. If objects are
 * allocated, it changes nothing, prints the first eight and the number of the
 * others, and returns -KMEM_EBUSY. If another task reaps the cache, it waits
 * for that, or returns -KMEM_EAGAIN where no task can wait. For the allocator's
 * own caches and the size classes it returns -KMEM_EPERM.
 *
 * A handle that is not a cache's is reported: -KMEM_EINVAL. So if several tasks
 * destroy one cache, one of them succeeds. A destroyed handle is recognised
 * until a new cache gets its memory, which takes many more new caches with
 * kmem_handles_keep (mm/debug/debug.h). While a cache is destroyed, its handle
 * may not be used in any other call. May sleep; not in interrupts.
 */
int kmem_cache_destroy(struct kmem_cache *cp);

/*
 * Memory of any size: from the nearest size class up to KMEM_MAXBUF, above it
 * whole pages from segkmem. Aligned to KMEM_ALIGN_MIN. Contents are undefined.
 * Size 0 returns NULL, with KM_SLEEP too. A request of more than buddy's
 * largest block always fails: NULL, and with KM_SLEEP a panic.
 */
void *kmem_alloc(size_t size, int flags);

/* The same, filled with zeroes. */
void *kmem_zalloc(size_t size, int flags);

/* The size class that kmem_alloc(size) uses, or NULL above the last. */
struct kmem_cache *kmem_size_class(size_t size);

/* Frees memory of kmem_alloc; `size` must be the requested size. kmem_free of
 * (NULL, 0) does nothing. Another size puts the buffer into another class, or
 * panics above KMEM_MAXBUF; a debugging mode of the class reports it. */
void kmem_free(void *buf, size_t size);

enum kmem_kind {
    KMEM_KIND_NAMED,    /* made by kmem_cache_create */
    KMEM_KIND_CLASS,    /* a size class of kmem_alloc */
    KMEM_KIND_INTERNAL, /* the allocator's own */
};

/* Errors, as POSIX numbers them; returned negative. */
#define KMEM_EPERM  1
#define KMEM_EAGAIN 11
#define KMEM_EBUSY  16
#define KMEM_EINVAL 22

/* ---- reclaiming (section 3.4) ------------------------------------------- */

#define KMEM_WS_DEFAULT_MS 15000u
#define KMEM_WS_INFINITE   UINT32_MAX

/* The working-set interval in milliseconds. 0: a reap takes every free slab;
 * KMEM_WS_INFINITE: it takes none. */
extern uint32_t kmem_ws_interval;

enum kmem_reap_mode {
    KMEM_REAP_WS,  /* keep the working set */
    KMEM_REAP_ALL, /* every free slab */
};

/* Releases the free slabs of one cache that `mode` allows, and returns how
 * many. */
size_t kmem_cache_reap(struct kmem_cache *cp, enum kmem_reap_mode mode);

/* The same for every cache, the allocator's own last. Returns the pages that
 * segkmem got. Requests that arrive while one runs return 0 at once. Runs
 * destructors: no spin lock is held. */
size_t kmem_reap(enum kmem_reap_mode mode);

/*
 * `fn` frees objects that their owner keeps only because they may be used
 * again, at most `most` of them, and returns how many it freed. It is called
 * when an allocation finds no memory, before slabs are reaped: it may take spin
 * locks that no caller of an allocation holds, and may not allocate or sleep.
 * NULL: there is no such function. Returns the previous one.
 */
typedef size_t kmem_reclaim_t(size_t most);
kmem_reclaim_t *kmem_set_reclaim(kmem_reclaim_t *fn);

#define KMEM_RECLAIM_STEP 64 /* objects asked for at a time */

/* One working-set update of every cache: L = m, m = T. */
void kmem_update(void);

/* Runs kmem_update once for every interval that the clock has passed since
 * the last call (twice at most: more changes nothing). Cheap; from interrupts
 * too. */
void kmem_update_poll(void);

/* Milliseconds until kmem_update_poll will have something to do; 0: now. */
uint32_t kmem_update_due(void);

/* ---- magazines (section 7.2), where MM_MAGAZINES is 1 -------------------- */

/* Whether caches may have magazines. If not, all objects in them are free in
 * their slabs on return. No lock is held, and interrupts are enabled, or no
 * other processor runs yet. */
void kmem_mag_set(bool on);
bool kmem_mag_is_on(void);

/* ---- debugging modes (section 6) ---------------------------------------- */

/* Modes are bits of cache_flags, in the order of these letters. */
#define KMEM_DEBUG_LETTERS "FPZUTSG"
#define KMEM_DEBUG_SHIFT   8 /* the bit of the first letter */

#define KMF_CHECK     0x0100u /* F: freed addresses, slabs, freelists (6.2) */
#define KMF_POISON    0x0200u /* P: deadbeef, baddcafe (6.3) */
#define KMF_REDZONE   0x0400u /* Z: redzones around each buffer (6.4) */
#define KMF_AUDIT     0x0800u /* U: task, time and callers (6.1) */
#define KMF_TRACE     0x1000u /* T: prints a line for each operation */
#define KMF_UNMAP     0x2000u /* S: free slabs are unmapped at once (6.5) */
#define KMF_OWN_PAGES 0x4000u /* G: each buffer has pages of its own (6.6) */

/* All modes, and those that take pages away. */
#define KMF_MODES     0x7f00u
#define KMF_UNMAPPING (KMF_UNMAP | KMF_OWN_PAGES)

/* Pages that mode S keeps unmapped, so that a late access faults; and frees
 * those of one cache, NULL: of all. Both return their number. */
size_t kmem_unmapped_pages(void);
size_t kmem_unmapped_release(const struct kmem_cache *cp);

/* ---- looking ------------------------------------------------------------ */

/* The cache called `name`, or NULL. Another task may destroy it at any time. */
struct kmem_cache *kmem_cache_find(const char *name);

/* NULL, or the name of the first broken invariant; *where gets a line that
 * says where, which the next call overwrites. Holds the lock of a cache while
 * it walks that cache. */
const char *kmem_verify(const char **where);
const char *kmem_cache_verify(struct kmem_cache *cp, const char **where);
