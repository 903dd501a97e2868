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
#define SHRINK_SORTED 32      /* free objects of slabs that a shrink sorts */
#define SLUB_LOCKED   0x8000u /* in slub_objects */

bool slub_2014;
struct slabs slub;
struct slub_stat slub_stat;

static struct slub_cache untyped[SLUB_UNTYPED];

static struct slub_cache *slub_cache_of(struct slabs_cache *k)
{
    return container_of(k, struct slub_cache, cache);
}

static struct slub_slab *slub_slab(struct list *l)
{
    return list_entry(l, struct slub_slab, slab.link);
}

/* ---- geometry ----------------------------------------------------------- */

static unsigned slub_order_of(size_t bytes)
{
    return MAX(other_power(bytes), (unsigned)PAGE_SHIFT) - PAGE_SHIFT;
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
static unsigned slub_keep(size_t size)
{
    static const uint8_t keep[][4] = {{120, 52, 24, 6}, {30, 13, 6, 2}};

    return keep[slub_2014]
               [(size >= 256) + (size >= 1024) + (size >= PAGE_SIZE)];
}

/* A link follows an object that is constructed; it is in the middle of one
 * that is not, and was at its begin in 2014. */
static void slub_shape(struct slub_cache *k, size_t object, size_t align,
                       bool constructed)
{
    size_t size = ROUND_UP(object, SLUB_LINK);
    unsigned least;

    k->cache.object = k->cache_largest = object;
    k->cache_offset = constructed ? size
                      : slub_2014 ? 0
                                  : object / 2 & ~(SLUB_LINK - 1);
    if (constructed)
        size += SLUB_LINK;
    size = ROUND_UP(size, MAX(align, (size_t)8));
    k->cache.size = size;
    k->cache.order = slub_best_order(size);
    k->cache.num = (unsigned)(slabs_bytes(&k->cache) / size);
    least = log2_of(size) / 2;
    k->cache_min = least < 5 ? 5 : MIN(least, 10u);
    k->cache_cpu_most =
        slub_2014 ? slub_keep(size)
                  : (2 * slub_keep(size) + k->cache.num - 1) / k->cache.num;
}

static void slub_cache_start(struct slub_cache *k)
{
    k->cache_users = 1;
    for (unsigned i = 0; i < OTHER_CPUS; i++)
        list_init(&k->cache_cpu[i].cpu_partial);
    slabs_add(&slub, &k->cache);
}

/* ---- objects and their slabs -------------------------------------------- */

static void *slub_at(uint32_t n)
{
    return slub.heap.heap_supply->supply_base + ((size_t)(n - 1) << 3);
}

static uint32_t slub_number(const char *obj)
{
    return (uint32_t)((size_t)(obj - slub.heap.heap_supply->supply_base) >> 3) +
           1;
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
    return supply_page(slub.heap.heap_supply, s);
}

static unsigned slub_objects(const struct slub_slab *s)
{
    return MM_UNLOCKED(s->slub_objects) & ~SLUB_LOCKED;
}

/* Of its pages: a slab of the least order has fewer objects. */
static size_t slub_bytes(const struct slub_slab *s, const struct slabs_cache *k)
{
    return slub_objects(s) == k->num
               ? slabs_bytes(k)
               : (size_t)PAGE_SIZE << slub_order_of(k->size);
}

/* Free objects, but for those on the list of a processor. */
static unsigned slub_free_objects(const struct slub_slab *s)
{
    return slub_objects(s) - s->slub_inuse;
}

/* The slab of an allocated object. */
static struct slub_slab *slub_slab_of(const struct slub_cache *k, void *obj)
{
    const struct slub_slab *page = other_page(&slub.heap, obj);
    struct slub_slab *s = page->slub_head;

    if (s == NULL || s->slab.cache != &k->cache ||
        !slabs_has(&k->cache, slub_begin(s), slub_objects(s), obj))
        mm_panic("linux_slub: %p is not an object of %zu bytes", obj,
                 k->cache.object);
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
    size_t bytes = slabs_bytes(&k->cache);
    char *at = supply_alloc(slub.heap.heap_supply, bytes >> PAGE_SHIFT, bytes);
    struct slub_slab *s;

    if (at == NULL) {
        bytes = (size_t)PAGE_SIZE << slub_order_of(k->cache.size);
        at = supply_alloc(slub.heap.heap_supply, bytes >> PAGE_SHIFT, bytes);
    }
    if (at == NULL)
        return NULL;
    s = other_page(&slub.heap, at);
    for (size_t i = 0; i < bytes; i += PAGE_SIZE) {
        struct slub_slab *page = other_page(&slub.heap, at + i);

        page->slub_head = s;
    }
    s->slub_objects = (uint16_t)(bytes / k->cache.size);
    slabs_objects(&k->cache, at, s->slub_objects, k->cache.ctor);
    for (unsigned i = s->slub_objects; i-- > 0;)
        slub_push(k, &s->slub_free, at + i * k->cache.size);
    return s;
}

/* The end of a slab, without a lock. */
static void slub_destroy(struct slab *slab, const struct slabs_cache *k)
{
    const struct slub_slab *s = slub_slab(&slab->link);
    char *at = slub_begin(s);

    slabs_objects(k, at, slub_objects(s), k->dtor);
    supply_free(slub.heap.heap_supply, at, slub_bytes(s, k) >> PAGE_SHIFT);
}

/* A slab without allocated objects, which is on no list, goes back. */
static void slub_discard(struct slub_cache *k, struct slub_slab *s)
{
    size_t bytes = slub_bytes(s, &k->cache);

    OTHER_ADD(slub_stat.stat_returned, 1);
    slabs_discard(&slub, &s->slab, bytes, bytes);
}

/* ---- the node's list: the cache's lock is held --------------------------- */

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
        slub_discard(k, s);
        return;
    }
    if (tail)
        list_insert_before(&k->cache.partial, &s->slab.link);
    else
        list_insert_after(&k->cache.partial, &s->slab.link);
    k->cache_partials++;
    OTHER_ADD(slub_stat.stat_add, 1);
}

