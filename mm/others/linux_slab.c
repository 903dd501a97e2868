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
struct list lslab_caches;
struct lslab_stat lslab_stat;

static struct other_heap heap;
static struct lslab_cache *untyped[LSLAB_UNTYPED];
static struct list back;      /* slabs to return, at the end of an operation */
static uint64_t next_reap_ms; /* of what is the node's */

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

static size_t lslab_bytes(const struct lslab_cache *k)
{
    return (size_t)PAGE_SIZE << k->cache_order;
}

/* Bytes of a slab that no object with its part of the index has. */
static size_t lslab_left(const struct lslab_cache *k, size_t index)
{
    return lslab_bytes(k) - k->cache_num * (k->cache_size + index);
}

/* The order of slabs with an index of so many bytes for each object. */
static bool lslab_fit(struct lslab_cache *k, size_t index)
{
    for (k->cache_order = 0; k->cache_order < LSLAB_ORDERS; k->cache_order++) {
        size_t num = lslab_bytes(k) / (k->cache_size + index);

        if (num > LSLAB_MANY)
            return false;
        k->cache_num = (unsigned)num;
        if (num != 0 && (k->cache_order >= lslab_max_order ||
                         lslab_left(k, index) * 8 <= lslab_bytes(k)))
            return true;
    }
    return false;
}

/* The first place of the index that is possible. */
static bool lslab_place(struct lslab_cache *k)
{
    bool fits = lslab_fit(k, 0);

    k->cache_index = LSLAB_IN_OBJECT;
    if (fits && k->cache_ctor == NULL && k->cache_num <= k->cache_object)
        return true;
    k->cache_index = LSLAB_OFF_SLAB;
    if (fits &&
        untyped_size[lslab_class_of(k->cache_num)] <= k->cache_size / 2 &&
        lslab_left(k, 0) < k->cache_num)
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
    k->cache_size = ROUND_UP(MAX(k->cache_object, (size_t)16), align);
    if (!lslab_place(k))
        return false;
    k->cache_colour_off = MAX(align, (size_t)LSLAB_LINE);
    k->cache_colours =
        (unsigned)(lslab_left(k, k->cache_index == LSLAB_ON_SLAB) /
                   k->cache_colour_off);
    limit = lslab_limit(k->cache_size);
    k->cache_batch = (limit + 1) / 2;
    k->cache_free_limit = (1 + other_cpus) * k->cache_batch + k->cache_num;
    for (unsigned i = 0; i < other_cpus; i++)
        k->cache_cpu[i].queue_limit = limit;
    if (other_cpus > 1 && k->cache_size <= PAGE_SIZE)
        k->cache_shared.queue_limit = LSLAB_SHARED * k->cache_batch;
    return true;
}

/* ---- the objects of a slab ---------------------------------------------- */

/* The slab of an object, if it can be one of this cache; or NULL. */
static struct lslab_slab *lslab_slab_of(const struct lslab_cache *k,
                                        const void *obj)
{
    uintptr_t begin = (uintptr_t)obj & ~(uintptr_t)(lslab_bytes(k) - 1);
    struct lslab_slab *s = other_page(&heap, (void *)begin);
    size_t offset = (size_t)((const char *)obj - s->slab_first);

    return s->slab_cache == k && offset % k->cache_size == 0 &&
                   offset / k->cache_size < k->cache_num
               ? s
               : NULL;
}

static char *lslab_object(const struct lslab_slab *s, unsigned i)
{
    return s->slab_first + i * s->slab_cache->cache_size;
}

static void *lslab_pop(struct lslab_slab *s)
{
    char *obj = lslab_object(s, s->slab_index[s->slab_active++]);

    if (s->slab_cache->cache_index == LSLAB_IN_OBJECT &&
        s->slab_active == s->slab_cache->cache_num)
        s->slab_index = NULL; /* it was in this object */
    return obj;
}

static void lslab_push(struct lslab_slab *s, void *obj)
{
    size_t offset = (size_t)((char *)obj - s->slab_first);

    if (s->slab_index == NULL)
        s->slab_index = obj;
    s->slab_index[--s->slab_active] =
        (uint8_t)(offset / s->slab_cache->cache_size);
}

