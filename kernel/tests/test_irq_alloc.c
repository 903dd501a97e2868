/*
 * Tests the locks of kernel/mm_platform.c: an interrupt allocates and frees in
 * the caches that the interrupted code is using, small and large.
 *
 * Tests: kernel/mm_platform.c
 */
#include "drivers/pit.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "mm/kmem_stat.h"

#define HELD  32 /* objects that either side keeps */
#define STEPS 12 /* of the clock, 100 a second */

static struct kmem_cache *cache[2];
static volatile unsigned steps;
static unsigned bad;

struct side {
    unsigned char *held[HELD];
    unsigned char stamp;
    unsigned next;
};

static struct side above = {.stamp = 0xa5};
static struct side below = {.stamp = 0x5a};

static size_t size_of(unsigned slot)
{
    return slot % 2 == 0 ? 64 : 1024;
}

static bool stamped(const struct side *s, unsigned slot)
{
    const unsigned char *p = s->held[slot];

    return p[0] == s->stamp && p[size_of(slot) - 1] == s->stamp;
}

/* Checks and frees the object in the next slot, or fills an empty slot. */
static void work(struct side *s)
{
    unsigned slot = s->next++ % HELD;
    struct kmem_cache *cp = cache[slot % 2];

    if (s->held[slot] != NULL) {
        bad += !stamped(s, slot);
        kmem_cache_free(cp, s->held[slot]);
        s->held[slot] = NULL;
        return;
    }
    s->held[slot] = kmem_cache_alloc(cp, KM_NOSLEEP);
    if (s->held[slot] != NULL)
        memset(s->held[slot], s->stamp, size_of(slot));
}

static void step(void)
{
    steps++;
    for (unsigned i = 0; i < HELD + 5; i++)
        work(&above);
}

static void free_held(struct side *s)
{
    for (unsigned slot = 0; slot < HELD; slot++) {
        if (s->held[slot] != NULL) {
            bad += !stamped(s, slot);
            kmem_cache_free(cache[slot % 2], s->held[slot]);
            s->held[slot] = NULL;
        }
    }
}

KTEST(kmem_irq, interrupts_share_caches_with_tasks)
{
    timer_tick_t before;
    const char *where;

    cache[0] = kmem_cache_create("t_irq_small", size_of(0), 0, NULL, NULL);
    cache[1] = kmem_cache_create("t_irq_large", size_of(1), 0, NULL, NULL);
    KT_REQUIRE(cache[0] != NULL && cache[1] != NULL);
    bad = 0;
    steps = 0;
    before = timer_set_tick(step);
    while (steps < STEPS)
        work(&below);
    timer_set_tick(before);
    KT_TRUE(kmem_verify(&where) == NULL);
    free_held(&above);
    free_held(&below);
    KT_EQ(bad, 0);
    KT_EQ(kmem_cache_destroy(cache[0]), 0);
    KT_EQ(kmem_cache_destroy(cache[1]), 0);
}
