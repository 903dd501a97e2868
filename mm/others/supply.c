/*
 * Pages for the other allocators, and their counts: what is the same for all of
 * them, so that their own files have only what makes them different.
 *
 * In tests pages come from an arena in which the lowest free run is taken
 * first. In a kernel they come from segkmem (mm/others/serve.c).
 */
#include "kernel/lib/string.h"
#include "mm/debug/debug.h"
#include "mm/others/others.h"
#include "mm/page.h"

/* ---- pages -------------------------------------------------------------- */

/* Takes `pages` of the quota. False if they are too many. */
static bool take_quota(struct supply *s, size_t pages)
{
    bool enough;

    mm_lock(&s->supply_lock);
    enough = pages <= s->supply_quota - s->supply_held;
    s->supply_held += enough ? pages : 0;
    mm_unlock(&s->supply_lock);
    return enough;
}

/* Ends what take_quota began: with the pages, or without. */
static void count_get(struct supply *s, size_t pages, bool got)
{
    mm_lock(&s->supply_lock);
    if (got)
        s->supply_peak = MAX(s->supply_peak, s->supply_held);
    else
        s->supply_held -= pages;
    mm_unlock(&s->supply_lock);
}

void *supply_alloc(struct supply *s, size_t pages, size_t align)
{
    void *addr;

    if (!take_quota(s, pages))
        return NULL;
    addr = s->supply_get(s, pages, align);
    count_get(s, pages, addr != NULL);
    return addr;
}

void supply_free(struct supply *s, void *addr, size_t pages)
{
    mm_lock(&s->supply_lock);
    memset(supply_info(s, addr), 0, pages * sizeof(*s->supply_info));
    s->supply_held -= pages;
    s->supply_returns += pages;
    mm_unlock(&s->supply_lock);
    s->supply_put(s, addr, pages);
}

void *supply_page(const struct supply *s, const void *info)
{
    const uintptr_t(*entry)[SUPPLY_INFO_WORDS] = info;

    return s->supply_base + ((entry - s->supply_info) << PAGE_SHIFT);
}

/* ---- records ------------------------------------------------------------ */

struct record {
    struct record *record_next;
    size_t record_bytes;
};

static size_t record_bytes(size_t bytes)
{
    return ROUND_UP(bytes, (size_t)OTHER_LINE);
}

/* One that was freed, or one of the room. */
static void *reuse_record(struct supply *s, size_t bytes)
{
    struct record **at = &s->supply_freed;
    struct record *r;

    MM_ASSERT(mm_lock_held(&s->supply_lock));
    while (*at != NULL && (*at)->record_bytes != bytes)
        at = &(*at)->record_next;
    r = *at;
    if (r != NULL) {
        *at = r->record_next;
    } else if (bytes <= s->supply_room_bytes) {
        r = (struct record *)s->supply_room;
        s->supply_room += bytes;
        s->supply_room_bytes -= bytes;
    }
    return r;
}

/* The rest of new pages becomes the room, if it is larger. */
static void *new_record(struct supply *s, size_t bytes)
{
    size_t pages = PAGES_FOR(bytes);
    size_t rest = (pages << PAGE_SHIFT) - bytes;
    char *r = s->supply_get(s, pages, PAGE_SIZE);

    if (r == NULL)
        return NULL;
    mm_lock(&s->supply_lock);
    s->supply_fixed += pages << PAGE_SHIFT;
    if (rest > s->supply_room_bytes) {
        s->supply_room = r + bytes;
        s->supply_room_bytes = rest;
    }
    mm_unlock(&s->supply_lock);
    return r;
}

void *supply_record(struct supply *s, size_t bytes)
{
    void *r;

    bytes = record_bytes(bytes);
    mm_lock(&s->supply_lock);
    r = reuse_record(s, bytes);
    mm_unlock(&s->supply_lock);
    if (r == NULL)
        r = new_record(s, bytes);
    return r == NULL ? NULL : memset(r, 0, bytes);
}