/* ---- slabs -------------------------------------------------------------- */

/* Bytes that the index takes of a slab. */
static size_t lslab_index_bytes(const struct lslab_cache *k)
{
    return k->cache_index == LSLAB_ON_SLAB ? k->cache_num : 0;
}

/* What objects and their gaps have of a slab. */
static size_t lslab_room(const struct lslab_cache *k)
{
    return lslab_bytes(k) - lslab_index_bytes(k);
}

static void *queue_get(struct lslab_cache *k);
static void queue_put(struct lslab_cache *k, void *obj);

/* An index beside its slab is a block that no client has requested. */
static void *lslab_index_alloc(size_t num)
{
    struct lslab_cache *k = untyped[lslab_class_of(num)];
    void *index;

    other_enter(&heap);
    index = queue_get(k);
    if (index != NULL)
        other_count_alloc(&heap, NULL, 0, k->cache_size, k->cache_size);
    other_leave(&heap);
    return index;
}

static void lslab_index_free(void *index, size_t num)
{
    struct lslab_cache *k = untyped[lslab_class_of(num)];

    other_enter(&heap);
    queue_put(k, index);
    other_count_free(&heap, NULL, 0, k->cache_size, k->cache_size);
    other_leave(&heap);
}

/* The place of a new slab's index. No lock is held. NULL: no memory. */
static uint8_t *lslab_new_index(const struct lslab_cache *k, char *slab,
                                char *first)
{
    if (k->cache_index == LSLAB_ON_SLAB)
        return (uint8_t *)slab + lslab_room(k);
    if (k->cache_index == LSLAB_IN_OBJECT)
        return (uint8_t *)first + (k->cache_num - 1) * k->cache_size;
    return lslab_index_alloc(k->cache_num);
}

/* A slab of which all objects are free. No lock is held. */
static struct lslab_slab *lslab_new(struct lslab_cache *k, size_t colour)
{
    size_t bytes = lslab_bytes(k);
    char *at = supply_alloc(heap.heap_supply, bytes >> PAGE_SHIFT, bytes);
    uint8_t *index = NULL;
    struct lslab_slab *s;

    if (at != NULL)
        index = lslab_new_index(k, at, at + colour);
    if (index == NULL) {
        if (at != NULL)
            supply_free(heap.heap_supply, at, bytes >> PAGE_SHIFT);
        return NULL;
    }
    s = other_page(&heap, at);
    s->slab_cache = k;
    s->slab_first = at + colour;
    s->slab_index = index;
    for (unsigned i = 0; i < k->cache_num; i++) {
        index[i] = (uint8_t)i;
        if (k->cache_ctor != NULL)
            k->cache_ctor(lslab_object(s, i), k->cache_object);
    }
    return s;
}

/* Notes that a free slab goes back at the end of the operation. */
static void lslab_discard(struct lslab_cache *k, struct lslab_slab *s)
{
    MM_ASSERT(mm_lock_held(&heap.heap_lock) && s->slab_active == 0);
    list_remove(&s->slab_link);
    list_insert_before(&back, &s->slab_link);
    OTHER_ADD(lslab_stat.stat_returned, 1);
    k->cache_slabs--;
    k->cache_free_objects -= k->cache_num;
    other_count_external(&heap, -(ptrdiff_t)lslab_room(k));
    other_count_metadata(&heap, -(ptrdiff_t)lslab_index_bytes(k));
    other_count_pages(&heap, -(ptrdiff_t)(lslab_bytes(k) >> PAGE_SHIFT));
}

/* A slab to return, with what is fixed of its cache, which may end meanwhile.
 * NULL: there is none. */
static struct lslab_slab *lslab_next_back(struct lslab_cache *k)
{
    struct lslab_slab *s = NULL;

    other_enter(&heap);
    other_share(&heap);
    if (!list_empty(&back)) {
        s = list_entry(back.next, struct lslab_slab, slab_link);
        list_remove(&s->slab_link);
        memcpy(k, s->slab_cache, offsetof(struct lslab_cache, cache_partial));
    }
    other_unshare(&heap);
    other_leave(&heap);
    return s;
}

