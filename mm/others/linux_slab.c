/*
 * SLAB: slabs with queues (Linux 2.0 to 6.7; Hemment, Spraul, and others).
 *
 * The slabs of the paper, with queues of free objects between them and the
 * clients. A queue is an array of pointers: one for each processor, used with
 * interrupts disabled and without a lock, and one that they share:
 *
 *     clients
 *       │ pop, push: the newest
 *     ┌─┴──────────┐  ┌────────────┐
 *     │●●●●●●●     │  │●●●●        │      a queue of each processor
 *     └─┬──────────┘  └─┬──────────┘
 *       │ a batch: the oldest, when it is full; some, when it is empty
 *     ┌─┴───────────────┴──────────┐
 *     │●●●●●●●●●●●●●●●●            │      shared; with several processors
 *     └─┬──────────────────────────┘
 *       │ one object at a time
 *     partial ──> slab ──> slab         full ──> slab        free ──> slab
 *
 * What is free in a slab is in its index, a byte for each object, used as a
 * stack: those up to `active` are allocated, from there on they are numbers of
 * free objects. So no free object is written to.
 *
 *     slab   │colour│ 0 │ 1 │ 2 │ 3 │ 4 │ … │        active = 2
 *     index  │ · · 1 4 3 … │
 *
 * The index is in a free object, if objects are large enough and have no
 * constructor; or an object of alloc(); or at the slab's end. The first object
 * of each slab is at another multiple of the line size, the colour.
 *
 * Queues and free slabs are limits, not needs. A reaper runs every two seconds:
 * from a queue that nobody used since it ran last it returns a fifth of what it
 * may hold; every four seconds it does so with the shared queue, and returns
 * free slabs, if none was needed meanwhile.
 *
 * Sources: mm/slab.c of Linux 6.1; the talk on slab allocators in the Linux
 * kernel (2014). Linux has all below the processors' queues for each memory
 * node, and queues for objects of other nodes; here there is one node.
 *
 * What is said against it. The Linux talk: memory is trapped in queues, for
 * each cache, processor and node; every processor has to scan all of its queues
 * every two seconds; and the structures are complex. It is fast in benchmarks,
 * 66 cycles for an allocation and 73 for a free, but not when processors
 * compete: 232 and 984 (SLUB: 90 and 119). By the slab paper: a working set is
 * what is needed, and the right time to return memory is when others need it;
 * here a timer does it.
 */
#include "mm/others/linux_slab.h"
#include "kernel/lib/string.h"
#include "mm/others/whole.h"
#include "mm/page.h"

#define LSLAB_ORDERS  11   /* one more than the largest */
#define LSLAB_MANY    255  /* objects, for an index of bytes */
#define LSLAB_COLD    16   /* objects for a queue that was not used lately */
#define LSLAB_SHARED  8    /* batches in a shared queue */
#define LSLAB_NODE_MS 4000 /* between two reaps of what is the node's */

unsigned lslab_max_order;
struct lslab_stat lslab_stat;

static struct slabs lslab;
static struct lslab_cache *untyped[LSLAB_UNTYPED];
static uint64_t next_reap_ms; /* of what is the node's */

static struct lslab_cache *lslab_cache_of(struct slabs_cache *k)
{
    return container_of(k, struct lslab_cache, cache);
}

static struct lslab_slab *lslab_slab(struct list *l)
{
    return list_entry(l, struct lslab_slab, slab.link);
}

/* ---- geometry ----------------------------------------------------------- */

static const size_t untyped_size[LSLAB_UNTYPED] = {
    32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192};

static unsigned lslab_class_of(size_t size)
{
    unsigned i = 0;

    while (untyped_size[i] < size)
        i++;
    return i;
}

/* Bytes of a slab that no object with its part of the index has. */
static size_t lslab_left(const struct lslab_cache *k, size_t index)
{
    return slabs_bytes(&k->cache) - k->cache.num * (k->cache.size + index);
}

