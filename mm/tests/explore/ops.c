/*
 * The operations of an exploration: the calls that two tasks make at once, or
 * several at random, and the conditions that must hold after every schedule.
 *
 * Before each schedule the caches that its operations need are created; all but
 * `idle` have allocated objects. After it every object has its contents,
 * kmem_verify finds nothing, and when all is freed, the pages, caches and
 * objects are as many as before.
 */
#include "mm/tests/explore/ops.h"
#include "mm/inspect/buddy_stat.h"
#include "mm/debug/debug.h"

#include <string.h>

#define FPZU (KMF_CHECK | KMF_POISON | KMF_REDZONE | KMF_AUDIT)

static const struct {
    const char *kind_name;
    size_t kind_size;
    unsigned kind_modes;
} kinds[KINDS] = {
    [SMALL] = {"x_small", 440, 0},
    [LARGE] = {"x_large", 1000, 0},
    [BUILT] = {"x_built", 400, 0},
    [CHECKED] = {"x_checked", 300, FPZU},
    [UNMAPPED] = {"x_unmapped", 1000, KMF_UNMAP},
    [IDLE] = {"x_idle", 600, 0},
    [QUEUE] = {"x_queue", 2000, KMF_UNMAP},
};

static struct kmem_cache *cache[KINDS];

/* ---- callbacks of a cache, which run without its lock ------------------- */

#define CALLBACK_POINT(what) host_point(what, NULL, __FILE__, __LINE__)

static void build(void *obj, size_t size)
{
    CALLBACK_POINT("constructs");
    test_ctor(obj, size);
    CALLBACK_POINT("has constructed");
}

static void unbuild(void *obj, size_t size)
{
    CALLBACK_POINT("destroys");
    test_dtor(obj, size);
    CALLBACK_POINT("has destroyed");
}

static struct test_supply supply; /* of the pages of `built` */

static void *supply_get(size_t pages, void *arg)
{
    void *base;

    CALLBACK_POINT("asks the supplier");
    base = supply.supply.getpages(pages, arg);
    CALLBACK_POINT("has pages");
    return base;
}

static void supply_free(void *addr, size_t pages, void *arg)
{
    CALLBACK_POINT("returns pages");
    supply.supply.freepages(addr, pages, arg);
    CALLBACK_POINT("has returned pages");
}

/* ---- objects of a task -------------------------------------------------- */

#define KEEPER FIBERS_MAX /* has what no task frees */

struct worker workers[FIBERS_MAX + 1];
unsigned ops_destroyed[KINDS];

static uint8_t stamp_of(const struct object *o)
{
    return (uint8_t)((uintptr_t)o >> 4);
}

/* Writes to all of a new object, or checks it. One with a constructor keeps its
 * constructed state. */
static void stamp(struct object *o)
{
    if (o->object_kind == BUILT)
        FIBERS_TRUE(test_is_constructed(o->object_addr, o->object_size));
    else
        memset(o->object_addr, stamp_of(o), o->object_size);
}

static void check_stamp(const struct object *o)
{
    if (o->object_kind == BUILT)
        FIBERS_TRUE(test_is_constructed(o->object_addr, o->object_size));
    else
        for (size_t i = 0; i < o->object_size; i++)
            FIBERS_TRUE(o->object_addr[i] == stamp_of(o));
}

static void keep(unsigned task, enum kind kind, void *addr, size_t size)
{
    struct worker *w = &workers[task];
    struct object *o = &w->worker_object[w->worker_count];

    FIBERS_TRUE(addr != NULL);
    *o = (struct object){addr, size, kind};
    w->worker_count++;
    stamp(o);
}

static void alloc(unsigned task, enum kind kind, int flags)
{
    keep(task, kind, kmem_cache_alloc(cache[kind], flags),
         kinds[kind].kind_size);
}

static void alloc_sized(unsigned task, size_t size)
{
    keep(task, NONE, kmem_alloc(size, KM_NOSLEEP), size);
}

/* Frees the task's newest object. */
static void free_newest(unsigned task)
{
    struct worker *w = &workers[task];
    struct object *o = &w->worker_object[w->worker_count - 1];

    check_stamp(o);
    w->worker_count--;
    if (o->object_kind == NONE)
        kmem_free(o->object_addr, o->object_size);
    else
        kmem_cache_free(cache[o->object_kind], o->object_addr);
}

/* ---- operations --------------------------------------------------------- */

static void alloc_two(enum kind kind)
{
    alloc(fibers_running, kind, KM_NOSLEEP);
    alloc(fibers_running, kind, KM_SLEEP);
}