static __attribute__((noinline)) void lslab_return_slabs(void)
{
    struct lslab_slab *s;
    struct lslab_cache k;

    while ((s = lslab_next_back(&k)) != NULL) {
        char *begin = supply_page(heap.heap_supply, s);
        void *index = s->slab_index;

        for (unsigned i = 0; k.cache_dtor != NULL && i < k.cache_num; i++)
            k.cache_dtor(s->slab_first + i * k.cache_size, k.cache_object);
        supply_free(heap.heap_supply, begin, lslab_bytes(&k) >> PAGE_SHIFT);
        if (k.cache_index == LSLAB_OFF_SLAB)
            lslab_index_free(index, k.cache_num);
    }
}

/* The end of an operation: without a lock, objects are destroyed and pages
 * returned. */
static void lslab_leave(void)
{
    bool more = MM_UNLOCKED(back.next) != &back;

    other_leave(&heap);
    if (unlikely(more))
        lslab_return_slabs();
}

/* The list of a slab from which objects were taken. */
static void lslab_relist(struct lslab_cache *k, struct lslab_slab *s)
{
    list_insert_after(s->slab_active == k->cache_num ? &k->cache_full
                                                     : &k->cache_partial,
                      &s->slab_link);
}

/* The queue gets up to `most` objects of a slab. */
static unsigned lslab_take(struct lslab_slab *s, struct lslab_queue *q,
                           unsigned most)
{
    unsigned n = 0;

    for (; n < most && s->slab_active < s->slab_cache->cache_num; n++)
        q->queue_entry[q->queue_avail++] = lslab_pop(s);
    return n;
}

/* Free slabs from the end of the list go back. */
static void lslab_trim(struct lslab_cache *k, size_t most)
{
    for (; most > 0 && !list_empty(&k->cache_free); most--)
        lslab_discard(
            k, list_entry(k->cache_free.prev, struct lslab_slab, slab_link));
}

/* The first `n` objects of a queue go to their slabs. */
static void lslab_return(struct lslab_cache *k, const struct lslab_queue *q,
                         unsigned n)
{
    k->cache_free_objects += n;
    for (unsigned i = 0; i < n; i++) {
        struct lslab_slab *s = lslab_slab_of(k, q->queue_entry[i]);

        list_remove(&s->slab_link);
        lslab_push(s, q->queue_entry[i]);
        if (s->slab_active == 0)
            list_insert_after(&k->cache_free, &s->slab_link);
        else
            list_insert_before(&k->cache_partial, &s->slab_link);
    }
    while (k->cache_free_objects > k->cache_free_limit &&
           !list_empty(&k->cache_free))
        lslab_trim(k, 1);
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
    MM_ASSERT(mm_lock_held(&heap.heap_lock));
    if (k->cache_shared.queue_avail != 0) {
        queue_share(q, &k->cache_shared, n);
        return;
    }
    while (n > 0) {
        bool partial = !list_empty(&k->cache_partial);
        struct lslab_slab *s =
            list_entry(partial ? k->cache_partial.next : k->cache_free.next,
                       struct lslab_slab, slab_link);
        unsigned taken;

        k->cache_free_touched |= !partial; /* also if there is none */
        if (k->cache_free_objects == 0)
            break;
        taken = lslab_take(s, q, n);
        k->cache_free_objects -= taken;
        n -= taken;
        list_remove(&s->slab_link);
        lslab_relist(k, s);
    }
}

/* A new slab: the queue gets `n` of its objects, unless an interrupt has filled
 * it meanwhile. */
static void queue_grow(struct lslab_cache *k, struct lslab_queue *q,
                       struct lslab_slab *s, unsigned n)
{
    other_count_lock(&heap);
    other_share(&heap);
    OTHER_ADD(lslab_stat.stat_grown, 1);
    k->cache_slabs++;
    other_count_external(&heap, (ptrdiff_t)lslab_room(k));
    other_count_metadata(&heap, (ptrdiff_t)lslab_index_bytes(k));
    other_count_pages(&heap, (ptrdiff_t)(lslab_bytes(k) >> PAGE_SHIFT));
    if (q->queue_avail == 0)
        lslab_take(s, q, n);
    k->cache_free_objects += k->cache_num - s->slab_active;
    if (s->slab_active == 0)
        list_insert_before(&k->cache_free, &s->slab_link);
    else
        lslab_relist(k, s);
    other_unshare(&heap);
}

