/*
 * Magazines, the front end on several processors: mm/kmem_mag.h draws them.
 *
 * An allocation takes the last round of the loaded magazine and a free adds
 * one, with interrupts disabled and without a lock. The previous magazine is
 * full or empty. Where it can serve and the loaded one cannot, the two are
 * exchanged, so at least as many operations as a magazine has rounds lie
 * between two visits to the depot. There the previous magazine is left, the
 * loaded one becomes the previous one, and another is loaded: a full one to
 * allocate, an empty one to free.
 *
 * Two things differ from the paper of 2001. The depot has the lock of the
 * cache, not one of its own. And where it has no full magazine, the loaded one,
 * which is empty, is refilled from a slab in the same hold: the objects of a
 * slab are constructed, so nothing more needs to be done.
 *
 * To the slabs a round is an allocated object. Magazines are loaded only with
 * the lock, and only while cache_rounds is not 0. So to get all of them back,
 * cache_rounds becomes 0; then every processor is called to give back what it
 * has. An empty magazine may be in the depot at any time.
 */
#include "kernel/lib/string.h"
#include "mm/kmem_impl.h"

#if MM_MAGAZINES

uint32_t kmem_mag_enough = 64;        /* slab allocations before magazines */
uint32_t kmem_mag_most = KMEM_ROUNDS; /* rounds of a magazine */

static struct kmem_cache *magazine_cache; /* of kmem_cpu_cache, too */

struct kmem_cpu_cache kmem_cpu_none;

static uint32_t disabled; /* how often; changes by atomic instructions */
static bool off;          /* likewise: kmem_mag_set */

/* What the running processor has of a cache. Interrupts are disabled. */
static inline struct kmem_cpu_cache *here(const struct kmem_cache *cp)
{
    return MM_UNLOCKED(cp->cache_cpu[mm_cpu_number()]);
}

/* ---- the depot ---------------------------------------------------------- */

static void depot_put(struct kmem_cache *cp, bool full, void *magazine)
{
    struct kmem_depot *d = &cp->cache_depot[full];
    struct kmem_magazine *m = magazine;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    m->mag_next = d->depot_list;
    d->depot_list = m;
    d->depot_total++;
}

static struct kmem_magazine *depot_take(struct kmem_cache *cp, bool full)
{
    struct kmem_depot *d = &cp->cache_depot[full];
    struct kmem_magazine *m = d->depot_list;

    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    if (m == NULL)
        return NULL;
    d->depot_list = m->mag_next;
    d->depot_total--;
    d->depot_min = MIN(d->depot_min, d->depot_total);
    return m;
}

/* ---- from and to the slabs ---------------------------------------------- */

/* Fills an empty magazine from one slab; the next allocations get the objects
 * in the order of its freelist. Returns how many. */
static uint32_t refill(struct kmem_cache *cp, struct kmem_magazine *m)
{
    uint32_t n = kmem_take_some(cp, m->mag_round, cp->cache_rounds);

    cp->cache_refilled += n;
    return n;
}

/* An address that is no object of a large cache is found only here. */
static void drain(struct kmem_cache *cp, struct kmem_magazine *m,
                  uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++)
        if (!kmem_give(cp, m->mag_round[i]))
            mm_panic("kmem_cache_free: %p was freed, but is not an allocated "
                     "buffer of cache %s",
                     m->mag_round[i], cp->cache_name);
    cp->cache_drained += rounds;
}

/* ---- the magazines of a processor --------------------------------------- */

/* Loads a magazine in place of one that is full, empty, or not there. */
static void load_magazine(struct kmem_cache *cp, struct kmem_cpu_cache *cc,
                          struct kmem_magazine *m, uint32_t rounds)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock) && cp->cache_rounds != 0);
    MM_ASSERT(cc->cc_rounds % cp->cache_rounds == 0);
    if (cc->cc_previous != NULL)
        depot_put(cp, cc->cc_previous_rounds != 0, cc->cc_previous);
    cc->cc_previous = cc->cc_loaded;
    cc->cc_previous_rounds = cc->cc_rounds;
    cc->cc_loaded = m;
    cc->cc_rounds = rounds;
    cc->cc_room = cp->cache_rounds;
}

static void exchange(struct kmem_cpu_cache *cc)
{
    struct kmem_magazine *loaded = cc->cc_loaded;
    uint32_t rounds = cc->cc_rounds;

    cc->cc_loaded = cc->cc_previous;
    cc->cc_rounds = cc->cc_previous_rounds;
    cc->cc_previous = loaded;
    cc->cc_previous_rounds = rounds;
}

