/*
 * The operations of an exploration: what mm/ is asked to do by two tasks at
 * once, or by several at random, and what must hold whatever the schedule.
 *
 * Before each schedule the caches that its operations need are made, all with
 * allocated objects but `idle`. After it every object has its contents,
 * kmem_verify finds nothing, and when all is given back, the pages, caches and
 * objects are as many as before.
 */
#include "mm/tests/explore/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum kind {
    SMALL,
    LARGE,
    BUILT,    /* with a constructor and a destructor */
    CHECKED,  /* in modes F, P, Z and U */
    UNMAPPED, /* in mode S */
    IDLE,     /* nothing is allocated; may be destroyed */
    QUEUE,    /* the same in mode S; two slabs wait for their release */
    KINDS,
    NONE = KINDS,
};

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

/* ---- objects of a task -------------------------------------------------- */

#define OBJECTS 128

static struct worker {
    unsigned worker_count;
    struct object {
        uint8_t *object_addr;
        size_t object_size;
        enum kind object_kind; /* NONE: of kmem_alloc */
    } worker_object[OBJECTS];
    unsigned worker_created; /* caches of this task that exist */
    uint32_t worker_random;
} workers[EXPLORE_TASKS + 1]; /* the last one has what no task frees */

#define KEEPER EXPLORE_TASKS

static uint8_t stamp_of(const struct object *o)
{
    return (uint8_t)((uintptr_t)o >> 4);
}

/* Writes to all of a new object, or checks it. One with a constructor keeps its
 * constructed state. */
static void stamp(struct object *o)
{
    if (o->object_kind == BUILT)
        EXPLORE_TRUE(test_is_constructed(o->object_addr, o->object_size));
    else
        memset(o->object_addr, stamp_of(o), o->object_size);
}

static void check_stamp(const struct object *o)
{
    if (o->object_kind == BUILT)
        EXPLORE_TRUE(test_is_constructed(o->object_addr, o->object_size));
    else
        for (size_t i = 0; i < o->object_size; i++)
            EXPLORE_TRUE(o->object_addr[i] == stamp_of(o));
}

