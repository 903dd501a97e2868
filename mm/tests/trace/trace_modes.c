/*
 * Random traces while debugging modes change: caches of all kinds and the size
 * classes of kmem_alloc are used, reaped, switched, destroyed and created
 * again. The places of buffers are not predicted here (trace.c does that).
 * Every object keeps what was written to it, a switch with allocated objects is
 * refused, nothing is reported, and at the end everything is freed.
 */
#include "mm/debug/tests/debug_test.h"
#include "tools/workshop/stress/watch.h"

#include <stdio.h>
#include <stdlib.h>

#define CACHES     12
#define LIVE_MAX   400
#define SIZED      CACHES /* the slot of kmem_alloc */
#define VERIFY_OPS 997

struct object {
    uint8_t *object_addr;
    size_t object_size;
    uint8_t object_stamp;
};

static struct slot {
    struct kmem_cache *slot_cache;
    struct test_supply slot_supply;
    struct object slot_object[LIVE_MAX];
    size_t slot_live;
} slots[CACHES + 1];

static uint32_t state;
static uint32_t serial;

static size_t below(size_t n)
{
    return test_random(&state) % n;
}

/* Writes or checks all of an object; constructed ones only between. */
static void stamp(struct slot *s, struct object *o, bool write)
{
    if (s->slot_cache != NULL && s->slot_cache->cache_ctor != NULL) {
        if (!test_is_constructed(o->object_addr, o->object_size))
            KT_FAIL("%p is not constructed", (void *)o->object_addr);
        return;
    }
    if (write)
        memset(o->object_addr, o->object_stamp, o->object_size);
    for (size_t i = 0; i < o->object_size; i++)
        if (o->object_addr[i] != o->object_stamp) {
            KT_FAIL("byte %zu of %p is not what was written", i,
                    (void *)o->object_addr);
            return;
        }
}

static void alloc(struct slot *s)
{
    struct object *o = &s->slot_object[s->slot_live];

    if (s->slot_live == LIVE_MAX)
        return;
    if (s->slot_cache == NULL) {
        o->object_size = 1 + below(below(4) == 0 ? 11000 : 300);
        o->object_addr = kmem_alloc(o->object_size, KM_NOSLEEP);
    } else {
        o->object_size = s->slot_cache->cache_size;
        o->object_addr = kmem_cache_alloc(s->slot_cache, KM_NOSLEEP);
    }
    if (o->object_addr == NULL)
        return;
    o->object_stamp = (uint8_t)++serial;
    stamp(s, o, true);
    s->slot_live++;
}

static void free_one(struct slot *s)
{
    size_t k;

    if (s->slot_live == 0)
        return;
    k = below(2) == 0 ? s->slot_live - 1 : below(s->slot_live);
    stamp(s, &s->slot_object[k], false);
    if (s->slot_cache == NULL)
        kmem_free(s->slot_object[k].object_addr, s->slot_object[k].object_size);
    else
        kmem_cache_free(s->slot_cache, s->slot_object[k].object_addr);
    s->slot_object[k] = s->slot_object[--s->slot_live];
}

static void create(struct slot *s)
{
    static const size_t aligns[] = {0, 0, 0, 16, 64, 1024};
    bool constructed = below(3) == 0;
    bool supplied = below(4) == 0;
    char name[KMEM_NAME_MAX + 1];

    snprintf(name, sizeof(name), "modes_%u", (unsigned)++serial);
    test_supply_init(&s->slot_supply, 20 + below(2000));
    s->slot_cache = kmem_cache_create_from(
        name, 1 + below(below(3) == 0 ? 6000 : 200), aligns[below(6)],
        constructed ? test_ctor : NULL, constructed ? test_dtor : NULL,
        supplied ? &s->slot_supply.supply : NULL);
    KT_TRUE(s->slot_cache != NULL);
}

static void destroy(struct slot *s)
{
    while (s->slot_live != 0)
        free_one(s);
    KT_EQ(kmem_cache_destroy(s->slot_cache), 0);
    KT_EQ(s->slot_supply.held, 0);
    s->slot_cache = NULL;
}

/* Other modes for a cache, or a size class; refused, and nothing changed, if
 * objects are allocated. Half the time they are freed first. */
