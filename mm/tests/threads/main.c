/*
 * mm/ under real threads and the thread sanitizer.
 *
 *     mmthreads [SEED [OPS]]
 *
 * Each thread does OPS random operations on caches that all share, and on some
 * of its own. The sanitizer reports two accesses of which one is a write and
 * which no lock orders. Objects keep what their thread wrote; kmem_verify finds
 * nothing at any time; at the end everything is freed. The run is bounded by
 * operations, and each of them by steps, not by time.
 */
#include "kernel/lib/string.h"
#include "mm/buddy.h"
#include "mm/debug/debug.h"
#include "mm/kmem_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/segkmem.h"
#include "mm/tests/threads/threads.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define SHARED  4
#define OBJECTS 40
#define FRAMES  1024 /* too few for the peaks of the threads */
#define FPZU    (KMF_CHECK | KMF_POISON | KMF_REDZONE | KMF_AUDIT)

static struct kmem_cache *shared[SHARED];
static struct kmem_cache *idle; /* its modes change */
static uint64_t operations = 4000;
static uint64_t failed; /* allocations */

struct object {
    uint8_t *object_addr;
    size_t object_size;
    unsigned object_cache; /* SHARED: of kmem_alloc */
};

/* An object that any thread may free, and whether one has. */
struct handed {
    struct kmem_cache *handed_cache;
    void *handed_addr;
    bool handed_freed;
};

static struct handed *handed;

struct thread {
    unsigned thread_number;
    struct object thread_object[OBJECTS];
    unsigned thread_objects;
    struct handed thread_handed;
};

/* ---- objects ------------------------------------------------------------ */

static uint8_t stamp_of(const struct thread *t, const struct object *o)
{
    return (uint8_t)(t->thread_number * 61 + (uintptr_t)o / sizeof(*o));
}

/* A thread waits for memory only while it has none: another thread can free
 * some. */
static void alloc(struct thread *t)
{
    struct object *o = &t->thread_object[t->thread_objects];
    int flags = t->thread_objects == 0 ? KM_SLEEP : KM_NOSLEEP;

    if (t->thread_objects == OBJECTS)
        return;
    o->object_cache = threads_below(SHARED + 2);
    if (o->object_cache < SHARED) {
        o->object_size = shared[o->object_cache]->cache_size;
        o->object_addr = kmem_cache_alloc(shared[o->object_cache], flags);
    } else {
        o->object_size = 1 + threads_below(threads_below(8) == 0 ? 200000 : 40);
        o->object_addr = kmem_alloc(o->object_size, flags);
    }
    if (o->object_addr == NULL) {
        CHECK(flags == KM_NOSLEEP);
        __atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
        return;
    }
    memset(o->object_addr, stamp_of(t, o), o->object_size);
    t->thread_objects++;
}

static void free_last(struct thread *t)
{
    struct object *o;

    if (t->thread_objects == 0)
        return;
    o = &t->thread_object[--t->thread_objects];
    for (size_t i = 0; i < o->object_size; i++)
        CHECK(o->object_addr[i] == stamp_of(t, o));
    if (o->object_cache < SHARED)
        kmem_cache_free(shared[o->object_cache], o->object_addr);
    else
        kmem_free(o->object_addr, o->object_size);
}

/* ---- caches ------------------------------------------------------------- */

static void build(void *obj, size_t size)
{
    memset(obj, 1, size);
}

static void own_cache(struct thread *t)
{
    char name[16];
    struct kmem_cache *cp;
    void *obj;

    snprintf(name, sizeof(name), "own_%u", t->thread_number);
    cp = kmem_cache_create(name, 100 + threads_below(900), 0, build, build);
    if (cp == NULL)
        return;
    obj = kmem_cache_alloc(cp, KM_NOSLEEP);
    if (obj != NULL)
        kmem_cache_free(cp, obj);
    CHECK(kmem_cache_destroy(cp) == 0);
}

/* A cache of this name may be another thread's. */
static void same_name(void)
{
    struct kmem_cache *cp = kmem_cache_create("same", 64, 0, NULL, NULL);

    if (cp != NULL)
        CHECK(kmem_cache_destroy(cp) == 0);
}

/* Frees the object that a thread waits for. */
static void free_handed(void)
{
    struct handed *h = __atomic_exchange_n(&handed, NULL, __ATOMIC_ACQ_REL);

    if (h == NULL)
        return;
    kmem_cache_free(h->handed_cache, h->handed_addr);
    __atomic_store_n(&h->handed_freed, true, __ATOMIC_RELAXED);
}

/* A cache is destroyed as soon as another thread has freed its last object:
 * only the lock of the cache orders the two. */
