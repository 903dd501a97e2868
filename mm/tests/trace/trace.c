/*
 * Random traces: operations over many caches at once, each carried out on the
 * allocator and on the shadow model (mm/tests/model.h).
 *
 * Caches of all kinds are created and destroyed: small and large objects, odd
 * alignments, constructors, suppliers of their own that have few pages. The
 * size classes of kmem_alloc are modelled too. Objects are stamped and checked
 * when they are freed. When a trace fails, seed and operation are printed; the
 * same seed repeats the failure.
 */
#include "mm/tests/host/host.h"
#include "mm/tests/model.h"

#include <stdio.h>
#include <stdlib.h>

#define CUSTOM      24 /* caches that come and go */
#define CLASSES     38 /* those of kmem_alloc */
#define SLOTS       (CUSTOM + CLASSES)
#define LIVE_MAX    600 /* allocated objects of a cache */
#define CACHE_BYTES KIB(512)
#define COMPARE_OPS 64   /* one cache is compared after so many operations */
#define VERIFY_OPS  5000 /* everything is verified after so many */

struct object {
    void *object_addr;
    uint64_t object_stamp;
    size_t object_size; /* the requested size, for kmem_free */
};

struct slot {
    struct kmem_cache *slot_cache; /* NULL: no cache */
    struct model slot_model;
    struct test_supply slot_supply;
    struct object slot_object[LIVE_MAX];
    size_t slot_live;
    size_t slot_max;
};

static struct slot *slots;
static uint64_t random_state;
static uint64_t serial; /* stamps, and names of caches */

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 16;
}

static size_t below(size_t n)
{
    return (size_t)(random_number() % n);
}

/* ---- objects ------------------------------------------------------------ */

static bool constructed(const struct slot *s)
{
    return s->slot_cache->cache_ctor != NULL;
}

/* First, last and middle words, as many as do not overlap. */
static void stamp(const struct object *o, bool write)
{
    size_t size = o->object_size;
    size_t words = size < 8 ? 0 : size < 16 ? 1 : size < 32 ? 2 : 3;
    size_t at[3] = {0, size - 8, size / 2};

    for (size_t i = 0; i < words; i++) {
        char *p = (char *)o->object_addr + at[i];

        if (write)
            memcpy(p, &o->object_stamp, 8);
        else if (memcmp(p, &o->object_stamp, 8) != 0)
            KT_FAIL("object %p of %zu bytes was written to", o->object_addr,
                    size);
    }
}

/* Constructed objects are left as they are, others stamped. */
static void check_object(const struct slot *s, const struct object *o,
                         bool fresh)
{
    if (!constructed(s))
        stamp(o, fresh);
    else if (!test_is_constructed(o->object_addr, s->slot_cache->cache_size))
        KT_FAIL("%s: %p is not constructed", s->slot_cache->cache_name,
                o->object_addr);
}

static void do_alloc(struct slot *s)
{
    struct object *o = &s->slot_object[s->slot_live];

    if (s->slot_live == s->slot_max)
        return;
    o->object_size = s->slot_cache->cache_size;
    o->object_stamp = ++serial * 0x9e3779b97f4a7c15u;
    o->object_addr = model_alloc(&s->slot_model);
    if (o->object_addr == NULL)
        return;
    check_object(s, o, true);
    s->slot_live++;
}

static void do_free(struct slot *s)
{
    size_t k;

    if (s->slot_live == 0)
        return;
    switch (below(4)) {
    case 0:
        k = s->slot_live - 1; /* the newest, mostly */
        break;
    case 1:
        k = 0;
        break;
    default:
        k = below(s->slot_live);
    }
    check_object(s, &s->slot_object[k], false);
    model_free(&s->slot_model, s->slot_object[k].object_addr);
    s->slot_object[k] = s->slot_object[--s->slot_live];
}

/* kmem_alloc and kmem_free of one buffer at once: whole pages, or of a size
 * class, whose model is not changed. */