static void node_remove(struct slub_cache *k, struct slub_slab *s)
{
    list_remove(&s->slab.link);
    k->cache_partials--;
    OTHER_ADD(slub_stat.stat_remove, 1);
}

/* Takes the first of the list for a processor. */
static struct slub_slab *node_take(struct slub_cache *k)
{
    struct slub_slab *s = slub_slab(k->cache.partial.next);

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
    list_insert_after(&cpu->cpu_partial, &s->slab.link);
    cpu->cpu_partials++;
}

/* The first of its partial slabs, which is on no list then. */
static struct slub_slab *cpu_remove(struct slub_cpu *cpu)
{
    struct slub_slab *s = slub_slab(cpu->cpu_partial.next);

    list_remove(&s->slab.link);
    cpu->cpu_partials--;
    return s;
}

/* Whether its partial slabs are as many as it keeps; in 2014 their objects
 * counted. */
static bool cpu_is_full(const struct slub_cache *k, struct slub_cpu *cpu)
{
    unsigned free = 0;

    if (!slub_2014)
        return cpu->cpu_partials >= k->cache_cpu_most;
    list_for_each (l, &cpu->cpu_partial)
        free += slub_free_objects(slub_slab(l));
    return free > k->cache_cpu_most;
}

/* All partial slabs move to the node's list, which is shared. */
static void cpu_unfreeze(struct slub_cache *k, struct slub_cpu *cpu)
{
    if (cpu->cpu_partials != 0)
        other_count_lock(&slub.heap);
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
    other_count_lock(&slub.heap);
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
    other_count_lock(&slub.heap);
    other_share_part(&k->cache.lock);
    OTHER_ADD(slub_stat.stat_from_partial, 1);
    while (k->cache_partials != 0 && added <= k->cache_cpu_most / 2) {
        if (cpu->cpu_slab == NULL) {
            cpu->cpu_slab = node_take(k);
            cpu_take(cpu);
        } else {
            struct slub_slab *s = node_take(k);

            cpu_add(cpu, s);
            OTHER_ADD(slub_stat.stat_cpu_node, 1);
            added += slub_2014 ? slub_free_objects(s) : 1;
        }
    }
    other_unshare_part(&k->cache.lock);
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
    size_t bytes = slub_bytes(s, &k->cache);

    other_share_part(&k->cache.lock);
    if (cpu->cpu_slab != NULL)
        cpu_deactivate(k, cpu);
    OTHER_ADD(slub_stat.stat_new, 1);
    OTHER_ADD(slub_stat.stat_fallback, slub_objects(s) != k->cache.num);
    slabs_grow(&slub, &k->cache, &s->slab, bytes, bytes);
    s->slub_frozen = 1;
    cpu->cpu_slab = s;
    cpu_take(cpu);
    other_unshare_part(&k->cache.lock);
}