/* The order of slabs with an index of so many bytes for each object. */
static bool lslab_fit(struct lslab_cache *k, size_t index)
{
    for (k->cache.order = 0; k->cache.order < LSLAB_ORDERS; k->cache.order++) {
        size_t num = slabs_bytes(&k->cache) / (k->cache.size + index);

        if (num > LSLAB_MANY)
            return false;
        k->cache.num = (unsigned)num;
        if (num != 0 && (k->cache.order >= lslab_max_order ||
                         lslab_left(k, index) * 8 <= slabs_bytes(&k->cache)))
            return true;
    }
    return false;
}

/* The first place of the index that is possible. */
static bool lslab_place(struct lslab_cache *k)
{
    bool fits = lslab_fit(k, 0);

    k->cache_index = LSLAB_IN_OBJECT;
    if (fits && k->cache.ctor == NULL && k->cache.num <= k->cache.object)
        return true;
    k->cache_index = LSLAB_OFF_SLAB;
    if (fits &&
        untyped_size[lslab_class_of(k->cache.num)] <= k->cache.size / 2 &&
        lslab_left(k, 0) < k->cache.num)
        return true;
    k->cache_index = LSLAB_ON_SLAB;
    return lslab_fit(k, 1);
}

static unsigned lslab_limit(size_t size)
{
    return size <= 256        ? 120
           : size <= 1024     ? 54
           : size <= 4096     ? 24
           : size <= KIB(128) ? 8
                              : 1;
}

/* Everything of a cache but its lists and the entries of its queues. */
static bool lslab_shape(struct lslab_cache *k, size_t align)
{
    unsigned limit;

    align = MAX(align, (size_t)8);
    k->cache.size = ROUND_UP(MAX(k->cache.object, (size_t)16), align);
    if (!lslab_place(k))
        return false;
    k->cache_colour_off = MAX(align, (size_t)LSLAB_LINE);
    k->cache_colours =
        (unsigned)(lslab_left(k, k->cache_index == LSLAB_ON_SLAB) /
                   k->cache_colour_off);
    limit = lslab_limit(k->cache.size);
    k->cache_batch = (limit + 1) / 2;
    k->cache_free_limit = (1 + other_cpus) * k->cache_batch + k->cache.num;
    for (unsigned i = 0; i < other_cpus; i++)
        k->cache_cpu[i].queue_limit = limit;
    if (other_cpus > 1 && k->cache.size <= PAGE_SIZE)
        k->cache_shared.queue_limit = LSLAB_SHARED * k->cache_batch;
    return true;
}

/* ---- the objects of a slab ---------------------------------------------- */

/* Bytes that objects and their gaps have of a slab, without the index. */
static size_t lslab_room(const struct lslab_cache *k)
{
    return slabs_bytes(&k->cache) -
           (k->cache_index == LSLAB_ON_SLAB ? k->cache.num : 0);
}

/* The slab of an object, if it can be one of this cache; or NULL. */
static struct lslab_slab *lslab_slab_of(const struct lslab_cache *k,
                                        const void *obj)
{
    uintptr_t begin = (uintptr_t)obj & ~(uintptr_t)(slabs_bytes(&k->cache) - 1);
    struct lslab_slab *s = other_page(&lslab.heap, (void *)begin);

    return s->slab.cache == &k->cache &&
                   slabs_has(&k->cache, s->slab_first, k->cache.num, obj)
               ? s
               : NULL;
}

/* ---- slabs: the cache's lock is held, unless it says otherwise ----------- */

/* The list of a slab with so many objects allocated. */
static struct list *lslab_list(struct lslab_cache *k, unsigned active)
{
    return active == 0              ? &k->cache_free
           : active == k->cache.num ? &k->cache_full
                                    : &k->cache.partial;
}

/* The queue gets up to `most` objects of a slab. */
static unsigned lslab_take(const struct lslab_cache *k, struct lslab_slab *s,
                           struct lslab_queue *q, unsigned most)
{
    unsigned n = 0;

    for (; n < most && s->slab_active < k->cache.num; n++)
        q->queue_entry[q->queue_avail++] =
            s->slab_first + s->slab_index[s->slab_active++] * k->cache.size;
    if (k->cache_index == LSLAB_IN_OBJECT && s->slab_active == k->cache.num)
        s->slab_index = NULL; /* it was in this object */
    return n;
}

