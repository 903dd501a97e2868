/*
 * Sampling: see tools/workshop/sample/sample.h.
 */
#include "tools/workshop/sample/sample.h"
#include "drivers/debugcon.h"
#include "drivers/pit.h"
#include "kernel/lib/hook.h"
#include "kernel/vm/frame.h"
#include "kernel/x86/cpu.h"
#include "mm/inspect/buddy_stat.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/segkmem.h"

/* Guarded by disabled interrupts. */
static uint32_t period_ms; /* 0: off */
static uint64_t next_ms;

static void emit_cache(unsigned ms, const char *name, size_t mem, size_t inuse)
{
    if (mem != 0)
        debugcon_event("{\"event\":\"sample\",\"ms\":%u,\"cache\":\"%s\","
                       "\"mem\":%zu,\"inuse\":%zu}",
                       ms, name, mem, inuse);
}

static void emit_pages(unsigned ms)
{
    struct segkmem_stat seg;
    struct buddy_stat buddy;

    segkmem_stat(&seg);
    buddy_stat(&buddy);
    debugcon_event("{\"event\":\"sample\",\"ms\":%u,\"free_pages\":%zu,"
                   "\"total_pages\":%zu,\"supplier_pages\":%zu,"
                   "\"user_pages\":%zu}",
                   ms, buddy.stat_free_pages, buddy.stat_total_pages,
                   seg.stat_pages, frame_count());
}

/* The interrupted code holds no spin lock: those disable interrupts. */
static void take(void)
{
    unsigned ms = (unsigned)timer_ms();
    struct kmem_oversize_stat oversize;
    struct kmem_cache_stat st;

    for (size_t n = 0; kmem_cache_stat_number(n, &st); n++)
        emit_cache(ms, st.stat_name, st.stat_mem, st.stat_inuse);
    kmem_oversize_stat(&oversize);
    emit_cache(ms, "oversize", oversize.stat_pages * PAGE_SIZE,
               oversize.stat_inuse);
    emit_pages(ms);
}

void sample_every(uint32_t ms)
{
    uint32_t flags = irq_save();

    if (ms != 0 || period_ms != 0)
        take();
    period_ms = ms;
    next_ms = timer_ms() + ms;
    irq_restore(flags);
}

static void sample_tick(const void *arg)
{
    (void)arg;
    if (period_ms == 0 || timer_ms() < next_ms)
        return;
    next_ms += period_ms;
    take();
}

HOOK(HOOK_TICK, sample_tick);
