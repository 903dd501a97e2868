/*
 * The memory commands: their sums are the supplier's, their numbers fit, and
 * their arguments are checked.
 *
 * Tests: kernel/shell/cmd_kmem*.c
 */
#include "drivers/console.h"
#include "tools/workshop/ktest/ktest.h"
#include "kernel/lib/printf.h"
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/io.h"
#include "kernel/shell/cmd_kmem.h"
#include "kernel/shell/shell.h"
#include "kernel/shell/tests/shell_test.h"
#include "mm/debug/debug_impl.h"

/* ---- sums --------------------------------------------------------------- */

KTEST(shell_kmem, totals_equal_the_supplier)
{
    struct heap_totals t;
    uint64_t mem = 0;
    size_t caches = 0;

    heap_totals(&t);
    KT_EQ(t.total_all.sum_mem - t.total_own, t.total_supplier);
    for (int kind = 0; kind < HEAP_KINDS; kind++) {
        mem += t.total_kind[kind].sum_mem;
        caches += t.total_kind[kind].sum_caches;
    }
    KT_EQ(mem + t.total_large.sum_mem, t.total_all.sum_mem);
    KT_EQ(caches, t.total_all.sum_caches);
    KT_GE(t.total_kind[KMEM_KIND_CLASS].sum_caches, 28);
}

KTEST(shell_kmem, totals_follow_a_large_allocation)
{
    struct heap_totals before, during, after;
    void *p;

    heap_totals(&before);
    p = kmem_alloc(5 * PAGE_SIZE, KM_NOSLEEP);
    KT_REQUIRE(p);
    heap_totals(&during);
    kmem_free(p, 5 * PAGE_SIZE);
    heap_totals(&after);
    KT_EQ(during.total_large.sum_mem - before.total_large.sum_mem,
          5 * PAGE_SIZE);
    KT_EQ(during.total_large.sum_inuse - before.total_large.sum_inuse, 1);
    KT_EQ(during.total_all.sum_mem, during.total_supplier + during.total_own);
    KT_EQ(after.total_all.sum_mem, before.total_all.sum_mem);
    KT_EQ(after.total_large.sum_frees - before.total_large.sum_frees, 1);
}

KTEST(shell_kmem, totals_follow_a_class)
{
    struct heap_totals before, during, after;
    const int class = KMEM_KIND_CLASS;
    void *p;

    heap_totals(&before);
    p = kmem_alloc(100, KM_NOSLEEP);
    KT_REQUIRE(p);
    heap_totals(&during);
    kmem_free(p, 100);
    heap_totals(&after);
    KT_EQ(during.total_kind[class].sum_inuse -
              before.total_kind[class].sum_inuse,
          1);
    KT_EQ(during.total_kind[class].sum_used - before.total_kind[class].sum_used,
          112);
    KT_EQ(after.total_kind[class].sum_inuse,
          before.total_kind[class].sum_inuse);
    KT_EQ(after.total_all.sum_allocs - before.total_all.sum_allocs, 1);
}

/* Pages for a cache with a supplier of its own: one run, handed out once. */
static void *own_getpages(size_t pages, void *arg)
{
    void **run = arg;
    void *p = *run;

    *run = NULL;
    return pages == 1 ? p : NULL;
}

static void own_freepages(void *addr, size_t pages, void *arg)
{
    (void)pages;
    *(void **)arg = addr;
}

KTEST(shell_kmem, own_suppliers_are_no_debt_of_segkmem)
{
    void *page = NULL;
    struct kmem_supplier own = {own_getpages, own_freepages, &page};
    struct kmem_cache *cp;
    struct heap_totals t;
    void *run;
    void *obj;

    cp = kmem_cache_create_from("test_own", 64, 0, NULL, NULL, &own);
    KT_REQUIRE(cp != NULL);
    run = kmem_alloc(3 * PAGE_SIZE, KM_NOSLEEP);
    KT_REQUIRE(run);
    page = (void *)ROUND_UP((uintptr_t)run, (uintptr_t)PAGE_SIZE);
    obj = kmem_cache_alloc(cp, KM_NOSLEEP);
    heap_totals(&t);
    KT_EQ(t.total_own, PAGE_SIZE);
    KT_EQ(t.total_all.sum_mem - t.total_own, t.total_supplier);
    if (obj)
        kmem_cache_free(cp, obj);
    KT_EQ(kmem_cache_destroy(cp), 0);
    kmem_free(run, 3 * PAGE_SIZE);
}

