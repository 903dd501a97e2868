/*
 * Tests of lab 9, tasks 9.2 to 9.7: magazines (mm/kmem_mag.c).
 *
 * A test makes what processors have by hand, in a cache of its own: so the
 * tests of one task need no other. They run on the first processor, except
 * those that move from one to the next.
 */
#include "tools/workshop/labs/guard.h"
#include "tools/workshop/labs/lab.h"
#include "tools/workshop/labs/seed.h"
#include "kernel/lib/string.h"
#include "kernel/task/task.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/kmem_impl.h"

/* What follows from the seed: bytes of an object, rounds of a magazine that is
 * not full, magazines in a depot. */
enum {
    OBJECT = 90,
    SOME,
    DEPOT
};

#define SIZE   (40 + 4 * lab_pick(OBJECT, 40))
#define FEW    (3 + lab_pick(SOME, 9))
#define ROUNDS KMEM_ROUNDS
#define MANY   (2 * ROUNDS + 2)

#define SAME(a, b) KT_EQ(KT_PTR(a), KT_PTR(b))

static struct kmem_cache *cp;
static struct kmem_cpu_cache *cc; /* of the first processor */
static void *obj[MANY];

/* Whether the lock of the cache is taken. (Disabled interrupts do not say that
 * here.) */
static bool is_locked(const struct trapframe *tf UNUSED)
{
    return cp->cache_lock.lock_taken != 0;
}

/* ---- what processors have ----------------------------------------------- */

static void move_to(unsigned cpu)
{
    sched_move_self((uint8_t)(1u << cpu));
}

static struct kmem_cache *lines(void)
{
    return kmem_cache_find("kmem_magazine");
}

/* Zeroed memory for a magazine or a struct kmem_cpu_cache. */
static void *new_line(void)
{
    void *line = kmem_slab_alloc(lines(), KM_SLEEP);

    return memset(line, 0, sizeof(struct kmem_magazine));
}

/* A magazine with n objects of the slabs, which are in obj[from] on. */
static struct kmem_magazine *magazine(size_t from, uint32_t n)
{
    struct kmem_magazine *m = new_line();

    for (uint32_t i = 0; i < n; i++)
        m->mag_round[i] = obj[from + i] = kmem_slab_alloc(cp, KM_SLEEP);
    cp->cache_refilled += n;
    return m;
}

static void set_rounds(uint32_t rounds)
{
    mm_lock(&cp->cache_lock);
    cp->cache_rounds = rounds;
    mm_unlock(&cp->cache_lock);
}

/* Gives the processor on which this runs a struct kmem_cpu_cache. */
static struct kmem_cpu_cache *give_cpu_cache(unsigned cpu)
{
    struct kmem_cpu_cache *new = new_line();

    new->cc_room = ROUNDS;
    __atomic_store_n(&cp->cache_cpu[cpu], new, __ATOMIC_RELEASE);
    return new;
}

/* A cache whose magazines have ROUNDS, and what the first processor has:
 * `loaded` objects in the loaded magazine, `previous` in the other; -1: there
 * is none. */
