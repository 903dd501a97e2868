/*
 * SLUB: the unqueued slab allocator (Linux since 2.6.22; Lameter 2007).
 *
 * Slabs without queues of objects. Each processor has one slab of a cache, its
 * current one, and the list of free objects in it. It allocates from there and
 * frees to there, and touches nothing else:
 *
 *     processor 0    free ──> ○ ──> ○ ──> ○       pop, push
 *                    slab ──> │●│○│●│○│●│○│
 *                    partial ──> slab ──> slab
 *
 *     processor 1    free, slab, partial
 *
 *     node           partial ──> slab ──> slab ──> slab
 *
 *     on no list     slabs that are full
 *
 * The list is inside the free objects. A free of an object that is not in the
 * processor's current slab goes to that slab's own list: it has two, and the
 * processor takes over the second when the first is empty.
 *
 * All other free memory is kept as slabs. A slab is *frozen* while it belongs
 * to a processor, as the current one or on its list of partial slabs: others
 * free into it, but only the owner allocates from it or moves it. A slab that
 * was full and gets its first free object is frozen for the processor that
 * frees. When its list is too long, all of it moves to the node's list, which
 * any processor uses if its own slabs are exhausted, and whose lock is the only
 * one.
 *
 *     new ──> current ──> full ──> partial of a processor ──> of the node
 *                ^                           │                  │    │
 *                └───────────────────────────┴──────────────────┘    └──> free
 *
 * A slab of which no object is allocated is returned only if the node's list
 * has enough partial ones without it. So much stays after a burst, until
 * pressure shrinks the caches; that also sorts the node's list, the fullest
 * first.
 *
 * A cache whose objects have the size of another's, and no constructor, is not
 * made: it becomes a further user of that one. Slabs have up to 8 pages, so
 * that what is left behind the last object is little. They have no colour.
 *
 * Sources: mm/slub.c of Linux 6.1; C. Lameter, The SLUB allocator (2007); the
 * talk on slab allocators in the Linux kernel (2014). A link is a number of 32
 * bits here, on any machine: where the object is, from the begin of all pages.
 *
 * What is said against it. The Linux talk: the fewest cycles of the three, but
 * objects come from many slabs at a time and the list runs through them, so it
 * "may have issues with caching", which few instructions have to make up for.
 * By the slab paper: no colouring; a free object's memory is written to; and
 * the order in which slabs are used is chance, so that few become free.
 */
#include "mm/others/linux_slub.h"
#include "kernel/lib/string.h"
#include "mm/others/whole.h"
#include "mm/page.h"

#define SLUB_LINK     sizeof(uint32_t)
#define SLUB_MANY     ((PAGE_SIZE << SLUB_MAX_ORDER) / 8) /* objects */
#define SHRINK_SORTED 32      /* free objects of slabs that a shrink sorts */
#define SLUB_LOCKED   0x8000u /* in slub_objects */

struct list slub_caches;
struct slub_stat slub_stat;

static struct other_heap heap;
static struct slub_cache untyped[SLUB_UNTYPED];
static struct list back; /* slabs to return, at the end of an operation */

/* ---- geometry ----------------------------------------------------------- */

static unsigned slub_order_of(size_t bytes)
{
    unsigned order = 0;

    while ((size_t)PAGE_SIZE << order < bytes)
        order++;
    return order;
}

static unsigned log2_of(size_t n)
{
    return 31u - (unsigned)__builtin_clz((unsigned)n);
}

/* The lowest order for `objects`, at least, of which at most one part in
 * `fraction` is lost; or one above all. */
static unsigned slub_order_for(size_t size, size_t objects, size_t fraction)
{
    unsigned order = slub_order_of(objects * size);

    for (; order <= SLUB_MAX_ORDER; order++) {
        size_t bytes = (size_t)PAGE_SIZE << order;

        if (bytes % size * fraction <= bytes)
            break;
    }
    return order;
}

/* More processors, larger slabs. */
static unsigned slub_best_order(size_t size)
{
    size_t objects = 4 * (log2_of(other_cpus) + 2);

    objects = MIN(objects, ((size_t)PAGE_SIZE << SLUB_MAX_ORDER) / size);
    for (; objects >= 2; objects--)
        for (size_t fraction = 16; fraction >= 4; fraction /= 2) {
            unsigned order = slub_order_for(size, objects, fraction);

            if (order <= SLUB_MAX_ORDER)
                return order;
        }
    return slub_order_of(size);
}