static void *slub_get(struct slub_cache *k, size_t size, struct other_cache *c)
{
    struct slub_cpu *cpu = &k->cache_cpu[other_enter(&slub.heap)];
    struct slub_slab *s;
    void *obj = NULL;

    OTHER_ADD(slub_stat.stat_alloc_fast, cpu->cpu_free != 0);
    OTHER_ADD(slub_stat.stat_alloc_slow, cpu->cpu_free == 0);
    if (cpu->cpu_free == 0 && !cpu_refill(k, cpu)) {
        other_leave(&slub.heap);
        s = slub_new(k);
        cpu = &k->cache_cpu[other_enter(&slub.heap)];
        if (s != NULL)
            cpu_install(k, cpu, s);
    }
    if (cpu->cpu_free != 0) {
        obj = slub_at(cpu->cpu_free);
        cpu->cpu_free = *slub_link(k, obj);
        other_count_external(&slub.heap, -(ptrdiff_t)k->cache.size);
        other_count_alloc(&slub.heap, c, size, k->cache.size, 0);
    } else {
        other_count_fail(&slub.heap, c);
    }
    slabs_leave(&slub);
    return obj;
}

/* ---- frees -------------------------------------------------------------- */

/* Locks a slab. If its last object is to be freed, while it is on the node's
 * list, that is shared first: true. */
static bool slub_lock_last(struct slub_cache *k, struct slub_slab *s)
{
    bool last;

    slub_lock(s);
    last = s->slub_inuse == 1 && s->slub_free != 0 && !s->slub_frozen;
    if (!last)
        return false;
    slub_unlock(s);
    other_count_lock(&slub.heap);
    other_share_part(&k->cache.lock);
    slub_lock(s);
    return true;
}

/* An object of a slab that is not the current one. */
static void slub_free_slow(struct slub_cache *k, struct slub_cpu *cpu,
                           struct slub_slab *s, void *obj)
{
    bool node = slub_lock_last(k, s), was_full = s->slub_free == 0;
    bool frozen = s->slub_frozen, empty;

    if (s->slub_inuse == 0 || s->slub_free == slub_number(obj))
        mm_panic("linux_slub: %p, %zu bytes: it is free already", obj,
                 k->cache.object);
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
            slub_discard(k, s);
        }
        other_unshare_part(&k->cache.lock);
    }
    if (was_full && !frozen) {
        OTHER_ADD(slub_stat.stat_cpu_free, 1);
        if (cpu_is_full(k, cpu)) {
            OTHER_ADD(slub_stat.stat_cpu_drain, 1);
            other_share_part(&k->cache.lock);
            cpu_unfreeze(k, cpu);
            other_unshare_part(&k->cache.lock);
        }
        cpu_add(cpu, s);
    }
}

static void slub_put(struct slub_cache *k, void *obj, size_t size,
                     struct other_cache *c)
{
    struct slub_cpu *cpu = &k->cache_cpu[other_enter(&slub.heap)];
    struct slub_slab *s = slub_slab_of(k, obj);

    other_count_external(&slub.heap, (ptrdiff_t)k->cache.size);
    other_count_free(&slub.heap, c, size, k->cache.size, 0);
    if (s == cpu->cpu_slab) {
        OTHER_ADD(slub_stat.stat_free_fast, 1);
        slub_push(k, &cpu->cpu_free, obj);
    } else {
        slub_free_slow(k, cpu, s, obj);
    }
    slabs_leave(&slub);
}