/* The colour of the next slab. */
static size_t next_colour(struct lslab_cache *k)
{
    size_t colour;

    other_share(&heap);
    if (++k->cache_colour_next >= k->cache_colours)
        k->cache_colour_next = 0;
    colour = k->cache_colour_next * k->cache_colour_off;
    other_unshare(&heap);
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
        other_count_lock(&heap);
        other_share(&heap);
        queue_refill(k, q, n);
        other_unshare(&heap);
    }
    if (q->queue_avail == 0) {
        size_t colour = next_colour(k);
        struct lslab_slab *s;

        other_leave(&heap);
        s = lslab_new(k, colour);
        q = &k->cache_cpu[other_enter(&heap)];
        if (s != NULL)
            queue_grow(k, q, s, n);
    }
    if (q->queue_avail == 0)
        return NULL;
    q->queue_touched = true;
    other_count_external(&heap, -(ptrdiff_t)k->cache_size);
    return q->queue_entry[--q->queue_avail];
}

/* A full queue: the oldest objects go to the shared one, or to slabs. */
static void queue_flush(struct lslab_cache *k, struct lslab_queue *q)
{
    struct lslab_queue *shared = &k->cache_shared;
    unsigned n = k->cache_batch, room;

    other_count_lock(&heap);
    other_share(&heap);
    room = shared->queue_limit - shared->queue_avail;
    if (room != 0) {
        n = MIN(n, room);
        memcpy(shared->queue_entry + shared->queue_avail, q->queue_entry,
               n * sizeof(*q->queue_entry));
        shared->queue_avail += n;
    } else {
        lslab_return(k, q, n);
    }
    other_unshare(&heap);
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
    other_count_external(&heap, (ptrdiff_t)k->cache_size);
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
    other_count_lock(&heap);
    lslab_return(k, q, n);
    queue_remove(q, n);
}

static void node_reap(struct lslab_cache *k)
{
    size_t part = 5 * (size_t)k->cache_num;

    queue_reap(k, &k->cache_shared);
    if (!k->cache_free_touched)
        lslab_trim(k, (k->cache_free_limit + part - 1) / part);
    k->cache_free_touched = false;
}

static void reap_cpu(unsigned cpu, void *unused UNUSED)
{
    other_share(&heap);
    list_for_each (l, &lslab_caches) {
        struct lslab_cache *k = list_entry(l, struct lslab_cache, cache_link);

        queue_reap(k, &k->cache_cpu[cpu]);
    }
    other_unshare(&heap);
}

static void lslab_tick(uint64_t now_ms)
{
    bool node = now_ms >= next_reap_ms;

    if (node)
        next_reap_ms = now_ms + LSLAB_NODE_MS;
    other_each_cpu(&heap, reap_cpu, NULL);
    other_enter(&heap);
    other_share(&heap);
    list_for_each (l, &lslab_caches) {
        OTHER_ADD(lslab_stat.stat_scanned, 1);
        if (node)
            node_reap(list_entry(l, struct lslab_cache, cache_link));
    }
    other_unshare(&heap);
    lslab_leave();
}

static void queue_drain(struct lslab_cache *k, struct lslab_queue *q)
{
    lslab_return(k, q, q->queue_avail);
    q->queue_avail = 0;
}

/* Of one cache, or all: NULL. */
static void drain_cpu(unsigned cpu, void *only)
{
    other_share(&heap);
    list_for_each (l, &lslab_caches) {
        struct lslab_cache *k = list_entry(l, struct lslab_cache, cache_link);

        if (only == NULL || only == k)
            queue_drain(k, &k->cache_cpu[cpu]);
    }
    other_unshare(&heap);
}

/* After drain_cpu: the shared queue goes to the slabs, and all free slabs
 * back. */
static void lslab_shrink(struct lslab_cache *k)
{
    other_count_lock(&heap);
    queue_drain(k, &k->cache_shared);
    lslab_trim(k, SIZE_MAX);
}

