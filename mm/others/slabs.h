/*
 * Caches of slabs: what is the same in SLAB and in SLUB, so that their own
 * files have only where a free object is found.
 *
 * A slab is a run of pages with objects of one cache. A cache is a client's, or
 * one of those that serve alloc(), each for the sizes up to its own. Each has a
 * lock, which Linux has for each memory node of it:
 *
 *     list of caches      the lock of struct slabs
 *       └ slabs           the lock of each cache
 *           └ pages       the lock of the heap: their count, and slabs that go
 *                         back
 *
 * No lock may be held while objects are destroyed and pages freed. So a slab
 * that goes back waits on a list until the operation ends (slabs_leave).
 *
 * An allocator is its `get` and `put` of an object, what its slabs and caches
 * have besides (struct slabs_ops), and SLABS_ALLOCATOR, which makes the
 * operations for clients of these.
 */
#pragma once

#include "mm/others/others.h"
#include "mm/others/whole.h"

#define SLABS_MANY    4096            /* objects of a slab, at most */
#define SLABS_CLASSES 13              /* sizes of alloc() */
#define SLABS_MAX     (2 * PAGE_SIZE) /* the last; above it: whole pages */

/* What a cache begins with. */
struct slabs_cache {
    void (*ctor)(void *obj, size_t size);
    void (*dtor)(void *obj, size_t size);
    size_t size;      /* bytes from one object to the next */
    size_t object;    /* as requested */
    size_t index;     /* bytes of a slab that are not for objects */
    unsigned num;     /* objects in a slab */
    unsigned order;   /* of its pages */
    struct list link; /* all above never changes */
    size_t record;    /* bytes of the cache itself */
    unsigned users;   /* clients, under the lock of the list of caches */
    mm_lock_t lock;   /* guards what processors share, which also is: */
    size_t slabs;
    struct list partial;
};

/* The descriptor of a page: that of a slab's first one describes the slab. */
struct slab {
    struct list link;
    struct slabs_cache *cache; /* NULL: it has none yet, or any more */
    union {
        char *first;       /* object */
        struct slab *head; /* where num is 0: of the page's slab, or NULL */
    };
    uint16_t num; /* objects, and SLABS_LOCKED; 0: no slab begins here */
    union {
        uint16_t active;         /* SLAB: objects allocated, or in queues */
        struct {                 /* SLUB: */
            uint16_t inuse : 15; /* with those on the list of a processor */
            uint16_t frozen : 1; /* it belongs to a processor */
        };
    };
    union {
        uint8_t *index; /* SLAB: from `active` on: free objects */
        uint32_t free;  /* SLUB: free objects: the first's number */
    };
};

#define SLABS_LOCKED 0x8000u /* SLUB's lock, where several processors run */

_Static_assert(sizeof(struct slab) <= SUPPLY_INFO_WORDS * sizeof(uintptr_t),
               "no room in a page's descriptor");

/* What check() finds: */
struct slabs_sum {
    const char *wrong; /* first; NULL: nothing */
    size_t listed;     /* slabs on lists, and those that a processor has */
    size_t unused;     /* free objects of one cache's slabs on lists */
    size_t counted;    /* slabs that caches have counted */
    size_t slabs;      /* in all pages */
    size_t objects;    /* allocated */
    size_t free;       /* bytes */
};

/* A slab, as check() sees it. */
struct slabs_view {
    const struct slab *slab;
    bool unlisted;     /* it is on no list, and no processor's */
    const char *wrong; /* NULL: nothing */
    unsigned free;
    uint8_t seen[SLABS_MANY / 8];
};

/* Calls for a cache whose lock is held; of a processor, or for what processors
 * share. */
typedef void slabs_fn(struct slabs_cache *k, unsigned cpu);

/* What an allocator has of its own. */
struct slabs_ops {
    unsigned first; /* of slabs_size that is a class */
    size_t align;   /* of objects of alloc(), or their size if it is less */
    /* A cache for this client: a new one, after slabs_add, or one that others
     * have, too. NULL: there is no memory. */
    struct slabs_cache *(*create)(const struct other_cache *c);
    /* An object, or NULL: no slab has one. After other_enter. */
    void *(*get)(struct slabs_cache *k, unsigned cpu);
    /* Makes a slab whose objects are free. No lock is held. NULL: there is no
     * memory. Then it becomes the cache's, with its lock held: the next `get`
     * of this processor finds an object. */
    struct slab *(*make)(struct slabs_cache *k);
    void (*add)(struct slabs_cache *k, unsigned cpu, struct slab *s);
    /* NULL, or frees what a slab has besides its pages. No lock is held. Of the
     * cache, which may have ended, only what never changes is there. */
    void (*remove)(const struct slab *s, const struct slabs_cache *k);
    slabs_fn *flush; /* what a processor keeps goes to slabs */
    slabs_fn *trim;  /* slabs without allocated objects go back */
    /* Looks at the lists of a cache, by slabs_check_list. */
    void (*check)(struct slabs_cache *k, struct slabs_sum *sum);
    /* Calls slabs_see for each free object of a slab. */
    void (*look)(struct slabs_view *v);
};