static void hand_over(struct thread *t)
{
    struct handed *h = &t->thread_handed;
    struct handed *none = NULL;
    char name[16];

    snprintf(name, sizeof(name), "handed_%u", t->thread_number);
    h->handed_cache = kmem_cache_create(name, 64, 0, NULL, NULL);
    if (h->handed_cache == NULL)
        return;
    h->handed_addr = kmem_cache_alloc(h->handed_cache, KM_NOSLEEP);
    __atomic_store_n(&h->handed_freed, h->handed_addr == NULL,
                     __ATOMIC_RELAXED);
    while (h->handed_addr != NULL &&
           !__atomic_compare_exchange_n(&handed, &none, h, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        free_handed(); /* another thread's */
        none = NULL;
    }
    for (unsigned n = 1; !__atomic_load_n(&h->handed_freed, __ATOMIC_RELAXED);
         n++) {
        sched_yield();
        if (n % 1000 == 0)
            free_handed(); /* the others may have ended */
    }
    CHECK(kmem_cache_destroy(h->handed_cache) == 0);
}

static void set_modes(struct kmem_cache *cp)
{
    static const unsigned modes[] = {0, FPZU, KMF_UNMAP, KMF_TRACE};
    int error = kmem_debug_set(cp, modes[threads_below(4)]);

    CHECK(error == 0 || error == -KMEM_EBUSY || error == -KMEM_EAGAIN ||
          error == -KMEM_ENOMEM);
}

static void use_idle(void)
{
    void *obj = kmem_cache_alloc(idle, KM_NOSLEEP);

    if (obj != NULL)
        kmem_cache_free(idle, obj);
}

/* ---- observers ---------------------------------------------------------- */

static void verify(void)
{
    const char *where;
    const char *why = kmem_verify(&where);

    if (why != NULL)
        mm_panic("kmem_verify: %s: %s", why, where);
}

static void snapshot(struct thread *t)
{
    struct kmem_cache *cp = shared[threads_below(SHARED)];
    struct kmem_cache_stat st;
    struct kmem_slab_stat slab;
    struct segkmem_stat seg;
    struct kmem_buf_stat buf;
    size_t histogram[4];

    for (size_t n = 0; kmem_cache_stat_number(n, &st); n++)
        CHECK(st.stat_full_slabs + st.stat_free_slabs <= st.stat_slabs);
    for (size_t n = 0; kmem_slab_stat(cp, n, &slab); n++)
        CHECK(!slab.stat_bad);
    kmem_hash_stat(cp, histogram, 4);
    segkmem_stat(&seg);
    buddy_free_pages();
    if (t->thread_objects != 0)
        kmem_buf_stat(t->thread_object[0].object_addr, &buf);
}

static void pages(void)
{
    size_t n = 1 + threads_below(20);
    struct page *p = buddy_alloc_run(n);

    if (p != NULL) {
        buddy_free_run(p, n);
        mm_wake_waiters();
    }
}

/* ---- a thread ----------------------------------------------------------- */

static void rare(struct thread *t)
{
    switch (threads_below(14)) {
    case 0:
        own_cache(t);
        break;
    case 1:
        same_name();
        break;
    case 2:
        set_modes(idle);
        break;
    case 3:
        set_modes(kmem_size_class(13));
        break;
    case 4:
        verify();
        break;
    case 5:
        snapshot(t);
        break;
    case 6:
        kmem_reap((enum kmem_reap_mode)threads_below(2));
        break;
    case 7:
        kmem_cache_reap(shared[threads_below(SHARED)], KMEM_REAP_ALL);
        break;
    case 8:
        __atomic_fetch_add(&threads_clock_ms, 4000, __ATOMIC_RELAXED);
        kmem_update_poll();
        break;
    case 9:
        pages();
        break;
    case 10:
        kmem_unmapped_release(NULL);
        break;
    case 11:
        hand_over(t);
        break;
    case 12:
        free_handed();
        break;
    default:
        use_idle();
    }
}

static struct thread thread[THREADS];

static void run(unsigned number)
{
    struct thread *t = &thread[number];

    t->thread_number = number;
    for (uint64_t i = 0; i < operations; i++) {
        if (threads_below(16) == 0)
            rare(t);
        else if (threads_below(100) < (i / 200 % 2 == 0 ? 65 : 35))
            alloc(t);
        else
            free_last(t);
        threads_completed();
    }
    while (t->thread_objects != 0)
        free_last(t);
}

/* ---- before and after --------------------------------------------------- */

static void make_caches(void)
{
    static const struct {
        const char *name;
        size_t size;
        unsigned modes;
    } kinds[SHARED] = {{"small", 200, 0},
                       {"large", 1000, 0},
                       {"checked", 300, FPZU},
                       {"unmapped", 2000, KMF_UNMAP}};

    for (unsigned i = 0; i < SHARED; i++) {
        shared[i] =
            kmem_cache_create(kinds[i].name, kinds[i].size, 0, NULL, NULL);
        CHECK(shared[i] != NULL);
        CHECK(kmem_debug_set(shared[i], kinds[i].modes) == 0);
    }
    idle = kmem_cache_create("idle", 600, 0, NULL, NULL);
    CHECK(idle != NULL);
}

static void check_end(void)
{
    struct segkmem_stat seg;

    verify();
    for (unsigned i = 0; i < SHARED; i++)
        CHECK(kmem_cache_destroy(shared[i]) == 0);
    CHECK(kmem_cache_destroy(idle) == 0);
    CHECK(kmem_debug_set(kmem_size_class(13), 0) == 0);
    /* A thread's reap may have left nothing: one free slab is certain. */
    kmem_free(kmem_alloc(13, KM_SLEEP), 13);
    CHECK(kmem_reap(KMEM_REAP_ALL) != 0);
    verify();
    CHECK(failed != 0); /* memory was short at times */
    segkmem_stat(&seg);
    CHECK(seg.stat_use[PAGE_OVERSIZE] == 0);
    CHECK(kmem_unmapped_pages() == 0);
    CHECK(kmem_last_error.error_kind == KMERR_NONE);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;

    if (argc > 2)
        operations = strtoull(argv[2], NULL, 0);
    threads_start_pages(FRAMES);
    kmem_init();
#if MM_MAGAZINES
    kmem_mag_enough = 0;
    kmem_mag_most = 3; /* so that depots are visited often */
    kmem_mag_decide_all();
#endif
    make_caches();
    threads_run(run, seed);
    check_end();
    printf("%d threads, %llu operations each: no error\n", THREADS,
           (unsigned long long)operations);
    return 0;
}