void supply_record_free(struct supply *s, void *record, size_t bytes)
{
    struct record *r = record;

    mm_lock(&s->supply_lock);
    r->record_next = s->supply_freed;
    r->record_bytes = record_bytes(bytes);
    s->supply_freed = r;
    mm_unlock(&s->supply_lock);
}

/* ---- an arena ----------------------------------------------------------- */

static bool is_free(const struct supply *s, size_t first, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        if (s->supply_used[first + i])
            return false;
    return true;
}

static void *arena_get(struct supply *s, size_t pages, size_t align)
{
    char *addr = NULL;

    mm_lock(&s->supply_lock);
    for (size_t i = 0; addr == NULL && i + pages <= s->supply_pages; i++) {
        char *p = s->supply_base + (i << PAGE_SHIFT);

        if (((uintptr_t)p & (align - 1)) == 0 && is_free(s, i, pages)) {
            memset(s->supply_used + i, 1, pages);
            addr = p;
        }
    }
    mm_unlock(&s->supply_lock);
    return addr;
}

static void arena_put(struct supply *s, void *addr, size_t pages)
{
    size_t i = (size_t)((char *)addr - s->supply_base) >> PAGE_SHIFT;

    mm_lock(&s->supply_lock);
    for (size_t end = i + pages; i < end; i++) {
        if (!s->supply_used[i])
            mm_panic("supply_free: page %zu is free", i);
        s->supply_used[i] = 0;
    }
    mm_unlock(&s->supply_lock);
}

void supply_arena(struct supply *s, void *base, size_t pages, void *info,
                  uint8_t *used)
{
    *s = (struct supply){.supply_get = arena_get,
                         .supply_put = arena_put,
                         .supply_base = base,
                         .supply_pages = pages,
                         .supply_info = info,
                         .supply_used = used,
                         .supply_quota = pages};
    mm_lock_init(&s->supply_lock, "supply", LOCK_RANK_SEGKMEM);
    memset(info, 0, pages * sizeof(*s->supply_info));
    memset(used, 0, pages);
}

/* ---- processors --------------------------------------------------------- */

unsigned other_cpus = 1;
unsigned other_cpu;

#if MM_MAGAZINES
struct each {
    void (*each_fn)(unsigned cpu, void *arg);
    void *each_arg;
};

static void call_here(void *arg)
{
    const struct each *each = arg;

    each->each_fn(mm_cpu_number(), each->each_arg);
}
#endif

void other_each_cpu(struct other_heap *h, void (*fn)(unsigned cpu, void *arg),
                    void *arg)
{
#if MM_MAGAZINES
    struct each each = {fn, arg};

    (void)h;
    mm_call_all(call_here, &each);
#else
    mm_lock(&h->heap_lock);
    for (unsigned i = 0; i < other_cpus; i++)
        fn(i, arg);
    mm_unlock(&h->heap_lock);
#endif
}

void other_stop(struct other_heap *h)
{
#if MM_MAGAZINES
    mm_stop_others();
#endif
    mm_lock(&h->heap_lock);
    mm_lock(&h->heap_supply->supply_lock);
}

void other_resume(struct other_heap *h)
{
    mm_unlock(&h->heap_supply->supply_lock);
    mm_unlock(&h->heap_lock);
#if MM_MAGAZINES
    mm_resume_others();
#endif
}

/* ---- pages of a heap ---------------------------------------------------- */

/* Pages on their way back begin with: */
struct other_run {
    struct other_run *run_next;
    size_t run_pages;
};

void *other_get_pages(struct other_heap *h, size_t pages, size_t align)
{
    void *at;

    other_unlock(h);
    at = supply_alloc(h->heap_supply, pages, align);
    other_lock(h);
    if (at != NULL)
        other_count_pages(h, (ptrdiff_t)pages);
    return at;
}

void other_put_pages(struct other_heap *h, void *at, size_t pages)
{
    struct other_run *run = at;

    other_count_pages(h, -(ptrdiff_t)pages);
    run->run_next = h->heap_back;
    run->run_pages = pages;
    h->heap_back = run;
}

