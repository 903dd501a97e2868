/*
 * mm/kmem.h on one of the other allocators.
 *
 * The kernel of `make ALLOCATOR=slob` has this file and that allocator in the
 * place of mm/kmem_*.c, mm/inspect/kmem_*.c and mm/debug/. The linker makes the
 * choice (tools/make/kernel.mk): every other object is the same as ever, so
 * Slate's own allocator has no branch for it.
 *
 *     kmem_cache_alloc, kmem_alloc ──> other_served ──> supply ──> segkmem
 *     kmem_cache_stat, kmem_verify ──> counts of each cache, its check()
 *
 * A cache is a name, what objects it has, and what the allocator keeps for it.
 * KM_SLEEP waits here, for none of the allocators does. What is about Slate's
 * own slabs, working sets and debugging modes is refused at the end of the
 * file.
 */
#include "kernel/lib/string.h"
#include "mm/buddy.h"
#include "mm/debug/debug.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/others/others.h"
#include "mm/segkmem.h"

struct kmem_cache {
    struct other_cache cache_other;
    struct list cache_link;
    char cache_name[KMEM_NAME_MAX + 1];
};

static struct supply pages;
static mm_lock_t list_lock =
    MM_LOCK_INIT("kmem cache list", LOCK_RANK_CACHE_LIST);
static struct list caches = LIST_INIT(caches); /* in creation order */

/* ---- pages -------------------------------------------------------------- */

/* A run from segkmem, whose pages are then blocks of their own: an allocator
 * may return any of them. The lock keeps the verifier away meanwhile. */
static void *segkmem_get(struct supply *s, size_t n, size_t align)
{
    void *addr = kmem_getpages(n, PAGE_SLAB, NULL);

    MM_ASSERT(((uintptr_t)addr & (align - 1)) == 0);
    (void)align; /* buddy aligns powers of two */
    if (addr == NULL)
        return NULL;
    mm_lock(&s->supply_lock);
    for (size_t i = 0; i < n; i++)
        virt_to_page(addr)[i].page_order = 0;
    mm_unlock(&s->supply_lock);
    return addr;
}

static void segkmem_put(struct supply *s UNUSED, void *addr, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kmem_freepages((char *)addr + (i << PAGE_SHIFT), 1);
}

/* Descriptors for all page frames, which stay. */
static void start_pages(void)
{
    size_t bytes = page_count * sizeof(*pages.supply_info);
    struct page *table = buddy_alloc_run(PAGES_FOR(bytes));

    if (table == NULL)
        mm_panic("%s: no memory for its page descriptors",
                 other_served.op_name);
    pages = (struct supply){.supply_get = segkmem_get,
                            .supply_put = segkmem_put,
                            .supply_base = mm_phys_to_virt(0),
                            .supply_pages = page_count,
                            .supply_info = page_to_virt(table),
                            .supply_quota = SIZE_MAX};
    mm_lock_init(&pages.supply_lock, "supply", LOCK_RANK_SEGKMEM);
    memset(pages.supply_info, 0, bytes);
}

#define SIZE_MOST (BUDDY_MAX_PAGES * PAGE_SIZE) /* the largest request */

/* ---- memory pressure ---------------------------------------------------- */

static kmem_reclaim_t *reclaim;
static bool reclaiming;

kmem_reclaim_t *kmem_set_reclaim(kmem_reclaim_t *fn)
{
    return __atomic_exchange_n(&reclaim, fn, __ATOMIC_ACQ_REL);
}

size_t kmem_reap(enum kmem_reap_mode mode UNUSED)
{
    uint64_t before = pages.supply_returns;

    if (other_served.op_pressure != NULL)
        other_served.op_pressure();
    return (size_t)(pages.supply_returns - before);
}

/* Buddy has no block left. Owners of reclaimable objects free some, until that
 * frees a page. While it runs, an allocation in it fails. */
