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
 * The index is in a free object, if objects are large enough and have neither
 * constructor nor destructor; or an object of alloc(); or at the slab's end.
 * Each new slab begins its objects at the next multiple of the line size: its
 * colour.
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
#include "mm/page.h"

#define LSLAB_FIRST   2    /* class of alloc(): 32 bytes */
#define LSLAB_MANY    255  /* objects, for an index of bytes */
#define LSLAB_COLD    16   /* objects for a queue that was not used lately */
#define LSLAB_SHARED  8    /* batches in a shared queue */
#define LSLAB_NODE_MS 4000 /* between two reaps of what is the node's */

unsigned lslab_max_order;
struct slabs lslab;
struct lslab_stat lslab_stat;

static uint64_t next_reap_ms; /* of what is the node's */

static struct lslab_cache *lslab_cache_of(struct slabs_cache *k)
{
    return container_of(k, struct lslab_cache, cache);
}

/* ---- geometry ----------------------------------------------------------- */

/* Bytes of a slab that no object with its part of the index has. */
static size_t lslab_left(const struct slabs_cache *k, size_t index)
{
    return slabs_bytes(k) - k->num * (k->size + index);
}

/* The order of slabs with an index of so many bytes for each object. False:
 * there are too many objects for an index. */
static bool lslab_fit(struct slabs_cache *k, size_t index)
{
    for (k->order = slabs_order(k->size + index);; k->order++) {
        k->num = (unsigned)(slabs_bytes(k) / (k->size + index));
        if (k->num > LSLAB_MANY)
            return false;
        if (k->order >= lslab_max_order ||
            lslab_left(k, index) * 8 <= slabs_bytes(k))
            return true;
    }
}

/* The first place of the index that is possible; the last one always is. */
static enum lslab_index lslab_place(struct slabs_cache *k)
{
    if (lslab_fit(k, 0)) {
        if (k->ctor == NULL && k->dtor == NULL && k->num <= k->object)
            return LSLAB_IN_OBJECT;
        if (slabs_size[slabs_class_of(LSLAB_FIRST, k->num)] <= k->size / 2 &&
            lslab_left(k, 0) < k->num)
            return LSLAB_OFF_SLAB;
    }
    lslab_fit(k, 1);
    k->index = k->num;
    return LSLAB_ON_SLAB;
}

static unsigned lslab_limit(size_t size)
{
    return size <= 256        ? 120
           : size <= 1024     ? 54
           : size <= 4096     ? 24
           : size <= KIB(128) ? 8
                              : 1;
}

/* ---- queues: the cache's lock is held, unless it says otherwise ---------- */

/* Takes out the first `n` objects. No lock is needed. */
static void queue_remove(struct lslab_queue *q, unsigned n)
{
    q->queue_avail -= n;
    memmove(q->queue_entry, q->queue_entry + n,
            q->queue_avail * sizeof(*q->queue_entry));
}

/* Copies `n` objects of another queue to the end. */
static void queue_append(struct lslab_queue *q, void **entry, unsigned n)
{
    memcpy(q->queue_entry + q->queue_avail, entry, n * sizeof(*entry));
    q->queue_avail += n;
}

/* How many objects an empty queue gets, if there are. */
static unsigned queue_batch(const struct lslab_cache *k,
                            const struct lslab_queue *q)
{
    return q->queue_touched ? k->cache_batch
                            : MIN(k->cache_batch, (unsigned)LSLAB_COLD);
}

/* The list of a slab with so many objects allocated. */
static struct list *lslab_list(struct lslab_cache *k, unsigned active)
{
    return active == 0              ? &k->cache_free
           : active == k->cache.num ? &k->cache_full
                                    : &k->cache.partial;
}

/* Objects of a slab, which is on no list, until the queue has `n`. */
static void queue_take(struct lslab_cache *k, struct lslab_queue *q,
                       struct slab *s, unsigned n)
{
    for (; q->queue_avail < n && s->active < s->num; k->cache_free_objects--)
        q->queue_entry[q->queue_avail++] =
            s->first + s->index[s->active++] * k->cache.size;
    if (k->cache_index == LSLAB_IN_OBJECT && s->active == s->num)
        s->index = NULL; /* it was in this object */
    list_insert_after(lslab_list(k, s->active), &s->link);
}

/* An empty queue gets the newest objects of the shared one, or objects of
 * slabs. False: there are none. No lock is held. */