static void keep(unsigned task, enum kind kind, void *addr, size_t size)
{
    struct worker *w = &workers[task];
    struct object *o = &w->worker_object[w->worker_count];

    EXPLORE_TRUE(addr != NULL);
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
static void give_back(unsigned task)
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

static void alloc_two(unsigned task, enum kind kind)
{
    alloc(task, kind, KM_NOSLEEP);
    alloc(task, kind, KM_SLEEP);
}

/* Both its objects: where the other task has none, the slab becomes free. */
static void free_two(unsigned task, enum kind kind)
{
    (void)kind;
    give_back(task);
    give_back(task);
}

static void hot_pair(unsigned task, enum kind kind)
{
    alloc(task, kind, KM_NOSLEEP);
    give_back(task);
}

static void alloc_13(unsigned task, enum kind kind)
{
    (void)kind;
    alloc_sized(task, 13);
    alloc_sized(task, 13);
    give_back(task);
}

static void alloc_oversize(unsigned task, enum kind kind)
{
    (void)kind;
    alloc_sized(task, 20000);
    alloc_sized(task, 10000);
    give_back(task);
}

/* A new cache of this task, used and destroyed. */
static void create_own(unsigned task, enum kind kind)
{
    char name[16];
    struct kmem_cache *cp;
    void *obj;

    (void)kind;
    snprintf(name, sizeof(name), "x_own_%u", task);
    cp = kmem_cache_create(name, 700, 0, test_ctor, test_dtor);
    EXPLORE_TRUE(cp != NULL);
    obj = kmem_cache_alloc(cp, KM_NOSLEEP);
    EXPLORE_TRUE(obj != NULL);
    EXPLORE_TRUE(kmem_cache_destroy(cp) == -KMEM_EBUSY);
    kmem_cache_free(cp, obj);
    EXPLORE_TRUE(kmem_cache_destroy(cp) == 0);
}

static struct kmem_cache *named;
static unsigned named_count;

/* A cache of one name, whichever task is first. */
static void create_named(unsigned task, enum kind kind)
{
    struct kmem_cache *cp;

    (void)task;
    (void)kind;
    cp = kmem_cache_create("x_named", 40, 0, NULL, NULL);
    if (cp == NULL)
        return;
    named = cp;
    named_count++;
}

static unsigned destroyed[KINDS];

static void destroy_cache(unsigned task, enum kind kind)
{
    int error = kmem_cache_destroy(cache[kind]);

    (void)task;
    EXPLORE_TRUE(error == 0 || error == -KMEM_EINVAL);
    destroyed[kind] += error == 0;
}

static void reap_cache(unsigned task, enum kind kind)
{
    struct kmem_reap_result r;

    (void)task;
    kmem_cache_reap(cache[kind], KMEM_REAP_ALL, &r);
    EXPLORE_TRUE(r.reap_kept <= cache[kind]->cache_slabs);
}

static void reap(unsigned task, enum kind kind)
{
    (void)task;
    (void)kind;
    kmem_reap(KMEM_REAP_ALL);
}

static void reap_ws(unsigned task, enum kind kind)
{
    (void)task;
    (void)kind;
    kmem_reap(KMEM_REAP_WS);
}

static void update(unsigned task, enum kind kind)
{
    (void)task;
    (void)kind;
    host_clock_ms += KMEM_WS_DEFAULT_MS;
    kmem_update_poll();
}

static void set_error_ok(int error)
{
    EXPLORE_TRUE(error == 0 || error == -KMEM_EBUSY || error == -KMEM_EAGAIN);
}

/* Modes on and off: of a cache, or of the class of 13 bytes. */
static void set_modes(unsigned task, enum kind kind)
{
    struct kmem_cache *cp = kind == NONE ? kmem_size_class(13) : cache[kind];

    (void)task;
    set_error_ok(kmem_debug_set(cp, FPZU));
    set_error_ok(kmem_debug_set(cp, KMF_TRACE));
    set_error_ok(kmem_debug_set(cp, KMF_UNMAP));
    set_error_ok(kmem_debug_set(cp, 0));
}

static void verify(unsigned task, enum kind kind)
{
    const char *where;
    const char *why = kmem_verify(&where);

    (void)task;
    (void)kind;
    if (why != NULL)
        explore_failed("kmem_verify: %s: %s", why, where);
}

static void verify_often(unsigned task, enum kind kind)
{
    kmem_verify_every(2);
    alloc_13(task, kind);
    kmem_verify_every(0);
}

static bool count_buffer(const struct kmem_buf_stat *buf, void *arg)
{
    EXPLORE_TRUE(buf->stat_size != 0);
    ++*(size_t *)arg;
    return true;
}

/* What the shell and the debugger's commands read. */
static void snapshot(unsigned task, enum kind kind)
{
    struct kmem_cache *cp = cache[kind];
    struct kmem_cache_stat st;
    struct kmem_slab_stat slab;
    size_t histogram[4];
    size_t n = 0;

    (void)task;
    for (; kmem_cache_stat_number(n, &st); n++)
        EXPLORE_TRUE(st.stat_free_slabs + st.stat_full_slabs <= st.stat_slabs);
    for (n = 0; kmem_slab_stat(cp, n, &slab); n++)
        EXPLORE_TRUE(!slab.stat_bad);
    kmem_hash_stat(cp, histogram, ARRAY_SIZE(histogram));
    kmem_buf_walk(cp, count_buffer, &n);
}

/* From an address in the large cache to its buffer. */
static void look_up(unsigned task, enum kind kind)
{
    struct kmem_buf_stat st;

    (void)task;
    (void)kind;
    EXPLORE_TRUE(
        kmem_buf_stat(workers[KEEPER].worker_object[0].object_addr, &st));
    EXPLORE_TRUE(st.stat_state == KMEM_BUF_USED);
}

static void release_unmapped(unsigned task, enum kind kind)
{
    (void)task;
    (void)kind;
    kmem_unmapped_release(NULL);
}

#define HAS(kind) (1u << (kind))

/* A cache may not be used while another task destroys it. */
enum use {
    KEEPS,
    USES,
    ENDS
};

/* Name, function, cache, objects that the task has before, what it does
 * to the cache's life. */
#define OPS(X)                                                                 \
    X(alloc_small, alloc_two, SMALL, 0, KEEPS)                                 \
    X(alloc_large, alloc_two, LARGE, 0, KEEPS)                                 \
    X(alloc_built, alloc_two, BUILT, 0, KEEPS)                                 \
    X(alloc_checked, alloc_two, CHECKED, 0, KEEPS)                             \
    X(alloc_unmapped, alloc_two, UNMAPPED, 0, KEEPS)                           \
    X(free_small, free_two, SMALL, 2, KEEPS)                                   \
    X(free_large, free_two, LARGE, 2, KEEPS)                                   \
    X(free_built, free_two, BUILT, 2, KEEPS)                                   \
    X(free_checked, free_two, CHECKED, 2, KEEPS)                               \
    X(free_unmapped, free_two, UNMAPPED, 2, KEEPS)                             \
    X(pair_small, hot_pair, SMALL, 0, KEEPS)                                   \
    X(pair_idle, hot_pair, IDLE, 0, USES)                                      \
    X(kmem_alloc, alloc_13, NONE, 0, KEEPS)                                    \
    X(oversize, alloc_oversize, NONE, 0, KEEPS)                                \
    X(create_own, create_own, NONE, 0, KEEPS)                                  \
    X(create_named, create_named, NONE, 0, KEEPS)                              \
    X(destroy, destroy_cache, IDLE, 0, ENDS)                                   \
    X(reap_built, reap_cache, BUILT, 0, KEEPS)                                 \
    X(reap_large, reap_cache, LARGE, 0, KEEPS)                                 \
    X(free_queue, free_two, QUEUE, 2, USES)                                    \
    X(modes_queue, set_modes, QUEUE, 0, USES)                                  \
    X(destroy_queue, destroy_cache, QUEUE, 0, ENDS)                            \
    X(reap_idle, reap_cache, IDLE, 0, USES)                                    \
    X(reap, reap, NONE, 0, KEEPS)                                              \
    X(reap_ws, reap_ws, NONE, 0, KEEPS)                                        \
    X(update, update, NONE, 0, KEEPS)                                          \
    X(modes_idle, set_modes, IDLE, 0, USES)                                    \
    X(modes_class, set_modes, NONE, 0, KEEPS)                                  \
    X(verify, verify, NONE, 0, KEEPS)                                          \
    X(verify_often, verify_often, NONE, 0, KEEPS)                              \
    X(snapshot, snapshot, LARGE, 0, KEEPS)                                     \
    X(look_up, look_up, LARGE, 0, KEEPS)                                       \
    X(release_unmapped, release_unmapped, UNMAPPED, 0, KEEPS)

static const struct op {
    const char *op_name;
    void (*op_run)(unsigned task, enum kind kind);
    enum kind op_kind;
    unsigned op_objects;
    enum use op_use;
} ops[] = {
#define X(name, run, kind, objects, use) {#name, run, kind, objects, use},
    OPS(X)
#undef X
};

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
    bool built = kind == BUILT;

    cache[kind] =
        kmem_cache_create(kinds[kind].kind_name, kinds[kind].kind_size, 0,
                          built ? test_ctor : NULL, built ? test_dtor : NULL);
    EXPLORE_TRUE(cache[kind] != NULL);
    EXPLORE_TRUE(kmem_debug_set(cache[kind], kinds[kind].kind_modes) == 0);
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
        give_back(KEEPER);
}