/* How many objects a processor's partial slabs are to have. */
static size_t slub_keep(size_t size)
{
    return size >= PAGE_SIZE ? 6 : size >= 1024 ? 24 : size >= 256 ? 52 : 120;
}

/* A link follows an object that is constructed; it is in the middle of one
 * that is not. */
static void slub_shape(struct slub_cache *k, size_t object, size_t align,
                       bool constructed)
{
    size_t size = ROUND_UP(object, SLUB_LINK);
    unsigned least;

    k->cache_object = object;
    k->cache_offset = constructed ? size : object / 2 & ~(SLUB_LINK - 1);
    if (constructed)
        size += SLUB_LINK;
    size = ROUND_UP(size, MAX(align, (size_t)8));
    k->cache_size = size;
    k->cache_order = slub_best_order(size);
    k->cache_least = slub_order_of(size);
    k->cache_objects = (unsigned)(((size_t)PAGE_SIZE << k->cache_order) / size);
    least = log2_of(size) / 2;
    k->cache_min = least < 5 ? 5 : MIN(least, 10u);
    k->cache_cpu_most = (unsigned)(2 * slub_keep(size) + k->cache_objects - 1) /
                        k->cache_objects;
}

static void slub_cache_start(struct slub_cache *k)
{
    k->cache_users = 1;
    list_init(&k->cache_partial);
    for (unsigned i = 0; i < OTHER_CPUS; i++)
        list_init(&k->cache_cpu[i].cpu_partial);
    list_insert_before(&slub_caches, &k->cache_link);
}

/* ---- objects and their slabs -------------------------------------------- */

static void *slub_at(uint32_t n)
{
    return heap.heap_supply->supply_base + ((size_t)(n - 1) << 3);
}

static uint32_t slub_number(const char *obj)
{
    return (uint32_t)((size_t)(obj - heap.heap_supply->supply_base) >> 3) + 1;
}

static uint32_t *slub_link(const struct slub_cache *k, void *obj)
{
    return (uint32_t *)((char *)obj + k->cache_offset);
}

static void slub_push(const struct slub_cache *k, uint32_t *list, void *obj)
{
    *slub_link(k, obj) = *list;
    *list = slub_number(obj);
}

static char *slub_begin(const struct slub_slab *s)
{
    return supply_page(heap.heap_supply, s);
}

static unsigned slub_objects(const struct slub_slab *s)
{
    return MM_UNLOCKED(s->slub_objects) & ~SLUB_LOCKED;
}

static size_t slub_bytes(const struct slub_slab *s)
{
    return slub_objects(s) == s->slub_cache->cache_objects
               ? (size_t)PAGE_SIZE << s->slub_cache->cache_order
               : (size_t)PAGE_SIZE << s->slub_cache->cache_least;
}

/* Free objects, but for those on the list of a processor. */
static unsigned slub_free_objects(const struct slub_slab *s)
{
    return slub_objects(s) - s->slub_inuse;
}

/* Whether an object of the slab begins here. */
static bool slub_has(const struct slub_slab *s, const char *obj)
{
    size_t offset = (size_t)(obj - slub_begin(s));
    size_t size = s->slub_cache->cache_size;

    return offset % size == 0 && offset / size < slub_objects(s);
}

/* The slab of an allocated object. */
static struct slub_slab *slub_slab_of(const struct slub_cache *k, void *obj)
{
    const struct slub_slab *page = other_page(&heap, obj);
    struct slub_slab *s = page->slub_head;

    if (s == NULL || s->slub_cache != k || !slub_has(s, obj))
        mm_panic("linux_slub: %p is not an object of %zu bytes", obj,
                 k->cache_object);
    return s;
}

/* The list of a slab, its count of objects in use and whether it is frozen
 * change together. The original changes them by a compare-and-exchange, or
 * under this lock. It may be taken after that of the node's list. */
static void slub_lock(struct slub_slab *s)
{
#if MM_MAGAZINES
    while (__atomic_fetch_or(&s->slub_objects, SLUB_LOCKED, __ATOMIC_ACQUIRE) &
           SLUB_LOCKED)
        __builtin_ia32_pause();
#else
    (void)s;
#endif
}

