/*
 * Caches of slabs: what is the same in SLAB and in SLUB, so that their own
 * files have only where a free object is found.
 *
 * A slab is a run of pages with objects of one cache. Each cache has a lock,
 * which Linux has for each memory node of it:
 *
 *     list of caches      the lock of struct slabs
 *       └ slabs           the lock of each cache
 *           └ pages       the lock of the heap: their count, and slabs that go
 *                         back
 *
 * No lock may be held while objects are destroyed and pages freed. So a slab
 * that goes back waits on a list until the operation ends (slabs_leave).
 */
#pragma once

#include "mm/others/others.h"

#define SLABS_MANY 4096 /* objects of a slab, at most */

/* What a cache begins with. */
struct slabs_cache {
    void (*ctor)(void *obj, size_t size);
    void (*dtor)(void *obj, size_t size);
    size_t size;      /* bytes from one object to the next */
    size_t object;    /* as requested */
    unsigned num;     /* objects in a slab */
    unsigned order;   /* of its pages */
    struct list link; /* all above never changes */
    mm_lock_t lock;   /* guards what processors share, which also is: */
    size_t slabs;
    struct list partial;
};

/* What the descriptor of a slab's first page begins with. */
struct slab {
    struct list link;
    struct slabs_cache *cache; /* NULL: no slab begins here */
};

/* What check() finds: */
struct slabs_sum {
    size_t listed;  /* slabs on lists, and those that a processor has */
    size_t counted; /* slabs that caches have counted */
    size_t slabs;   /* in all pages */
    size_t objects; /* allocated */
    size_t free;    /* bytes */
};

/* A slab, as check() sees it. */
struct slabs_view {
    const char *first; /* object */
    size_t size;
    unsigned num;
    size_t room;       /* bytes of objects and of the gaps around them */
    bool listed;       /* it has to be on a list, or a processor's */
    const char *wrong; /* NULL: nothing */
    unsigned free;
    uint8_t seen[SLABS_MANY / 8];
};

struct slabs_ops {
    /* Destroys a slab's objects and frees its pages. No lock is held. Of the
     * cache, which may have ended, only what never changes is there. */
    void (*destroy)(struct slab *s, const struct slabs_cache *k);
    /* NULL, or what is wrong with the lists of a cache. Adds to sum->listed. */
    const char *(*check)(struct slabs_cache *k, struct slabs_sum *sum);
    /* Fills in the first members of `v`, where the others are zero, and calls
     * slabs_see for each free object. */
    void (*look)(struct slab *s, struct slabs_view *v);
};

/* All of an allocator. */
struct slabs {
    struct other_heap heap;
    const struct slabs_ops *ops;
    mm_lock_t lock;     /* guards: */
    struct list caches; /* oldest first */
    struct list back;   /* slabs to return */
};

/* Pages of a slab, in bytes. */
static inline size_t slabs_bytes(const struct slabs_cache *k)
{
    return (size_t)PAGE_SIZE << k->order;
}

/* Whether one of the `num` objects from `first` on begins at `obj`. */
static inline bool slabs_has(const struct slabs_cache *k, const char *first,
                             unsigned num, const char *obj)
{
    size_t offset = (size_t)(obj - first);

    return offset % k->size == 0 && offset / k->size < num;
}

void slabs_init(struct slabs *all, const char *name, struct supply *s,
                const struct slabs_ops *ops);

/* Between these the list of caches does not change. No lock is held. */
void slabs_caches_lock(struct slabs *all);
void slabs_caches_unlock(struct slabs *all);

/* A cache whose shape is known, and that has no slabs yet, begins; or one that
 * has none any more ends. */
void slabs_add(struct slabs *all, struct slabs_cache *k);
void slabs_remove(struct slabs *all, struct slabs_cache *k);

/* Calls fn for each cache, or for one, with its lock held; or does so on each
 * processor, for what that one keeps. Then slabs go back. No lock is held. */
typedef void slabs_fn(struct slabs_cache *k, unsigned cpu);
void slabs_each(struct slabs *all, struct slabs_cache *only, slabs_fn *fn);
void slabs_each_cpu(struct slabs *all, struct slabs_cache *only, slabs_fn *fn);

/* Calls fn, unless it is NULL, for `num` objects. */
void slabs_objects(const struct slabs_cache *k, char *first, unsigned num,
                   void (*fn)(void *obj, size_t size));

/* A new slab becomes the cache's, of whose bytes `room` are for objects; or one
 * without allocated objects, which is on no list, goes back. The cache's lock
 * is held. */
void slabs_grow(struct slabs *all, struct slabs_cache *k, struct slab *s,
                size_t bytes, size_t room);
void slabs_discard(struct slabs *all, struct slab *s, size_t bytes,
                   size_t room);

/* The end of an operation, in the place of other_leave. */
void slabs_return(struct slabs *all);
static inline void slabs_leave(struct slabs *all)
{
    bool more = MM_UNLOCKED(all->back.next) != &all->back;

    other_leave(&all->heap);
    if (unlikely(more))
        slabs_return(all);
}

/* False: there is no such object in the slab, or it was seen before. */
bool slabs_see(struct slabs_view *v, const void *obj);

/* The allocator's check(). */
const char *slabs_check(struct slabs *all);