/* ---- caches ------------------------------------------------------------- */

/* The oldest cache whose slabs are right for these objects, too: it gets a
 * further user. NULL: there is none. */
static struct slub_cache *slub_alias(const struct other_cache *c)
{
    struct slub_cache want, *found = NULL;

    if (c->other_ctor != NULL)
        return NULL;
    slub_shape(&want, c->other_size, c->other_align, false);
    slabs_caches_lock(&slub);
    list_for_each (l, &slub.caches) {
        struct slub_cache *k = list_entry(l, struct slub_cache, cache.link);

        if (found == NULL && k->cache_users != 0 && k->cache.ctor == NULL &&
            k->cache.size >= want.cache.size &&
            k->cache.size - want.cache.size < SLUB_LINK &&
            k->cache.size % MAX(c->other_align, (size_t)8) == 0)
            found = k;
    }
    if (found != NULL) {
        found->cache_users++;
        found->cache_largest = MAX(found->cache_largest, c->other_size);
        OTHER_ADD(slub_stat.stat_aliases, 1);
    }
    slabs_caches_unlock(&slub);
    return found;
}

static bool slub_cache_create(struct other_cache *c)
{
    struct slub_cache *k = slub_alias(c);

    if (k == NULL) {
        k = supply_record(slub.heap.heap_supply, sizeof(*k));
        if (k == NULL)
            return false;
        k->cache.ctor = c->other_ctor;
        k->cache.dtor = c->other_dtor;
        slub_shape(k, c->other_size, c->other_align, c->other_ctor != NULL);
        slub_cache_start(k);
    }
    c->other_own = k;
    return true;
}

/* All slabs of a processor move to the node's list. */
static void flush_cpu(struct slabs_cache *cache, unsigned n)
{
    struct slub_cache *k = slub_cache_of(cache);
    struct slub_cpu *cpu = &k->cache_cpu[n];

    if (cpu->cpu_slab != NULL)
        cpu_deactivate(k, cpu);
    cpu_unfreeze(k, cpu);
}

/* Returns slabs without allocated objects, and sorts the node's list: those
 * with few free objects are first, so that they fill, and those with many last,
 * so that they become free. */
static void sort_node(struct slabs_cache *cache, unsigned cpu UNUSED)
{
    struct slub_cache *k = slub_cache_of(cache);
    struct list sorted[SHRINK_SORTED + 2]; /* by free objects */

    for (unsigned i = 0; i < ARRAY_SIZE(sorted); i++)
        list_init(&sorted[i]);
    while (!list_empty(&k->cache.partial)) {
        struct slub_slab *s = slub_slab(k->cache.partial.next);
        unsigned free;

        slub_lock(s);
        free = slub_free_objects(s);
        slub_unlock(s);
        list_remove(&s->slab.link);
        if (free < slub_objects(s)) {
            list_insert_before(&sorted[MIN(free, SHRINK_SORTED + 1u)],
                               &s->slab.link);
        } else {
            k->cache_partials--;
            slub_discard(k, s);
        }
    }
    for (unsigned i = 0; i < ARRAY_SIZE(sorted); i++)
        list_splice(&sorted[i], &k->cache.partial);
}

/* Returns what is free of one cache, or of all: NULL. */
static void slub_shrink(struct slabs_cache *only)
{
    slabs_each_cpu(&slub, only, flush_cpu);
    slabs_each(&slub, only, sort_node);
}

static void slub_pressure(void)
{
    slub_shrink(NULL);
}

/* The last user of a cache ends it. */
static void slub_cache_destroy(struct other_cache *c)
{
    struct slub_cache *k = c->other_own;
    bool last;

    slabs_caches_lock(&slub);
    last = --k->cache_users == 0;
    slabs_caches_unlock(&slub);
    if (!last)
        return;
    slub_shrink(&k->cache);
    slabs_remove(&slub, &k->cache);
    supply_record_free(slub.heap.heap_supply, k, sizeof(*k));
}

/* ---- the operations ----------------------------------------------------- */

static struct slub_cache *slub_untyped(size_t size)
{
    struct slub_cache *k = untyped;