/* Both its objects: if the other task has none, the slab becomes free. */
static void free_two(enum kind kind UNUSED)
{
    free_newest(fibers_running);
    free_newest(fibers_running);
}

static void hot_pair(enum kind kind)
{
    alloc(fibers_running, kind, KM_NOSLEEP);
    free_newest(fibers_running);
}

static void alloc_13(enum kind kind UNUSED)
{
    alloc_sized(fibers_running, 13);
    alloc_sized(fibers_running, 13);
    free_newest(fibers_running);
}

static void alloc_oversize(enum kind kind UNUSED)
{
    alloc_sized(fibers_running, 20000);
    alloc_sized(fibers_running, 10000);
    free_newest(fibers_running);
}

/* A new cache of this task, used and destroyed. */
static void create_own(enum kind kind UNUSED)
{
    char name[16];
    struct kmem_cache *cp;
    void *obj;

    snprintf(name, sizeof(name), "x_own_%u", fibers_running);
    cp = kmem_cache_create(name, 700, 0, build, unbuild);
    FIBERS_TRUE(cp != NULL);
    obj = kmem_cache_alloc(cp, KM_NOSLEEP);
    FIBERS_TRUE(obj != NULL);
    FIBERS_TRUE(kmem_cache_destroy(cp) == -KMEM_EBUSY);
    kmem_cache_free(cp, obj);
    FIBERS_TRUE(kmem_cache_destroy(cp) == 0);
}

static struct kmem_cache *named;
static unsigned named_count;

/* A cache of one name, whichever task is first. */
static void create_named(enum kind kind UNUSED)
{
    struct kmem_cache *cp;

    cp = kmem_cache_create("x_named", 640, 0, NULL, NULL);
    if (cp == NULL)
        return;
    named = cp;
    named_count++;
}

static void destroy_cache(enum kind kind)
{
    int error = kmem_cache_destroy(cache[kind]);

    FIBERS_TRUE(error == 0 || error == -KMEM_EINVAL);
    ops_destroyed[kind] += error == 0;
}

static void reap_cache(enum kind kind)
{
    kmem_cache_reap(cache[kind], KMEM_REAP_ALL);
}

static void reap(enum kind kind UNUSED)
{
    kmem_reap(KMEM_REAP_ALL);
}

static void reap_ws(enum kind kind UNUSED)
{
    kmem_reap(KMEM_REAP_WS);
}

static void update(enum kind kind UNUSED)
{
    host_clock_ms += KMEM_WS_DEFAULT_MS;
    kmem_update_poll();
}

static void set_error_ok(int error)
{
    FIBERS_TRUE(error == 0 || error == -KMEM_EBUSY || error == -KMEM_EAGAIN);
}

/* Modes on and off: of a cache, or of the class of 13 bytes. */
static void set_modes(enum kind kind)
{
    struct kmem_cache *cp = kind == NONE ? kmem_size_class(13) : cache[kind];

    set_error_ok(kmem_debug_set(cp, FPZU));
    set_error_ok(kmem_debug_set(cp, KMF_TRACE));
    set_error_ok(kmem_debug_set(cp, KMF_UNMAP));
    set_error_ok(kmem_debug_set(cp, 0));
}

static void verify(enum kind kind UNUSED)
{
    const char *where;
    const char *why = kmem_verify(&where);

    if (why != NULL)
        fibers_failed("kmem_verify: %s: %s", why, where);
}

static void verify_often(enum kind kind)
{
    verify(kind);
    alloc_13(kind);
    verify(kind);
}

static bool count_buffer(const struct kmem_buf_stat *buf, void *arg)
{
    FIBERS_TRUE(buf->stat_size != 0);
    ++*(size_t *)arg;
    return true;
}

/* The reads of the shell's and the debugger's commands. */
static void snapshot(enum kind kind)
{
    struct kmem_cache *cp = cache[kind];
    struct kmem_cache_stat st;
    struct kmem_slab_stat slab;
    size_t histogram[4];
    size_t n = 0;

    kmem_hash_stat(cp, histogram, ARRAY_SIZE(histogram));
    for (; kmem_cache_stat_number(n, &st); n++) {
        FIBERS_TRUE(st.stat_free_slabs + st.stat_full_slabs <= st.stat_slabs);
        FIBERS_TRUE(st.stat_inuse <= st.stat_total);
        FIBERS_TRUE(st.stat_trapped <= st.stat_total);
    }
    for (n = 0; kmem_slab_stat(cp, n, &slab); n++)
        FIBERS_TRUE(!slab.stat_bad);
    kmem_buf_walk(cp, count_buffer, &n);
}