/* Free slabs from the end of the list go back. */
static void lslab_trim(struct lslab_cache *k, size_t most)
{
    for (; most > 0 && !list_empty(&k->cache_free); most--) {
        struct lslab_slab *s = lslab_slab(k->cache_free.prev);

        list_remove(&s->slab.link);
        k->cache_free_objects -= k->cache.num;
        OTHER_ADD(lslab_stat.stat_returned, 1);
        slabs_discard(&lslab, &s->slab, slabs_bytes(&k->cache), lslab_room(k));
    }
}

/* The first `n` objects of a queue go to their slabs. */
static void lslab_return(struct lslab_cache *k, const struct lslab_queue *q,
                         unsigned n)
{
    k->cache_free_objects += n;
    for (unsigned i = 0; i < n; i++) {
        char *obj = q->queue_entry[i];
        struct lslab_slab *s = lslab_slab_of(k, obj);

        if (s->slab_index == NULL)
            s->slab_index = (uint8_t *)obj;
        s->slab_index[--s->slab_active] =
            (uint8_t)((size_t)(obj - s->slab_first) / k->cache.size);
        list_remove(&s->slab.link);
        if (s->slab_active == 0)
            list_insert_after(&k->cache_free, &s->slab.link);
        else
            list_insert_before(&k->cache.partial, &s->slab.link);
    }
    while (k->cache_free_objects > k->cache_free_limit &&
           !list_empty(&k->cache_free))
        lslab_trim(k, 1);
}

static void *queue_get(struct lslab_cache *k);
static void queue_put(struct lslab_cache *k, void *obj);

/* An index beside its slab is a block that no client has requested. No lock is
 * held. */
static void *lslab_index_alloc(size_t num)
{
    struct lslab_cache *k = untyped[lslab_class_of(num)];
    void *index;

    other_enter(&lslab.heap);
    index = queue_get(k);
    if (index != NULL)
        other_count_alloc(&lslab.heap, NULL, 0, k->cache.size, k->cache.size);
    other_leave(&lslab.heap);
    return index;
}

static void lslab_index_free(void *index, size_t num)
{
    struct lslab_cache *k = untyped[lslab_class_of(num)];

    other_enter(&lslab.heap);
    queue_put(k, index);
    other_count_free(&lslab.heap, NULL, 0, k->cache.size, k->cache.size);
    other_leave(&lslab.heap);
}

/* A slab of which all objects are free. No lock is held. NULL: no memory. */
static struct lslab_slab *lslab_new(struct lslab_cache *k, size_t colour)
{
    size_t bytes = slabs_bytes(&k->cache);
    char *at = supply_alloc(lslab.heap.heap_supply, bytes >> PAGE_SHIFT, bytes);
    struct lslab_slab *s;

    if (at == NULL)
        return NULL;
    s = other_page(&lslab.heap, at);
    s->slab_first = at + colour;
    s->slab_index =
        k->cache_index == LSLAB_ON_SLAB ? (uint8_t *)at + lslab_room(k)
        : k->cache_index == LSLAB_IN_OBJECT
            ? (uint8_t *)s->slab_first + (k->cache.num - 1) * k->cache.size
            : lslab_index_alloc(k->cache.num);
    if (s->slab_index == NULL) {
        supply_free(lslab.heap.heap_supply, at, bytes >> PAGE_SHIFT);
        return NULL;
    }
    for (unsigned i = 0; i < k->cache.num; i++)
        s->slab_index[i] = (uint8_t)i;
    slabs_objects(&k->cache, s->slab_first, k->cache.num, k->cache.ctor);
    return s;
}

/* The end of a slab, without a lock. */
static void lslab_destroy(struct slab *slab, const struct slabs_cache *k)
{
    struct lslab_slab *s = lslab_slab(&slab->link);
    char *at = supply_page(lslab.heap.heap_supply, s);
    uint8_t *index = s->slab_index;

    slabs_objects(k, s->slab_first, k->num, k->dtor);
    supply_free(lslab.heap.heap_supply, at, slabs_bytes(k) >> PAGE_SHIFT);
    if ((size_t)((char *)index - at) >= slabs_bytes(k))
        lslab_index_free(index, k->num);
}

/* ---- queues ------------------------------------------------------------- */