static void slub_unlock(struct slub_slab *s)
{
#if MM_MAGAZINES
    __atomic_store_n(&s->slub_objects, (uint16_t)slub_objects(s),
                     __ATOMIC_RELEASE);
#else
    (void)s;
#endif
}

/* ---- slabs -------------------------------------------------------------- */

/* A slab whose objects are all free and on its list, in ascending order. No
 * lock is held. NULL: there is no memory. */
static struct slub_slab *slub_new(struct slub_cache *k)
{
    size_t bytes = (size_t)PAGE_SIZE << k->cache_order;
    char *at = supply_alloc(heap.heap_supply, bytes >> PAGE_SHIFT, bytes);
    struct slub_slab *s;

    if (at == NULL) {
        bytes = (size_t)PAGE_SIZE << k->cache_least;
        at = supply_alloc(heap.heap_supply, bytes >> PAGE_SHIFT, bytes);
    }
    if (at == NULL)
        return NULL;
    s = other_page(&heap, at);
    for (size_t i = 0; i < bytes; i += PAGE_SIZE) {
        struct slub_slab *page = other_page(&heap, at + i);

        page->slub_head = s;
    }
    s->slub_objects = (uint16_t)(bytes / k->cache_size);
    for (unsigned i = slub_objects(s); i-- > 0;) {
        if (k->cache_ctor != NULL)
            k->cache_ctor(at + i * k->cache_size, k->cache_object);
        slub_push(k, &s->slub_free, at + i * k->cache_size);
    }
    return s;
}

/* Notes that a slab without allocated objects, which is on no list, goes back
 * at the end of the operation. */
static void slub_discard(struct slub_slab *s)
{
    MM_ASSERT(mm_lock_held(&heap.heap_lock) && s->slub_inuse == 0);
    OTHER_ADD(slub_stat.stat_returned, 1);
    s->slub_cache->cache_slabs--;
    other_count_external(&heap, -(ptrdiff_t)slub_bytes(s));
    other_count_pages(&heap, -(ptrdiff_t)(slub_bytes(s) >> PAGE_SHIFT));
    list_insert_before(&back, &s->slub_link);
}

/* A slab to return, with what is fixed of its cache, which may end meanwhile.
 * NULL: there is none. */
static struct slub_slab *slub_next_back(struct slub_cache *k, size_t *bytes)
{
    struct slub_slab *s = NULL;

    other_enter(&heap);
    other_share(&heap);
    if (!list_empty(&back)) {
        s = list_entry(back.next, struct slub_slab, slub_link);
        list_remove(&s->slub_link);
        memcpy(k, s->slub_cache, offsetof(struct slub_cache, cache_users));
        *bytes = slub_bytes(s);
        s->slub_cache = NULL;
    }
    other_unshare(&heap);
    other_leave(&heap);
    return s;
}

static __attribute__((noinline)) void slub_return_slabs(void)
{
    struct slub_slab *s;
    struct slub_cache k;
    size_t bytes;

    while ((s = slub_next_back(&k, &bytes)) != NULL) {
        char *at = slub_begin(s);

        for (unsigned i = 0; k.cache_dtor != NULL && i < slub_objects(s); i++)
            k.cache_dtor(at + i * k.cache_size, k.cache_object);
        supply_free(heap.heap_supply, at, bytes >> PAGE_SHIFT);
    }
}

/* The end of an operation: without a lock, objects are destroyed and pages
 * returned. */
static void slub_leave(void)
{
    bool more = MM_UNLOCKED(back.next) != &back;

    other_leave(&heap);
    if (unlikely(more))
        slub_return_slabs();
}

/* ---- the node's list: between other_share and other_unshare -------------- */

/* A slab leaves a processor: it goes to the begin or the end of the list, or
 * back. */
static void node_add(struct slub_cache *k, struct slub_slab *s, bool tail)
{
    bool empty;

    slub_lock(s);
    s->slub_frozen = 0;
    empty = s->slub_inuse == 0;
    slub_unlock(s);
    if (empty && k->cache_partials >= k->cache_min) {
        slub_discard(s);
        return;
    }
    if (tail)
        list_insert_before(&k->cache_partial, &s->slub_link);
    else
        list_insert_after(&k->cache_partial, &s->slub_link);
    k->cache_partials++;
    OTHER_ADD(slub_stat.stat_add, 1);
}

static void node_remove(struct slub_cache *k, struct slub_slab *s)
{
    list_remove(&s->slub_link);
    k->cache_partials--;
    OTHER_ADD(slub_stat.stat_remove, 1);
}

