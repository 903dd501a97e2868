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
 * A new cache without constructor and destructor is merged with an existing
 * such cache whose objects have the same size: both clients then use that.
 * Slabs have up to 8 pages, so that little space remains after the last object.
 * They have no colour.
 *
 * Sources: mm/slub.c of Linux 6.1; C. Lameter, The SLUB allocator (2007); the
 * talk on slab allocators in the Linux kernel (2014). A link is a number of 32
 * bits here, on any machine.
 *
 * What is said against it. The Linux talk: the fewest cycles of the three, but
 * objects come from many slabs at a time and the list runs through them, so it
 * "may have issues with caching", which few instructions have to make up for.
 * By the slab paper: no colouring; a free object's memory is written to; and
 * the order in which slabs are used is chance, so that few become free.
 */
#include "mm/others/linux_slub.h"
#include "kernel/lib/string.h"
#include "mm/page.h"

#define SLUB_LINK     sizeof(uint32_t)
#define SHRINK_SORTED 32 /* free objects of slabs that a shrink sorts */

bool slub_2014;
struct slabs slub;
struct slub_stat slub_stat;

static struct slub_cache *slub_cache_of(struct slabs_cache *k)
{
    return container_of(k, struct slub_cache, cache);
}

/* ---- geometry ----------------------------------------------------------- */

/* The lowest order of which at most a sixteenth is lost, or an eighth, or a
 * fourth, for so many objects, or else for one less. More processors, larger
 * slabs. */
static unsigned slub_order(size_t size)
{
    size_t objects = 4 * (other_power(other_cpus + 1) + 1);

    objects = MIN(objects, ((size_t)PAGE_SIZE << SLUB_MAX_ORDER) / size);
    for (; objects >= 2; objects--)
        for (size_t fraction = 16; fraction >= 4; fraction /= 2)
            for (unsigned order = slabs_order(objects * size);
                 order <= SLUB_MAX_ORDER; order++) {
                size_t bytes = (size_t)PAGE_SIZE << order;

                if (bytes % size * fraction <= bytes)
                    return order;
            }
    return slabs_order(size);
}

/* How many partial slabs a processor keeps: enough for twice so many objects.
 * In 2014: so many free objects. */
static unsigned slub_keep(const struct slabs_cache *k)
{
    static const uint8_t keep[][4] = {{120, 52, 24, 6}, {30, 13, 6, 2}};
    unsigned objects = keep[slub_2014][(k->size >= 256) + (k->size >= 1024) +
                                       (k->size >= PAGE_SIZE)];

    return slub_2014 ? objects : (2 * objects + k->num - 1) / k->num;
}

/* ---- free objects ------------------------------------------------------- */

/* A link is where the object is, from the begin of all pages, plus 1. */
static char *slub_at(uint32_t n)
{
    return slub.heap.heap_supply->supply_base + n - 1;
}

static uint32_t slub_number(const char *obj)
{
    return (uint32_t)(obj - slub.heap.heap_supply->supply_base) + 1;
}

static uint32_t *slub_link(const struct slub_cache *k, char *obj)
{
    return (uint32_t *)(obj + k->cache_offset);
}

static void slub_push(const struct slub_cache *k, uint32_t *list, char *obj)
{
    *slub_link(k, obj) = *list;
    *list = slub_number(obj);
}

/* Free objects, but for those on the list of a processor. */
static unsigned slub_free_objects(const struct slab *s)
{
    return slabs_num(s) - s->inuse;
}

/* The list of a slab, its count of objects in use and whether it is frozen
 * change together. The original changes them by a compare-and-exchange, or
 * under this lock. It may be taken after that of the node's list. */
static void slub_lock(struct slab *s)
{
    while (MM_MAGAZINES &&
           __atomic_fetch_or(&s->num, SLABS_LOCKED, __ATOMIC_ACQUIRE) &
               SLABS_LOCKED)
        __builtin_ia32_pause();
}

static void slub_unlock(struct slab *s)
{
    if (MM_MAGAZINES)
        __atomic_store_n(&s->num, (uint16_t)slabs_num(s), __ATOMIC_RELEASE);
}

/* ---- the node's list: the cache's lock is held --------------------------- */

static void node_remove(struct slub_cache *k, struct slab *s)
{
    list_remove(&s->link);
    k->cache_partials--;
}

/* A slab leaves a processor: it goes to the begin or the end of the list, or
 * back. */