/* Takes out the first `n` objects. */
static void queue_remove(struct lslab_queue *q, unsigned n)
{
    q->queue_avail -= n;
    memmove(q->queue_entry, q->queue_entry + n,
            q->queue_avail * sizeof(*q->queue_entry));
}

/* Up to `n` of the newest objects of the shared queue. */
static void queue_share(struct lslab_queue *q, struct lslab_queue *shared,
                        unsigned n)
{
    n = MIN(n, shared->queue_avail);
    shared->queue_avail -= n;
    memcpy(q->queue_entry, shared->queue_entry + shared->queue_avail,
           n * sizeof(*q->queue_entry));
    q->queue_avail = n;
    shared->queue_touched = true;
}

/* A processor's queue is empty: gets `n` objects from the shared queue, or from
 * slabs. */
static void queue_refill(struct lslab_cache *k, struct lslab_queue *q,
                         unsigned n)
{
    MM_ASSERT(other_shares(&lslab.heap, &k->cache.lock));
    if (k->cache_shared.queue_avail != 0) {
        queue_share(q, &k->cache_shared, n);
        return;
    }
    while (n > 0) {
        bool partial = !list_empty(&k->cache.partial);
        struct lslab_slab *s =
            lslab_slab(partial ? k->cache.partial.next : k->cache_free.next);
        unsigned taken;

        k->cache_free_touched |= !partial; /* also if there is none */
        if (k->cache_free_objects == 0)
            break;
        taken = lslab_take(k, s, q, n);
        k->cache_free_objects -= taken;
        n -= taken;
        list_remove(&s->slab.link);
        list_insert_after(lslab_list(k, s->slab_active), &s->slab.link);
    }
}

/* A new slab: the queue gets `n` of its objects, unless an interrupt has filled
 * it meanwhile. */
static void queue_grow(struct lslab_cache *k, struct lslab_queue *q,
                       struct lslab_slab *s, unsigned n)
{
    other_count_lock(&lslab.heap);
    other_share_part(&k->cache.lock);
    OTHER_ADD(lslab_stat.stat_grown, 1);
    slabs_grow(&lslab, &k->cache, &s->slab, slabs_bytes(&k->cache),
               lslab_room(k));
    if (q->queue_avail == 0)
        lslab_take(k, s, q, n);
    k->cache_free_objects += k->cache.num - s->slab_active;
    list_insert_after(lslab_list(k, s->slab_active), &s->slab.link);
    other_unshare_part(&k->cache.lock);
}

/* The colour of the next slab. */
static size_t next_colour(struct lslab_cache *k)
{
    size_t colour;

    other_share_part(&k->cache.lock);
    if (++k->cache_colour_next >= k->cache_colours)
        k->cache_colour_next = 0;
    colour = k->cache_colour_next * k->cache_colour_off;
    other_unshare_part(&k->cache.lock);
    return colour;
}

/* An object, or NULL. After other_enter; meanwhile the processor may change. */
static void *queue_get(struct lslab_cache *k)
{
    struct lslab_queue *q = &k->cache_cpu[OTHER_CPU];
    unsigned n = q->queue_touched ? k->cache_batch
                                  : MIN(k->cache_batch, (unsigned)LSLAB_COLD);

    OTHER_ADD(lslab_stat.stat_alloc_hit, q->queue_avail != 0);
    OTHER_ADD(lslab_stat.stat_alloc_miss, q->queue_avail == 0);
    if (q->queue_avail == 0 &&
        (MM_UNLOCKED(k->cache_free_objects) != 0 ||
         MM_UNLOCKED(k->cache_shared.queue_avail) != 0)) {
        other_count_lock(&lslab.heap);
        other_share_part(&k->cache.lock);
        queue_refill(k, q, n);
        other_unshare_part(&k->cache.lock);
    }
    if (q->queue_avail == 0) {
        size_t colour = next_colour(k);
        struct lslab_slab *s;

        other_leave(&lslab.heap);
        s = lslab_new(k, colour);
        q = &k->cache_cpu[other_enter(&lslab.heap)];
        if (s != NULL)
            queue_grow(k, q, s, n);
    }
    if (q->queue_avail == 0)
        return NULL;
    q->queue_touched = true;
    other_count_external(&lslab.heap, -(ptrdiff_t)k->cache.size);
    return q->queue_entry[--q->queue_avail];
}