/* Takes the first of the list for a processor. */
static struct slub_slab *node_take(struct slub_cache *k)
{
    struct slub_slab *s =
        list_entry(k->cache_partial.next, struct slub_slab, slub_link);

    node_remove(k, s);
    slub_lock(s);
    s->slub_frozen = 1;
    slub_unlock(s);
    return s;
}

/* ---- what a processor has ----------------------------------------------- */

/* The processor's list becomes that of its current slab. If that is full, the
 * processor gives it up: false. */
static bool cpu_take(struct slub_cpu *cpu)
{
    struct slub_slab *s = cpu->cpu_slab;
    bool some;

    slub_lock(s);
    some = s->slub_free != 0;
    if (some) {
        cpu->cpu_free = s->slub_free;
        s->slub_free = 0;
        s->slub_inuse = (uint16_t)slub_objects(s) & 0x7fff;
    } else {
        s->slub_frozen = 0;
        cpu->cpu_slab = NULL;
    }
    slub_unlock(s);
    return some;
}

/* A frozen slab. */
static void cpu_add(struct slub_cpu *cpu, struct slub_slab *s)
{
    list_insert_after(&cpu->cpu_partial, &s->slub_link);
    cpu->cpu_partials++;
}

/* The first of its partial slabs, which is on no list then. */
static struct slub_slab *cpu_remove(struct slub_cpu *cpu)
{
    struct slub_slab *s =
        list_entry(cpu->cpu_partial.next, struct slub_slab, slub_link);

    list_remove(&s->slub_link);
    cpu->cpu_partials--;
    return s;
}

/* All partial slabs move to the node's list, which is shared. */
static void cpu_unfreeze(struct slub_cache *k, struct slub_cpu *cpu)
{
    if (cpu->cpu_partials != 0)
        other_count_lock(&heap);
    while (cpu->cpu_partials != 0)
        node_add(k, cpu_remove(cpu), true);
}

/* The processor gives up its current slab, to the node's list, which is
 * shared. */
static void cpu_deactivate(struct slub_cache *k, struct slub_cpu *cpu)
{
    struct slub_slab *s = cpu->cpu_slab;
    uint32_t *last = &cpu->cpu_free;
    bool remote, full, empty;

    slub_lock(s);
    remote = s->slub_free != 0;
    for (; *last != 0; last = slub_link(k, slub_at(*last)))
        s->slub_inuse--;
    *last = s->slub_free; /* the processor's list comes first */
    s->slub_free = cpu->cpu_free;
    cpu->cpu_slab = NULL;
    cpu->cpu_free = 0;
    full = s->slub_free == 0;
    empty = s->slub_inuse == 0;
    if (full)
        s->slub_frozen = 0;
    slub_unlock(s);
    OTHER_ADD(slub_stat.stat_deactivate_remote, remote);
    OTHER_ADD(slub_stat.stat_deactivate_full, full);
    if (full)
        return;
    other_count_lock(&heap);
    if (empty)
        OTHER_ADD(slub_stat.stat_deactivate_empty, 1);
    else if (remote)
        OTHER_ADD(slub_stat.stat_deactivate_tail, 1);
    else
        OTHER_ADD(slub_stat.stat_deactivate_head, 1);
    node_add(k, s, remote);
}

/* ---- allocations -------------------------------------------------------- */

/* From the node's list: the first slab becomes the current one, some more the
 * processor's partial ones. */
static bool refill_from_node(struct slub_cache *k, struct slub_cpu *cpu)
{
    unsigned added = 0;

    if (MM_UNLOCKED(k->cache_partials) == 0)
        return false;
    other_count_lock(&heap);
    other_share(&heap);
    OTHER_ADD(slub_stat.stat_from_partial, 1);
    while (k->cache_partials != 0 && added <= k->cache_cpu_most / 2) {
        if (cpu->cpu_slab == NULL) {
            cpu->cpu_slab = node_take(k);
            cpu_take(cpu);
        } else {
            cpu_add(cpu, node_take(k));
            OTHER_ADD(slub_stat.stat_cpu_node, 1);
            added++;
        }
    }
    other_unshare(&heap);
    return cpu->cpu_slab != NULL;
}

/* The processor's list is empty: gets another from the nearest slab that has
 * free objects. False: none has. */