static size_t pressure(void)
{
    kmem_reclaim_t *fn = __atomic_load_n(&reclaim, __ATOMIC_ACQUIRE);
    size_t freed = 0, objects = 1;
    uint64_t before;

    if (__atomic_exchange_n(&reclaiming, true, __ATOMIC_ACQUIRE))
        return 0;
    while (freed == 0 && objects != 0) {
        before = pages.supply_returns;
        objects = fn == NULL ? 0 : fn(KMEM_RECLAIM_STEP);
        freed =
            (size_t)(pages.supply_returns - before) + kmem_reap(KMEM_REAP_ALL);
    }
    __atomic_store_n(&reclaiming, false, __ATOMIC_RELEASE);
    return freed;
}

/* An allocation has failed. True: try again. */
static bool wait_for(size_t size, int flags)
{
    if (flags & KM_NOSLEEP)
        return false;
    if (size > SIZE_MOST || !mm_wait_for_memory())
        mm_panic("out of memory: KM_SLEEP for %zu bytes: cannot wait", size);
    return true;
}

/* ---- memory of any size ------------------------------------------------- */

void kmem_init(void)
{
    start_pages();
#if MM_MAGAZINES
    _Static_assert(MM_CPUS_MAX <= OTHER_CPUS, "a processor has no lists");
    other_cpus = MM_CPUS_MAX;
#endif
    other_served.op_init(&pages);
    buddy_set_pressure(pressure);
}

static __attribute__((noinline)) void *wait_and_alloc(size_t size, int flags)
{
    void *p = NULL;

    while (size != 0 && p == NULL && wait_for(size, flags))
        p = other_served.op_alloc(size);
    return p;
}

void *kmem_alloc(size_t size, int flags)
{
    void *p;

    if (unlikely(size - 1 >= SIZE_MOST)) /* or 0 */
        return wait_and_alloc(size, flags);
    p = other_served.op_alloc(size);
    return likely(p != NULL) ? p : wait_and_alloc(size, flags);
}

void *kmem_zalloc(size_t size, int flags)
{
    void *p = kmem_alloc(size, flags);

    if (p != NULL)
        memset(p, 0, size);
    return p;
}

void kmem_free(void *buf, size_t size)
{
    if (likely(size != 0))
        other_served.op_free(buf, size);
    else if (buf != NULL)
        mm_panic("kmem_free: %p is not a kmem_alloc buffer of 0 bytes", buf);
}

/* ---- caches ------------------------------------------------------------- */

/* The cache of this name, or, if that is NULL, at this address. */
static struct kmem_cache *find_cache(const char *name, const void *handle)
{
    MM_ASSERT(mm_lock_held(&list_lock));
    list_for_each (l, &caches) {
        struct kmem_cache *cp = list_entry(l, struct kmem_cache, cache_link);

        if (name == NULL ? handle == cp : strcmp(name, cp->cache_name) == 0)
            return cp;
    }
    return NULL;
}

struct kmem_cache *kmem_cache_find(const char *name)
{
    struct kmem_cache *cp;

    mm_lock(&list_lock);
    cp = find_cache(name, NULL);
    mm_unlock(&list_lock);
    return cp;
}

/* NULL, or the error in the arguments of kmem_cache_create. */
static const char *cache_error(const char *name, size_t size, size_t align)
{
    if (strlen(name) > KMEM_NAME_MAX)
        return "the name is longer than 31 characters";
    if (size == 0 || size > KMEM_SIZE_MAX)
        return "the size is 0, or more than 1 MiB";
    if ((align & (align - 1)) != 0 || align > PAGE_SIZE)
        return "the alignment is not a power of two, or more than a page";
    return NULL;
}

/* Adds a new cache to the list. NULL, or the reason why it cannot be added. */
static const char *publish(struct kmem_cache *cp)
{
    bool first;

    mm_lock(&list_lock);
    first = find_cache(cp->cache_name, NULL) == NULL;
    if (first)
        list_insert_before(&caches, &cp->cache_link);
    mm_unlock(&list_lock);
    return first ? NULL : "there is a cache of that name";
}