static void node_add(struct slub_cache *k, struct slab *s, bool tail)
{
    bool empty;

    slub_lock(s);
    s->frozen = 0;
    empty = s->inuse == 0;
    slub_unlock(s);
    if (empty && k->cache_partials >= k->cache_min) {
        slabs_discard(&slub, s);
        return;
    }
    list_insert_after(tail ? k->cache.partial.prev : &k->cache.partial,
                      &s->link);
    k->cache_partials++;
}

/* ---- what a processor has ----------------------------------------------- */

/* The list of its current slab becomes the processor's. If that is empty, the
 * slab is full, and the processor gives it up: false. */
static bool cpu_take(struct slub_cpu *cpu)
{
    struct slab *s = cpu->cpu_slab;
    bool some;

    slub_lock(s);
    some = s->free != 0;
    if (some) {
        cpu->cpu_free = s->free;
        s->free = 0;
        s->inuse = slabs_num(s) & 0x7fff;
    } else {
        s->frozen = 0;
        cpu->cpu_slab = NULL;
    }
    slub_unlock(s);
    return some;
}

/* A frozen slab becomes one of its partial slabs. */
static void cpu_add(struct slub_cpu *cpu, struct slab *s)
{
    list_insert_after(&cpu->cpu_partial, &s->link);
    cpu->cpu_partials++;
}

/* A slab that has free objects becomes its current one, if it has none, or else
 * a partial one. */
static void cpu_give(struct slub_cpu *cpu, struct slab *s)
{
    slub_lock(s);
    s->frozen = 1;
    slub_unlock(s);
    if (cpu->cpu_slab == NULL) {
        cpu->cpu_slab = s;
        cpu_take(cpu);
    } else {
        cpu_add(cpu, s);
    }
}

/* The first of its partial slabs, which is on no list then. */
static struct slab *cpu_remove(struct slub_cpu *cpu)
{
    struct slab *s = slabs_slab(cpu->cpu_partial.next);

    list_remove(&s->link);
    cpu->cpu_partials--;
    return s;
}

/* What counts of its partial slabs: how many they are; in 2014, their objects.
 */
static unsigned cpu_holds(struct slub_cpu *cpu)
{
    unsigned objects = 0;

    if (!slub_2014)
        return cpu->cpu_partials;
    list_for_each (l, &cpu->cpu_partial)
        objects += slub_free_objects(slabs_slab(l));
    return objects;
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
    struct slab *s = cpu->cpu_slab;
    uint32_t *last = &cpu->cpu_free;
    bool remote, full, empty;

    slub_lock(s);
    remote = s->free != 0;
    for (; *last != 0; last = slub_link(k, slub_at(*last)))
        s->inuse--;
    *last = s->free; /* the processor's list comes first */
    s->free = cpu->cpu_free;
    cpu->cpu_slab = NULL;
    cpu->cpu_free = 0;
    full = s->free == 0;
    empty = s->inuse == 0;
    if (full)
        s->frozen = 0;
    slub_unlock(s);
    OTHER_ADD(slub_stat.stat_deactivate_remote, remote);
    OTHER_ADD(slub_stat.stat_deactivate_full, full);
    OTHER_ADD(slub_stat.stat_deactivate_empty, empty);
    OTHER_ADD(slub_stat.stat_deactivate_tail, remote && !empty);
    OTHER_ADD(slub_stat.stat_deactivate_head, !remote && !empty && !full);
    if (full)
        return;
    other_count_lock(&slub.heap);
    node_add(k, s, remote);
}

/* ---- allocations -------------------------------------------------------- */

/* From the node's list: the first slab becomes the current one, some more the
 * processor's partial ones, of which it has none. */
static bool refill_from_node(struct slub_cache *k, struct slub_cpu *cpu)
{
    if (MM_UNLOCKED(k->cache_partials) == 0)
        return false;
    other_count_lock(&slub.heap);
    other_share_part(&k->cache.lock);
    OTHER_ADD(slub_stat.stat_from_partial, 1);
    while (k->cache_partials != 0 && cpu_holds(cpu) <= k->cache_cpu_most / 2) {
        struct slab *s = slabs_slab(k->cache.partial.next);

        node_remove(k, s);
        cpu_give(cpu, s);
    }
    OTHER_ADD(slub_stat.stat_cpu_node, cpu->cpu_partials);
    other_unshare_part(&k->cache.lock);
    return cpu->cpu_slab != NULL;
}

/* The processor's list is empty: gets another from the nearest slab that has
 * free objects. False: none has. */