/* From an address in the large cache to its buffer. */
static void look_up(enum kind kind UNUSED)
{
    struct kmem_buf_stat st;

    FIBERS_TRUE(
        kmem_buf_stat(workers[KEEPER].worker_object[0].object_addr, &st));
    FIBERS_TRUE(st.stat_state == KMEM_BUF_USED);
}

static void release_unmapped(enum kind kind UNUSED)
{
    kmem_unmapped_release(NULL);
}

/* ---- operations of seeds ------------------------------------------------ */

/* The log, which other tasks write: the next entry may be there by now. */
static void read_log(enum kind kind)
{
    struct kmem_log_entry entry;

    for (uint32_t i = kmem_log_last() + 1, n = 3; i != 0 && n != 0; i--, n--)
        if (kmem_log_get(i, &entry)) {
            FIBERS_TRUE(entry.log_seq == i);
            FIBERS_TRUE(entry.log_trans.trans_task <= FIBERS_MAX);
            FIBERS_TRUE(entry.log_cpu < FIBERS_MAX);
        }
    hot_pair(kind);
}

/* Buddy's lists, a cache by its name, slabs, bufctls and hash chains. Not
 * buddy_verify, which reads states that segkmem writes under another lock. */
static void read_pages(enum kind kind)
{
    struct kmem_cache *cp = cache[kind];
    struct kmem_oversize_stat oversize;
    struct kmem_slab_stat slab;
    struct page *big;
    struct buddy_stat st;
    size_t chain[2];
    size_t index;

    buddy_stat(&st);
    FIBERS_TRUE(st.stat_free_pages <= st.stat_total_pages);
    FIBERS_TRUE(buddy_free_pages() <= st.stat_total_pages);
    big = buddy_alloc(BUDDY_MAX_ORDER); /* mmraces has none */
    if (big != NULL)
        buddy_free(big, BUDDY_MAX_ORDER);
    FIBERS_TRUE(kmem_cache_find(kinds[kind].kind_name) == cp);
    FIBERS_TRUE(kmem_cache_next(cp) != cp);
    kmem_slab_stat(cp, 0, &slab);
    kmem_hash_stat(cp, chain, ARRAY_SIZE(chain));
    kmem_oversize_stat(&oversize);
    FIBERS_TRUE(oversize.stat_inuse <= oversize.stat_pages);
    FIBERS_TRUE(kmem_slab_lookup(workers[KEEPER].worker_object[0].object_addr,
                                 &slab, &index) != NULL);
}

/* What a reap would take. */
static void dry_run(enum kind kind)
{
    struct kmem_cache_stat st;

    kmem_cache_stat(cache[kind], &st);
    FIBERS_TRUE(st.stat_reapable <= st.stat_free_slabs);
}

static unsigned failing; /* a bit for each task that gets no pages */

bool ops_is_failing(void)
{
    return (failing >> (host_task - 1) & 1) != 0;
}

/* Allocates what there is without a new slab. */
static void fail_pages(enum kind kind)
{
    struct worker *w = &workers[fibers_running];
    void *addr = NULL;

    failing |= 1u << fibers_running;
    host_set_refuses(ops_is_failing);
    for (unsigned i = 0; i < 4; i++) {
        addr = kmem_cache_alloc(cache[kind], KM_NOSLEEP);
        if (addr == NULL || w->worker_count + 4 > OBJECTS)
            break;
        keep(fibers_running, kind, addr, kinds[kind].kind_size);
        addr = NULL;
    }
    if (addr != NULL)
        kmem_cache_free(cache[kind], addr);
    FIBERS_TRUE(kmem_alloc(20000, KM_NOSLEEP) == NULL);
    failing &= ~(1u << fibers_running);
}

/* ---- operations with magazines ------------------------------------------ */

/* Objects that a task leaves for another to free. */
static struct object passed[KINDS][2];

#if MM_MAGAZINES
/* More objects than the magazines of a processor hold, and back. */
static void churn(enum kind kind)
{
    struct worker *w = &workers[fibers_running];
    unsigned before = w->worker_count;
    unsigned n =
        MIN(1 + test_random(&w->worker_random) % 12, OBJECTS - 4 - before);

    while (w->worker_count < before + n)
        alloc(fibers_running, kind, KM_SLEEP);
    while (w->worker_count > before)
        free_newest(fibers_running);
}

