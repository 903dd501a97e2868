/*
 * Planted bugs: leaks, and caches destroyed too early.
 */
#include "kernel/lib/string.h"
#include "tools/workshop/bugs/bugs_impl.h"

/* ---- leaks -------------------------------------------------------------- */

static struct snode *newest;

/* The newest replaces the one before, which nothing else points to. */
static void remember_newest(uint32_t key)
{
    struct snode *n = node_alloc();

    n->next = NULL;
    n->key = key;
    newest = n; /* culprit: leak */
}

void bug_leak(void)
{
    for (uint32_t key = 1; key <= 3; key++) {
        remember_newest(key);
        bugs_lose(BUGS_SNODE, newest);
    }
    newest = NULL;
}

/* Needs two objects; without the second it leaks the first. */
static struct conn *conn_open(bool full)
{
    struct conn *c = kmem_cache_alloc(bugs_sandbox(BUGS_CONN), KM_SLEEP);
    struct snode *queue = full ? NULL : node_alloc();

    bugs_lose(BUGS_CONN, c);
    if (queue == NULL)
        return NULL; /* culprit: leak-on-error */
    c->conn_users = 1;
    return c;
}

void bug_leak_on_error(void)
{
    bool full = true;

    bugs_hide(full);
    if (conn_open(full) != NULL)
        bugs_note("there was room after all");
}

/* Each is pointed to, but only by the other. */
void bug_leak_cycle(void)
{
    struct snode *a = node_alloc();
    struct snode *b = node_alloc();

    a->next = b;
    b->next = a; /* culprit: leak-cycle */
    bugs_lose(BUGS_SNODE, a);
    bugs_lose(BUGS_SNODE, b);
}

/* ---- destroying caches -------------------------------------------------- */

static struct kmem_cache *short_lived(void)
{
    struct kmem_cache *cache =
        kmem_cache_create("bugs_short", 64, 0, NULL, NULL);

    if (cache != NULL)
        kmem_debug_set(cache, bugs_modes());
    return cache;
}

void bug_destroy_in_use(void)
{
    struct kmem_cache *cache = short_lived();
    void *obj;

    if (cache == NULL)
        return;
    obj = kmem_cache_alloc(cache, KM_SLEEP);
    if (kmem_cache_destroy(cache) != 0) /* culprit: destroy-in-use */
        bugs_note("kmem_cache_destroy refused: an object is allocated");
    bugs_step(BUGS_NEVER);
    kmem_cache_free(cache, obj);
    kmem_cache_destroy(cache);
}

void bug_destroy_twice(void)
{
    struct kmem_cache *cache = short_lived();

    if (cache == NULL)
        return;
    kmem_cache_destroy(cache);
    bugs_hide(cache);
    if (kmem_cache_destroy(cache) != 0) /* culprit: destroy-twice */
        bugs_note("kmem_cache_destroy refused: it is no cache any more");
}

void bug_destroyed_cache(void)
{
    struct kmem_cache *cache = short_lived();

    if (cache == NULL)
        return;
    kmem_cache_destroy(cache);
    bugs_hide(cache);
    kmem_cache_alloc(cache, KM_SLEEP); /* culprit: destroyed-cache */
}