static bool cpu_refill(struct slub_cache *k, struct slub_cpu *cpu)
{
    for (;;) {
        if (cpu->cpu_slab != NULL) {
            bool some = cpu_take(cpu);

            OTHER_ADD(slub_stat.stat_refill, some);
            OTHER_ADD(slub_stat.stat_bypass, !some);
            if (some)
                return true;
        }
        if (cpu->cpu_partials == 0)
            return refill_from_node(k, cpu);
        OTHER_ADD(slub_stat.stat_cpu_alloc, 1);
        cpu->cpu_slab = cpu_remove(cpu);
    }
}

/* A new slab becomes the current one; what an interrupt has got meanwhile is
 * given up for it. */
static void cpu_install(struct slub_cache *k, struct slub_cpu *cpu,
                        struct slub_slab *s)
{
    other_share(&heap);
    if (cpu->cpu_slab != NULL)
        cpu_deactivate(k, cpu);
    k->cache_slabs++;
    OTHER_ADD(slub_stat.stat_new, 1);
    OTHER_ADD(slub_stat.stat_fallback, slub_objects(s) != k->cache_objects);
    s->slub_cache = k;
    s->slub_frozen = 1;
    other_count_external(&heap, (ptrdiff_t)slub_bytes(s));
    other_count_pages(&heap, (ptrdiff_t)(slub_bytes(s) >> PAGE_SHIFT));
    cpu->cpu_slab = s;
    cpu_take(cpu);
    other_unshare(&heap);
}

static void *slub_get(struct slub_cache *k, size_t size, struct other_cache *c)
{
    struct slub_cpu *cpu = &k->cache_cpu[other_enter(&heap)];
    struct slub_slab *s;
    void *obj = NULL;

    OTHER_ADD(slub_stat.stat_alloc_fast, cpu->cpu_free != 0);
    OTHER_ADD(slub_stat.stat_alloc_slow, cpu->cpu_free == 0);
    if (cpu->cpu_free == 0 && !cpu_refill(k, cpu)) {
        other_leave(&heap);
        s = slub_new(k);
        cpu = &k->cache_cpu[other_enter(&heap)];
        if (s != NULL)
            cpu_install(k, cpu, s);
    }
    if (cpu->cpu_free != 0) {
        obj = slub_at(cpu->cpu_free);
        cpu->cpu_free = *slub_link(k, obj);
        other_count_external(&heap, -(ptrdiff_t)k->cache_size);
        other_count_alloc(&heap, c, size, k->cache_size, 0);
    } else {
        other_count_fail(&heap, c);
    }
    slub_leave();
    return obj;
}

/* ---- frees -------------------------------------------------------------- */

/* Locks a slab. If its last object is to be freed, while it is on the node's
 * list, that is shared first: true. */
static bool slub_lock_last(struct slub_slab *s)
{
    bool last;

    slub_lock(s);
    last = s->slub_inuse == 1 && s->slub_free != 0 && !s->slub_frozen;
    if (!last)
        return false;
    slub_unlock(s);
    other_count_lock(&heap);
    other_share(&heap);
    slub_lock(s);
    return true;
}

/* An object of a slab that is not the current one. */
static void slub_free_slow(struct slub_cache *k, struct slub_cpu *cpu,
                           struct slub_slab *s, void *obj)
{
    bool node = slub_lock_last(s), was_full = s->slub_free == 0;
    bool frozen = s->slub_frozen, empty;

    if (s->slub_inuse == 0 || s->slub_free == slub_number(obj))
        mm_panic("linux_slub: %p, %zu bytes: it is free already", obj,
                 k->cache_object);
    OTHER_ADD(slub_stat.stat_free_slow, 1);
    OTHER_ADD(slub_stat.stat_free_frozen, frozen);
    slub_push(k, &s->slub_free, obj);
    s->slub_inuse--;
    empty = !frozen && !was_full && s->slub_inuse == 0;
    if (was_full)
        s->slub_frozen = 1;
    slub_unlock(s);
    if (node) {
        if (empty && k->cache_partials >= k->cache_min) {
            node_remove(k, s);
            slub_discard(s);
        }
        other_unshare(&heap);
    }
    if (was_full && !frozen) {
        OTHER_ADD(slub_stat.stat_cpu_free, 1);
        if (cpu->cpu_partials >= k->cache_cpu_most) {
            OTHER_ADD(slub_stat.stat_cpu_drain, 1);
            other_share(&heap);
            cpu_unfreeze(k, cpu);
            other_unshare(&heap);
        }
        cpu_add(cpu, s);
    }
}