/* A full queue: the oldest objects go to the shared one, or to slabs. */
static void queue_flush(struct lslab_cache *k, struct lslab_queue *q)
{
    struct lslab_queue *shared = &k->cache_shared;
    unsigned n = k->cache_batch, room;

    other_count_lock(&lslab.heap);
    other_share_part(&k->cache.lock);
    room = shared->queue_limit - shared->queue_avail;
    if (room != 0) {
        n = MIN(n, room);
        memcpy(shared->queue_entry + shared->queue_avail, q->queue_entry,
               n * sizeof(*q->queue_entry));
        shared->queue_avail += n;
    } else {
        lslab_return(k, q, n);
    }
    other_unshare_part(&k->cache.lock);
    queue_remove(q, n);
}

static void queue_put(struct lslab_cache *k, void *obj)
{
    struct lslab_queue *q = &k->cache_cpu[OTHER_CPU];
    bool full = q->queue_avail == q->queue_limit;

    OTHER_ADD(lslab_stat.stat_free_hit, !full);
    OTHER_ADD(lslab_stat.stat_free_miss, full);
    if (full)
        queue_flush(k, q);
    q->queue_entry[q->queue_avail++] = obj;
    other_count_external(&lslab.heap, (ptrdiff_t)k->cache.size);
}

/* ---- time and pressure -------------------------------------------------- */

/* Returns a fifth of what a queue may hold, or half of what it has, unless it
 * was used. */
static void queue_reap(struct lslab_cache *k, struct lslab_queue *q)
{
    unsigned n = (q->queue_limit + 4) / 5;

    if (q->queue_avail == 0) /* it stays touched */
        return;
    if (q->queue_touched) {
        q->queue_touched = false;
        return;
    }
    if (n > q->queue_avail)
        n = (q->queue_avail + 1) / 2;
    other_count_lock(&lslab.heap);
    lslab_return(k, q, n);
    queue_remove(q, n);
}

static void reap_cpu(struct slabs_cache *k, unsigned cpu)
{
    OTHER_ADD(lslab_stat.stat_scanned, 1);
    queue_reap(lslab_cache_of(k), &lslab_cache_of(k)->cache_cpu[cpu]);
}

static void reap_node(struct slabs_cache *cache, unsigned cpu UNUSED)
{
    struct lslab_cache *k = lslab_cache_of(cache);
    size_t part = 5 * (size_t)k->cache.num;

    queue_reap(k, &k->cache_shared);
    if (!k->cache_free_touched)
        lslab_trim(k, (k->cache_free_limit + part - 1) / part);
    k->cache_free_touched = false;
}

static void lslab_tick(uint64_t now_ms)
{
    slabs_each_cpu(&lslab, NULL, reap_cpu);
    if (now_ms >= next_reap_ms) {
        next_reap_ms = now_ms + LSLAB_NODE_MS;
        slabs_each(&lslab, NULL, reap_node);
    }
}

static void queue_drain(struct lslab_cache *k, struct lslab_queue *q)
{
    lslab_return(k, q, q->queue_avail);
    q->queue_avail = 0;
}

static void drain_cpu(struct slabs_cache *k, unsigned cpu)
{
    queue_drain(lslab_cache_of(k), &lslab_cache_of(k)->cache_cpu[cpu]);
}

static void drain_node(struct slabs_cache *cache, unsigned cpu UNUSED)
{
    struct lslab_cache *k = lslab_cache_of(cache);

    other_count_lock(&lslab.heap);
    queue_drain(k, &k->cache_shared);
    lslab_trim(k, SIZE_MAX);
}

/* Returns what is free of one cache, or of all: NULL. */
static void lslab_shrink(struct slabs_cache *only)
{
    slabs_each_cpu(&lslab, only, drain_cpu);
    slabs_each(&lslab, only, drain_node);
}

/* Twice: indices of slabs that go back are objects of alloc(). */
static void lslab_pressure(void)
{
    lslab_shrink(NULL);
    lslab_shrink(NULL);
}