/* All of an allocator. */
struct slabs {
    struct other_heap heap;
    const struct slabs_ops *ops;
    struct slabs_cache *class[SLABS_CLASSES]; /* from ops->first on */
    uint64_t grown;                           /* slabs; */
    uint64_t returned;                        /* and of these */
    mm_lock_t lock;                           /* guards: */
    struct list caches;                       /* oldest first */
    struct list back;                         /* slabs to return */
};

/* ---- caches ------------------------------------------------------------- */

/* Starts with the caches of alloc(). */
void slabs_init(struct slabs *all, const char *name, struct supply *s,
                const struct slabs_ops *ops);

/* Between these the list of caches does not change. No lock is held. */
void slabs_caches_lock(struct slabs *all);
void slabs_caches_unlock(struct slabs *all);

/* A record of that many bytes for a client's cache. NULL: there is no memory.
 * The cache begins when all of it is set. It ends when the last of its users
 * destroys it; then none of its objects is allocated. */
void *slabs_record(struct slabs *all, const struct other_cache *c,
                   size_t bytes);
void slabs_add(struct slabs *all, struct slabs_cache *k);
void slabs_destroy(struct slabs *all, struct slabs_cache *k);

/* Calls fn for each cache, or for one, or does so on each processor. Then slabs
 * go back. No lock is held. */
void slabs_each(struct slabs *all, struct slabs_cache *only, slabs_fn *fn);
void slabs_each_cpu(struct slabs *all, struct slabs_cache *only, slabs_fn *fn);

/* Returns what is free. */
void slabs_pressure(struct slabs *all);

/* ---- slabs -------------------------------------------------------------- */

/* The least order of pages for so many bytes. */
static inline unsigned slabs_order(size_t bytes)
{
    return MAX(other_power(bytes), (unsigned)PAGE_SHIFT) - PAGE_SHIFT;
}

/* Pages of a slab, in bytes. */
static inline size_t slabs_bytes(const struct slabs_cache *k)
{
    return (size_t)PAGE_SIZE << k->order;
}

static inline unsigned slabs_num(const struct slab *s)
{
    return MM_UNLOCKED(s->num) & ~SLABS_LOCKED;
}

static inline struct slab *slabs_slab(struct list *l)
{
    return list_entry(l, struct slab, link);
}

/* A slab of that order, which may be less than the cache's. Its objects, of
 * which the first is that many bytes behind its begin, are constructed. NULL:
 * there is no memory. And its end. No lock is held. */
struct slab *slabs_new(struct slabs *all, const struct slabs_cache *k,
                       unsigned order, size_t colour);
void slabs_delete(struct slabs *all, struct slab *s,
                  const struct slabs_cache *k);

/* A slab without allocated objects, which is on no list, goes back. The cache's
 * lock is held. */
void slabs_discard(struct slabs *all, struct slab *s);

/* ---- objects ------------------------------------------------------------ */

/* Mistakes of clients, which end in a panic. */
void slabs_no_object(const struct slabs *all, const struct slabs_cache *k,
                     const void *obj) __attribute__((noreturn, cold));
void slabs_freed_twice(const struct slabs *all, const struct slabs_cache *k,
                       const void *obj) __attribute__((noreturn, cold));

/* The slab of an allocated object. */
static inline struct slab *slabs_slab_of(const struct slabs *all,
                                         const struct slabs_cache *k,
                                         const void *obj)
{
    struct slab *s = other_page(&all->heap, obj);
    size_t offset;

    if (slabs_num(s) == 0 && s->head != NULL)
        s = s->head;
    offset = (size_t)((const char *)obj - s->first);
    if (s->cache != k || offset % k->size != 0 ||
        offset / k->size >= slabs_num(s))
        slabs_no_object(all, k, obj);
    return s;
}

/* No slab has an object: one of a new slab, or NULL. After other_enter;
 * meanwhile the processor may change. */
void *slabs_grow(struct slabs *all, struct slabs_cache *k);

/* The end of an operation, in the place of other_leave. */
void slabs_return(struct slabs *all);
static inline void slabs_leave(struct slabs *all)
{
    bool more = MM_UNLOCKED(all->back.next) != &all->back;

    other_leave(&all->heap);
    if (unlikely(more))
        slabs_return(all);
}

typedef void *slabs_get_fn(struct slabs_cache *k, unsigned cpu);
typedef void slabs_put_fn(struct slabs_cache *k, unsigned cpu, struct slab *s,
                          void *obj);

static inline void *slabs_alloc(struct slabs *all, struct slabs_cache *k,
                                struct other_cache *c, size_t size,
                                slabs_get_fn *fn)
{
    void *obj = fn(k, other_enter(&all->heap));

    if (unlikely(obj == NULL))
        obj = slabs_grow(all, k);
    if (likely(obj != NULL)) {
        other_count_external(&all->heap, -(ptrdiff_t)k->size);
        other_count_alloc(&all->heap, c, size, k->size, 0);
    } else {
        other_count_fail(&all->heap, c);
    }
    other_leave(&all->heap);
    return obj;
}