static void slub_put(struct slub_cache *k, void *obj, size_t size,
                     struct other_cache *c)
{
    struct slub_cpu *cpu = &k->cache_cpu[other_enter(&heap)];
    struct slub_slab *s = slub_slab_of(k, obj);

    other_count_external(&heap, (ptrdiff_t)k->cache_size);
    other_count_free(&heap, c, size, k->cache_size, 0);
    if (s == cpu->cpu_slab) {
        OTHER_ADD(slub_stat.stat_free_fast, 1);
        slub_push(k, &cpu->cpu_free, obj);
    } else {
        slub_free_slow(k, cpu, s, obj);
    }
    slub_leave();
}

/* ---- caches ------------------------------------------------------------- */

/* The oldest cache whose slabs are right for these objects, too. */
static struct slub_cache *slub_alias(const struct other_cache *c)
{
    struct slub_cache want;

    if (c->other_ctor != NULL)
        return NULL;
    slub_shape(&want, c->other_size, c->other_align, false);
    list_for_each (l, &slub_caches) {
        struct slub_cache *k = list_entry(l, struct slub_cache, cache_link);

        if (k->cache_users != 0 && k->cache_ctor == NULL &&
            k->cache_size >= want.cache_size &&
            k->cache_size - want.cache_size < SLUB_LINK &&
            k->cache_size % MAX(c->other_align, (size_t)8) == 0)
            return k;
    }
    return NULL;
}

static bool slub_cache_create(struct other_cache *c)
{
    struct slub_cache *k;

    other_enter(&heap);
    other_share(&heap);
    k = slub_alias(c);
    if (k != NULL) {
        k->cache_users++;
        if (k->cache_object < c->other_size)
            k->cache_object = c->other_size;
        OTHER_ADD(slub_stat.stat_aliases, 1);
    }
    other_unshare(&heap);
    other_leave(&heap);
    c->other_own = k != NULL ? k : supply_record(heap.heap_supply, sizeof(*k));
    if (k != NULL || c->other_own == NULL)
        return k != NULL;
    k = c->other_own;
    k->cache_ctor = c->other_ctor;
    k->cache_dtor = c->other_dtor;
    slub_shape(k, c->other_size, c->other_align, c->other_ctor != NULL);
    other_enter(&heap);
    other_share(&heap);
    slub_cache_start(k);
    other_unshare(&heap);
    other_leave(&heap);
    return true;
}

/* All slabs of a processor move to the node's list: of one cache, or all:
 * NULL. */
static void flush_cpu(unsigned n, void *only)
{
    other_share(&heap);
    list_for_each (l, &slub_caches) {
        struct slub_cache *k = list_entry(l, struct slub_cache, cache_link);
        struct slub_cpu *cpu = &k->cache_cpu[n];

        if (only != NULL && only != k)
            continue;
        if (cpu->cpu_slab != NULL)
            cpu_deactivate(k, cpu);
        cpu_unfreeze(k, cpu);
    }
    other_unshare(&heap);
}

/* After flush_cpu: returns slabs without allocated objects, and sorts the
 * node's list: those with few free objects are first, so that they fill, and
 * those with many last, so that they become free. */
static void slub_shrink(struct slub_cache *k)
{
    struct list sorted[SHRINK_SORTED + 2]; /* by free objects */

    for (unsigned i = 0; i < ARRAY_SIZE(sorted); i++)
        list_init(&sorted[i]);
    while (!list_empty(&k->cache_partial)) {
        struct slub_slab *s =
            list_entry(k->cache_partial.next, struct slub_slab, slub_link);
        unsigned free;

        slub_lock(s);
        free = slub_free_objects(s);
        slub_unlock(s);
        list_remove(&s->slub_link);
        if (free < slub_objects(s)) {
            list_insert_before(&sorted[MIN(free, SHRINK_SORTED + 1u)],
                               &s->slub_link);
        } else {
            k->cache_partials--;
            slub_discard(s);
        }
    }
    for (unsigned i = 0; i < ARRAY_SIZE(sorted); i++)
        list_splice(&sorted[i], &k->cache_partial);
}

