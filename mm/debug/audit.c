/*
 * The transaction log (paper, section 6.1).
 *
 * The log is one run of pages, taken from buddy when the first cache is
 * audited. Transaction number n is at index n modulo its length, so an entry is
 * still kept if it has the wanted number. Nothing is recorded after an error,
 * so that the transactions before it are not overwritten.
 */
#include "kernel/lib/string.h"
#include "mm/buddy.h"
#include "mm/debug/debug_impl.h"
#include "mm/inspect/kmem_stat.h"

#define LOG_SHARE     50 /* 1/50 of memory */
#define LOG_PAGES_MIN 4u

bool kmem_log_stopped;

static struct {
    mm_lock_t lock;
    struct kmem_log_entry *entries;
    uint32_t length;
    uint32_t last; /* number of the newest */
} transactions = {.lock = MM_LOCK_INIT("kmem log", LOCK_RANK_LOG)};

bool kmem_log_create(void)
{
    size_t pages = MAX(page_count / LOG_SHARE, (size_t)LOG_PAGES_MIN);
    struct page *p = NULL;

    if (transactions.entries != NULL)
        return true;
    pages = MIN(pages, (size_t)BUDDY_MAX_PAGES);
    while (pages >= LOG_PAGES_MIN && (p = buddy_alloc_run(pages)) == NULL)
        pages /= 2;
    if (p == NULL)
        return false;
    memset(page_to_virt(p), 0, pages * PAGE_SIZE);
    transactions.length = pages * PAGE_SIZE / sizeof(struct kmem_log_entry);
    transactions.entries = page_to_virt(p);
    return true;
}

size_t kmem_log_pages(void)
{
    return (transactions.length * sizeof(struct kmem_log_entry) + PAGE_MASK) >>
           PAGE_SHIFT;
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
    uint32_t last = kmem_log_last();

    return MIN(last, transactions.length);
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
