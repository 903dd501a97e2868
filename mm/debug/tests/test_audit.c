/*
 * Records of operations: the transaction log (S-48), and mode T.
 *
 * Tests: mm/debug/audit.c, mm/debug/modes.c
 */
#include "mm/debug/tests/debug_test.h"

#ifdef MM_HOST

/* ---- 6.1: the log ------------------------------------------------------- */

/* Follows the transactions of a buffer back; returns how many are kept. */
static size_t chain(struct kmem_cache *cp, const void *buf)
{
    uint32_t seq = test_bufctl(cp, buf)->bufctl_log;
    struct kmem_log_entry e;
    uint64_t last = UINT64_MAX;
    enum kmem_op op = KMEM_OP_FREE;
    size_t n = 0;

    for (; kmem_log_get(seq, &e); n++, seq = e.log_prev) {
        KT_TRUE(e.log_seq == seq && e.log_buf == buf && e.log_cache == cp);
        KT_TRUE(e.log_prev < seq && e.log_trans.trans_us < last);
        KT_TRUE(kmem_log_at(seq) != NULL && e.log_trans.trans_depth > 0);
        KT_TRUE(n == 0 || e.log_op != op);
        KT_EQ(e.log_size, e.log_op == KMEM_OP_ALLOC ? 48 : 0);
        KT_EQ(strcmp(kmem_log_name(&e), "t_debug"), 0);
        last = e.log_trans.trans_us;
        op = e.log_op;
    }
    return n;
}

static void pairs(struct kmem_cache *cp, size_t n)
{
    while (n-- != 0)
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
}

/* A reader of the log takes its lock. */
KTEST(kmem_debug, records_are_copied_under_the_lock)
{
    struct kmem_log_entry entry;
    uint64_t taken = host_locks_taken;

    kmem_log_get(1, &entry);
    KT_EQ(host_locks_taken - taken, 1);
}

/* 1/50 of memory, but at most one run of pages; less if that is not free or may
 * not be allocated, but at least four pages. */
static void check_log(size_t pages, size_t limit)
{
    struct kmem_cache *cp = kmem_cache_create("t_log", 48, 0, NULL, NULL);
    size_t free = buddy_free_pages();

    KT_REQUIRE(cp != NULL);
    KT_TRUE(kmem_log_kept() == 0 && kmem_log_at(1) == NULL);
    host_set_keep(limit == 0 ? 0 : free - limit);
    KT_EQ(kmem_log_create(), pages != 0);
    KT_EQ(free - buddy_free_pages(), pages);
    KT_EQ(kmem_log_pages(), pages);
    host_set_keep(0);
    KT_EQ(kmem_debug_set(cp, KMF_AUDIT), 0);
    if (pages != 0) {
        size_t n = pages * PAGE_SIZE / sizeof(struct kmem_log_entry);

        pairs(cp, n + 9);
        KT_EQ(kmem_log_kept(), n);
    }
    test_destroy(cp);
}

static void log_of_a_large_machine(void)
{
    kmem_init();
    check_log(BUDDY_MAX_PAGES, 0);
}

static void log_that_is_halved(void)
{
    kmem_init();
    check_log(1024 / 50 / 2, 1024 / 50 - 1);
}

static void log_of_four_pages(void)
{
    kmem_init();
    check_log(4, 7);
}

static void no_log_of_three_pages(void)
{
    kmem_init();
    check_log(0, 3);
}

KTEST(kmem_debug, S48_size_of_the_log)
{
    host_before_init(60 * BUDDY_MAX_PAGES, log_of_a_large_machine);
    host_before_init(1024, log_that_is_halved);
    host_before_init(16 * 50 + 20, log_of_four_pages);
    host_before_init(16 * 50 + 20, no_log_of_three_pages);
    check_log(HOST_FRAMES / 50, 0);
}

/* At boot, where there was no memory for it. */
KTEST(kmem_debug, S48_audit_without_a_log)
{
    struct kmem_cache *cp;

    kmem_debug_boot(test_modes("U"), "t_debug");
    cp = kmem_cache_create("t_debug", 48, 0, NULL, NULL);
    kmem_debug_boot(0, NULL);
    KT_REQUIRE(cp != NULL && kmem_debug_modes(cp) == KMF_AUDIT);
    pairs(cp, 3);
    KT_EQ(kmem_log_last(), 0);
    test_destroy(cp);
}

/* No other numbers are in the log, and no other cache's transactions. */
KTEST(kmem_debug, S48_other_transactions_are_not_in_the_log)
{
    struct kmem_cache *cp = test_debug("U", 48, 0, false);
    struct kmem_cache *other = kmem_cache_create("t_other", 48, 0, NULL, NULL);

    KT_REQUIRE(other != NULL);
    KT_TRUE(kmem_log_at(UINT32_MAX) == NULL);
    test_switch(other, "FPZ");
    pairs(other, 3);
    KT_EQ(kmem_log_last(), 0);
    test_destroy(other);
    test_destroy(cp);
}