static void do_large(void)
{
    size_t size = KMEM_MAXBUF + 1 + below(60000);
    uint8_t *buf = kmem_zalloc(size, KM_NOSLEEP);

    if (buf == NULL) {
        KT_FAIL("kmem_zalloc(%zu): NULL", size);
        return;
    }
    if (buf[0] != 0 || buf[size / 2] != 0 || buf[size - 1] != 0)
        KT_FAIL("kmem_zalloc(%zu): not zero", size);
    memset(buf, 0xff, size);
    kmem_free(buf, size);
}

/* ---- caches ------------------------------------------------------------- */

static size_t random_size(void)
{
    switch (below(5)) {
    case 0:
        return 1 + below(64);
    case 1:
        return 1 + below(512);
    case 2:
        return 400 + below(200); /* about the threshold */
    case 3:
        return 500 + below(9000);
    default:
        return below(8) != 0 ? 1 + below(256) : 10000 + below(60000);
    }
}

static void create(struct slot *s)
{
    static const uint8_t shifts[] = {0, 0, 0, 0, 3, 4, 5, 6, 7, 9, 12};
    size_t size = random_size();
    size_t shift = shifts[below(sizeof(shifts))];
    bool ctor = below(3) == 0;
    bool supplied = below(4) == 0;
    char name[KMEM_NAME_MAX + 1];

    snprintf(name, sizeof(name), "trace_%llu", (unsigned long long)++serial);
    test_supply_init(&s->slot_supply,
                     below(2) == 0 ? 4 + below(60) : MODEL_SLABS * 128);
    s->slot_cache =
        kmem_cache_create_from(name, size, shift == 0 ? 0 : (size_t)1 << shift,
                               ctor ? test_ctor : NULL, ctor ? test_dtor : NULL,
                               supplied ? &s->slot_supply.supply : NULL);
    if (s->slot_cache == NULL) {
        KT_FAIL("no cache of %zu bytes", size);
        return;
    }
    model_init(&s->slot_model, s->slot_cache,
               supplied ? &s->slot_supply : NULL);
    s->slot_live = 0;
    s->slot_max =
        MIN((size_t)LIVE_MAX,
            MAX((size_t)12, CACHE_BYTES / s->slot_cache->cache_chunk));
}

static void destroy(struct slot *s)
{
    if (s->slot_live != 0 && below(4) == 0)
        KT_EQ(kmem_cache_destroy(s->slot_cache), -KMEM_EBUSY);
    while (s->slot_live != 0)
        do_free(s);
    model_compare(&s->slot_model);
    KT_EQ(kmem_cache_destroy(s->slot_cache), 0);
    KT_EQ(s->slot_supply.held, 0);
    s->slot_cache = NULL;
}

/* ---- all caches --------------------------------------------------------- */

static void update_all(void)
{
    kmem_update();
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].slot_cache != NULL)
            model_update(&slots[i].slot_model);
}

static void reap_all(void)
{
    enum kmem_reap_mode mode = (enum kmem_reap_mode)below(2);

    kmem_reap(mode);
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].slot_cache != NULL)
            model_reaped(&slots[i].slot_model, mode);
}

static void set_interval(void)
{
    static const uint32_t intervals[] = {KMEM_WS_DEFAULT_MS, KMEM_WS_DEFAULT_MS,
                                         1000, 0, KMEM_WS_INFINITE};

    kmem_ws_interval = intervals[below(ARRAY_SIZE(intervals))];
}

/* The allocator's own caches hold exactly what the modelled ones need. */
static void check_own_caches(void)
{
    size_t caches = 42; /* 38 classes, four that the layouts need */
    size_t slabs = 0;
    size_t bufctls = 0;
    size_t built = 0;

    for (size_t i = 0; i < SLOTS; i++) {
        struct model *m = &slots[i].slot_model;

        if (slots[i].slot_cache == NULL)
            continue;
        caches += i < CUSTOM;
        if (m->model_geometry.large) {
            slabs += m->model_slabs;
            bufctls += m->model_slabs * m->model_geometry.objects;
        }
        if (constructed(&slots[i]))
            built += m->model_slabs * m->model_geometry.objects;
    }
    KT_EQ(kmem_inuse(kmem_cache_find("kmem_cache")), caches);
    KT_EQ(kmem_inuse(kmem_slab_cache), slabs);
    KT_EQ(kmem_inuse(kmem_bufctl_cache), bufctls);
    KT_EQ(test_ctors - test_dtors, built);
    KT_EQ(test_bad, 0);
}

