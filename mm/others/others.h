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
 *
 * They share the page supplier, the lock and the counts, and nothing else: how
 * an allocator finds a block is in its own file alone.
 */
#pragma once

#include "kernel/lib/list.h"
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

    mm_lock_t supply_lock; /* guards the others */
    size_t supply_held;
    size_t supply_peak;
    uint64_t supply_gets; /* pages, as are the next */
    uint64_t supply_returns;
};

/* Contiguous pages, or NULL. Their contents are undefined, their descriptors
 * zero. No lock is held. */
void *supply_alloc(struct supply *s, size_t pages, size_t align);

/* Frees a run of pages, whether one call has returned them or several. */
void supply_free(struct supply *s, void *addr, size_t pages);

/* The descriptor of the page that holds `addr`; NULL if none does. */
void *supply_info(const struct supply *s, const void *addr);

/* And the page that has this descriptor. */
void *supply_page(const struct supply *s, const void *info);

/* Pages from `pages` of them at `base`, the lowest suitable address first, so
 * that a run is the same each time. `info` and `used` have an entry each. */
void supply_arena(struct supply *s, void *base, size_t pages, void *info,
                  uint8_t *used);

/* ---- an allocator ------------------------------------------------------- */

/* A cache, which the client owns. These allocators only remember what objects
 * it has: they construct one when it is allocated and destroy it when it is
 * freed. */
struct other_cache {
    size_t other_size;
    size_t other_align; /* a power of two up to PAGE_SIZE; 0: any */
    void (*other_ctor)(void *obj, size_t size); /* NULL: none */
    void (*other_dtor)(void *obj, size_t size);
    void *other_own; /* the allocator's; NULL until it is used */
    /* counted by the allocator, under its lock */
    uint64_t other_allocs;
    uint64_t other_frees;
    uint64_t other_fails;
};

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
    uint64_t stat_locks; /* how often the lock was taken */
    size_t stat_held;    /* bytes, as are the next; of all pages */
    size_t stat_requested;
    size_t stat_internal; /* blocks are larger than what was requested */
    size_t stat_external; /* free blocks */
    size_t stat_metadata; /* headers, pages of nodes */
    size_t stat_peak;     /* the most that was held */
};

struct other_allocator {
    const char *op_name;
    /* Starts with an empty heap, whatever was there. Takes no page. */
    void (*op_init)(struct supply *s);
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
    bsd_allocator, svr4_allocator;

/* The one with which mm/others/serve.c serves mm/kmem.h: the linker's name for
 * one of these. */
extern const struct other_allocator other_served;

/* What each allocator has; heap_lock guards all of its state. */
struct other_heap {
    mm_lock_t heap_lock;
    struct supply *heap_supply;
    struct other_stat heap_stat;
};

void other_init(struct other_heap *h, const char *name, struct supply *s);

static inline void other_lock(struct other_heap *h)
{
    mm_lock(&h->heap_lock);
    h->heap_stat.stat_locks++;
}

static inline void other_unlock(struct other_heap *h)
{
    mm_unlock(&h->heap_lock);
}

/* Count, under the lock, the allocation or free of a block of `bytes` for a
 * request of `size`; `header` of them are metadata. `c` is the cache, or
 * NULL. */
void other_count_alloc(struct other_heap *h, struct other_cache *c, size_t size,
                       size_t bytes, size_t header);
void other_count_free(struct other_heap *h, struct other_cache *c, size_t size,
                      size_t bytes, size_t header);
void other_count_fail(struct other_heap *h, struct other_cache *c);

/* Pages that the heap has got, or returns. Under the lock. */
void other_count_pages(struct other_heap *h, ptrdiff_t pages);

/* The counts; `external` is what is free. Under the lock. */
void other_stat(struct other_heap *h, size_t external, struct other_stat *out);

/* The check that all allocators share: every byte is accounted for. Under the
 * lock. */
const char *other_check(const struct other_heap *h, size_t external);