/* The last user of a cache ends it. */
static void slub_cache_destroy(struct other_cache *c)
{
    struct slub_cache *k = c->other_own;
    bool last;

    other_enter(&heap);
    other_share(&heap);
    last = --k->cache_users == 0;
    other_unshare(&heap);
    other_leave(&heap);
    if (!last)
        return;
    other_each_cpu(&heap, flush_cpu, k);
    other_enter(&heap);
    other_share(&heap);
    slub_shrink(k);
    MM_ASSERT(k->cache_slabs == 0);
    list_remove(&k->cache_link);
    other_unshare(&heap);
    slub_leave();
    supply_record_free(heap.heap_supply, k, sizeof(*k));
}

static void slub_pressure(void)
{
    other_each_cpu(&heap, flush_cpu, NULL);
    other_enter(&heap);
    other_share(&heap);
    list_for_each (l, &slub_caches)
        slub_shrink(list_entry(l, struct slub_cache, cache_link));
    other_unshare(&heap);
    slub_leave();
}

/* ---- the operations ----------------------------------------------------- */

/* 8, 16, 32, 64, 96, 128, 192, 256, 512, … */
static void slub_init(struct supply *s)
{
    static const size_t small[] = {8, 16, 32, 64, 96, 128, 192};

    other_init(&heap, "linux_slub", s);
    memset(untyped, 0, sizeof(untyped));
    memset(&slub_stat, 0, sizeof(slub_stat));
    list_init(&slub_caches);
    list_init(&back);
    for (unsigned i = 0; i < SLUB_UNTYPED; i++) {
        slub_shape(&untyped[i],
                   i < ARRAY_SIZE(small)
                       ? small[i]
                       : (size_t)256 << (i - ARRAY_SIZE(small)),
                   0, false);
        slub_cache_start(&untyped[i]);
    }
}

static struct slub_cache *slub_untyped(size_t size)
{
    struct slub_cache *k = untyped;

    while (k->cache_object < size)
        k++;
    return k;
}

static void *slub_alloc(size_t size)
{
    if (size == 0)
        return OTHER_NOTHING;
    return size > SLUB_MAX ? other_whole_alloc(&heap, NULL, size)
                           : slub_get(slub_untyped(size), size, NULL);
}

static void slub_free(void *p, size_t size)
{
    if (p == OTHER_NOTHING)
        return;
    if (size > SLUB_MAX)
        other_whole_free(&heap, NULL, p, size);
    else
        slub_put(slub_untyped(size), p, size, NULL);
}

static void *slub_cache_alloc(struct other_cache *c)
{
    return slub_get(c->other_own, c->other_size, c);
}

static void slub_cache_free(struct other_cache *c, void *obj)
{
    slub_put(c->other_own, obj, c->other_size, c);
}

/* ---- looking ------------------------------------------------------------ */

/* What check() finds in all slabs. */
struct slub_sum {
    size_t sum_frozen; /* slabs that belong to a processor */
    size_t sum_slabs;
    size_t sum_free; /* bytes */
    size_t sum_objects;
};

/* Counts the objects of a list, none of which was seen before. */
static bool count_list(struct slub_slab *s, uint32_t n, uint8_t *seen,
                       unsigned *count)
{
    const struct supply *pages = heap.heap_supply;

    for (; n != 0; ++*count) {
        char *obj = slub_at(n);
        size_t i = (size_t)(obj - slub_begin(s)) / s->slub_cache->cache_size;

        if (n - 1 >= pages->supply_pages << (PAGE_SHIFT - 3) ||
            obj < slub_begin(s) || !slub_has(s, obj) ||
            seen[i / 8] & 1 << i % 8)
            return false;
        seen[i / 8] |= (uint8_t)(1 << i % 8);
        n = *slub_link(s->slub_cache, obj);
    }
    return true;
}

/* A slab, and the list of the processor that has it as its current one. */
static const char *check_slab(struct slub_slab *s, uint32_t list,
                              struct slub_sum *sum)
{
    uint8_t seen[SLUB_MANY / 8] = {0};
    unsigned own = 0, cpu = 0;

    if (!count_list(s, s->slub_free, seen, &own) ||
        !count_list(s, list, seen, &cpu))
        return "a list has an object of another slab, or one twice";
    if (own != slub_free_objects(s))
        return "a slab has not as many free objects as it counts";
    sum->sum_free += slub_bytes(s) -
                     (slub_objects(s) - own - cpu) * s->slub_cache->cache_size;
    sum->sum_objects += slub_objects(s) - own - cpu;
    sum->sum_slabs++;
    return NULL;
}