/* ---- the ledger --------------------------------------------------------- */

static void nothing(void *obj, size_t size)
{
    (void)obj;
    (void)size;
}

static void check_ledger(size_t size, size_t align, kmem_ctor_t *ctor,
                         size_t extra)
{
    struct kmem_cache *cp =
        kmem_cache_create("test_ledger", size, align, ctor, NULL);
    size_t entry[LEDGER_ENTRIES];
    struct kmem_cache_stat st;
    void *obj[40];

    KT_REQUIRE(cp);
    for (size_t i = 0; i < ARRAY_SIZE(obj); i++)
        obj[i] = kmem_cache_alloc(cp, KM_NOSLEEP);
    kmem_cache_stat(cp, &st);
    KT_EQ(heap_ledger(cp, &st, entry), st.stat_mem);
    KT_EQ(entry[LEDGER_REQUESTED], ARRAY_SIZE(obj) * size);
    KT_EQ(entry[LEDGER_EXTRA_WORD], ARRAY_SIZE(obj) * extra);
    KT_EQ(entry[LEDGER_HEADER],
          size < 500 ? st.stat_slabs * sizeof(struct kmem_slab) : 0);
    for (size_t i = 0; i < ARRAY_SIZE(obj); i++)
        if (obj[i])
            kmem_cache_free(cp, obj[i]);
    kmem_cache_stat(cp, &st);
    KT_EQ(heap_ledger(cp, &st, entry), st.stat_mem);
    KT_EQ(entry[LEDGER_FREE], st.stat_total * st.stat_chunk);
    KT_EQ(kmem_cache_destroy(cp), 0);
}

KTEST(shell_kmem, ledger_adds_up)
{
    check_ledger(200, 0, NULL, 0);
    check_ledger(200, 0, nothing, 4);
    check_ledger(203, 16, nothing, 4);
    check_ledger(700, 0, nothing, 0);
    check_ledger(3000, 64, NULL, 0);
}

/* ---- order -------------------------------------------------------------- */

static uint64_t key_parity(const struct kmem_cache_stat *st)
{
    return st->stat_size % 16;
}

static void check_order(heap_key_t *key)
{
    struct heap_order at = {0};
    struct kmem_cache_stat st;
    struct kmem_cache *last = NULL, *cp;
    uint64_t last_key = UINT64_MAX;
    size_t n = 0, all = 0;

    for (cp = kmem_cache_first(); cp; cp = kmem_cache_next(cp))
        all++;
    while (n <= all && (cp = heap_next(&at, key, &st))) {
        KT_LE(key(&st), last_key);
        KT_NE(KT_PTR(cp), KT_PTR(last));
        last_key = key(&st);
        last = cp;
        n++;
    }
    KT_EQ(n, all);
}

KTEST(shell_kmem, order_visits_each_cache_once)
{
    check_order(heap_key_mem);
    check_order(key_parity); /* almost all keys are equal */
}

/* A new key at each call, as if programs ran meanwhile. */
static uint64_t key_random(const struct kmem_cache_stat *st UNUSED)
{
    static uint32_t state = 1;

    return heap_random(&state);
}

KTEST(shell_kmem, order_visits_each_cache_once_while_keys_change)
{
    struct heap_order at = {0};
    struct kmem_cache_stat st;
    struct kmem_cache *cp;
    uintptr_t sum = 0;
    size_t n = 0;

    while ((cp = heap_next(&at, key_random, &st)) != NULL) {
        sum += (uintptr_t)cp;
        n++;
    }
    KT_TRUE(n > HEAP_BATCH);
    heap_all (cp, &st) {
        sum -= (uintptr_t)cp;
        n--;
    }
    KT_EQ(n, 0);
    KT_EQ(sum, 0);
}

/* ---- time --------------------------------------------------------------- */

#define CACHES_MOST 1600

/* Creates caches up to number `n` of the crowd, from number *made on. */
static void grow_crowd(struct kmem_cache **crowd, size_t *made, size_t n)
{
    char name[16];

    for (; *made < n; ++*made) {
        snprintf(name, sizeof(name), "crowd%zu", *made);
        crowd[*made] = kmem_cache_create(name, 64, 0, NULL, NULL);
        if (!crowd[*made])
            return;
    }
}