/* ---- caches ------------------------------------------------------------- */

/* The room of a queue: whole lines, so that processors share none. */
static size_t queue_entries(const struct lslab_queue *q)
{
    return ROUND_UP(q->queue_limit, OTHER_LINE / sizeof(void *));
}

static size_t record_size(const struct lslab_cache *k)
{
    return sizeof(*k) + (other_cpus * queue_entries(&k->cache_cpu[0]) +
                         queue_entries(&k->cache_shared)) *
                            sizeof(void *);
}

/* Makes a cache of that shape, whose queues follow it in its record. */
static struct lslab_cache *lslab_make(const struct lslab_cache *shape)
{
    struct lslab_cache *k =
        supply_record(lslab.heap.heap_supply, record_size(shape));
    void **entry;

    if (k == NULL)
        return NULL;
    *k = *shape;
    entry = (void **)(k + 1);
    for (unsigned i = 0; i < other_cpus; i++) {
        k->cache_cpu[i].queue_entry = entry;
        entry += queue_entries(&k->cache_cpu[i]);
    }
    k->cache_shared.queue_entry = entry;
    list_init(&k->cache_full);
    list_init(&k->cache_free);
    slabs_add(&lslab, &k->cache);
    return k;
}

static bool lslab_cache_create(struct other_cache *c)
{
    struct lslab_cache shape = {.cache = {.object = c->other_size,
                                          .ctor = c->other_ctor,
                                          .dtor = c->other_dtor}};

    if (lslab_shape(&shape, c->other_align))
        c->other_own = lslab_make(&shape);
    return c->other_own != NULL;
}

static void lslab_cache_destroy(struct other_cache *c)
{
    struct lslab_cache *k = c->other_own;

    lslab_shrink(&k->cache);
    slabs_remove(&lslab, &k->cache);
    supply_record_free(lslab.heap.heap_supply, k, record_size(k));
}

/* ---- the operations ----------------------------------------------------- */

static void *lslab_get(struct lslab_cache *k, size_t size,
                       struct other_cache *c)
{
    void *obj;

    other_enter(&lslab.heap);
    obj = queue_get(k);
    if (obj != NULL)
        other_count_alloc(&lslab.heap, c, size, k->cache.size, 0);
    else
        other_count_fail(&lslab.heap, c);
    other_leave(&lslab.heap);
    return obj;
}

static void lslab_put(struct lslab_cache *k, void *obj, size_t size,
                      struct other_cache *c)
{
    const struct lslab_slab *s = lslab_slab_of(k, obj);

    if (s == NULL)
        mm_panic("linux_slab: %p is not an object of %zu bytes", obj,
                 k->cache.object);
    if (MM_UNLOCKED(s->slab_active) == 0)
        mm_panic("linux_slab: %p, %zu bytes: it is free already", obj,
                 k->cache.object);
    other_enter(&lslab.heap);
    queue_put(k, obj);
    other_count_free(&lslab.heap, c, size, k->cache.size, 0);
    slabs_leave(&lslab);
}

static void *lslab_alloc(size_t size)
{
    if (size == 0)
        return OTHER_NOTHING;
    return size > LSLAB_MAX
               ? other_whole_alloc(&lslab.heap, NULL, size)
               : lslab_get(untyped[lslab_class_of(size)], size, NULL);
}

static void lslab_free(void *p, size_t size)
{
    if (p == OTHER_NOTHING)
        return;
    if (size > LSLAB_MAX)
        other_whole_free(&lslab.heap, NULL, p, size);
    else
        lslab_put(untyped[lslab_class_of(size)], p, size, NULL);
}

static void *lslab_cache_alloc(struct other_cache *c)
{
    return lslab_get(c->other_own, c->other_size, c);
}

static void lslab_cache_free(struct other_cache *c, void *obj)
{
    lslab_put(c->other_own, obj, c->other_size, c);
}

/* ---- looking ------------------------------------------------------------ */

