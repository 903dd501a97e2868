/*
 * The working set's clock and pressure at the two extremes of its interval,
 * which need a stopped clock (paper, section 3.4).
 *
 * Tests: mm/kmem_reap.c
 */
#include "tools/workshop/ktest/ktest.h"
#include "mm/buddy.h"
#include "mm/kmem_impl.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/tests/host/host.h"

KTEST(kmem_clock, the_next_update_is_an_interval_away)
{
    kmem_ws_interval = 15000;
    host_clock_ms = 100000;
    kmem_update_poll();
    host_clock_ms = 200000;
    kmem_update_poll();
    KT_EQ(kmem_update_due() <= 15000, 1);
    host_clock_ms += kmem_update_due();
    KT_EQ(kmem_update_due(), 0);
    kmem_update_poll();
    KT_EQ(kmem_update_due(), 15000);
    host_clock_ms += 1000;
    KT_EQ(kmem_update_due(), 14000);
}

/* The moment of the last update is kept modulo 2^32. */
KTEST(kmem_clock, updates_go_on_after_49_days)
{
    uint32_t before;

    kmem_ws_interval = 15000;
    host_clock_ms = (1ull << 32) - 40000;
    kmem_update_poll();
    host_clock_ms += kmem_update_due();
    kmem_update_poll();
    before = kmem_updates;
    for (uint32_t i = 1; i <= 4; i++) {
        host_clock_ms += 14999;
        KT_EQ(kmem_update_due(), 1);
        kmem_update_poll();
        KT_EQ(kmem_updates, before + i - 1);
        host_clock_ms += 1;
        kmem_update_poll();
        KT_EQ(kmem_updates, before + i);
    }
    KT_GE(host_clock_ms, 1ull << 32);
    host_clock_ms += 30000;
    kmem_update_poll();
    KT_EQ(kmem_updates, before + 6);
}

KTEST(kmem_clock, extremes_keep_the_default_pace)
{
    static const uint32_t extremes[] = {0, KMEM_WS_INFINITE};

    host_clock_ms = 300000;
    kmem_update_poll();
    for (size_t i = 0; i < ARRAY_SIZE(extremes); i++) {
        kmem_ws_interval = extremes[i];
        KT_LE(kmem_update_due(), KMEM_WS_DEFAULT_MS);
        KT_NE(kmem_update_due(), 0);
    }
}

/* Fills memory, then frees one cache's slabs: an allocation of a page then
 * succeeds only by pressure, and fails if the interval is infinite. */
static struct page *page_under_pressure(uint32_t interval)
{
    struct kmem_cache *cp = kmem_cache_create("t_idle", 2048, 0, NULL, NULL);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    struct page *held[HOST_FRAMES];
    struct page *got;
    size_t n = 0;

    kmem_ws_interval = KMEM_WS_INFINITE;
    while ((held[n] = buddy_alloc(0)) != NULL)
        n++;
    kmem_cache_free(cp, obj);
    kmem_ws_interval = interval;
    got = buddy_alloc(0);
    if (got != NULL)
        buddy_free(got, 0);
    while (n-- > 0)
        buddy_free(held[n], 0);
    kmem_cache_destroy(cp);
    return got;
}

KTEST(kmem_clock, pressure_takes_the_working_set_in_the_end)
{
    KT_TRUE(page_under_pressure(15000) != NULL);
    KT_TRUE(page_under_pressure(0) != NULL);
}

KTEST(kmem_clock, an_infinite_working_set_yields_nothing)
{
    KT_TRUE(page_under_pressure(KMEM_WS_INFINITE) == NULL);
}
