/*
 * Channels with lanes. A lane has credit, which is taken and given back. A
 * channel in its constructed state has full credit on every lane, so that
 * opening one costs nothing (paper, section 2), and closing one costs time only
 * for the lanes that were used.
 */
#include "docs/labs/07-bug-hunt/services/services.h"
#include "mm/kmem.h"

struct channel {
    uint32_t channel_top; /* the highest lane that was used */
    uint32_t channel_lane[CHANNEL_LANES];
};

static struct kmem_cache *cache;

static void construct(void *obj, size_t size)
{
    struct channel *c = obj;

    (void)size;
    c->channel_top = 0;
    for (size_t i = 0; i < CHANNEL_LANES; i++)
        c->channel_lane[i] = CHANNEL_CREDIT;
}

bool channels_open(void)
{
    if (cache == NULL)
        cache = kmem_cache_create("channel", sizeof(struct channel), 0,
                                  construct, NULL);
    return cache != NULL;
}

bool channels_close(void)
{
    if (kmem_cache_destroy(cache) != 0)
        return false;
    cache = NULL;
    return true;
}

struct channel *channel_open(void)
{
    return kmem_cache_alloc(cache, KM_SLEEP);
}

void channel_close(struct channel *c)
{
    for (uint32_t lane = 0; lane <= c->channel_top; lane++)
        c->channel_lane[lane] = CHANNEL_CREDIT;
    c->channel_top = 0;
    kmem_cache_free(cache, c);
}

bool channel_take(struct channel *c, uint32_t lane)
{
    if (c->channel_lane[lane] == 0)
        return false;
    c->channel_lane[lane]--;
    c->channel_top = MAX(c->channel_top, lane);
    return true;
}

void channel_give(struct channel *c, uint32_t lane)
{
    c->channel_lane[lane]++;
}

uint32_t channel_credit(const struct channel *c)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < CHANNEL_LANES; i++)
        sum += c->channel_lane[i];
    return sum;
}