void host_verify(void)
{
    const struct page *page;
    const char *where;
    const char *why = kmem_verify(&where);

    if (why != NULL)
        KT_FAIL("kmem_verify: %s: %s", why, where);
    why = buddy_verify(&page);
    if (why != NULL)
        KT_FAIL("buddy_verify: %s", why);
}

static void verify_all(void)
{
    host_verify();
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].slot_cache != NULL)
            model_compare(&slots[i].slot_model);
    check_own_caches();
}

/* ---- the trace ---------------------------------------------------------- */

/* Phases in which memory fills, is in balance, and drains. */
static unsigned alloc_share(uint64_t op)
{
    static const uint8_t shares[] = {75, 50, 50, 30};

    return shares[op / 4000 % 4];
}

static void rare(struct slot *s, size_t i)
{
    switch (below(8)) {
    case 0:
        if (i < CUSTOM)
            destroy(s);
        break;
    case 1:
        update_all();
        break;
    case 2:
        reap_all();
        break;
    case 3:
        set_interval();
        break;
    case 4:
        do_large();
        break;
    default:
        model_reap(&s->slot_model, (enum kmem_reap_mode)below(2));
    }
}

/* A run of one kind of operation on one cache, as programs have them. */
static void step(uint64_t op)
{
    size_t i = below(SLOTS);
    struct slot *s = &slots[i];
    size_t n = below(4) == 0 ? 1 + below(60) : 1;

    if (s->slot_cache == NULL)
        create(s);
    else if (below(100) == 0)
        rare(s, i);
    else if (below(100) < alloc_share(op))
        while (n-- != 0)
            do_alloc(s);
    else
        while (n-- != 0)
            do_free(s);
    if (op % COMPARE_OPS == 0 && s->slot_cache != NULL)
        model_compare(&s->slot_model);
    if (op % VERIFY_OPS == 0)
        verify_all();
}

static void start(uint64_t seed)
{
    size_t i = CUSTOM;

    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    slots = calloc(SLOTS, sizeof(*slots));
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp)) {
        if (cp->cache_kind != KMEM_KIND_CLASS || i == SLOTS)
            continue;
        slots[i].slot_cache = cp;
        slots[i].slot_max = MIN((size_t)LIVE_MAX, CACHE_BYTES / cp->cache_size);
        model_init(&slots[i].slot_model, cp, NULL);
        i++;
    }
    KT_EQ(i, SLOTS);
}

/* Frees everything, to the last page. */
static void finish(void)
{
    struct segkmem_stat seg;

    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *s = &slots[i];

        if (s->slot_cache != NULL && i < CUSTOM)
            destroy(s);
        while (s->slot_cache != NULL && s->slot_live != 0)
            do_free(s);
    }
    verify_all();
    kmem_reap(KMEM_REAP_ALL);
    KT_EQ(kmem_inuse(kmem_slab_cache), 0);
    KT_EQ(kmem_inuse(kmem_bufctl_cache), 0);
    KT_EQ(test_ctors, test_dtors);
    segkmem_stat(&seg);
    KT_EQ(seg.stat_use[PAGE_OVERSIZE], 0);
    free(slots);
}

int host_trace(uint64_t seed, uint64_t ops)
{
    uint64_t op = 0;

    printf("# trace: seed %llu, %llu operations\n", (unsigned long long)seed,
           (unsigned long long)ops);
    fflush(stdout);
    start(seed);
    for (; op < ops && host_failures == 0; op++)
        step(op);
    if (host_failures == 0)
        finish();
    if (host_failures != 0) {
        printf("# seed %llu: differs at operation %llu\n",
               (unsigned long long)seed, (unsigned long long)op);
        return 1;
    }
    printf("ok 1 - trace\n1..1\n");
    return 0;
}