static void make_world(unsigned needs)
{
    memset(cache, 0, sizeof(cache));
    named = NULL;
    named_count = 0;
    test_constructed_reset();
    memset(destroyed, 0, sizeof(destroyed));
    for (unsigned k = 0; k < KINDS; k++)
        if (needs & HAS(k))
            make_cache(k);
    if (needs & HAS(QUEUE))
        empty_cache(QUEUE);
    if (needs & HAS(IDLE))
        empty_cache(IDLE);
}

static void make_task(unsigned task, const struct op *op)
{
    for (unsigned i = 0; i < op->op_objects; i++)
        alloc(task, op->op_kind, KM_NOSLEEP);
}

static void destroy(struct kmem_cache *cp)
{
    if (kmem_cache_destroy(cp) != 0)
        explore_failed("the cache cannot be destroyed: %s", host_printed);
}

/* Everything is given back. */
static void end_world(void)
{
    for (unsigned i = 0; i <= KEEPER; i++)
        while (workers[i].worker_count != 0)
            give_back(i);
    for (unsigned k = 0; k < KINDS; k++)
        if (cache[k] != NULL && destroyed[k] == 0)
            destroy(cache[k]);
    if (named != NULL)
        destroy(named);
    EXPLORE_TRUE(test_bad == 0 && test_ctors == test_dtors);
}