/* Leaves a new object in a place, and frees the one that was there. */
static void pass(enum kind kind)
{
    struct worker *w = &workers[fibers_running];
    struct object *place = &passed[kind][test_random(&w->worker_random) % 2];
    void *other;

    alloc(fibers_running, kind, KM_SLEEP);
    CALLBACK_POINT("passes an object");
    if (place->object_addr != NULL)
        check_stamp(place);
    other = place->object_addr; /* no switch until the stamp */
    *place = w->worker_object[--w->worker_count];
    stamp(place);
    CALLBACK_POINT("has passed an object");
    if (other != NULL)
        kmem_cache_free(cache[kind], other);
}

static void disable(enum kind kind)
{
    kmem_mag_disable();
    hot_pair(kind);
    kmem_mag_enable();
}
#endif

static void free_passed(void)
{
    for (unsigned k = 0; k < KINDS; k++)
        for (unsigned i = 0; i < 2; i++) {
            struct object *o = &passed[k][i];

            if (o->object_addr == NULL)
                continue;
            check_stamp(o);
            kmem_cache_free(cache[k], o->object_addr);
            o->object_addr = NULL;
        }
}

const struct op ops[ALL_OPS_COUNT] = {
#define X(name, run, kind, objects, use) {#name, run, kind, objects, use},
    OPS(X) SEED_OPS(X)
#undef X
};

bool ops_legal(const struct op *a, const struct op *b)
{
    return a->op_kind != b->op_kind ||
           !((a->op_use == USES && b->op_use == ENDS) ||
             (a->op_use == ENDS && b->op_use == USES));
}

/* ---- before and after --------------------------------------------------- */

static struct {
    size_t pages;
    size_t caches;
} baseline;

static size_t count_caches(void)
{
    struct kmem_cache_stat st;
    size_t n = 0;

    while (kmem_cache_stat_number(n, &st))
        n++;
    return n;
}

static size_t used_pages(void)
{
    struct segkmem_stat seg;

    kmem_reap(KMEM_REAP_ALL);
    segkmem_stat(&seg);
    return seg.stat_pages;
}

static void make_cache(enum kind kind)
{
    static const struct kmem_supplier from = {supply_get, supply_free, &supply};
    bool built = kind == BUILT;

    cache[kind] = kmem_cache_create_from(
        kinds[kind].kind_name, kinds[kind].kind_size, 0, built ? build : NULL,
        built ? unbuild : NULL, built ? &from : NULL);
    FIBERS_TRUE(cache[kind] != NULL);
    FIBERS_TRUE(kmem_debug_set(cache[kind], kinds[kind].kind_modes) == 0);
    alloc(KEEPER, kind, KM_NOSLEEP);
    while (cache[kind]->cache_full_slabs == 0) /* then no buffer is free */
        alloc(KEEPER, kind, KM_NOSLEEP);
}

/* The cache has no allocated object. */
static void empty_cache(enum kind kind)
{
    const struct worker *w = &workers[KEEPER];

    while (w->worker_count != 0 &&
           w->worker_object[w->worker_count - 1].object_kind == kind)
        free_newest(KEEPER);
}

void ops_make_world(unsigned needs)
{
    memset(cache, 0, sizeof(cache));
    named = NULL;
    named_count = 0;
    test_constructed_reset();
    test_supply_init(&supply, SIZE_MAX / 2);
    memset(ops_destroyed, 0, sizeof(ops_destroyed));
    for (unsigned k = 0; k < KINDS; k++)
        if (needs & HAS(k))
            make_cache(k);
    if (needs & HAS(QUEUE))
        empty_cache(QUEUE);
    if (needs & HAS(IDLE))
        empty_cache(IDLE);
}

void ops_make_task(unsigned task, const struct op *op)
{
    for (unsigned i = 0; i < op->op_objects; i++)
        alloc(task, op->op_kind, KM_NOSLEEP);
}

static void destroy(struct kmem_cache *cp)
{
    if (kmem_cache_destroy(cp) != 0)
        fibers_failed("the cache cannot be destroyed: %s", host_printed);
}

/* Frees all objects and destroys the caches. */
static void end_world(void)
{
    free_passed();
    for (unsigned i = 0; i <= KEEPER; i++)
        while (workers[i].worker_count != 0)
            free_newest(i);
    for (unsigned k = 0; k < KINDS; k++)
        if (cache[k] != NULL && ops_destroyed[k] == 0)
            destroy(cache[k]);
    if (named != NULL)
        destroy(named);
    FIBERS_TRUE(test_bad == 0 && test_ctors == test_dtors);
    FIBERS_TRUE(supply.held == 0);
}

uint32_t ops_rounds = 2;

#if MM_MAGAZINES
/* The rounds of a cache. None is twice there, or a task's object. */
static const void *rounds[1024];
static size_t round_count;