void other_return_pages(struct other_heap *h)
{
    struct other_run *run = h->heap_back, *next;

    h->heap_back = NULL;
    other_unlock(h);
    for (; run != NULL; run = next) {
        next = run->run_next;
        supply_free(h->heap_supply, run, run->run_pages);
    }
}

/* ---- counts ------------------------------------------------------------- */

void other_init(struct other_heap *h, const char *name, struct supply *s)
{
    *h = (struct other_heap){.heap_name = name, .heap_supply = s};
    mm_lock_init(&h->heap_lock, name, LOCK_RANK_CACHE);
}

void other_count_fail(struct other_heap *h, struct other_cache *c)
{
    MM_ASSERT(MM_MAGAZINES || mm_lock_held(&h->heap_lock));
    if (!OTHER_COUNTED)
        return;
    OTHER_STAT(h)->stat_fails++;
    if (c != NULL)
        OTHER_CALLS(c)->other_fails++;
}

void other_count_pages(struct other_heap *h, ptrdiff_t pages)
{
    struct other_stat *st = &h->heap_stat;

    MM_ASSERT(mm_lock_held(&h->heap_lock));
    st->stat_held += (size_t)(pages * (ptrdiff_t)PAGE_SIZE);
    st->stat_peak = MAX(st->stat_peak, st->stat_held);
}

#if MM_MAGAZINES
/* Those of all processors. Another may free meanwhile what a third one has
 * allocated: frees are counted first, so that they are not more. */
#define SUM(total, array, member)                                              \
    do {                                                                       \
        size_t sum = 0;                                                        \
        for (unsigned i = 0; i < ARRAY_SIZE(array); i++)                       \
            sum += MM_UNLOCKED((array)[i].member);                             \
        (total)->member = sum;                                                 \
    } while (0)

struct other_stat other_total(const struct other_heap *h)
{
    struct other_stat st = h->heap_stat;

    SUM(&st, h->heap_cpu_stat, stat_frees);
    SUM(&st, h->heap_cpu_stat, stat_allocs);
    SUM(&st, h->heap_cpu_stat, stat_fails);
    SUM(&st, h->heap_cpu_stat, stat_locks);
    SUM(&st, h->heap_cpu_stat, stat_requested);
    SUM(&st, h->heap_cpu_stat, stat_internal);
    SUM(&st, h->heap_cpu_stat, stat_external);
    SUM(&st, h->heap_cpu_stat, stat_metadata);
    return st;
}

struct other_calls other_calls(const struct other_cache *c)
{
    struct other_calls calls;

    SUM(&calls, c->other_cpu_calls, other_frees);
    SUM(&calls, c->other_cpu_calls, other_allocs);
    SUM(&calls, c->other_cpu_calls, other_fails);
    return calls;
}
#else
struct other_stat other_total(const struct other_heap *h)
{
    return h->heap_stat;
}

struct other_calls other_calls(const struct other_cache *c)
{
    return (struct other_calls){c->other_allocs, c->other_frees,
                                c->other_fails};
}
#endif

void other_stat(struct other_heap *h, size_t external, struct other_stat *out)
{
    MM_ASSERT(mm_lock_held(&h->heap_lock));
    *out = other_total(h);
    out->stat_external = external;
    out->stat_fixed = MM_UNLOCKED(h->heap_supply->supply_fixed);
}

void other_counted_stat(struct other_heap *h, struct other_stat *out)
{
    mm_lock(&h->heap_lock);
    other_stat(h, other_total(h).stat_external, out);
    mm_unlock(&h->heap_lock);
}

const char *other_check(const struct other_heap *h, size_t external)
{
    struct other_stat st = other_total(h);

    MM_ASSERT(mm_lock_held(&h->heap_lock));
    return st.stat_held == st.stat_requested + st.stat_internal +
                               st.stat_metadata + external
               ? NULL
               : "requested, internal, external and metadata bytes are not all";
}