static void check_world(void)
{
    for (unsigned i = 0; i <= KEEPER; i++)
        for (unsigned n = 0; n < workers[i].worker_count; n++)
            check_stamp(&workers[i].worker_object[n]);
    verify(0, NONE);
    EXPLORE_TRUE(named_count <= 1);
    EXPLORE_TRUE(destroyed[IDLE] <= 1 && destroyed[QUEUE] <= 1);
    EXPLORE_TRUE(kmem_error_count == 0);
    EXPLORE_TRUE(kmem_debug_set(kmem_size_class(13), 0) != -KMEM_EINVAL);
    end_world();
    EXPLORE_TRUE(kmem_debug_set(kmem_size_class(13), 0) == 0);
    EXPLORE_TRUE(count_caches() == baseline.caches);
    EXPLORE_TRUE(used_pages() == baseline.pages);
}

/* ---- pairs -------------------------------------------------------------- */

static const struct op *pair[2];

static unsigned needs_of(const struct op *op)
{
    return op->op_kind == NONE ? 0 : HAS(op->op_kind);
}

static void make_pair(void)
{
    make_world(needs_of(pair[0]) | needs_of(pair[1]));
    make_task(0, pair[0]);
    make_task(1, pair[1]);
}

static void run_pair(unsigned task)
{
    pair[task]->op_run(task, pair[task]->op_kind);
}

/* Whether the two may run at the same time. */
static bool is_legal(const struct op *a, const struct op *b)
{
    return a->op_kind != b->op_kind ||
           !((a->op_use == USES && b->op_use == ENDS) ||
             (a->op_use == ENDS && b->op_use == USES));
}

/* What the first of everything leaves behind is part of the baseline. */
static void warm_up(void)
{
    kmem_error_panics = false;
    for (unsigned i = 0; i < 2; i++) {
        EXPLORE_TRUE(kmem_debug_set(kmem_size_class(13), FPZU) == 0);
        EXPLORE_TRUE(kmem_debug_set(kmem_size_class(13), 0) == 0);
        make_world(HAS(KINDS) - 1);
        end_world();
        kmem_unmapped_release(NULL);
        baseline.pages = used_pages();
    }
    baseline.caches = count_caches();
}

static void pair_name(char *name, size_t size, const struct op *a,
                      const struct op *b)
{
    snprintf(name, size, "%s+%s", a->op_name, b->op_name);
}

static struct explore_case case_of(const struct op *a, const struct op *b,
                                   const char *name)
{
    pair[0] = a;
    pair[1] = b;
    return (struct explore_case){
        .case_name = name,
        .make = make_pair,
        .run = {run_pair, run_pair},
        .check = check_world,
    };
}

/* All schedules of one pair in a process of its own; 0 if all are right. */
static int try_pair(const struct op *a, const struct op *b, bool deep)
{
    char name[64];
    struct explore_case c;
    int status = 1;
    pid_t pid;

    pair_name(name, sizeof(name), a, b);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        c = case_of(a, b, name);
        explore_case(&c, deep);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        printf("%s: ended by signal %d\n", name, WTERMSIG(status));
    return status == 0 ? 0 : 1;
}

static const struct op *find_op(const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
        if (strlen(ops[i].op_name) == n &&
            strncmp(ops[i].op_name, name, n) == 0)
            return &ops[i];
    return NULL;
}