static void switch_modes(struct slot *s)
{
    struct kmem_cache *cp = s->slot_cache;
    unsigned modes =
        below(3) == 0 ? 0
                      : (unsigned)below(128) << KMEM_DEBUG_SHIFT & ~KMF_TRACE;
    unsigned before;

    if (cp == NULL)
        cp = kmem_size_class(1 + below(KMEM_MAXBUF));
    if (cp->cache_supplier.getpages != NULL)
        modes &= ~KMF_UNMAPPING;
    for (bool all = below(2) == 0; all && s->slot_live != 0;)
        free_one(s);
    before = kmem_debug_modes(cp);
    if (kmem_inuse(cp) != 0 && modes != before) {
        KT_EQ(kmem_debug_set(cp, modes), -KMEM_EBUSY);
        KT_EQ(kmem_debug_modes(cp), before);
    } else {
        KT_EQ(kmem_debug_set(cp, modes), 0);
        KT_EQ(kmem_debug_modes(cp), modes);
    }
}

/* The allocated objects of a cache are those that the trace has. */
static void check_counts(const struct slot *s)
{
    if (s->slot_cache != NULL)
        KT_EQ(kmem_inuse(s->slot_cache), s->slot_live);
}

static void verify_all(void)
{
    host_verify();
    for (size_t i = 0; i < CACHES; i++)
        check_counts(&slots[i]);
    KT_EQ(kmem_last_error.error_kind, KMERR_NONE);
    KT_EQ(test_bad, 0);
    host_check_unlocked("is held between operations");
}

static void rare(struct slot *s)
{
    switch (below(6)) {
    case 0:
        if (s->slot_cache != NULL)
            destroy(s);
        break;
    case 1:
        kmem_reap((enum kmem_reap_mode)below(2));
        break;
    case 2:
        host_clock_ms += KMEM_WS_DEFAULT_MS;
        kmem_update_poll();
        break;
    case 3:
        kmem_verify_every(below(3) == 0 ? 1 + (uint32_t)below(300) : 0);
        break;
    default:
        switch_modes(s);
    }
}

static void step(uint64_t op)
{
    size_t i = below(CACHES + 1);
    struct slot *s = &slots[i];
    size_t n = below(4) == 0 ? 1 + below(40) : 1;

    if (s->slot_cache == NULL && i != SIZED)
        create(s);
    else if (below(50) == 0)
        rare(s);
    else if (below(100) < (op / 3000 % 3 == 0 ? 70 : op / 3000 % 3 * 24u))
        while (n-- != 0)
            alloc(s);
    else
        while (n-- != 0)
            free_one(s);
    if (op % VERIFY_OPS == 0)
        verify_all();
}

static void switch_classes_off(void)
{
    for (size_t size = 8; size <= KMEM_MAXBUF; size += 8)
        KT_EQ(kmem_debug_set(kmem_size_class(size), 0), 0);
}

static void finish(void)
{
    for (size_t i = 0; i < CACHES; i++)
        if (slots[i].slot_cache != NULL)
            destroy(&slots[i]);
    while (slots[SIZED].slot_live != 0)
        free_one(&slots[SIZED]);
    switch_classes_off();
    kmem_verify_every(0);
    kmem_reap(KMEM_REAP_ALL);
    verify_all();
    KT_EQ(kmem_inuse(kmem_slab_cache), 0);
    KT_EQ(kmem_inuse(kmem_bufctl_cache), 0);
    KT_EQ(kmem_inuse(kmem_bufctl_debug_cache), 0);
    KT_EQ(kmem_unmapped_pages(), 0);
    KT_EQ(kmem_direct_max, KMEM_MAXBUF);
    KT_EQ(test_ctors, test_dtors);
    KT_EQ(kmem_transfers, 0);
}

int host_trace_modes(uint64_t seed, uint64_t ops)
{
    uint64_t op = 0;

    printf("# modes: seed %llu, %llu operations\n", (unsigned long long)seed,
           (unsigned long long)ops);
    fflush(stdout);
    state = (uint32_t)(seed * 0x9e3779b1u + 1);
    for (; op < ops && host_failures == 0; op++)
        step(op);
    if (host_failures == 0)
        finish();
    if (host_failures != 0) {
        printf("# seed %llu: goes wrong at operation %llu\n%s\n",
               (unsigned long long)seed, (unsigned long long)op, host_printed);
        return 1;
    }
    printf("ok 1 - modes\n1..1\n");
    return 0;
}
