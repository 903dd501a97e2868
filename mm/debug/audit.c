/*
 * The transaction log (paper, section 6.1) and the rings of rare events.
 *
 * The log is one run of pages, taken from buddy when the first cache is
 * audited. Transaction number n is at index n modulo its length, so an entry is
 * still kept if it has the wanted number. Nothing is recorded after an error,
 * so that the transactions before it are not overwritten.
 */
#include "mm/debug/audit.h"
#include "kernel/lib/string.h"
#include "mm/buddy.h"
#include "mm/debug/debug_impl.h"
#include "mm/kmem_stat.h"

#define LOG_SHARE     50 /* 1/50 of memory */
#define LOG_PAGES_MIN 4u

bool kmem_log_stopped;

static struct {
    mm_lock_t lock;
    struct kmem_log_entry *entries;
    uint32_t length;
    uint32_t last; /* number of the newest */
} transactions = {.lock = MM_LOCK_INIT("kmem log", MM_RANK_LOG)};

bool kmem_log_create(void)
{
    size_t pages = MAX(page_count / LOG_SHARE, (size_t)LOG_PAGES_MIN);
    struct page *p = NULL;

    if (transactions.entries != NULL)
        return true;
    pages = MIN(pages, (size_t)BUDDY_MAX_PAGES);
    for (; pages >= LOG_PAGES_MIN; pages /= 2) {
        bool charged = mm_charge(pages);

        p = charged ? buddy_alloc_run(pages) : NULL;
        if (p != NULL)
            break;
        mm_refund(charged ? pages : 0);
    }
    if (p == NULL)
        return false;
    memset(page_to_virt(p), 0, pages * PAGE_SIZE);
    transactions.length = pages * PAGE_SIZE / sizeof(struct kmem_log_entry);
    transactions.entries = page_to_virt(p);
    return true;
}

void kmem_transaction(struct kmem_transaction *trans)
{
    trans->trans_us = mm_clock_us();
    trans->trans_task = mm_task_id();
    trans->trans_depth = mm_backtrace(trans->trans_stack, KMEM_STACK_DEPTH);
}

void kmem_log_enter(enum kmem_op op, struct kmem_cache *cp,
                    struct kmem_bufctl_debug *bdp)
{
    struct kmem_log_entry *e;

    if (transactions.entries == NULL || kmem_log_stopped)
        return;
    mm_lock(&transactions.lock);
    e = &transactions.entries[++transactions.last % transactions.length];
    *e = (struct kmem_log_entry){
        .log_seq = transactions.last,
        .log_prev = bdp->bufctl_log,
        .log_op = op,
        .log_cpu = mm_cpu_id(),
        .log_cache = cp,
        .log_number = cp->cache_number,
        .log_slab = bdp->bufctl.bufctl_slab,
        .log_buf = bdp->bufctl.bufctl_addr,
        .log_size =
            op == KMEM_OP_ALLOC ? MIN(bdp->bufctl_size, cp->cache_size) : 0,
        .log_trans = op == KMEM_OP_ALLOC ? bdp->bufctl_alloc : bdp->bufctl_free,
    };
    bdp->bufctl_log = transactions.last;
    mm_unlock(&transactions.lock);
}

/* The newest is older at once, so no lock is taken for its number. */
uint32_t kmem_log_last(void)
{
    return MM_UNLOCKED(transactions.last);
}

uint32_t kmem_log_kept(void)
{
    return MIN(kmem_log_last(), transactions.length);
}

const struct kmem_log_entry *kmem_log_at(uint32_t seq)
{
    const struct kmem_log_entry *e;

    if (seq == 0 || transactions.length == 0)
        return NULL;
    e = &transactions.entries[seq % transactions.length];
    return e->log_seq == seq ? e : NULL;
}

bool kmem_log_get(uint32_t seq, struct kmem_log_entry *out)
{
    const struct kmem_log_entry *e;

    mm_lock(&transactions.lock);
    e = kmem_log_at(seq);
    if (e != NULL)
        *out = *e;
    mm_unlock(&transactions.lock);
    return e != NULL;
}

const char *kmem_log_name(const struct kmem_log_entry *entry)
{
    for (struct kmem_cache *cp = kmem_cache_first(); cp != NULL;
         cp = kmem_cache_next(cp))
        if (cp->cache_number == entry->log_number)
            return cp->cache_name;
    return "?";
}

/* ---- rare events -------------------------------------------------------- */

static struct {
    uint32_t last;
    struct kmem_event events[KMEM_RING_SIZE];
} rings[KMEM_RINGS];

/* Called for each reaped slab, so it reads the cheap clock, in milliseconds. */
void kmem_event(enum kmem_ring ring, enum kmem_why why,
                const struct kmem_cache *cp, const void *slab, size_t count)
{
    static const char none[sizeof(cp->cache_name)] = "kmem_alloc";
    struct kmem_event *e;
    uint64_t ms = mm_clock_ms();
    uintptr_t caller = 0;

    if (kmem_log_stopped)
        return;
    if (ring == KMEM_RING_FAIL)
        mm_backtrace(&caller, 1);
    mm_lock(&transactions.lock);
    e = &rings[ring].events[++rings[ring].last % KMEM_RING_SIZE];
    e->event_seq = rings[ring].last;
    e->event_why = why;
    e->event_task = mm_task_id();
    e->event_count = (uint32_t)count;
    e->event_us = ms * 1000;
    e->event_slab = slab;
    e->event_caller = caller;
    __builtin_memcpy(e->event_name, cp == NULL ? none : cp->cache_name,
                     sizeof(e->event_name));
    mm_unlock(&transactions.lock);
}

void kmem_event_slab_ends(const struct kmem_slab *sp)
{
    const struct kmem_cache *cp = sp->slab_cache;
    bool reaped = (KMEM_FLAGS(cp) & KMF_DESTROYED) == 0;

    kmem_event(KMEM_RING_SLAB, reaped ? KMEM_WHY_REAP : KMEM_WHY_END, cp,
               sp->slab_base, sp->slab_chunks);
}

const void *kmem_event_memory(const void **end)
{
    *end = rings + KMEM_RINGS;
    return rings;
}

uint32_t kmem_event_last(enum kmem_ring ring)
{
    return MM_UNLOCKED(rings[ring].last);
}

bool kmem_event_get(enum kmem_ring ring, uint32_t seq, struct kmem_event *out)
{
    const struct kmem_event *e = &rings[ring].events[seq % KMEM_RING_SIZE];
    bool kept;

    mm_lock(&transactions.lock);
    kept = seq != 0 && e->event_seq == seq;
    if (kept)
        *out = *e;
    mm_unlock(&transactions.lock);
    return kept;
}

const char *kmem_why_text(enum kmem_why why)
{
    static const char *const text[] = {
        [KMEM_WHY_NOMEM] = "no memory", [KMEM_WHY_ZERO] = "size 0",
        [KMEM_WHY_GROW] = "grown",      [KMEM_WHY_REAP] = "reaped",
        [KMEM_WHY_UNMAP] = "unmapped",  [KMEM_WHY_END] = "cache ended",
    };

    return text[why];
}