static bool queue_refill(struct lslab_cache *k, struct lslab_queue *q)
{
    struct lslab_queue *shared = &k->cache_shared;
    unsigned n = queue_batch(k, q);

    OTHER_ADD(lslab_stat.stat_alloc_miss, 1);
    if (MM_UNLOCKED(k->cache_free_objects) == 0 &&
        MM_UNLOCKED(shared->queue_avail) == 0)
        return false;
    other_count_lock(&lslab.heap);
    other_share_part(&k->cache.lock);
    if (shared->queue_avail != 0) {
        n = MIN(n, shared->queue_avail);
        shared->queue_avail -= n;
        shared->queue_touched = true;
        queue_append(q, shared->queue_entry + shared->queue_avail, n);
    }
    while (q->queue_avail < n) {
        bool partial = !list_empty(&k->cache.partial);
        struct slab *s =
            slabs_slab(partial ? k->cache.partial.next : k->cache_free.next);

        k->cache_free_touched |= !partial; /* also if there is none */
        if (k->cache_free_objects == 0)
            break;
        list_remove(&s->link);
        queue_take(k, q, s, n);
    }
    other_unshare_part(&k->cache.lock);
    return q->queue_avail != 0;
}

/* Free slabs from the end of the list go back. */
static void lslab_trim(struct lslab_cache *k, size_t most)
{
    for (; most > 0 && !list_empty(&k->cache_free); most--) {
        struct slab *s = slabs_slab(k->cache_free.prev);

        list_remove(&s->link);
        k->cache_free_objects -= s->num;
        slabs_discard(&lslab, s);
    }
}

/* The first `n` objects of a queue go to their slabs. */
static void queue_return(struct lslab_cache *k, struct lslab_queue *q,
                         unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char *obj = q->queue_entry[i];
        struct slab *s = slabs_slab_of(&lslab, &k->cache, obj);

        if (s->index == NULL)
            s->index = (uint8_t *)obj;
        s->index[--s->active] =
            (uint8_t)((size_t)(obj - s->first) / k->cache.size);
        list_remove(&s->link);
        if (s->active == 0)
            list_insert_after(&k->cache_free, &s->link);
        else
            list_insert_before(&k->cache.partial, &s->link);
    }
    queue_remove(q, n);
    k->cache_free_objects += n;
    while (k->cache_free_objects > k->cache_free_limit &&
           !list_empty(&k->cache_free))
        lslab_trim(k, 1);
}

/* A full queue: the oldest objects go to the shared one, or to slabs. No lock
 * is held. */
static void queue_flush(struct lslab_cache *k, struct lslab_queue *q)
{
    struct lslab_queue *shared = &k->cache_shared;
    unsigned n;

    OTHER_ADD(lslab_stat.stat_free_miss, 1);
    other_count_lock(&lslab.heap);
    other_share_part(&k->cache.lock);
    n = MIN(shared->queue_limit - shared->queue_avail, k->cache_batch);
    if (n != 0) {
        queue_append(shared, q->queue_entry, n);
        queue_remove(q, n);
    } else {
        queue_return(k, q, k->cache_batch);
    }
    other_unshare_part(&k->cache.lock);
}

/* ---- objects: after other_enter ----------------------------------------- */

static void *lslab_get(struct slabs_cache *cache, unsigned cpu)
{
    struct lslab_cache *k = lslab_cache_of(cache);
    struct lslab_queue *q = &k->cache_cpu[cpu];

    if (q->queue_avail == 0 && !queue_refill(k, q))
        return NULL;
    q->queue_touched = true;
    return q->queue_entry[--q->queue_avail];
}

static void lslab_put(struct slabs_cache *cache, unsigned cpu, struct slab *s,
                      void *obj)
{
    struct lslab_cache *k = lslab_cache_of(cache);
    struct lslab_queue *q = &k->cache_cpu[cpu];

    if (MM_UNLOCKED(s->active) == 0)
        slabs_freed_twice(&lslab, cache, obj);
    if (q->queue_avail == q->queue_limit)
        queue_flush(k, q);
    q->queue_entry[q->queue_avail++] = obj;
}

/* ---- slabs: no lock is held, unless it says otherwise -------------------- */