/* The visit to the depot, for a full magazine or an empty one. */
static void visit(struct kmem_cache *cp, struct kmem_cpu_cache *cc, bool full)
{
    struct kmem_magazine *m;

    mm_lock(&cp->cache_lock);
    m = cp->cache_rounds == 0 ? NULL : depot_take(cp, full);
    if (m != NULL)
        load_magazine(cp, cc, m, full ? cp->cache_rounds : 0);
    else if (full && cc->cc_loaded != NULL)
        cc->cc_rounds = refill(cp, cc->cc_loaded);
    mm_unlock(&cp->cache_lock);
}

/* The loaded magazine is of no use, or there is none: loads the previous one or
 * one of the depot, or refills it, so that it has rounds (`full`), or room.
 * False: there is nothing to load. Interrupts are disabled. */
static bool replace_magazine(struct kmem_cache *cp, struct kmem_cpu_cache *cc,
                             bool full)
{
    if (cc->cc_previous != NULL && (cc->cc_previous_rounds != 0) == full)
        exchange(cc);
    else if (cc != &kmem_cpu_none && MM_UNLOCKED(cp->cache_rounds) != 0 &&
             (full ||
              MM_UNLOCKED(cp->cache_depot[KMEM_EMPTY].depot_list) != NULL))
        visit(cp, cc, full);
    return cc->cc_rounds != (full ? 0 : cc->cc_room);
}

static void unload(struct kmem_cache *cp, struct kmem_magazine *m,
                   uint32_t rounds)
{
    if (m == NULL)
        return;
    drain(cp, m, rounds);
    depot_put(cp, KMEM_EMPTY, m);
}

/* On each processor: gives back all that it has of the cache, its struct
 * kmem_cpu_cache, too. */
static void give_back(void *cache)
{
    struct kmem_cache *cp = cache;
    struct kmem_cpu_cache *cc = here(cp);

    if (cc == &kmem_cpu_none)
        return;
    mm_lock(&cp->cache_lock);
    unload(cp, cc->cc_loaded, cc->cc_rounds);
    unload(cp, cc->cc_previous, cc->cc_previous_rounds);
    cp->cache_mag_allocs += cc->cc_allocs;
    cp->cache_mag_frees += cc->cc_frees;
    cp->cache_cpu[mm_cpu_number()] = &kmem_cpu_none;
    depot_put(cp, KMEM_EMPTY, cc);
    mm_unlock(&cp->cache_lock);
}

/* Memory for a magazine or a struct kmem_cpu_cache; NULL: the cache is to have
 * none, or memory is low, when a free would reclaim some. No lock is held. */
static void *line_alloc(struct kmem_cache *cp)
{
    if (MM_UNLOCKED(cp->cache_rounds) == 0 || mm_memory_low() ||
        MM_UNLOCKED(cp->cache_allocs) < kmem_mag_enough)
        return NULL;
    return kmem_slab_alloc(magazine_cache, KM_NOSLEEP);
}

/* Uses it for what this processor lacks: its struct kmem_cpu_cache, else an
 * empty magazine. Interrupts are disabled; they were not since line_alloc. */
static void line_use(struct kmem_cache *cp, void *line)
{
    struct kmem_cpu_cache *cc = here(cp);

    if (cc == &kmem_cpu_none) {
        cc = memset(line, 0, sizeof(*cc));
        __atomic_store_n(&cp->cache_cpu[mm_cpu_number()], cc, __ATOMIC_RELEASE);
        return;
    }
    mm_lock(&cp->cache_lock);
    if (cp->cache_rounds != 0 && cc->cc_rounds == cc->cc_room)
        load_magazine(cp, cc, line, 0);
    else
        depot_put(cp, KMEM_EMPTY, line);
    mm_unlock(&cp->cache_lock);
}

/* ---- allocation and free ------------------------------------------------ */

static inline void *pop(struct kmem_cpu_cache *cc)
{
    cc->cc_allocs++;
    return cc->cc_loaded->mag_round[--cc->cc_rounds];
}

static inline void push(struct kmem_cpu_cache *cc, void *buf)
{
    cc->cc_loaded->mag_round[cc->cc_rounds] = buf;
    cc->cc_rounds++;
    cc->cc_frees++;
}

/* The loaded magazine is empty, or there is none. Interrupts are disabled. */
static __attribute__((noinline)) void *alloc_from_depot(struct kmem_cache *cp,
                                                        int flags)
{
    struct kmem_cpu_cache *cc = here(cp);
    void *buf = replace_magazine(cp, cc, true) ? pop(cc) : NULL;
    bool bare = cc->cc_loaded == NULL;
    void *line;

    mm_cpu_leave();
    if (buf != NULL)
        return buf;
    buf = kmem_slab_alloc(cp, flags);
    if (bare && buf != NULL && (line = line_alloc(cp)) != NULL) {
        mm_cpu_enter();
        line_use(cp, line);
        mm_cpu_leave();
    }
    return buf;
}

