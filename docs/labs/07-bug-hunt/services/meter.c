/*
 * Meters: each keeps the last readings of a gauge in a ring. The caller that
 * opens the service chooses their number, and so the size of an object.
 *
 *     | slots | next | total | reading 0 | reading 1 | … | reading slots - 1 |
 */
#include "docs/labs/07-bug-hunt/services/services.h"
#include "mm/kmem.h"

struct meter {
    uint32_t meter_slots;
    uint32_t meter_next;  /* slot of the next reading: the oldest one's */
    uint32_t meter_total; /* readings so far */
    uint32_t meter_reading[];
};

static struct kmem_cache *cache;
static uint32_t cache_slots;

bool meters_open(uint32_t slots)
{
    if (cache != NULL)
        return slots == cache_slots;
    cache_slots = slots;
    cache = kmem_cache_create("meter",
                              sizeof(struct meter) + slots * sizeof(uint32_t),
                              0, NULL, NULL);
    return cache != NULL;
}

bool meters_close(void)
{
    if (kmem_cache_destroy(cache) != 0)
        return false;
    cache = NULL;
    return true;
}

struct meter *meter_new(void)
{
    struct meter *m = kmem_cache_alloc(cache, KM_SLEEP);

    m->meter_slots = cache_slots;
    m->meter_next = 0;
    m->meter_total = 0;
    return m;
}

void meter_free(struct meter *m)
{
    kmem_cache_free(cache, m);
}

void meter_add(struct meter *m, uint32_t reading)
{
    m->meter_reading[m->meter_next] = reading;
    m->meter_total++;
    if (++m->meter_next == m->meter_slots)
        m->meter_next = 0;
}

uint32_t meter_kept(const struct meter *m)
{
    return MIN(m->meter_total, m->meter_slots);
}

uint32_t meter_sum(const struct meter *m)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < meter_kept(m); i++)
        sum += m->meter_reading[i];
    return sum;
}