static bool cpu_refill(struct slub_cache *k, struct slub_cpu *cpu)
{
    OTHER_ADD(slub_stat.stat_alloc_slow, 1);
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
        cpu->cpu_slab = cpu_remove(cpu);
    }
}

static void *slub_get(struct slabs_cache *cache, unsigned n)
{
    struct slub_cache *k = slub_cache_of(cache);
    struct slub_cpu *cpu = &k->cache_cpu[n];
    char *obj;

    if (cpu->cpu_free == 0 && !cpu_refill(k, cpu))
        return NULL;
    obj = slub_at(cpu->cpu_free);
    cpu->cpu_free = *slub_link(k, obj);
    return obj;
}

/* All objects of a new slab are on its list, in ascending order. Without memory
 * for a large slab a small one serves. */
static struct slab *slub_make(struct slabs_cache *cache)
{
    struct slab *s =
        slabs_new(&slub, cache, cache->order, 0)
            ?: slabs_new(&slub, cache, slabs_order(cache->size), 0);

    for (unsigned i = s == NULL ? 0 : s->num; i-- > 0;)
        slub_push(slub_cache_of(cache), &s->free, s->first + i * cache->size);
    return s;
}

static void slub_add(struct slabs_cache *cache, unsigned n, struct slab *s)
{
    OTHER_ADD(slub_stat.stat_fallback, s->num != cache->num);
    cpu_give(&slub_cache_of(cache)->cache_cpu[n], s);
}

/* ---- frees -------------------------------------------------------------- */

/* Locks a slab. If its last object is to be freed, while it is on the node's
 * list, that is shared first: true. */
static bool slub_lock_last(struct slub_cache *k, struct slab *s)
{
    bool last;

    slub_lock(s);
    last = s->inuse == 1 && s->free != 0 && !s->frozen;
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
                           struct slab *s, char *obj)
{
    bool node = slub_lock_last(k, s), was_full = s->free == 0;
    bool frozen = s->frozen, empty;

    if (s->inuse == 0 || s->free == slub_number(obj))
        slabs_freed_twice(&slub, &k->cache, obj);
    OTHER_ADD(slub_stat.stat_free_slow, 1);
    OTHER_ADD(slub_stat.stat_free_frozen, frozen);
    slub_push(k, &s->free, obj);
    s->inuse--;
    empty = !frozen && !was_full && s->inuse == 0;
    if (was_full)
        s->frozen = 1;
    slub_unlock(s);
    if (node) {
        if (empty && k->cache_partials >= k->cache_min) {
            node_remove(k, s);
            slabs_discard(&slub, s);
        }
        other_unshare_part(&k->cache.lock);
    }
    if (!was_full || frozen)
        return;
    OTHER_ADD(slub_stat.stat_cpu_free, 1);
    if (cpu_holds(cpu) >= k->cache_cpu_most + slub_2014) {
        OTHER_ADD(slub_stat.stat_cpu_drain, 1);
        other_share_part(&k->cache.lock);
        cpu_unfreeze(k, cpu);
        other_unshare_part(&k->cache.lock);
    }
    cpu_add(cpu, s);
}

static void slub_put(struct slabs_cache *cache, unsigned n, struct slab *s,
                     void *obj)
{
    struct slub_cache *k = slub_cache_of(cache);
    struct slub_cpu *cpu = &k->cache_cpu[n];

    if (s == cpu->cpu_slab)
        slub_push(k, &cpu->cpu_free, obj);
    else
        slub_free_slow(k, cpu, s, obj);
}

/* ---- pressure: the cache's lock is held ---------------------------------- */

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
        struct slab *s = slabs_slab(k->cache.partial.next);
        unsigned free;

        slub_lock(s);
        free = slub_free_objects(s);
        slub_unlock(s);
        list_remove(&s->link);
        if (free < slabs_num(s)) {
            list_insert_before(&sorted[MIN(free, SHRINK_SORTED + 1u)],
                               &s->link);
        } else {
            k->cache_partials--;
            slabs_discard(&slub, s);
        }
    }
    for (unsigned i = 0; i < ARRAY_SIZE(sorted); i++)
        list_splice(&sorted[i], &k->cache.partial);
}

/* ---- caches ------------------------------------------------------------- */

/* The oldest cache whose slabs are right for such objects, too: it gets a
 * further user. NULL: there is none. */
static struct slub_cache *slub_alias(size_t size)
{
    struct slub_cache *found = NULL;