static uint64_t cost_of(const char *line, size_t caches)
{
    uint64_t begin = rdtsc(), cost;

    KT_EQ(shell_test_run(line), 0);
    cost = rdtsc() - begin;
    kprintf("# %s: %zu caches more: %llu ticks\n", line, caches, cost);
    return cost;
}

/* Four times as many caches take at most 16 times as long. They have no memory,
 * so that few rows are printed, and what is counted is the way to them. */
KTEST(shell_kmem, time_grows_at_most_as_the_square_of_the_caches)
{
    static const char *const lines[] = {
        "kmastat crowd0",     "slabs", "verify", "cache -u", "reap -n", "debug",
        "cache -o alloc -n 1"};
    static const size_t counts[] = {100, 400, CACHES_MOST};
    uint64_t cost[ARRAY_SIZE(lines)][ARRAY_SIZE(counts)];
    struct kmem_cache **crowd;
    size_t made = 0, i;

    KT_NEEDS_COUNTING();
    crowd = kmem_alloc(CACHES_MOST * sizeof(*crowd), KM_NOSLEEP);
    KT_REQUIRE(crowd != NULL);
    for (i = 0; i < ARRAY_SIZE(counts); i++) {
        grow_crowd(crowd, &made, counts[i]);
        if (made < counts[i])
            break;
        for (size_t l = 0; l < ARRAY_SIZE(lines); l++)
            cost[l][i] = cost_of(lines[l], made);
    }
    while (made > 0)
        KT_EQ(kmem_cache_destroy(crowd[--made]), 0);
    kmem_free(crowd, CACHES_MOST * sizeof(*crowd));
    KT_REQUIRE(i == ARRAY_SIZE(counts));
    for (size_t l = 0; l < ARRAY_SIZE(lines); l++)
        for (i = 1; i < ARRAY_SIZE(counts); i++)
            KT_LE(cost[l][i], 16 * cost[l][i - 1]);
}

/* ---- rows --------------------------------------------------------------- */

KTEST(shell_kmem, contradicting_rows_are_marked)
{
    struct kmem_cache_stat st = {.stat_slab_objects = 10,
                                 .stat_slabs = 3,
                                 .stat_total = 30,
                                 .stat_inuse = 12,
                                 .stat_full_slabs = 1,
                                 .stat_partial_slabs = 1,
                                 .stat_free_slabs = 1,
                                 .stat_allocs = 20,
                                 .stat_frees = 8};
    struct kmem_cache_stat bad = st;

    KT_TRUE(!heap_bad_row(&st));
    bad.stat_inuse = 31;
    KT_TRUE(heap_bad_row(&bad));
    bad = st;
    bad.stat_full_slabs = 2;
    KT_TRUE(heap_bad_row(&bad));
    bad = st;
    bad.stat_total = 29;
    KT_TRUE(heap_bad_row(&bad));
    bad = st;
    bad.stat_frees = 9;
    KT_TRUE(heap_bad_row(&bad));
}

/* ---- numbers ------------------------------------------------------------ */

static void check_age(uint64_t ms, const char *want)
{
    char buf[HEAP_CELL];

    heap_age(ms, buf);
    if (strcmp(buf, want) != 0)
        KT_FAIL("%llu: got %s, want %s", (unsigned long long)ms, buf, want);
}

KTEST(shell_kmem, ages)
{
    check_age(0, "0ms");
    check_age(999, "999ms");
    check_age(15250, "15.2s");
    check_age(600000, "10m");
    check_age(7200000, "2h");
    check_age(864000000, "10d");
}

KTEST(shell_kmem, waste_in_thousandths)
{
    char buf[HEAP_CELL];

    KT_EQ(strcmp(heap_percent(0, 0, buf), "0.0"), 0);
    KT_EQ(strcmp(heap_percent(96, 4096, buf), "2.3"), 0);
    KT_EQ(strcmp(heap_percent(4096, 4096, buf), "100.0"), 0);
    KT_EQ(strcmp(heap_percent(1, 8, buf), "12.5"), 0);
    KT_EQ(strcmp(heap_percent(2, 3, buf), "66.7"), 0);
    KT_EQ(strcmp(heap_percent(1ull << 40, 1ull << 41, buf), "50.0"), 0);
}

/* ---- arguments ---------------------------------------------------------- */