struct kmem_cache *kmem_cache_create(const char *name, size_t size,
                                     size_t align, kmem_ctor_t *ctor,
                                     kmem_dtor_t *dtor)
{
    const char *error = cache_error(name, size, align);
    struct kmem_cache *cp;

    if (error != NULL)
        goto refuse;
    error = "no memory";
    cp = kmem_zalloc(sizeof(*cp), KM_NOSLEEP);
    if (cp == NULL)
        goto refuse;
    cp->cache_other =
        (struct other_cache){.other_size = size,
                             .other_align = MAX(align, (size_t)KMEM_ALIGN_MIN),
                             .other_ctor = ctor,
                             .other_dtor = dtor};
    memcpy(cp->cache_name, name, strlen(name));
    if (!other_cache_create(&other_served, &cp->cache_other))
        goto free;
    error = publish(cp);
    if (error == NULL)
        return cp;
    other_cache_destroy(&other_served, &cp->cache_other);
free:
    kmem_free(cp, sizeof(*cp));
refuse:
    mm_print("kmem_cache_create: %s: %s\n", name, error);
    return NULL;
}

static size_t allocated(const struct kmem_cache *cp)
{
    struct other_calls calls = other_calls(&cp->cache_other);

    return (size_t)(calls.other_allocs - calls.other_frees);
}

int kmem_cache_destroy(struct kmem_cache *cp)
{
    int error = 0;

    mm_lock(&list_lock);
    if (find_cache(NULL, cp) == NULL)
        error = -KMEM_EINVAL;
    else if (allocated(cp) != 0)
        error = -KMEM_EBUSY;
    else
        list_remove(&cp->cache_link);
    mm_unlock(&list_lock);
    if (error == -KMEM_EINVAL)
        mm_print("kmem_cache_destroy: %p is not a cache\n", (void *)cp);
    else if (error == -KMEM_EBUSY)
        mm_print("kmem_cache_destroy: %s: %zu objects are allocated\n",
                 cp->cache_name, allocated(cp));
    if (error != 0)
        return error;
    other_cache_destroy(&other_served, &cp->cache_other);
    kmem_free(cp, sizeof(*cp));
    return 0;
}

static __attribute__((noinline)) void *
wait_and_cache_alloc(struct kmem_cache *cp, int flags)
{
    void *obj = NULL;

    while (obj == NULL && wait_for(cp->cache_other.other_size, flags))
        obj = other_served.op_cache_alloc(&cp->cache_other);
    return obj;
}

void *kmem_cache_alloc(struct kmem_cache *cp, int flags)
{
    void *obj = other_served.op_cache_alloc(&cp->cache_other);

    return likely(obj != NULL) ? obj : wait_and_cache_alloc(cp, flags);
}

void kmem_cache_free(struct kmem_cache *cp, void *buf)
{
    other_served.op_cache_free(&cp->cache_other, buf);
}

/* ---- time --------------------------------------------------------------- */

#define TICK_MS 2000

static uint32_t last_tick_ms; /* modulo 2^32 */

uint32_t kmem_update_due(void)
{
    uint32_t passed = (uint32_t)mm_clock_ms() - MM_UNLOCKED(last_tick_ms);

    if (other_served.op_tick == NULL)
        return UINT32_MAX;
    return passed < TICK_MS ? TICK_MS - passed : 0;
}

/* One tick, if it is due; those that were missed are not made up for. */
void kmem_update_poll(void)
{
    uint64_t now = mm_clock_ms();

    if (kmem_update_due() != 0)
        return;
    last_tick_ms = (uint32_t)now;
    other_served.op_tick(now);
}

/* ---- looking ------------------------------------------------------------ */

static struct kmem_cache *cache_at(struct list *l)
{
    return l == &caches ? NULL : list_entry(l, struct kmem_cache, cache_link);
}