static void add_round(const void *buf)
{
    for (size_t i = 0; i < round_count; i++)
        FIBERS_TRUE(rounds[i] != buf);
    for (unsigned i = 0; i <= KEEPER; i++)
        for (unsigned n = 0; n < workers[i].worker_count; n++)
            FIBERS_TRUE(workers[i].worker_object[n].object_addr != buf);
    FIBERS_TRUE(round_count < ARRAY_SIZE(rounds));
    rounds[round_count++] = buf;
}

static void add_rounds(const struct kmem_magazine *m, uint32_t n)
{
    while (n-- != 0)
        add_round(m->mag_round[n]);
}

static void check_cpu_cache(const struct kmem_cache *cp,
                            const struct kmem_cpu_cache *cc)
{
    FIBERS_TRUE(cc->cc_rounds <= cc->cc_room);
    FIBERS_TRUE(cc->cc_previous_rounds == 0 ||
                cc->cc_previous_rounds == cc->cc_room);
    FIBERS_TRUE((cc->cc_room == 0) == (cc->cc_loaded == NULL));
    FIBERS_TRUE(cc->cc_room == 0 || cc->cc_room == cp->cache_rounds);
    FIBERS_TRUE(cp->cache_rounds <= ops_rounds);
    add_rounds(cc->cc_loaded, cc->cc_rounds);
    add_rounds(cc->cc_previous, cc->cc_previous_rounds);
}

static size_t live_objects(enum kind kind)
{
    size_t n = (passed[kind][0].object_addr != NULL) +
               (passed[kind][1].object_addr != NULL);

    for (unsigned i = 0; i <= KEEPER; i++)
        for (unsigned k = 0; k < workers[i].worker_count; k++)
            n += workers[i].worker_object[k].object_kind == kind;
    return n;
}

/* What the slabs gave is the clients' or in a magazine. */
static void check_magazines(enum kind kind)
{
    struct kmem_cache *cp = cache[kind];
    const struct kmem_magazine *m = cp->cache_depot[KMEM_FULL].depot_list;
    struct kmem_cache_stat st;

    round_count = 0;
    for (unsigned i = 0; i < MM_CPUS_MAX; i++)
        check_cpu_cache(cp, cp->cache_cpu[i]);
    for (; m != NULL; m = m->mag_next)
        add_rounds(m, cp->cache_rounds);
    kmem_cache_stat(cp, &st);
    FIBERS_TRUE(st.stat_inuse == live_objects(kind));
    FIBERS_TRUE(st.stat_trapped == round_count);
}

static void check_all_magazines(void)
{
    for (unsigned k = 0; k < KINDS; k++)
        if (cache[k] != NULL && ops_destroyed[k] == 0)
            check_magazines(k);
}

static void start_magazines(void)
{
    kmem_mag_enough = 0;
    kmem_mag_most = ops_rounds;
    kmem_mag_decide_all(); /* their size has changed */
}
#else
#define check_all_magazines() ((void)0)
#define start_magazines()     ((void)0)
#endif

void ops_check_world(void)
{
    const struct page *page;

    host_set_refuses(NULL);
    for (unsigned i = 0; i <= KEEPER; i++)
        for (unsigned n = 0; n < workers[i].worker_count; n++)
            check_stamp(&workers[i].worker_object[n]);
    verify(NONE);
    check_all_magazines();
    FIBERS_TRUE(buddy_verify(&page) == NULL);
    FIBERS_TRUE(named_count <= 1);
    FIBERS_TRUE(ops_destroyed[IDLE] <= 1 && ops_destroyed[QUEUE] <= 1);
    FIBERS_TRUE(kmem_last_error.error_kind == KMERR_NONE);
    FIBERS_TRUE(kmem_debug_set(kmem_size_class(13), 0) != -KMEM_EINVAL);
    end_world();
    FIBERS_TRUE(kmem_debug_set(kmem_size_class(13), 0) == 0);
    FIBERS_TRUE(count_caches() == baseline.caches);
    FIBERS_TRUE(used_pages() == baseline.pages);
}

void ops_warm_up(void)
{
    struct budget before = budget_begin("the preparation", fibers_budget);

    start_magazines();
    for (unsigned i = 0; i < 2; i++) {
        FIBERS_TRUE(kmem_debug_set(kmem_size_class(13), FPZU) == 0);
        FIBERS_TRUE(kmem_debug_set(kmem_size_class(13), 0) == 0);
        ops_make_world(HAS(KINDS) - 1);
        end_world();
        kmem_unmapped_release(NULL);
        baseline.pages = used_pages();
    }
    baseline.caches = count_caches();
    budget_end(before);
}