/* Twice: indices of slabs that go back are objects of alloc(). */
static void lslab_pressure(void)
{
    for (int i = 0; i < 2; i++) {
        other_each_cpu(&heap, drain_cpu, NULL);
        other_enter(&heap);
        other_share(&heap);
        list_for_each (l, &lslab_caches)
            lslab_shrink(list_entry(l, struct lslab_cache, cache_link));
        other_unshare(&heap);
        lslab_leave();
    }
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
    struct lslab_cache *k = supply_record(heap.heap_supply, record_size(shape));
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
    list_init(&k->cache_partial);
    list_init(&k->cache_full);
    list_init(&k->cache_free);
    other_enter(&heap);
    other_share(&heap);
    list_insert_before(&lslab_caches, &k->cache_link);
    other_unshare(&heap);
    other_leave(&heap);
    return k;
}

static bool lslab_cache_create(struct other_cache *c)
{
    struct lslab_cache shape = {.cache_object = c->other_size,
                                .cache_ctor = c->other_ctor,
                                .cache_dtor = c->other_dtor};

    if (lslab_shape(&shape, c->other_align))
        c->other_own = lslab_make(&shape);
    return c->other_own != NULL;
}

static void lslab_cache_destroy(struct other_cache *c)
{
    struct lslab_cache *k = c->other_own;

    other_each_cpu(&heap, drain_cpu, k);
    other_enter(&heap);
    other_share(&heap);
    lslab_shrink(k);
    MM_ASSERT(k->cache_slabs == 0);
    list_remove(&k->cache_link);
    other_unshare(&heap);
    lslab_leave();
    supply_record_free(heap.heap_supply, k, record_size(k));
}

/* Those of alloc() are aligned to a line, or the part of one that they fill. */
static void lslab_init(struct supply *s)
{
    other_init(&heap, "linux_slab", s);
    memset(&lslab_stat, 0, sizeof(lslab_stat));
    list_init(&lslab_caches);
    list_init(&back);
    next_reap_ms = LSLAB_NODE_MS;
    for (unsigned i = 0; i < LSLAB_UNTYPED; i++) {
        struct lslab_cache shape = {.cache_object = untyped_size[i]};

        lslab_shape(&shape, MIN(untyped_size[i], (size_t)LSLAB_LINE));
        untyped[i] = lslab_make(&shape);
        if (untyped[i] == NULL)
            mm_panic("linux_slab: no memory for its caches");
    }
}

/* ---- the operations ----------------------------------------------------- */

static void *lslab_get(struct lslab_cache *k, size_t size,
                       struct other_cache *c)
{
    void *obj;

    other_enter(&heap);
    obj = queue_get(k);
    if (obj != NULL)
        other_count_alloc(&heap, c, size, k->cache_size, 0);
    else
        other_count_fail(&heap, c);
    other_leave(&heap);
    return obj;
}

static void lslab_put(struct lslab_cache *k, void *obj, size_t size,
                      struct other_cache *c)
{
    const struct lslab_slab *s = lslab_slab_of(k, obj);

    if (s == NULL)
        mm_panic("linux_slab: %p is not an object of %zu bytes", obj,
                 k->cache_object);
    if (MM_UNLOCKED(s->slab_active) == 0)
        mm_panic("linux_slab: %p, %zu bytes: it is free already", obj,
                 k->cache_object);
    other_enter(&heap);
    queue_put(k, obj);
    other_count_free(&heap, c, size, k->cache_size, 0);
    lslab_leave();
}

static void *lslab_alloc(size_t size)
{
    if (size == 0)
        return OTHER_NOTHING;
    return size > LSLAB_MAX
               ? other_whole_alloc(&heap, NULL, size)
               : lslab_get(untyped[lslab_class_of(size)], size, NULL);
}