/* An index beside its slab is a block that no client has requested. */
static void *index_alloc(size_t num)
{
    struct slabs_cache *k = slabs_class(&lslab, LSLAB_FIRST, num);
    void *index =
        lslab_get(k, other_enter(&lslab.heap)) ?: slabs_grow(&lslab, k);

    if (index != NULL) {
        other_count_external(&lslab.heap, -(ptrdiff_t)k->size);
        other_count_alloc(&lslab.heap, NULL, 0, k->size, k->size);
    }
    other_leave(&lslab.heap);
    return index;
}

static void index_free(const struct slab *s, const struct slabs_cache *cache)
{
    struct slabs_cache *k = slabs_class(&lslab, LSLAB_FIRST, cache->num);

    if (((uintptr_t)s->index ^ (uintptr_t)s->first) < slabs_bytes(cache))
        return; /* it is in the slab */
    lslab_put(k, other_enter(&lslab.heap), slabs_slab_of(&lslab, k, s->index),
              s->index);
    other_count_external(&lslab.heap, (ptrdiff_t)k->size);
    other_count_free(&lslab.heap, NULL, 0, k->size, k->size);
    other_leave(&lslab.heap);
}

static struct slab *lslab_make(struct slabs_cache *cache)
{
    struct lslab_cache *k = lslab_cache_of(cache);
    unsigned n = __atomic_add_fetch(&k->cache_colour_next, 1, __ATOMIC_RELAXED);
    size_t colour = n % MAX(k->cache_colours, 1u) * k->cache_colour_off;
    struct slab *s = slabs_new(&lslab, cache, cache->order, colour);

    if (s == NULL)
        return NULL;
    s->index = (uint8_t *)s->first +
               (k->cache_index == LSLAB_IN_OBJECT
                    ? (cache->num - 1) * cache->size
                    : slabs_bytes(cache) - colour - cache->index);
    if (k->cache_index == LSLAB_OFF_SLAB)
        s->index = index_alloc(cache->num);
    if (s->index == NULL) {
        slabs_delete(&lslab, s, cache);
        return NULL;
    }
    for (unsigned i = 0; i < cache->num; i++)
        s->index[i] = (uint8_t)i;
    return s;
}

/* An interrupt may have filled the queue meanwhile. The cache's lock is held.
 */
static void lslab_add(struct slabs_cache *cache, unsigned cpu, struct slab *s)
{
    struct lslab_cache *k = lslab_cache_of(cache);
    struct lslab_queue *q = &k->cache_cpu[cpu];

    other_count_lock(&lslab.heap);
    k->cache_free_objects += s->num;
    queue_take(k, q, s, q->queue_avail == 0 ? queue_batch(k, q) : 0);
}

/* ---- time and pressure: the cache's lock is held ------------------------- */

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
    other_count_lock(&lslab.heap);
    queue_return(k, q, n > q->queue_avail ? (q->queue_avail + 1) / 2 : n);
}

static void reap_cpu(struct slabs_cache *k, unsigned cpu)
{
    OTHER_ADD(lslab_stat.stat_scanned, 1);
    queue_reap(lslab_cache_of(k), &lslab_cache_of(k)->cache_cpu[cpu]);
}