    while (k->cache.object < size)
        k++;
    return k;
}

static void *slub_alloc(size_t size)
{
    if (size == 0)
        return OTHER_NOTHING;
    return size > SLUB_MAX ? other_whole_alloc(&slub.heap, NULL, size)
                           : slub_get(slub_untyped(size), size, NULL);
}

static void slub_free(void *p, size_t size)
{
    if (p == OTHER_NOTHING)
        return;
    if (size > SLUB_MAX)
        other_whole_free(&slub.heap, NULL, p, size);
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

/* A list of slabs, which are frozen or not. */
static const char *slub_check_list(const struct slub_cache *k,
                                   struct list *list, size_t count, bool frozen,
                                   struct slabs_sum *sum)
{
    size_t n = 0;

    list_for_each (l, list) {
        const struct slub_slab *s = slub_slab(l);

        if (++n > count || s->slab.cache != &k->cache ||
            s->slub_frozen != frozen || s->slub_free == 0)
            return "a list has a slab that is full, or another's";
    }
    sum->listed += n;
    return n == count ? NULL : "a list has not as many slabs as are counted";
}

static const char *slub_check_cache(struct slabs_cache *cache,
                                    struct slabs_sum *sum)
{
    struct slub_cache *k = slub_cache_of(cache);
    const char *wrong =
        slub_check_list(k, &k->cache.partial, k->cache_partials, false, sum);

    for (unsigned i = 0; wrong == NULL && i < OTHER_CPUS; i++) {
        struct slub_cpu *cpu = &k->cache_cpu[i];
        const struct slub_slab *s = cpu->cpu_slab;

        wrong =
            slub_check_list(k, &cpu->cpu_partial, cpu->cpu_partials, true, sum);
        if (s != NULL && (s->slab.cache != cache || !s->slub_frozen))
            wrong = "a processor has a slab that is not frozen";
        sum->listed += s != NULL;
    }
    return wrong;
}

static void see_list(struct slabs_view *v, const struct slub_cache *k,
                     uint32_t n)
{
    for (; n != 0; n = *slub_link(k, slub_at(n)))
        if (!slabs_see(v, slub_at(n))) {
            v->wrong = "a list has an object of another slab, or one twice";
            return;
        }
}

/* Full slabs are on no list. */
static void slub_look(struct slab *slab, struct slabs_view *v)
{
    const struct slub_cache *k = slub_cache_of(slab->cache);
    const struct slub_slab *s = slub_slab(&slab->link);

    v->first = slub_begin(s);
    v->size = k->cache.size;
    v->num = slub_objects(s);
    v->room = slub_bytes(s, slab->cache);
    v->listed = s->slub_frozen || s->slub_free != 0;
    see_list(v, k, s->slub_free);
    if (v->wrong == NULL && v->free != slub_free_objects(s))
        v->wrong = "a slab has not as many free objects as it counts";
    for (unsigned i = 0; i < OTHER_CPUS; i++)
        if (k->cache_cpu[i].cpu_slab == s)
            see_list(v, k, k->cache_cpu[i].cpu_free);
}

static const char *slub_check(void)
{
    return slabs_check(&slub);
}

static void slub_other_stat(struct other_stat *out)
{
    other_counted_stat(&slub.heap, out);
}

static const struct slabs_ops ops = {
    .destroy = slub_destroy, .check = slub_check_cache, .look = slub_look};

/* 8, 16, 32, 64, 96, 128, 192, 256, 512, … */
static void slub_init(struct supply *s)
{
    static const size_t small[] = {8, 16, 32, 64, 96, 128, 192};

    memset(untyped, 0, sizeof(untyped));
    memset(&slub_stat, 0, sizeof(slub_stat));
    slabs_init(&slub, "linux_slub", s, &ops);
    for (unsigned i = 0; i < SLUB_UNTYPED; i++) {
        slub_shape(&untyped[i],
                   i < ARRAY_SIZE(small)
                       ? small[i]
                       : (size_t)256 << (i - ARRAY_SIZE(small)),
                   0, false);
        slub_cache_start(&untyped[i]);
    }
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