static void begin(size_t size, int loaded, int previous)
{
    move_to(0);
    cp = kmem_cache_create("lab9", size, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    set_rounds(ROUNDS);
    cc = give_cpu_cache(0);
    if (loaded >= 0) {
        cc->cc_loaded = magazine(0, (uint32_t)loaded);
        cc->cc_rounds = (uint32_t)loaded;
    }
    if (previous >= 0) {
        cc->cc_previous = magazine(ROUNDS, (uint32_t)previous);
        cc->cc_previous_rounds = (uint32_t)previous;
    }
}

static void put(bool full, struct kmem_magazine *m)
{
    struct kmem_depot *d = &cp->cache_depot[full];

    d->depot_min = ++d->depot_total;
    m->mag_next = d->depot_list;
    d->depot_list = m;
}

static void drop(struct kmem_magazine *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kmem_slab_free(cp, m->mag_round[i]);
    cp->cache_drained += n;
    if (m != NULL)
        kmem_slab_free(lines(), m);
}

static void drop_depot(bool full)
{
    struct kmem_depot *d = &cp->cache_depot[full];

    while (d->depot_list != NULL) {
        struct kmem_magazine *m = d->depot_list;

        d->depot_list = m->mag_next;
        drop(m, full ? ROUNDS : 0);
    }
    *d = (struct kmem_depot){.depot_total = 0};
}

/* Takes all of it back by hand, and destroys the cache. */
static void end(void)
{
    move_to(0);
    set_rounds(0);
    drop(cc->cc_loaded, cc->cc_rounds);
    drop(cc->cc_previous, cc->cc_previous_rounds);
    cp->cache_mag_frees += cc->cc_frees;
    cp->cache_mag_allocs += cc->cc_allocs;
    cp->cache_cpu[0] = &kmem_cpu_none;
    kmem_slab_free(lines(), cc);
    drop_depot(true);
    drop_depot(false);
    sched_move_self((uint8_t)((1u << cpu_count) - 1));
    KT_EQ(kmem_cache_destroy(cp), 0);
}

/* ---- 9.2: rounds --------------------------------------------------------- */

LAB_TEST(9, alloc, LAB_BARE)
{
    begin(SIZE, (int)FEW, -1);
    for (uint32_t i = FEW; i-- > 0;) {
        SAME(kmem_cache_alloc(cp, KM_NOSLEEP), obj[i]);
        KT_EQ(cc->cc_rounds, i);
    }
    KT_EQ(cc->cc_allocs, FEW);
    KT_EQ(cc->cc_frees, 0);
    for (uint32_t i = 0; i < FEW; i++)
        kmem_slab_free(cp, obj[i]);
    end();
}

LAB_TEST(9, free, LAB_BARE)
{
    begin(SIZE, (int)FEW, -1);
    for (uint32_t i = FEW; i < ROUNDS; i++)
        obj[i] = kmem_slab_alloc(cp, KM_SLEEP);
    for (uint32_t i = FEW; i < ROUNDS; i++) {
        kmem_cache_free(cp, obj[i]);
        KT_EQ(cc->cc_rounds, i + 1);
    }
    for (uint32_t i = 0; i < ROUNDS; i++)
        SAME(cc->cc_loaded->mag_round[i], obj[i]);
    KT_EQ(cc->cc_allocs, 0);
    KT_EQ(cc->cc_frees, ROUNDS - FEW);
    end();
}

/* Who takes the lock waits for ever. */
LAB_TEST(9, no_lock, LAB_BARE)
{
    begin(SIZE, (int)FEW, -1);
    mm_lock(&cp->cache_lock);
    obj[MANY - 1] = kmem_cache_alloc(cp, KM_NOSLEEP);
    kmem_cache_free(cp, obj[MANY - 1]);
    mm_unlock(&cp->cache_lock);
    SAME(obj[MANY - 1], obj[FEW - 1]);
    KT_EQ(cc->cc_rounds, FEW);
    end();
}

/* The task keeps its processor while it changes what that has, and no longer:
 * the guard looks at the interrupt flag. */
LAB_TEST(9, interrupts, LAB_BARE)
{
    void *buf;

    begin(SIZE, (int)FEW, -1);
    lab_guard("the rounds of this processor", &cc->cc_rounds, lab_spin_held);
    buf = kmem_cache_alloc(cp, KM_NOSLEEP);
    KT_NE(read_eflags() & EFLAGS_IF, 0);
    kmem_cache_free(cp, buf);
    KT_NE(read_eflags() & EFLAGS_IF, 0);
    lab_unguard();
    end();
}

/* ---- 9.3: the depot ------------------------------------------------------ */

/* Without the lock, too. */
LAB_TEST(9, exchange, LAB_BARE)
{
    struct kmem_magazine *loaded, *previous;
    void *buf;

    begin(SIZE, 0, ROUNDS);
    loaded = cc->cc_loaded;
    previous = cc->cc_previous;
    mm_lock(&cp->cache_lock);
    buf = kmem_cache_alloc(cp, KM_NOSLEEP);
    mm_unlock(&cp->cache_lock);
    SAME(buf, obj[2 * ROUNDS - 1]);
    SAME(cc->cc_loaded, previous);
    KT_EQ(cc->cc_rounds, ROUNDS - 1);
    SAME(cc->cc_previous, loaded);
    KT_EQ(cc->cc_previous_rounds, 0);
    kmem_cache_free(cp, buf); /* full again; and one more, in the other */
    obj[0] = kmem_slab_alloc(cp, KM_SLEEP);
    mm_lock(&cp->cache_lock);
    kmem_cache_free(cp, obj[0]);
    mm_unlock(&cp->cache_lock);
    SAME(cc->cc_loaded, loaded);
    KT_EQ(cc->cc_rounds, 1);
    SAME(cc->cc_previous, previous);
    KT_EQ(cc->cc_previous_rounds, ROUNDS);
    end();
}

LAB_TEST(9, full, LAB_BARE)
{
    struct kmem_depot *d;
    struct kmem_magazine *loaded, *previous, *top;
    void *buf;

    begin(SIZE, 0, 0);
    d = cp->cache_depot;
    put(true, magazine(0, ROUNDS));
    put(true, magazine(ROUNDS, ROUNDS));
    top = d[KMEM_FULL].depot_list;
    loaded = cc->cc_loaded;
    previous = cc->cc_previous;
    lab_guard("the depot", &d[KMEM_FULL].depot_total, is_locked);
    buf = kmem_cache_alloc(cp, KM_NOSLEEP);
    lab_unguard();
    SAME(buf, obj[2 * ROUNDS - 1]);
    SAME(cc->cc_loaded, top);
    KT_EQ(cc->cc_rounds, ROUNDS - 1);
    KT_EQ(cc->cc_room, ROUNDS);
    SAME(cc->cc_previous, loaded);
    KT_EQ(cc->cc_previous_rounds, 0);
    KT_EQ(d[KMEM_FULL].depot_total, 1);
    KT_EQ(d[KMEM_FULL].depot_min, 1);
    SAME(d[KMEM_EMPTY].depot_list, previous);
    KT_EQ(d[KMEM_EMPTY].depot_total, 1);
    KT_EQ(d[KMEM_EMPTY].depot_min, 0); /* T rises; m does not */
    kmem_slab_free(cp, buf);
    end();
}

LAB_TEST(9, empty, LAB_BARE)
{
    struct kmem_depot *d;
    struct kmem_magazine *loaded, *previous, *top;

    begin(SIZE, ROUNDS, ROUNDS);
    d = cp->cache_depot;
    put(false, new_line());
    put(false, new_line());
    top = d[KMEM_EMPTY].depot_list;
    loaded = cc->cc_loaded;
    previous = cc->cc_previous;
    obj[MANY - 1] = kmem_slab_alloc(cp, KM_SLEEP);
    kmem_cache_free(cp, obj[MANY - 1]);
    SAME(cc->cc_loaded, top);
    KT_EQ(cc->cc_rounds, 1);
    SAME(cc->cc_previous, loaded);
    KT_EQ(cc->cc_previous_rounds, ROUNDS);
    KT_EQ(d[KMEM_EMPTY].depot_total, 1);
    KT_EQ(d[KMEM_EMPTY].depot_min, 1);
    SAME(d[KMEM_FULL].depot_list, previous);
    KT_EQ(d[KMEM_FULL].depot_total, 1);
    end();
}

/* ---- 9.4: from and to the slabs ------------------------------------------ */

/* As many as a magazine has, or as the first slab has left, in the order in
 * which the slab would allocate them. */
LAB_TEST(9, refill, LAB_BARE)
{
    static void *used[PAGE_SIZE / 40];
    size_t n, few = FEW; /* in the first slab after a refill */

    begin(SIZE, 0, -1);
    for (n = 0; n < cp->cache_slab_chunks; n++)
        used[n] = kmem_slab_alloc(cp, KM_SLEEP);
    for (size_t i = n; i-- > n - ROUNDS - few;)
        kmem_slab_free(cp, used[i]);
    lab_guard("a count of the cache", &cp->cache_refilled, is_locked);
    for (size_t i = n - ROUNDS - few; i < n - few; i++)
        SAME(kmem_cache_alloc(cp, KM_NOSLEEP), used[i]);
    KT_EQ(cc->cc_rounds, 0);
    KT_EQ(cp->cache_refilled, ROUNDS);
    SAME(kmem_cache_alloc(cp, KM_NOSLEEP), used[n - few]);
    KT_EQ(cc->cc_rounds, few - 1);
    KT_EQ(cp->cache_refilled, ROUNDS + few);
    lab_unguard();
    for (size_t i = 0; i <= n - few; i++)
        kmem_slab_free(cp, used[i]);
    end();
}

/* ---- 9.5: getting rounds back -------------------------------------------- */

static size_t inuse(struct kmem_cache *of)
{
    struct kmem_cache_stat st;

    kmem_cache_stat(of, &st);
    return st.stat_inuse;
}

LAB_TEST(9, back, LAB_BARE)
{
    size_t before = inuse(lines());

    cp = kmem_cache_create("lab9", SIZE, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    set_rounds(ROUNDS);
    for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
        move_to(cpu);
        cc = give_cpu_cache(cpu);
        cc->cc_rounds = FEW - cpu % 3;
        cc->cc_loaded = magazine(0, cc->cc_rounds);
        if (cpu != 1) {
            cc->cc_previous = magazine(ROUNDS, ROUNDS);
            cc->cc_previous_rounds = ROUNDS;
        }
        cc->cc_allocs = 10 + cpu;
        cc->cc_frees = 10 + cpu;
    }
    move_to(0);
    lab_guard("a count of the cache", &cp->cache_drained, is_locked);
    kmem_mag_reap(cp, KMEM_REAP_ALL);
    lab_unguard();
    for (unsigned cpu = 0; cpu < cpu_count; cpu++)
        if (cp->cache_cpu[cpu] != &kmem_cpu_none)
            KT_FAIL("processor %u still has what it had", cpu);
    KT_EQ(kmem_inuse(cp), 0);
    KT_EQ(cp->cache_refilled, cp->cache_drained);
    KT_EQ(cp->cache_mag_allocs,
          cpu_count * 10 + cpu_count * (cpu_count - 1) / 2);
    KT_EQ(cp->cache_mag_frees, cp->cache_mag_allocs);
    KT_EQ(inuse(lines()), before);
    sched_move_self((uint8_t)((1u << cpu_count) - 1));
    KT_EQ(kmem_cache_destroy(cp), 0);
}

/* The slabs find that this address was never allocated: here, not before. */
LAB_TEST_PANICS(9, unknown, LAB_BARE,
                "was freed, but is not an allocated buffer of cache lab9")
{
    begin(1000, 1, -1);
    cc->cc_loaded->mag_round[0] = (char *)obj[0] + 8;
    lab_must_panic();
    kmem_mag_reap(cp, KMEM_REAP_ALL);
}

/* ---- 9.6: the working set of the depot ----------------------------------- */

static void expect_depot(uint32_t total, uint32_t min, uint32_t limit)
{
    const struct kmem_depot *d = &cp->cache_depot[KMEM_EMPTY];

    if (d->depot_total != total || d->depot_min != min ||
        d->depot_limit != limit)
        KT_FAIL("T, m and L of the empty magazines are %u, %u and %u; want "
                "%u, %u and %u",
                (unsigned)d->depot_total, (unsigned)d->depot_min,
                (unsigned)d->depot_limit, (unsigned)total, (unsigned)min,
                (unsigned)limit);
}

static void update(void)
{
    mm_lock(&cp->cache_lock);
    kmem_mag_update(cp);
    mm_unlock(&cp->cache_lock);
}

/* Empty magazines: `total` in the depot, at least `min` of them in this
 * interval. */
static void fill_depot(uint32_t total, uint32_t min)
{
    drop_depot(false);
    for (uint32_t i = 0; i < total; i++)
        put(false, new_line());
    cp->cache_depot[KMEM_EMPTY].depot_min = min;
}

LAB_TEST(9, updates, LAB_BARE)
{
    uint32_t total = 4 + lab_pick(DEPOT, 9);

    cp = kmem_cache_create("lab9", SIZE, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    fill_depot(total, 2);
    cp->cache_depot[KMEM_FULL].depot_min = 1;
    update();
    expect_depot(total, total, 2);
    KT_EQ(cp->cache_depot[KMEM_FULL].depot_limit, 1);
    KT_EQ(cp->cache_depot[KMEM_FULL].depot_min, 0);
    update();
    expect_depot(total, total, total);
    drop_depot(false);
    KT_EQ(kmem_cache_destroy(cp), 0);
}

LAB_TEST(9, working_set, LAB_BARE)
{
    static const uint8_t rows[][3] = {{6, 6, 6}, {6, 4, 2}, {6, 2, 4},
                                      {6, 0, 6}, {6, 6, 0}, {3, 1, 1}};
    size_t before = inuse(lines());

    cp = kmem_cache_create("lab9", SIZE, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint32_t total = rows[i][0] + lab_pick(DEPOT, 9);
        uint32_t min = rows[i][1], limit = rows[i][2];
        uint32_t some = MIN(min, limit);

        fill_depot(total, min);
        cp->cache_depot[KMEM_EMPTY].depot_limit = limit;
        for (unsigned again = 0; again < 2; again++) {
            kmem_mag_reap(cp, KMEM_REAP_WS);
            expect_depot(total - some, min - some, limit - some);
        }
        KT_EQ(inuse(lines()), before + total - some);
    }
    drop_depot(false);
    KT_EQ(kmem_cache_destroy(cp), 0);
}

LAB_TEST(9, extremes, LAB_BARE)
{
    uint32_t interval = kmem_ws_interval;

    cp = kmem_cache_create("lab9", SIZE, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    fill_depot(4, 4);
    update();
    kmem_ws_interval = KMEM_WS_INFINITE;
    kmem_mag_reap(cp, KMEM_REAP_WS);
    kmem_ws_interval = interval;
    expect_depot(4, 4, 4);
    kmem_mag_reap(cp, KMEM_REAP_ALL);
    expect_depot(0, 0, 0);
    fill_depot(4, 0);
    kmem_ws_interval = 0;
    kmem_mag_reap(cp, KMEM_REAP_WS);
    kmem_ws_interval = interval;
    expect_depot(0, 0, 0);
    KT_EQ(kmem_cache_destroy(cp), 0);
}

/* ---- 9.7: switched on ---------------------------------------------------- */

LAB_TEST(9, capacity, LAB_BARE)
{
    static struct kmem_cache fake;
    uint32_t most = kmem_mag_most, last = KMEM_ROUNDS;

    for (uint32_t chunk = 8; chunk <= 3 * PAGE_SIZE; chunk += 8) {
        uint32_t n;

        fake.cache_chunk = chunk;
        n = kmem_mag_capacity(&fake);
        if (n == 0 || n > last || (chunk <= 256 && n != KMEM_ROUNDS) ||
            (n > 1 && n * chunk > 2 * PAGE_SIZE)) {
            KT_FAIL("a magazine of objects of %u bytes has %u rounds",
                    (unsigned)chunk, (unsigned)n);
            break;
        }
        last = n;
    }
    fake.cache_chunk = 64;
    kmem_mag_most = 3;
    KT_EQ(kmem_mag_capacity(&fake), 3);
    kmem_mag_most = most;
}

#define OPS  6000u
#define KEEP 40u

static unsigned wrong;
static unsigned working;
static size_t size;

/* Objects that were allocated are nobody else's: each word of one is its
 * user's stamp until the free. */
static bool is_own(const uint32_t *words, uint32_t stamp)
{
    for (size_t i = 0; i < size / sizeof(*words); i++)
        if (words[i] != stamp)
            return false;
    return true;
}

static void use(void *number)
{
    uint32_t cpu = (uint32_t)(uintptr_t)number, random = cpu, count = 0;
    uint32_t *kept[KEEP];

    move_to(cpu);
    for (uint32_t i = 0; i < OPS || count != 0; i++) {
        uint32_t stamp = cpu + 1, *words;

        random = random * 1664525u + 1013904223u;
        if (i < OPS && count < KEEP && (count == 0 || random >> 31)) {
            words = kept[count++] = kmem_cache_alloc(cp, KM_SLEEP);
            for (size_t w = 0; w < size / sizeof(*words); w++)
                words[w] = stamp;
        } else {
            words = kept[--count];
            if (!is_own(words, stamp))
                __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
            kmem_cache_free(cp, words);
        }
        if (i % 64 == 0)
            cpu_relax();
    }
    __atomic_sub_fetch(&working, 1, __ATOMIC_RELEASE);
}

/* Reaps in all ways until the others are done. */
static void disturb(void)
{
    for (unsigned i = 0; __atomic_load_n(&working, __ATOMIC_ACQUIRE) != 0;
         i++) {
        kmem_cache_reap(cp, i % 8 == 0 ? KMEM_REAP_ALL : KMEM_REAP_WS);
        kmem_update();
        sched_sleep_ms(1);
    }
}

/* Full magazines go to the depot, and after an update some of them come back:
 * T falls, and m with it. */
static void use_depot(void)
{
    static void *many[8 * ROUNDS];
    const char *where;

    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = kmem_cache_alloc(cp, KM_SLEEP);
    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        kmem_cache_free(cp, many[i]);
    kmem_update();
    for (size_t i = 0; i < ARRAY_SIZE(many) / 2; i++)
        many[i] = kmem_cache_alloc(cp, KM_SLEEP);
    SAME(kmem_cache_verify(cp, &where), NULL);
    for (size_t i = 0; i < ARRAY_SIZE(many) / 2; i++)
        kmem_cache_free(cp, many[i]);
}

LAB_TEST(9, whole, LAB_UP)
{
    struct kmem_cache_stat st;
    struct kmem_mag_stat mag;
    const char *where;
    pid_t pid[CPUS_MAX];
    int status;

    lab_seconds(10);
    size = SIZE;
    cp = kmem_cache_create("lab9", size, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    working = cpu_count;
    for (uintptr_t i = 0; i < cpu_count; i++) {
        struct task *t = task_create("use", use, (void *)i, PRIORITY_KERNEL);

        KT_REQUIRE(t != NULL);
        pid[i] = t->task_pid;
    }
    disturb();
    for (unsigned i = 0; i < cpu_count; i++)
        KT_EQ(task_wait(pid[i], &status, 0), pid[i]);
    KT_EQ(wrong, 0);
    SAME(kmem_cache_verify(cp, &where), NULL);
    move_to(0);
    use_depot();
    sched_move_self((uint8_t)((1u << cpu_count) - 1));
    kmem_cache_stat(cp, &st);
    kmem_mag_stat(cp, &mag);
    KT_EQ(st.stat_inuse, 0);
    KT_GE(mag.stat_served * 2, st.stat_allocs + st.stat_frees);
    kmem_cache_reap(cp, KMEM_REAP_ALL);
    kmem_cache_stat(cp, &st);
    KT_EQ(st.stat_trapped, 0);
    KT_EQ(st.stat_slabs, 0);
    KT_EQ(kmem_cache_destroy(cp), 0);
}