static inline void slabs_free(struct slabs *all, struct slabs_cache *k,
                              struct other_cache *c, size_t size, void *obj,
                              slabs_put_fn *fn)
{
    struct slab *s = slabs_slab_of(all, k, obj);

    fn(k, other_enter(&all->heap), s, obj);
    other_count_external(&all->heap, (ptrdiff_t)k->size);
    other_count_free(&all->heap, c, size, k->size, 0);
    slabs_leave(all);
}

extern const size_t slabs_size[SLABS_CLASSES];

/* The number of the least class, from the first one on, for a size up to
 * SLABS_MAX. */
static inline unsigned slabs_class_of(unsigned first, size_t size)
{
    while (slabs_size[first] < size)
        first++;
    return first;
}

static inline struct slabs_cache *slabs_class(const struct slabs *all,
                                              unsigned first, size_t size)
{
    return all->class[slabs_class_of(first, size)];
}

/*
 * Defines the allocator `name`. `own` is its struct slabs, and the names of its
 * functions and of its struct slabs_ops begin with it; more operations may
 * follow. It is a macro, and what it calls is inline, so that the compiler sees
 * get, put and the first class: no operation calls through a pointer but to
 * grow.
 */
#define SLABS_ALLOCATOR(name, own, ...)                                        \
    static void *own##_alloc(size_t size)                                      \
    {                                                                          \
        if (size == 0)                                                         \
            return OTHER_NOTHING;                                              \
        if (size > SLABS_MAX)                                                  \
            return other_whole_alloc(&own.heap, NULL, size);                   \
        return slabs_alloc(&own, slabs_class(&own, own##_ops.first, size),     \
                           NULL, size, own##_get);                             \
    }                                                                          \
                                                                               \
    static void own##_free(void *p, size_t size)                               \
    {                                                                          \
        if (p == OTHER_NOTHING)                                                \
            return;                                                            \
        if (size > SLABS_MAX)                                                  \
            other_whole_free(&own.heap, NULL, p, size);                        \
        else                                                                   \
            slabs_free(&own, slabs_class(&own, own##_ops.first, size), NULL,   \
                       size, p, own##_put);                                    \
    }                                                                          \
                                                                               \
    static void *own##_cache_alloc(struct other_cache *c)                      \
    {                                                                          \
        return slabs_alloc(&own, c->other_own, c, c->other_size, own##_get);   \
    }                                                                          \
                                                                               \
    static void own##_cache_free(struct other_cache *c, void *obj)             \
    {                                                                          \
        slabs_free(&own, c->other_own, c, c->other_size, obj, own##_put);      \
    }                                                                          \
                                                                               \
    static bool own##_cache_create(struct other_cache *c)                      \
    {                                                                          \
        c->other_own = own##_ops.create(c);                                    \
        return c->other_own != NULL;                                           \
    }                                                                          \
                                                                               \
    static void own##_cache_destroy(struct other_cache *c)                     \
    {                                                                          \
        slabs_destroy(&own, c->other_own);                                     \
    }                                                                          \
                                                                               \
    static void own##_pressure(void)                                           \
    {                                                                          \
        slabs_pressure(&own);                                                  \
    }                                                                          \
                                                                               \
    static void own##_counts(struct other_stat *out)                           \
    {                                                                          \
        other_counted_stat(&own.heap, out);                                    \
    }                                                                          \
                                                                               \
    static const char *own##_check(void)                                       \
    {                                                                          \
        return slabs_check(&own);                                              \
    }                                                                          \
                                                                               \
    const struct other_allocator name##_allocator = {                          \
        .op_name = #name,                                                      \
        .op_init = own##_init,                                                 \
        .op_cache_create = own##_cache_create,                                 \
        .op_cache_destroy = own##_cache_destroy,                               \
        .op_cache_alloc = own##_cache_alloc,                                   \
        .op_cache_free = own##_cache_free,                                     \
        .op_alloc = own##_alloc,                                               \
        .op_free = own##_free,                                                 \
        .op_pressure = own##_pressure,                                         \
        .op_stat = own##_counts,                                               \
        .op_check = own##_check,                                               \
        __VA_ARGS__}

/* ---- looking ------------------------------------------------------------ */

static inline void slabs_expect(struct slabs_sum *sum, bool is,
                                const char *wrong)
{
    if (sum->wrong == NULL && !is)
        sum->wrong = wrong;
}

/* The slabs of a list, of which `unused` says how many free objects each has;
 * or -1, if it has to be on another list. Returns how many they are. */
size_t slabs_check_list(struct slabs_cache *k, struct list *list,
                        int (*unused)(const struct slab *s,
                                      const struct list *list),
                        struct slabs_sum *sum);

/* False, and it is wrong: there is no such object in the slab, or it was seen
 * before. */
bool slabs_see(struct slabs_view *v, const void *obj, const char *wrong);

/* The allocator's check(). */
const char *slabs_check(struct slabs *all);