struct kmem_cache *kmem_cache_first(void)
{
    return cache_at(caches.next);
}

struct kmem_cache *kmem_cache_next(struct kmem_cache *cp)
{
    return cache_at(cp->cache_link.next);
}

/* Of memory, only what clients asked for is known by cache. */
void kmem_cache_stat(struct kmem_cache *cp, struct kmem_cache_stat *out)
{
    const struct other_cache *c = &cp->cache_other;
    struct other_calls calls = other_calls(c);
    size_t inuse = (size_t)(calls.other_allocs - calls.other_frees);

    *out = (struct kmem_cache_stat){.stat_size = c->other_size,
                                    .stat_align = c->other_align,
                                    .stat_inuse = inuse,
                                    .stat_total = inuse,
                                    .stat_mem = inuse * c->other_size,
                                    .stat_allocs = calls.other_allocs,
                                    .stat_frees = calls.other_frees,
                                    .stat_fails = calls.other_fails};
    memcpy(out->stat_name, cp->cache_name, sizeof(out->stat_name));
}

bool kmem_cache_stat_number(size_t n, struct kmem_cache_stat *out)
{
    struct kmem_cache *cp;

    mm_lock(&list_lock);
    for (cp = kmem_cache_first(); cp != NULL && n > 0; n--)
        cp = kmem_cache_next(cp);
    if (cp != NULL)
        kmem_cache_stat(cp, out);
    mm_unlock(&list_lock);
    return cp != NULL;
}

/* The share of kmem_alloc: the total minus all caches. Other tasks may allocate
 * while caches are subtracted. */
void kmem_oversize_stat(struct kmem_oversize_stat *out)
{
    struct kmem_cache_stat row;
    struct other_stat st;
    size_t bytes;

    other_served.op_stat(&st);
    *out = (struct kmem_oversize_stat){
        .stat_inuse = (size_t)(st.stat_allocs - st.stat_frees)};
    bytes = st.stat_requested;
    for (size_t n = 0; kmem_cache_stat_number(n, &row); n++) {
        out->stat_inuse -= MIN(out->stat_inuse, row.stat_inuse);
        bytes -= MIN(bytes, row.stat_mem);
    }
    out->stat_pages = PAGES_FOR(bytes);
}

const char *kmem_verify(const char **where)
{
    *where = other_served.op_name;
    return other_served.op_check();
}

/* An allocator is checked as a whole. */
const char *kmem_cache_verify(struct kmem_cache *cp, const char **where)
{
    struct other_calls calls = other_calls(&cp->cache_other);

    *where = cp->cache_name;
    return calls.other_frees <= calls.other_allocs
               ? NULL
               : "more frees than allocations";
}

/* ---- what these allocators do not have ---------------------------------- */

uint32_t kmem_ws_interval; /* no working set */

/* The option kmem.debug=, any letters. */
bool kmem_debug_letters(const char *text UNUSED, const char *end UNUSED,
                        unsigned *modes, char *bad UNUSED)
{
    *modes = KMF_CHECK;
    return true;
}

void kmem_debug_boot(unsigned modes UNUSED, const char *names UNUSED)
{
    mm_print("kmem.debug=: the allocator is %s, which has no debugging modes\n",
             other_served.op_name);
}

unsigned kmem_debug_modes(const struct kmem_cache *cp UNUSED)
{
    return 0;
}

const char *kmem_debug_text(unsigned modes UNUSED, char *text UNUSED)
{
    return "-";
}

void kmem_handles_keep(bool keep UNUSED)
{
}

bool kmem_fault(const void *addr UNUSED)
{
    return false;
}

bool kmem_buf_stat(const void *addr UNUSED, struct kmem_buf_stat *out UNUSED)
{
    return false;
}

bool kmem_slab_stat(struct kmem_cache *cp UNUSED, size_t n UNUSED,
                    struct kmem_slab_stat *out UNUSED)
{
    return false;
}
