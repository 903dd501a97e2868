/*
 * Tests the locks of kernel/mm_platform.c: an interrupt allocates and frees in
 * the caches that the interrupted code is using, small and large; and while
 * such requests fail on purpose.
 *
 * Tests: kernel/mm_platform.c, tools/workshop/stress/fail.c
 */
#include "drivers/pit.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/string.h"
#include "kernel/x86/tests/steps.h"
#include "tools/workshop/stress/fail.h"

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

    cache[0] = kmem_cache_create("t_irq_small", size_of(0), 0, NULL, NULL);
    cache[1] = kmem_cache_create("t_irq_large", size_of(1), 0, NULL, NULL);
    KT_REQUIRE(cache[0] != NULL && cache[1] != NULL);
    bad = 0;
    steps = 0;
    before = timer_set_tick(step);
    while (steps < STEPS)
        work(&below);
    timer_set_tick(before);
    KT_SOUND(kmem_verify);
    free_held(&above);
    free_held(&below);
    KT_EQ(bad, 0);
    KT_EQ(kmem_cache_destroy(cache[0]), 0);
    KT_EQ(kmem_cache_destroy(cache[1]), 0);
}

/* ---- requests that fail on purpose ------------------------------------- */

static unsigned at; /* the step before which the interrupt comes */
static void *got[2];

static void alloc_here(void)
{
    got[0] = kmem_cache_alloc(cache[0], KM_NOSLEEP);
}

static void alloc_in_interrupt(const struct trapframe *tf, unsigned n)
{
    if (n == at && (tf->eflags & EFLAGS_IF) != 0)
        got[1] = kmem_cache_alloc(cache[0], KM_NOSLEEP);
}

/* A request is interrupted by another before each of its instructions. */
KTEST(kmem_irq, one_of_two_requests_fails)
{
    struct kmem_fail f = {.fail_kind = KMEM_FAIL_SLAB, .fail_nth = 1};
    unsigned interrupts = 0, steps_taken, failed;

    if (!steps_work())
        return;
    cache[0] = kmem_cache_create("t_irq_fail", 64, 0, NULL, NULL);
    KT_REQUIRE(cache[0] != NULL);
    f.fail_cache = cache[0];
    kmem_cache_free(cache[0], kmem_cache_alloc(cache[0], KM_SLEEP));
    at = 0;
    do {
        at++;
        got[1] = cache;
        kmem_fail(&f);
        steps_taken = steps_run(alloc_here, alloc_in_interrupt);
        kmem_fail_set(KMEM_FAIL_NONE, 0);
        if (got[1] == cache) /* interrupts were disabled there */
            continue;
        interrupts++;
        failed = (got[0] == NULL) + (got[1] == NULL);
        if (failed != 1)
            KT_FAIL("%u requests failed, an interrupt at step %u", failed, at);
        for (unsigned i = 0; i < 2; i++)
            if (got[i] != NULL)
                kmem_cache_free(cache[0], got[i]);
        got[0] = NULL;
    } while (steps_taken >= at);
    KT_GE(interrupts, 16);
    KT_EQ(kmem_cache_destroy(cache[0]), 0);
}