KTEST(shell_kmem, patterns)
{
    KT_TRUE(heap_match("kmem_alloc_64", NULL));
    KT_TRUE(heap_match("kmem_alloc_64", "alloc"));
    KT_TRUE(!heap_match("kmem_alloc_64", "alocl"));
    KT_TRUE(heap_match("kmem_alloc_64", "kmem_*_64"));
    KT_TRUE(heap_match("kmem_alloc_64", "*a*l*4*"));
    KT_TRUE(!heap_match("kmem_alloc_64", "alloc*"));
    KT_TRUE(heap_match("kmem_alloc_64", "kmem_alloc_??"));
    KT_TRUE(!heap_match("kmem_alloc_64", "kmem_alloc_???"));
    KT_TRUE(heap_match("aaab", "*aab"));
    KT_TRUE(!heap_match("", "?"));
}

KTEST(shell_kmem, hash_points_are_the_allocators)
{
    for (size_t entries = 64; entries <= 65536; entries *= 4) {
        size_t grow = heap_hash_grow(entries);
        size_t shrink = heap_hash_shrink(entries);

        KT_EQ(kmem_hash_want(entries, grow - 1), entries);
        KT_GE(kmem_hash_want(entries, grow), 2 * entries);
        if (entries == 64) {
            KT_EQ(shrink, 0);
            continue;
        }
        KT_EQ(kmem_hash_want(entries, shrink + 1), entries);
        KT_LE(kmem_hash_want(entries, shrink), entries / 2);
    }
}

KTEST(shell_kmem, slab_is_found_by_its_address)
{
    struct kmem_cache *cp =
        kmem_cache_create("test_place", 2048, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_slab_stat slab;
    size_t index, n;
    void *obj[9];

    for (size_t i = 0; i < ARRAY_SIZE(obj); i++)
        obj[i] = kmem_cache_alloc(cp, KM_NOSLEEP);
    KT_EQ(KT_PTR(kmem_slab_lookup((char *)obj[8] + 5, &slab, &index)),
          KT_PTR(cp));
    n = heap_slab_number(cp, slab.stat_slab);
    KT_GE(n, 1);
    KT_TRUE(kmem_slab_stat(cp, n, &slab) && kmem_slab_used(&slab, index));
    KT_EQ(heap_slab_number(cp, (uintptr_t)&slab), SIZE_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(obj); i++)
        if (obj[i])
            kmem_cache_free(cp, obj[i]);
    n = heap_slab_number(cp, slab.stat_slab);
    KT_TRUE(kmem_slab_stat(cp, n, &slab) && !kmem_slab_used(&slab, index));
    KT_EQ(kmem_cache_destroy(cp), 0);
}

/* ---- the commands ------------------------------------------------------- */

static void end_play(void *unused)
{
    (void)unused;
    if (kmem_cache_find("test_play") == NULL)
        return;
    KT_EQ(shell_test_run("kmem free test_play all"), 0);
    KT_EQ(shell_test_run("kmem destroy test_play"), 0);
}

KTEST(shell_kmem, playground_leaves_colours_out)
{
    ktest_undo(end_play, NULL);
    KT_REQUIRE(shell_test_run("kmem create test_play 256 nocolour") == 0);
    KT_EQ(kmem_cache_find("test_play")->cache_colour_max, 0);
    KT_REQUIRE(shell_test_run("kmem alloc test_play 16") == 0);
    KT_EQ(kmem_cache_find("test_play")->cache_colour, 0);
    KT_EQ(shell_test_run("kmem free test_play all"), 0);
    KT_EQ(shell_test_run("kmem destroy test_play"), 0);
    KT_EQ(shell_test_run("kmem create test_play 256 8 ctor nocolour x"), 1);
}

KTEST(shell_kmem, playground_frees_everything)
{
    struct kmem_cache *cp;
    struct kmem_cache_stat st;

    ktest_undo(end_play, NULL);
    KT_REQUIRE(shell_test_run("kmem create test_play 200 1k ctor") == 0);
    cp = kmem_cache_find("test_play");
    KT_REQUIRE(cp);
    KT_REQUIRE(shell_test_run("kmem alloc test_play 100") == 0);
    KT_EQ(shell_test_run("kmem free test_play 30 random"), 0);
    KT_EQ(shell_test_run("kmem free test_play 20 fifo"), 0);
    KT_EQ(shell_test_run("kmem free test_play 10"), 0);
    kmem_cache_stat(cp, &st);
    KT_EQ(st.stat_inuse, 40);
    KT_EQ(shell_test_run("kmem free test_play 41"), 1);
    KT_EQ(shell_test_run("kmem destroy test_play"), 1);
    KT_EQ(shell_test_run("kmem free test_play all random"), 0);
    KT_EQ(shell_test_run("kmem destroy test_play"), 0);
    KT_EQ(KT_PTR(kmem_cache_find("test_play")), 0);
    KT_EQ(KT_PTR(kmem_cache_find("kmem_play")), 0);
}

/* In mode P an object is destroyed as it is freed, not with its slab. */
KTEST(shell_kmem, a_reap_destroys_constructed_objects)
{
    ktest_undo(end_play, NULL);
    KT_REQUIRE(shell_test_run("kmem create test_play 200 ctor") == 0);
    KT_EQ(shell_test_run("debug =none test_play; kmem alloc test_play 1; "
                         "kmem free test_play 1; reap -a test_play"),
          0);
    KT_TRUE(strstr(shell_test_said, "objects: 0 destroyed") == NULL);
    KT_EQ(shell_test_run("debug =P test_play; kmem alloc test_play 1; "
                         "kmem free test_play 1; reap -a test_play"),
          0);
    KT_TRUE(strstr(shell_test_said, "slabs: 1 freed") != NULL);
    KT_TRUE(strstr(shell_test_said, "objects: 0 destroyed") != NULL);
    KT_EQ(shell_test_run("kmem destroy test_play"), 0);
}

KTEST(shell_kmem, stress_and_verify)
{
    KT_EQ(shell_test_run("stress 42 3000"), 0);
    KT_EQ(shell_test_run("verify kmem_slab"), 0);
}

/* ---- ^C ----------------------------------------------------------------- */

#define KBC_DATA          0x60
#define KBC_STATUS        0x64 /* read */
#define KBC_COMMAND       0x64 /* written */
#define KBC_STATUS_OUTPUT 0x01
#define KBC_WRITE_OUTPUT  0xD2 /* the byte comes as if from the keyboard */
#define SCAN_CTRL         0x1D
#define SCAN_C            0x2E
#define SCAN_RELEASE      0x80

/* Presses and releases Ctrl and C. The handler has stored the ^C on return;
 * false: the controller does not repeat the bytes, as in v86. */
static bool press_ctrl_c(void)
{
    static const uint8_t codes[] = {SCAN_CTRL, SCAN_C, SCAN_C | SCAN_RELEASE,
                                    SCAN_CTRL | SCAN_RELEASE};

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        outb(KBC_COMMAND, KBC_WRITE_OUTPUT);
        outb(KBC_DATA, codes[i]);
        while (inb(KBC_STATUS) & KBC_STATUS_OUTPUT)
            continue;
    }
    return console_interrupt_pending();
}

