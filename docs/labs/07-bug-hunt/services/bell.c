/*
 * Bells: each calls a function every so many hours, and the function may stop
 * the bell during the call.
 */
#include "docs/labs/07-bug-hunt/services/services.h"
#include "kernel/lib/string.h"
#include "mm/kmem.h"

struct bell {
    struct list bell_link; /* in bells */
    uint32_t bell_every;
    bell_call_t *bell_call;
    uint32_t bell_rung[BELL_HOURS]; /* number of rings at each hour */
};

static struct kmem_cache *cache;
static struct list bells = LIST_INIT(bells);

bool bells_open(void)
{
    if (cache == NULL)
        cache = kmem_cache_create("bell", sizeof(struct bell), 0, NULL, NULL);
    return cache != NULL;
}

bool bells_close(void)
{
    if (kmem_cache_destroy(cache) != 0)
        return false;
    cache = NULL;
    return true;
}

struct bell *bell_new(uint32_t every, bell_call_t *call)
{
    struct bell *b = kmem_cache_alloc(cache, KM_SLEEP);

    b->bell_every = every;
    b->bell_call = call;
    memset(b->bell_rung, 0, sizeof(b->bell_rung));
    list_insert_before(&bells, &b->bell_link);
    return b;
}

void bell_stop(struct bell *b)
{
    list_remove(&b->bell_link);
    kmem_cache_free(cache, b);
}

void bells_ring(uint32_t hour)
{
    struct list *next;

    for (struct list *l = bells.next; l != &bells; l = next) {
        struct bell *b = list_entry(l, struct bell, bell_link);

        next = l->next;
        if (hour % b->bell_every != 0)
            continue;
        b->bell_rung[hour]++;
        b->bell_call(b);
    }
}

uint32_t bell_rung(const struct bell *b, uint32_t hour)
{
    return b->bell_rung[hour];
}

uint32_t bells_count(void)
{
    uint32_t n = 0;

    list_for_each (l, &bells)
        n++;
    return n;
}