KTEST(kmem_debug, S48_log_of_a_buffer_and_its_overwriting)
{
    struct kmem_cache *cp = test_debug("U", 48, 0, false);
    void *held = kmem_cache_alloc(cp, KM_SLEEP);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    uint32_t seq;
    size_t n;

    kmem_cache_free(cp, obj);
    pairs(cp, 20);
    KT_EQ(chain(cp, obj), 42);
    KT_EQ(chain(cp, held), 1);
    seq = kmem_log_last();
    KT_EQ(test_bufctl(cp, obj)->bufctl_log, seq);
    while (kmem_log_kept() == kmem_log_last())
        pairs(cp, 1);
    n = chain(cp, obj);
    KT_TRUE(n <= kmem_log_kept() && n + 2 >= kmem_log_kept());
    KT_EQ(kmem_log_kept(), n + (chain(cp, held) != 0));
    pairs(cp, kmem_log_kept());
    KT_EQ(chain(cp, held), 0);
    KT_EQ(chain(cp, obj), kmem_log_kept());
    KT_TRUE(kmem_log_at(seq) == NULL && kmem_log_at(0) == NULL);
    KT_TRUE(kmem_log_at(kmem_log_last() + 1) == NULL);
    kmem_cache_free(cp, held);
    test_destroy(cp);
}

KTEST(kmem_debug, S48_log_stops_at_an_error)
{
    struct kmem_cache *cp = test_debug("FU", 48, 0, false);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);
    uint32_t last;

    KT_PANICS(kmem_cache_free(cp, (char *)obj + 8), "not a buffer's start");
    KT_TRUE(kmem_log_stopped);
    last = kmem_log_last();
    pairs(cp, 3);
    KT_TRUE(kmem_cache_grow(cp));
    KT_EQ(kmem_log_last(), last);
    kmem_log_stopped = false;
    pairs(cp, 3);
    KT_EQ(kmem_log_last(), last + 6);
    kmem_cache_free(cp, obj);
    test_destroy(cp);
}

KTEST(kmem_debug, log_knows_the_processor)
{
    struct kmem_cache *cp = test_debug("U", 48, 0, false);
    struct kmem_log_entry e;

    host_cpu = 3;
    pairs(cp, 1);
    host_cpu = 0;
    KT_TRUE(kmem_log_get(kmem_log_last(), &e));
    KT_EQ(e.log_cpu, 3);
    test_destroy(cp);
}

/* The name of a destroyed cache is not guessed. */
KTEST(kmem_debug, log_names_no_destroyed_cache)
{
    struct kmem_cache *cp = test_debug("U", 48, 0, false);
    struct kmem_log_entry e;

    pairs(cp, 1);
    KT_TRUE(kmem_log_get(kmem_log_last(), &e));
    KT_EQ(strcmp(kmem_log_name(&e), "t_debug"), 0);
    test_destroy(cp);
    cp = test_debug("", 48, 0, false);
    KT_EQ(strcmp(kmem_log_name(&e), "?"), 0);
    test_destroy(cp);
}

/* ---- trace -------------------------------------------------------------- */

KTEST(kmem_debug, T_prints_each_event)
{
    struct kmem_cache *cp = kmem_cache_create("t_trace", 40, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    static const uintptr_t stack[] = {0x1234, 0x5678};
    void *obj;
    char text[80];

    for (int round = 0; round < 2; round++) {
        test_switch(cp, round ? "TFZU" : "T");
        for (host_stack_depth = 0; host_stack_depth <= 2; host_stack_depth++) {
            host_stack = stack;
            host_print_clear();
            obj = kmem_cache_alloc(cp, KM_SLEEP);
            TEST_SAYS(host_printed, host_stack_depth == 0
                                        ? " by ?, task 1\n"
                                        : " by 1234, task 1\n");
            kmem_cache_free(cp, obj);
        }
        host_stack = NULL;
        host_print_clear();
        obj = kmem_cache_alloc(cp, KM_SLEEP);
        snprintf(text, sizeof(text), "trace: alloc t_trace %p by ", obj);
        TEST_SAYS(TEST_SAYS(host_printed, text), ", task 1\n");
        KT_NE(*TEST_SAYS(host_printed, " by "), '?');
        host_print_clear();
        kmem_cache_free(cp, obj);
        snprintf(text, sizeof(text), "trace: free t_trace %p by ", obj);
        TEST_SAYS(host_printed, text);
    }
    test_switch(cp, "");
    host_print_clear();
    kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    KT_EQ(host_printed[0], 0);
    KT_EQ(cp->cache_flags, 0);
    test_destroy(cp);
}

#endif
