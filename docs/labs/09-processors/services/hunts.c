/*
 * What the hunts of lab 9 do: for each structure of shared.h two parts that run
 * at the same time, and for the heap an allocation on two processors.
 */
#include "docs/labs/09-processors/services/hunt.h"
#include "docs/labs/09-processors/services/shared.h"
#include "kernel/lib/string.h"
#include "kernel/task/task.h"
#include "mm/inspect/kmem_stat.h"

/* The end of a hunt that has allocated nothing. */
static void end_nothing(void)
{
}

/* ---- ring: one gets while the other puts --------------------------------- */

static struct ring ring;
static char items[RING_SLOTS + 1];
static void *got;
static bool put;

/* It is full, so a put has room only after the get. */
static bool ring_begin(void)
{
    memset(&ring, 0, sizeof(ring));
    for (unsigned i = 0; i < RING_SLOTS; i++)
        ring_put(&ring, &items[i]);
    return true;
}

static void ring_first(void)
{
    got = ring_get(&ring);
}

static void ring_other(void)
{
    put = ring_put(&ring, &items[RING_SLOTS]);
}

static const char *ring_wrong(void)
{
    if (got != &items[0])
        return "ring_get did not return the item that was put first";
    for (unsigned i = 1; i < RING_SLOTS + (unsigned)put; i++)
        if (ring_get(&ring) != &items[i])
            return "an item is lost, or not in its place";
    return ring_get(&ring) == NULL ? NULL : "there is an item too many";
}

/* ---- stack: one pops, or pushes, while the other does both --------------- */

static struct stack stack;
static struct node nodes[4]; /* the last one is pushed in a hunt */
static struct node *popped, *kept;

static bool stack_begin(void)
{
    stack.stack_top = NULL;
    popped = NULL;
    for (size_t i = ARRAY_SIZE(nodes) - 1; i-- > 0;)
        stack_push(&stack, &nodes[i]);
    return true;
}

static void pop_first(void)
{
    popped = stack_pop(&stack);
}

static void pop_other(void)
{
    struct node *n = stack_pop(&stack);

    kept = stack_pop(&stack);
    stack_push(&stack, &nodes[3]);
    if (n != NULL)
        stack_push(&stack, n);
}

static void push_first(void)
{
    stack_push(&stack, &nodes[3]);
}

static void push_other(void)
{
    kept = stack_pop(&stack);
}

/* Each node is in one place: popped, kept, or on the stack. */
static const char *stack_wrong(void)
{
    unsigned found[ARRAY_SIZE(nodes)] = {0};

    if (kept == NULL)
        return "stack_pop found no node on a stack of some";
    found[kept - nodes]++;
    if (popped != NULL)
        found[popped - nodes]++;
    for (unsigned i = 0; i <= ARRAY_SIZE(nodes); i++) {
        struct node *n = stack_pop(&stack);

        if (n != NULL)
            found[n - nodes]++;
    }
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
        if (found[i] != 1)
            return found[i] == 0 ? "a node is lost"
                                 : "two users have the same node";
    return NULL;
}

/* ---- squares: both are the first user ----------------------------------- */

static const struct squares *mine, *its;
static bool complete; /* the other's, when it got it */

static bool is_complete(const struct squares *s)
{
    for (uint32_t n = 0; n < SQUARES; n++)
        if (s->square[n] != n * n)
            return false;
    return true;
}

static bool squares_begin(void)
{
    squares_cache =
        kmem_cache_create("squares", sizeof(struct squares), 0, NULL, NULL);
    return squares_cache != NULL;
}

static void squares_first(void)
{
    mine = squares_get();
}

static void squares_other(void)
{
    its = squares_get();
    complete = its != NULL && is_complete(its);
}

static const char *squares_wrong(void)
{
    struct kmem_cache_stat st;

    kmem_cache_stat(squares_cache, &st);
    if (mine == NULL || its == NULL)
        return "squares_get returned NULL, though there is memory";
    if (mine != its)
        return "the two processors use different tables";
    if (!complete || !is_complete(mine))
        return "the table is not complete when it is found";
    return st.stat_inuse == 1 ? NULL : "a second table was never freed";
}

/* A wrong squares_get may have returned a table that is not in use. */
static void squares_end(void)
{
    const struct squares *used = squares_get();

    squares_drop();
    if (mine != used && mine != NULL)
        kmem_cache_free(squares_cache, (void *)mine);
    if (its != used && its != mine && its != NULL)
        kmem_cache_free(squares_cache, (void *)its);
    kmem_cache_destroy(squares_cache);
}

/* ---- alloc: both allocate from one cache -------------------------------- */

static struct kmem_cache *cache;
static void *first, *other;

#define WARM 100 /* pairs before a hunt: then caches have magazines */

/* Each processor has allocated before, and there are free objects. */
static bool alloc_begin(void)
{
    cache = kmem_cache_create("hunt", 60, 0, NULL, NULL);
    if (cache == NULL)
        return false;
    for (unsigned i = 0; i < 2 * WARM; i++) {
        sched_move_self((uint8_t)(i < WARM ? 1u << (cpu_count - 1) : 1u));
        first = kmem_cache_alloc(cache, KM_NOSLEEP);
        if (first == NULL) {
            kmem_cache_destroy(cache);
            return false;
        }
        kmem_cache_free(cache, first);
    }
    return true;
}

static void alloc_first(void)
{
    first = kmem_cache_alloc(cache, KM_NOSLEEP);
}

static void alloc_other(void)
{
    other = kmem_cache_alloc(cache, KM_NOSLEEP);
}

static const char *alloc_wrong(void)
{
    if (first == NULL || other == NULL)
        return "an allocation got no object";
    return first != other ? NULL : "both processors got the same object";
}

static void alloc_end(void)
{
    if (first != NULL)
        kmem_cache_free(cache, first);
    if (other != NULL && other != first)
        kmem_cache_free(cache, other);
    kmem_cache_destroy(cache);
}

const struct hunt hunts[] = {
    {"ring", ring_begin, ring_first, ring_other, ring_wrong, end_nothing},
    {"pop", stack_begin, pop_first, pop_other, stack_wrong, end_nothing},
    {"push", stack_begin, push_first, push_other, stack_wrong, end_nothing},
    {"squares", squares_begin, squares_first, squares_other, squares_wrong,
     squares_end},
    {"alloc", alloc_begin, alloc_first, alloc_other, alloc_wrong, alloc_end},
};

const size_t hunts_count = ARRAY_SIZE(hunts);