    slabs_caches_lock(&slub);
    list_for_each (l, &slub.caches) {
        struct slub_cache *k = list_entry(l, struct slub_cache, cache.link);

        if (found == NULL && k->cache.users != 0 && k->cache.ctor == NULL &&
            k->cache.dtor == NULL && k->cache.size == size)
            found = k;
    }
    if (found != NULL) {
        found->cache.users++;
        OTHER_ADD(slub_stat.stat_aliases, 1);
    }
    slabs_caches_unlock(&slub);
    return found;
}

/* A link follows an object that is constructed; it is in the middle of one
 * that is not, and was at its begin in 2014. */
static struct slabs_cache *slub_create(const struct other_cache *c)
{
    bool constructed = c->other_ctor != NULL || c->other_dtor != NULL;
    size_t end = ROUND_UP(c->other_size, SLUB_LINK);
    size_t size = ROUND_UP(constructed ? end + SLUB_LINK : end,
                           MAX(c->other_align, (size_t)8));
    struct slub_cache *k = constructed ? NULL : slub_alias(size);

    if (k != NULL)
        return &k->cache;
    k = slabs_record(&slub, c, sizeof(*k));
    if (k == NULL)
        return NULL;
    k->cache.size = size;
    k->cache.order = slub_order(size);
    k->cache.num = (unsigned)(slabs_bytes(&k->cache) / size);
    k->cache_offset = constructed ? end
                      : slub_2014 ? 0
                                  : c->other_size / 2 & ~(SLUB_LINK - 1);
    k->cache_min = MIN(MAX((other_power(size + 1) - 1) / 2, 5u), 10u);
    k->cache_cpu_most = slub_keep(&k->cache);
    for (unsigned i = 0; i < OTHER_CPUS; i++)
        list_init(&k->cache_cpu[i].cpu_partial);
    slabs_add(&slub, &k->cache);
    return &k->cache;
}

/* ---- looking ------------------------------------------------------------ */

static int slub_unused(const struct slab *s, const struct list *list)
{
    bool here = s->free != 0 && s->frozen == (list != &s->cache->partial);

    return here ? (int)slub_free_objects(s) : -1;
}

static void slub_check_list(struct slabs_cache *k, struct list *list,
                            size_t count, struct slabs_sum *sum)
{
    slabs_expect(sum, slabs_check_list(k, list, slub_unused, sum) == count,
                 "a list has not as many slabs as are counted");
}

static void slub_check_cache(struct slabs_cache *cache, struct slabs_sum *sum)
{
    struct slub_cache *k = slub_cache_of(cache);

    slub_check_list(cache, &cache->partial, k->cache_partials, sum);
    for (unsigned i = 0; i < OTHER_CPUS; i++) {
        struct slub_cpu *cpu = &k->cache_cpu[i];
        const struct slab *s = cpu->cpu_slab;

        slub_check_list(cache, &cpu->cpu_partial, cpu->cpu_partials, sum);
        slabs_expect(sum, s == NULL || (s->cache == cache && s->frozen),
                     "a processor has a slab that is not frozen");
        sum->listed += s != NULL;
    }
}

static void look_list(struct slabs_view *v, const struct slub_cache *k,
                      uint32_t n)
{
    while (n != 0 &&
           slabs_see(v, slub_at(n),
                     "a list has an object of another slab, or one twice"))
        n = *slub_link(k, slub_at(n));
}

/* Full slabs are on no list. */
static void slub_look(struct slabs_view *v)
{
    const struct slab *s = v->slab;
    const struct slub_cache *k = slub_cache_of(s->cache);

    v->unlisted = !s->frozen && s->free == 0;
    look_list(v, k, s->free);
    if (v->wrong == NULL && v->free != slub_free_objects(s))
        v->wrong = "a slab has not as many free objects as it counts";
    for (unsigned i = 0; i < OTHER_CPUS; i++)
        if (k->cache_cpu[i].cpu_slab == s)
            look_list(v, k, k->cache_cpu[i].cpu_free);
}

/* ---- the allocator ------------------------------------------------------ */

static const struct slabs_ops slub_ops = {
    .first = 0, /* 8 bytes */
    .align = 8,
    .create = slub_create,
    .get = slub_get,
    .make = slub_make,
    .add = slub_add,
    .flush = flush_cpu,
    .trim = sort_node,
    .check = slub_check_cache,
    .look = slub_look,
};

static void slub_init(struct supply *s)
{
    slub_stat = (struct slub_stat){0};
    slabs_init(&slub, "linux_slub", s, &slub_ops);
}

SLABS_ALLOCATOR(linux_slub, slub);