void *kmem_cache_alloc(struct kmem_cache *cp, int flags)
{
    struct kmem_cpu_cache *cc;
    void *buf;

    mm_cpu_enter();
    cc = here(cp);
    if (unlikely(cc->cc_rounds == 0))
        return alloc_from_depot(cp, flags);
    buf = pop(cc);
    mm_cpu_leave();
    return buf;
}

/* The loaded magazine is full, or there is none. Interrupts are disabled; while
 * they are not, the task may move to another processor. As soon as the object
 * is free, the cache may be destroyed. */
static __attribute__((noinline)) void free_slow(struct kmem_cache *cp,
                                                void *buf)
{
    bool room = replace_magazine(cp, here(cp), false);
    void *line;

    if (!room) {
        mm_cpu_leave();
        line = line_alloc(cp);
        mm_cpu_enter();
        if (line != NULL)
            line_use(cp, line);
        room = here(cp)->cc_rounds != here(cp)->cc_room;
    }
    if (room)
        push(here(cp), buf);
    mm_cpu_leave();
    if (!room)
        kmem_slab_free(cp, buf);
}

void kmem_cache_free(struct kmem_cache *cp, void *buf)
{
    struct kmem_cpu_cache *cc;

    mm_cpu_enter();
    cc = here(cp);
    if (unlikely(cc->cc_rounds == cc->cc_room)) {
        free_slow(cp, buf);
        return;
    }
    push(cc, buf);
    mm_cpu_leave();
}

/* ---- reaping (3.4) ------------------------------------------------------ */

/* At each update of the working sets. */
void kmem_mag_update(struct kmem_cache *cp)
{
    MM_ASSERT(mm_lock_held(&cp->cache_lock));
    for (unsigned i = 0; i < KMEM_DEPOTS; i++) {
        cp->cache_depot[i].depot_limit = cp->cache_depot[i].depot_min;
        cp->cache_depot[i].depot_min = cp->cache_depot[i].depot_total;
    }
}

/* The rounds of a full magazine: at most 8 KiB, but always one. */
uint32_t kmem_mag_capacity(const struct kmem_cache *cp)
{
    uint32_t n = cp->cache_chunk <= 256    ? KMEM_ROUNDS
                 : cp->cache_chunk <= 1024 ? 7
                 : cp->cache_chunk <= 2728 ? 3
                                           : 1;

    return MIN(n, kmem_mag_most);
}

/* Takes a magazine that a reap may take, which lowers T, m and L, as
 * kmem_slab_pop does with a slab. */
static struct kmem_magazine *depot_reap(struct kmem_cache *cp, bool full,
                                        enum kmem_reap_mode mode)
{
    struct kmem_depot *d = &cp->cache_depot[full];

    if (mode != KMEM_REAP_ALL && kmem_ws_interval != 0 &&
        (kmem_ws_interval == KMEM_WS_INFINITE ||
         MIN(d->depot_limit, d->depot_min) == 0))
        return NULL;
    d->depot_min -= d->depot_min != 0;
    d->depot_limit -= d->depot_limit != 0;
    return depot_take(cp, full);
}

/* The objects of a full magazine have rested for as long as a slab must be
 * free, so slabs that become free by them may go at once. */
static struct kmem_magazine *reap_magazine(struct kmem_cache *cp,
                                           enum kmem_reap_mode mode)
{
    struct kmem_magazine *m;
    uint32_t slabs;

    mm_lock(&cp->cache_lock);
    slabs = cp->cache_free_slabs;
    m = depot_reap(cp, true, mode);
    if (m != NULL)
        drain(cp, m, kmem_mag_capacity(cp));
    else
        m = depot_reap(cp, false, mode);
    cp->cache_ws_min += cp->cache_free_slabs - slabs;
    cp->cache_ws_limit += cp->cache_free_slabs - slabs;
    mm_unlock(&cp->cache_lock);
    return m;
}

static bool has_cpu_caches(const struct kmem_cache *cp)
{
    for (size_t i = 0; i < MM_CPUS_MAX; i++)
        if (MM_UNLOCKED(cp->cache_cpu[i]) != &kmem_cpu_none)
            return true;
    return false;
}

/* Frees magazines of the depot; with KMEM_REAP_ALL also those of processors, of
 * others than this one only if interrupts are enabled. The cache is held, or
 * has a client that waits. No lock is held. */
void kmem_mag_reap(struct kmem_cache *cp, enum kmem_reap_mode mode)
{
    struct kmem_magazine *m;

    if (mode == KMEM_REAP_ALL && has_cpu_caches(cp))
        mm_call_all(give_back, cp);
    while ((m = reap_magazine(cp, mode)) != NULL)
        kmem_slab_free(magazine_cache, m);
}