static void reap_node(struct slabs_cache *cache, unsigned cpu UNUSED)
{
    struct lslab_cache *k = lslab_cache_of(cache);
    size_t part = 5 * (size_t)cache->num;

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

static void drain_cpu(struct slabs_cache *cache, unsigned cpu)
{
    struct lslab_queue *q = &lslab_cache_of(cache)->cache_cpu[cpu];

    queue_return(lslab_cache_of(cache), q, q->queue_avail);
}

static void drain_node(struct slabs_cache *cache, unsigned cpu UNUSED)
{
    struct lslab_cache *k = lslab_cache_of(cache);

    other_count_lock(&lslab.heap);
    queue_return(k, &k->cache_shared, k->cache_shared.queue_avail);
    lslab_trim(k, SIZE_MAX);
}

/* ---- caches ------------------------------------------------------------- */

/* The room of a queue: whole lines, so that processors share none. */
static size_t queue_bytes(unsigned limit)
{
    return ROUND_UP(limit * sizeof(void *), (size_t)OTHER_LINE);
}

/* Returns the end of its room. */
static char *queue_start(struct lslab_queue *q, unsigned limit, char *room)
{
    q->queue_limit = limit;
    q->queue_entry = (void **)room;
    return room + queue_bytes(limit);
}

/* The queues follow a cache in its record. */
static struct slabs_cache *lslab_create(const struct other_cache *c)
{
    size_t align = MAX(c->other_align, (size_t)8);
    size_t size = ROUND_UP(MAX(c->other_size, (size_t)16), align);
    unsigned limit = lslab_limit(size), batch = (limit + 1) / 2;
    unsigned shared =
        other_cpus > 1 && size <= PAGE_SIZE ? LSLAB_SHARED * batch : 0;
    struct lslab_cache *k = slabs_record(
        &lslab, c,
        sizeof(*k) + other_cpus * queue_bytes(limit) + queue_bytes(shared));
    char *room;

    if (k == NULL)
        return NULL;
    k->cache.size = size;
    k->cache_index = lslab_place(&k->cache);
    k->cache_colour_off = MAX(align, (size_t)LSLAB_LINE);
    k->cache_colours = (unsigned)((lslab_left(&k->cache, 0) - k->cache.index) /
                                  k->cache_colour_off);
    k->cache_batch = batch;
    k->cache_free_limit = (1 + other_cpus) * batch + k->cache.num;
    room = (char *)(k + 1);
    for (unsigned i = 0; i < other_cpus; i++)
        room = queue_start(&k->cache_cpu[i], limit, room);
    queue_start(&k->cache_shared, shared, room);
    list_init(&k->cache_full);
    list_init(&k->cache_free);
    slabs_add(&lslab, &k->cache);
    return &k->cache;
}

/* ---- looking ------------------------------------------------------------ */

static int lslab_unused(const struct slab *s, const struct list *list)
{
    bool here = s->active <= s->num &&
                list == lslab_list(lslab_cache_of(s->cache), s->active);

    return here ? s->num - s->active : -1;
}

static void lslab_check_cache(struct slabs_cache *cache, struct slabs_sum *sum)
{
    struct lslab_cache *k = lslab_cache_of(cache);
    bool many = k->cache_shared.queue_avail > k->cache_shared.queue_limit;

    slabs_check_list(cache, &cache->partial, lslab_unused, sum);
    slabs_check_list(cache, &k->cache_full, lslab_unused, sum);
    slabs_check_list(cache, &k->cache_free, lslab_unused, sum);
    slabs_expect(sum, sum->unused == k->cache_free_objects,
                 "free objects of slabs are not as many as counted");
    for (unsigned i = 0; i < other_cpus; i++)
        many |= k->cache_cpu[i].queue_avail > k->cache_cpu[i].queue_limit;
    slabs_expect(sum, !many, "a queue has more objects than it may");
}

/* Sees the objects of a slab that are in a queue. */
static void look_queue(struct slabs_view *v, const struct lslab_queue *q)
{
    const struct slab *s = v->slab;

    for (unsigned i = 0; i < q->queue_avail; i++)
        if ((size_t)((char *)q->queue_entry[i] - s->first) <
            s->num * s->cache->size)
            slabs_see(v, q->queue_entry[i],
                      "a queue has an object that is free, or twice");
}

static void lslab_look(struct slabs_view *v)
{
    const struct slab *s = v->slab;
    const struct lslab_cache *k = lslab_cache_of(s->cache);

    for (unsigned i = s->active; i < s->num; i++)
        slabs_see(v, s->first + s->index[i] * s->cache->size,
                  "an index has an object twice, or one that is not");
    look_queue(v, &k->cache_shared);
    for (unsigned i = 0; i < other_cpus; i++)
        look_queue(v, &k->cache_cpu[i]);
}

/* ---- the allocator ------------------------------------------------------ */

static const struct slabs_ops lslab_ops = {
    .first = LSLAB_FIRST,
    .align = LSLAB_LINE,
    .create = lslab_create,
    .get = lslab_get,
    .make = lslab_make,
    .add = lslab_add,
    .remove = index_free,
    .flush = drain_cpu,
    .trim = drain_node,
    .check = lslab_check_cache,
    .look = lslab_look,
};

static void lslab_init(struct supply *s)
{
    lslab_stat = (struct lslab_stat){0};
    next_reap_ms = LSLAB_NODE_MS;
    slabs_init(&lslab, "linux_slab", s, &lslab_ops);
}

SLABS_ALLOCATOR(linux_slab, lslab, .op_tick = lslab_tick);