static size_t lines_said(void)
{
    size_t n = 0;

    for (const char *s = shell_test_said; *s != '\0'; s++)
        n += *s == '\n';
    return n;
}

/* At most a sum follows the heading; without ^C there are rows. */
KTEST(shell_kmem, ctrl_c_ends_a_long_report)
{
    static const char *const lines[] = {"kmastat", "verify", "slabs",
                                        "cache -o free -n 20"};

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        KT_NEEDS_THAT(press_ctrl_c(), "needs a keyboard that tests can press");
        shell_test_run(lines[i]);
        KT_LE(lines_said(), 3);
        KT_TRUE(strstr(shell_test_said, "^C\n") != NULL);
        KT_EQ(shell_test_run(lines[i]), 0);
        KT_GE(lines_said(), 4);
        KT_TRUE(strstr(shell_test_said, "^C\n") == NULL);
    }
}

KTEST(shell_kmem, ctrl_c_ends_a_long_free)
{
    struct kmem_cache_stat st;
    bool pressed;

    ktest_undo(end_play, NULL);
    KT_REQUIRE(shell_test_run("kmem create test_play 8") == 0);
    KT_REQUIRE(shell_test_run("kmem alloc test_play 10") == 0);
    pressed = press_ctrl_c();
    shell_test_run("kmem free test_play all random");
    kmem_cache_stat(kmem_cache_find("test_play"), &st);
    end_play(NULL);
    KT_NEEDS_THAT(pressed, "needs a keyboard that tests can press");
    KT_EQ(st.stat_inuse, 10);
}