/* The slabs of a list, all of whose objects are allocated, or some, or none. */
static const char *lslab_check_list(struct lslab_cache *k, struct list *list,
                                    size_t *slabs, size_t *active)
{
    list_for_each (l, list) {
        const struct lslab_slab *s = lslab_slab(l);

        if (++*slabs > k->cache.slabs || s->slab.cache != &k->cache ||
            s->slab_active > k->cache.num ||
            list != lslab_list(k, s->slab_active))
            return "a list has a slab of another list";
        *active += s->slab_active;
    }
    return NULL;
}

static const char *lslab_check_cache(struct slabs_cache *cache,
                                     struct slabs_sum *sum)
{
    struct lslab_cache *k = lslab_cache_of(cache);
    size_t slabs = 0, active = 0;
    bool many;
    const char *wrong = lslab_check_list(k, &k->cache.partial, &slabs, &active);

    if (wrong == NULL)
        wrong = lslab_check_list(k, &k->cache_full, &slabs, &active);
    if (wrong == NULL)
        wrong = lslab_check_list(k, &k->cache_free, &slabs, &active);
    if (wrong == NULL && slabs * k->cache.num - active != k->cache_free_objects)
        wrong = "free objects of slabs are not as many as counted";
    many = k->cache_shared.queue_avail > k->cache_shared.queue_limit;
    for (unsigned i = 0; i < other_cpus; i++)
        many |= k->cache_cpu[i].queue_avail > k->cache_cpu[i].queue_limit;
    if (wrong == NULL && many)
        wrong = "a queue has more objects than it may";
    sum->listed += slabs;
    return wrong;
}

/* Sees the objects of a slab that are in a queue. */
static void see_queue(struct slabs_view *v, const struct lslab_queue *q)
{
    for (unsigned i = 0; i < q->queue_avail; i++) {
        const char *obj = q->queue_entry[i];

        if (obj >= v->first && obj < v->first + v->num * v->size &&
            !slabs_see(v, obj))
            v->wrong = "a queue has an object that is free, or twice";
    }
}

static void lslab_look(struct slab *slab, struct slabs_view *v)
{
    const struct lslab_cache *k = lslab_cache_of(slab->cache);
    const struct lslab_slab *s = lslab_slab(&slab->link);

    v->first = s->slab_first;
    v->size = k->cache.size;
    v->num = k->cache.num;
    v->room = lslab_room(k);
    v->listed = true;
    for (unsigned i = s->slab_active; i < v->num; i++)
        if (!slabs_see(v, v->first + s->slab_index[i] * v->size))
            v->wrong = "an index has an object twice, or one that is not";
    see_queue(v, &k->cache_shared);
    for (unsigned i = 0; i < other_cpus; i++)
        see_queue(v, &k->cache_cpu[i]);
}

static const char *lslab_check(void)
{
    return slabs_check(&lslab);
}

static void lslab_other_stat(struct other_stat *out)
{
    other_counted_stat(&lslab.heap, out);
}

static const struct slabs_ops ops = {
    .destroy = lslab_destroy, .check = lslab_check_cache, .look = lslab_look};

/* Those of alloc() are aligned to a line, or the part of one that they fill. */
static void lslab_init(struct supply *s)
{
    memset(&lslab_stat, 0, sizeof(lslab_stat));
    slabs_init(&lslab, "linux_slab", s, &ops);
    next_reap_ms = LSLAB_NODE_MS;
    for (unsigned i = 0; i < LSLAB_UNTYPED; i++) {
        struct lslab_cache shape = {.cache = {.object = untyped_size[i]}};

        lslab_shape(&shape, MIN(untyped_size[i], (size_t)LSLAB_LINE));
        untyped[i] = lslab_make(&shape);
        if (untyped[i] == NULL)
            mm_panic("linux_slab: no memory for its caches");
    }
}

const struct other_allocator linux_slab_allocator = {
    .op_name = "linux_slab",
    .op_init = lslab_init,
    .op_cache_create = lslab_cache_create,
    .op_cache_destroy = lslab_cache_destroy,
    .op_cache_alloc = lslab_cache_alloc,
    .op_cache_free = lslab_cache_free,
    .op_alloc = lslab_alloc,
    .op_free = lslab_free,
    .op_tick = lslab_tick,
    .op_pressure = lslab_pressure,
    .op_stat = lslab_other_stat,
    .op_check = lslab_check,
};