/* All pairs in which this operation is the first. */
static int try_first(const struct op *a, bool deep)
{
    int bad = 0;

    for (size_t i = 0; i < ARRAY_SIZE(ops) && bad < 3; i++)
        if (is_legal(a, &ops[i]))
            bad += try_pair(a, &ops[i], deep);
    return bad;
}

/* "A+B" or "A+B@K" or "A+B@K,J": a pair, or one schedule of it. Those before it
 * run first, so that the heap is the same. */
static int replay(const char *text)
{
    const char *plus = strchr(text, '+');
    const char *at = strchr(text, '@');
    const char *end = at == NULL ? text + strlen(text) : at;
    const struct op *a = NULL, *b = NULL;

    if (plus != NULL && plus < end) {
        a = find_op(text, (size_t)(plus - text));
        b = find_op(plus + 1, (size_t)(end - plus - 1));
    }
    if (a == NULL || b == NULL) {
        fprintf(stderr, "mmtest: no pair of operations %s\n", text);
        return 2;
    }
    if (at != NULL)
        explore_show(at + 1);
    return try_pair(a, b, at != NULL && strchr(at, ',') != NULL);
}

int explore_pairs(const char *name, bool deep)
{
    int bad = 0;

    warm_up();
    if (name != NULL)
        return replay(name);
    for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
        bad += try_first(&ops[i], deep);
    return bad == 0 ? 0 : 1;
}

static void test_first(const char *name)
{
    int bad;

    warm_up();
    bad = try_first(find_op(name, strlen(name)), false);
    if (bad != 0)
        KT_FAIL("%d pairs of %s fail", bad, name);
}

#define X(name, run, kind, objects, use)                                       \
    KTEST(explore_pairs, name)                                                 \
    {                                                                          \
        test_first(#name);                                                     \
    }
OPS(X)
#undef X

/* ---- several tasks at random -------------------------------------------- */

#define RANDOM_OPS 8 /* of each task */

static bool may_destroy; /* else the caches that may be destroyed are used */

static void run_random(unsigned task)
{
    struct worker *w = &workers[task];

    for (unsigned i = 0; i < RANDOM_OPS; i++) {
        const struct op *op =
            &ops[test_random(&w->worker_random) % ARRAY_SIZE(ops)];

        if (op->op_use == (may_destroy ? USES : ENDS) ||
            w->worker_count < op->op_objects || w->worker_count + 4 > OBJECTS)
            continue;
        if (op->op_use == ENDS) { /* its memory may serve another cache */
            if (destroyed[op->op_kind] != 0 || task != 0)
                continue;
        }
        op->op_run(task, op->op_kind);
    }
}

/* One schedule of all tasks, from its seed alone. */
static void one_random(uint32_t seed)
{
    static explore_fn_t *const run[EXPLORE_TASKS] = {run_random, run_random,
                                                     run_random, run_random};
    uint32_t state = seed * 0x9e3779b1u + 1;
    struct schedule s = {
        .schedule_tasks = 2 + test_random(&state) % (EXPLORE_TASKS - 1),
        .schedule_rate = 1 + test_random(&state) % 24,
        .schedule_seed = seed,
    };

    explore_guard();
    may_destroy = test_random(&state) % 2;
    make_world(HAS(KINDS) - 1);
    for (unsigned i = 0; i < EXPLORE_TASKS; i++)
        workers[i].worker_random = test_random(&state);
    explore_run(&s, run);
    check_world();
}

/* `count` schedules, each in a process of its own. */
static int try_random(uint32_t seed, uint32_t count)
{
    int bad = 0;

    for (; count != 0 && bad < 3; count--, seed++) {
        int status = 1;
        pid_t pid;

        fflush(stdout);
        pid = fork();
        if (pid == 0) {
            one_random(seed);
            _exit(0);
        }
        waitpid(pid, &status, 0);
        if (WIFSIGNALED(status))
            printf("seed %u: ended by signal %d\n", seed, WTERMSIG(status));
        bad += status != 0;
    }
    return bad;
}

int explore_random(uint32_t seed, uint32_t count)
{
    warm_up();
    return try_random(seed, count) == 0 ? 0 : 1;
}

KTEST(explore, random_schedules)
{
    warm_up();
    KT_EQ(try_random(1, 300), 0);
}