static void lslab_free(void *p, size_t size)
{
    if (p == OTHER_NOTHING)
        return;
    if (size > LSLAB_MAX)
        other_whole_free(&heap, NULL, p, size);
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

/* What check() finds in all caches. */
struct lslab_sum {
    size_t sum_active; /* objects of slabs that are not free there */
    size_t sum_queued; /* of these: in queues */
    size_t sum_free;   /* bytes */
};

/* Whether an object is free in its slab. */
static bool in_index(const struct lslab_slab *s, const void *obj)
{
    for (unsigned i = s->slab_active; i < s->slab_cache->cache_num; i++)
        if (lslab_object(s, s->slab_index[i]) == obj)
            return true;
    return false;
}

/* The slabs of a list, all of whose objects are allocated, or some, or none. */
static const char *check_slabs(const struct lslab_cache *k, struct list *list,
                               struct lslab_sum *sum, size_t *slabs)
{
    list_for_each (l, list) {
        const struct lslab_slab *s =
            list_entry(l, struct lslab_slab, slab_link);
        uint8_t seen[LSLAB_MANY + 1] = {0};

        if (++*slabs > k->cache_slabs || s->slab_cache != k ||
            s->slab_active > k->cache_num ||
            list != (s->slab_active == 0              ? &k->cache_free
                     : s->slab_active == k->cache_num ? &k->cache_full
                                                      : &k->cache_partial))
            return "a list has a slab of another list";
        for (unsigned i = s->slab_active; i < k->cache_num; i++)
            if (s->slab_index[i] >= k->cache_num || seen[s->slab_index[i]]++)
                return "an index has an object twice, or one that is not";
        sum->sum_active += s->slab_active;
        sum->sum_free += lslab_room(k) - s->slab_active * k->cache_size;
    }
    return NULL;
}

static const char *check_queue(const struct lslab_cache *k,
                               const struct lslab_queue *q,
                               struct lslab_sum *sum)
{
    if (q->queue_avail > q->queue_limit)
        return "a queue has more objects than it may";
    for (unsigned i = 0; i < q->queue_avail; i++) {
        const struct lslab_slab *s =
            supply_info(heap.heap_supply, q->queue_entry[i]) == NULL
                ? NULL
                : lslab_slab_of(k, q->queue_entry[i]);

        if (s == NULL || in_index(s, q->queue_entry[i]))
            return "a queue has an object that is free, or of another cache";
        if (i > 0 && q->queue_entry[i] == q->queue_entry[i - 1])
            return "a queue has an object twice";
    }
    sum->sum_queued += q->queue_avail;
    sum->sum_free += q->queue_avail * k->cache_size;
    return NULL;
}

static const char *check_lslab_cache(struct lslab_cache *k,
                                     struct lslab_sum *sum)
{
    size_t active = sum->sum_active, slabs = 0;
    const char *wrong = check_slabs(k, &k->cache_partial, sum, &slabs);

    if (wrong == NULL)
        wrong = check_slabs(k, &k->cache_full, sum, &slabs);
    if (wrong == NULL)
        wrong = check_slabs(k, &k->cache_free, sum, &slabs);
    if (wrong == NULL)
        wrong = check_queue(k, &k->cache_shared, sum);
    for (unsigned i = 0; wrong == NULL && i < other_cpus; i++)
        wrong = check_queue(k, &k->cache_cpu[i], sum);
    if (wrong != NULL)
        return wrong;
    active = sum->sum_active - active;
    return slabs == k->cache_slabs &&
                   slabs * k->cache_num - active == k->cache_free_objects
               ? NULL
               : "slabs or their free objects are not as many as counted";
}

static const char *lslab_check(void)
{
    struct lslab_sum sum = {0};
    const char *wrong = NULL;
    struct other_stat st;

    other_stop(&heap);
    st = other_total(&heap);
    for (struct list *l = lslab_caches.next;
         wrong == NULL && l != &lslab_caches; l = l->next)
        wrong = check_lslab_cache(list_entry(l, struct lslab_cache, cache_link),
                                  &sum);
    if (wrong == NULL && sum.sum_active - sum.sum_queued + heap.heap_whole !=
                             st.stat_allocs - st.stat_frees)
        wrong = "objects are neither free nor allocated";
    if (wrong == NULL && sum.sum_free != st.stat_external)
        wrong = "free bytes are not as many as counted";
    if (wrong == NULL)
        wrong = other_check(&heap, sum.sum_free);
    other_resume(&heap);
    return wrong;
}

static void lslab_other_stat(struct other_stat *out)
{
    other_enter(&heap);
    other_share(&heap);
    other_stat(&heap, other_total(&heap).stat_external, out);
    other_unshare(&heap);
    other_leave(&heap);
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