/* A list of slabs, which are frozen or not. */
static const char *check_partial(const struct slub_cache *k, struct list *list,
                                 size_t count, bool frozen,
                                 struct slub_sum *sum)
{
    const char *wrong = NULL;
    size_t n = 0;

    list_for_each (l, list) {
        struct slub_slab *s = list_entry(l, struct slub_slab, slub_link);

        if (++n > count || s->slub_cache != k || s->slub_frozen != frozen ||
            s->slub_free == 0)
            return "a list has a slab that is full, or another's";
        wrong = check_slab(s, 0, sum);
        if (wrong != NULL)
            return wrong;
    }
    sum->sum_frozen += frozen ? n : 0;
    return n == count ? NULL : "a list has not as many slabs as are counted";
}

static const char *check_cache(struct slub_cache *k, struct slub_sum *sum)
{
    const char *wrong =
        check_partial(k, &k->cache_partial, k->cache_partials, false, sum);

    for (unsigned i = 0; wrong == NULL && i < OTHER_CPUS; i++) {
        struct slub_cpu *cpu = &k->cache_cpu[i];

        wrong =
            check_partial(k, &cpu->cpu_partial, cpu->cpu_partials, true, sum);
        if (wrong != NULL || cpu->cpu_slab == NULL)
            continue;
        if (cpu->cpu_slab->slub_cache != k || !cpu->cpu_slab->slub_frozen)
            return "a processor has a slab that is not frozen";
        wrong = check_slab(cpu->cpu_slab, cpu->cpu_free, sum);
        sum->sum_frozen++;
    }
    return wrong;
}

/* The slabs that are on no list: they are full. */
static const char *check_full(struct slub_sum *sum)
{
    const struct supply *pages = heap.heap_supply;
    size_t slabs = 0, frozen = 0;
    const char *wrong = NULL;

    list_for_each (l, &back) /* others are about to return them */
        sum->sum_slabs++;
    for (size_t i = 0; wrong == NULL && i < pages->supply_pages; i++) {
        struct slub_slab *s = (struct slub_slab *)pages->supply_info[i];

        if (s->slub_cache == NULL)
            continue;
        slabs++;
        frozen += s->slub_frozen;
        if (!s->slub_frozen && s->slub_free == 0)
            wrong = check_slab(s, 0, sum);
    }
    if (wrong == NULL && frozen != sum->sum_frozen)
        wrong = "a slab is frozen, and no processor has it";
    if (wrong == NULL && slabs != sum->sum_slabs)
        wrong = "a slab with free objects is on no list";
    return wrong;
}

static const char *slub_check(void)
{
    struct slub_sum sum = {0};
    const char *wrong = NULL;
    struct other_stat st;

    other_stop(&heap);
    st = other_total(&heap);
    for (struct list *l = slub_caches.next; wrong == NULL && l != &slub_caches;
         l = l->next)
        wrong = check_cache(list_entry(l, struct slub_cache, cache_link), &sum);
    if (wrong == NULL)
        wrong = check_full(&sum);
    if (wrong == NULL &&
        sum.sum_objects + heap.heap_whole != st.stat_allocs - st.stat_frees)
        wrong = "objects are neither free nor allocated";
    if (wrong == NULL && sum.sum_free != st.stat_external)
        wrong = "free bytes are not as many as counted";
    if (wrong == NULL)
        wrong = other_check(&heap, sum.sum_free);
    other_resume(&heap);
    return wrong;
}

static void slub_other_stat(struct other_stat *out)
{
    other_enter(&heap);
    other_share(&heap);
    other_stat(&heap, other_total(&heap).stat_external, out);
    other_unshare(&heap);
    other_leave(&heap);
}

const struct other_allocator linux_slub_allocator = {
    .op_name = "linux_slub",
    .op_init = slub_init,
    .op_cache_create = slub_cache_create,
    .op_cache_destroy = slub_cache_destroy,
    .op_cache_alloc = slub_cache_alloc,
    .op_cache_free = slub_cache_free,
    .op_alloc = slub_alloc,
    .op_free = slub_free,
    .op_pressure = slub_pressure,
    .op_stat = slub_other_stat,
    .op_check = slub_check,
};