/* The same with KMEM_REAP_ALL for a cache that other tasks may destroy. Does
 * nothing if there is no cache at this address. */
void kmem_mag_empty(struct kmem_cache *cp)
{
    bool found;

    mm_lock(&kmem_list_lock);
    found = kmem_list_find(NULL, cp) != NULL;
    if (found)
        kmem_hold(cp);
    mm_unlock(&kmem_list_lock);
    if (!found)
        return;
    kmem_mag_reap(cp, KMEM_REAP_ALL);
    kmem_release(cp);
}

/* ---- which caches have magazines ---------------------------------------- */

/* Whether the cache may have magazines: when it is new, and whenever that has
 * changed. The caches that this layer needs itself have none. Nor has one in a
 * debugging mode, which is to see every operation. If it may not, no object is
 * in one when this returns, if interrupts are enabled. The cache is held, or it
 * is the caller's. No lock is held. */
void kmem_mag_decide(struct kmem_cache *cp)
{
    bool on;

    mm_lock(&cp->cache_lock);
    on = MM_UNLOCKED(disabled) == 0 && cp->cache_kind != KMEM_KIND_INTERNAL &&
         (cp->cache_flags & KMF_DEBUG) == 0;
    cp->cache_rounds = on ? kmem_mag_capacity(cp) : 0;
    mm_unlock(&cp->cache_lock);
    if (!on)
        kmem_mag_reap(cp, KMEM_REAP_ALL);
}

void kmem_mag_decide_all(void)
{
    struct kmem_cache *cp = NULL;

    while ((cp = kmem_hold_previous(cp)) != NULL)
        kmem_mag_decide(cp);
}

/* From kmem_mag_disable to kmem_mag_enable, which nest, no cache has magazines,
 * nor has one that is created meanwhile. */
void kmem_mag_disable(void)
{
    __atomic_fetch_add(&disabled, 1, __ATOMIC_SEQ_CST);
    kmem_mag_decide_all();
}

void kmem_mag_enable(void)
{
    __atomic_fetch_sub(&disabled, 1, __ATOMIC_SEQ_CST);
    kmem_mag_decide_all();
}

bool kmem_mag_is_on(void)
{
    return !MM_UNLOCKED(off);
}

void kmem_mag_set(bool on)
{
    if (__atomic_exchange_n(&off, !on, __ATOMIC_SEQ_CST) == on)
        (on ? kmem_mag_enable : kmem_mag_disable)();
}

/* A new cache has none until kmem_mag_decide. */
void kmem_mag_setup(struct kmem_cache *cp)
{
    for (size_t i = 0; i < MM_CPUS_MAX; i++)
        cp->cache_cpu[i] = &kmem_cpu_none;
}

/* While new caches are the allocator's own: in no mode. */
void kmem_mag_init(void)
{
    size_t size = MAX(sizeof(struct kmem_magazine), (size_t)MM_LINE);

    magazine_cache =
        kmem_cache_create("kmem_magazine", size, MM_LINE, NULL, NULL);
    if (magazine_cache == NULL)
        mm_panic("kmem_init: no memory for kmem_magazine");
}

/* ---- counts ------------------------------------------------------------- */

static uint32_t served_frees(const struct kmem_cache *cp)
{
    uint32_t frees = cp->cache_mag_frees;

    for (size_t i = 0; i < MM_CPUS_MAX; i++)
        frees += MM_UNLOCKED(kmem_cpu_cache(cp, i)->cc_frees);
    return frees;
}

static uint32_t served_allocs(const struct kmem_cache *cp)
{
    uint32_t allocs = cp->cache_mag_allocs;

    for (size_t i = 0; i < MM_CPUS_MAX; i++)
        allocs += MM_UNLOCKED(kmem_cpu_cache(cp, i)->cc_allocs);
    return allocs;
}

/* Converts the counts of the slab layer to those of clients, modulo 2^32, and
 * updates the total that magazines have served. Other processors go on
 * meanwhile. Frees are read before allocations, or there could be more frees
 * than allocations. But an allocation counted late may reuse an object that was
 * freed after the frees were read: then the later frees are added. If that is
 * still too few, the counts are wrong and stay so. */
void kmem_mag_fold(struct kmem_cache *cp, uint32_t *allocs, uint32_t *frees)
{
    uint32_t freed = served_frees(cp);
    uint32_t served = served_allocs(cp);
    uint32_t rounds = /* in magazines */
        cp->cache_refilled + freed - cp->cache_drained - served;
    uint32_t later;

    if ((int32_t)rounds < 0) {
        later = served_frees(cp) - freed;
        freed += MIN(later, -rounds);
    }
    *allocs += served - cp->cache_refilled;
    *frees += freed - cp->cache_drained;
    served += freed;
    cp->cache_served_total += served - (uint32_t)cp->cache_served_total;
}

#endif
