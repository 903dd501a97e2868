/*
 * The report (S-56), the transaction log and the rings of rare events (S-48),
 * injected failures, and kmem_verify at every N-th operation.
 */
#include "mm/debug/tests/debug_test.h"

#ifdef MM_HOST

/* ---- 6.8: the report ---------------------------------------------------- */

static const char *says_transaction(const char *at, const char *what,
                                    const struct kmem_transaction *t,
                                    const struct kmem_buf_stat *b)
{
    uint64_t ago = kmem_last_error.error_us - t->trans_us;
    char text[160];

    snprintf(text, sizeof(text),
             "thread=%u (%s)  time=T-%llu.%06u  slab=%lx  cache: t_debug  %s\n",
             (unsigned)t->trans_task, t->trans_task == 1 ? "one" : "other",
             (unsigned long long)(ago / 1000000), (unsigned)(ago % 1000000),
             (unsigned long)b->stat_slab, what);
    at = TEST_SAYS(at, text);
    for (size_t i = 0; i < t->trans_depth; i++) {
        snprintf(text, sizeof(text), "%lx\n", (unsigned long)t->trans_stack[i]);
        KT_TRUE(strncmp(at, text, strlen(text)) == 0);
        at += strlen(text);
    }
    return at;
}

/* `at` begins with this text; returns its end. */
static const char *says_exactly(const char *at, const char *text)
{
    size_t n = strlen(text);

    if (strncmp(at, text, n) == 0)
        return at + n;
    KT_FAIL("\"%s\" does not follow here: %s", text, at);
    return at;
}

/* The last line of a report: from the third transaction of a buffer on, the
 * newest first, only the log has them. */
static const char *continues(char *text, size_t size, struct kmem_cache *cp,
                             const void *buf)
{
    const struct kmem_log_entry *e =
        kmem_log_at(test_bufctl(cp, buf)->bufctl_log);

    for (unsigned i = 0; i < 2 && e != NULL; i++)
        e = kmem_log_at(e->log_prev);
    KT_TRUE(e != NULL);
    snprintf(text, size, "(transaction log continues at %lx: `log %lx`)\n",
             (unsigned long)(uintptr_t)e, (unsigned long)(uintptr_t)buf);
    return text;
}

KTEST(kmem_debug, S56_fields_of_the_report_in_order)
{
    struct kmem_cache *cp = test_debug("FPZU", 48, 0, false);
    uint32_t *obj = kmem_cache_alloc(cp, KM_SLEEP);
    void *other = NULL;
    struct kmem_buf_stat b;
    const char *at;
    char text[160];

    kmem_cache_free(cp, obj);
    KT_TRUE(kmem_cache_alloc(cp, KM_SLEEP) == obj);
    host_clock_ms += 1830;
    host_task = 7;
    kmem_cache_free(cp, obj);
    obj[6] = 0x34;
    host_clock_ms += 89;
    TEST_ERROR(KMEM_ERROR_MODIFIED, other = kmem_cache_alloc(cp, KM_SLEEP));
    host_task = 1;
    kmem_buf_stat(obj, &b);

    at = TEST_SAYS(host_printed, "kernel memory allocator: buffer modified "
                                 "after being freed\n");
    at = TEST_SAYS(at, "modification occurred at offset 0x18 (0xdeadbeef "
                       "replaced by 0x34)\n");
    snprintf(text, sizeof(text), "buffer=%lx  bufctl=%lx  cache: t_debug\n",
             (unsigned long)obj, (unsigned long)b.stat_bufctl);
    at = TEST_SAYS(at, text);
    at = TEST_SAYS(at, "contents around it:\n");
    snprintf(text, sizeof(text), ">34 00 00 00");
    at = TEST_SAYS(at, text);
    snprintf(text, sizeof(text), "previous transactions on buffer %lx:\n",
             (unsigned long)obj);
    at = TEST_SAYS(at, text);
    KT_EQ(b.stat_free.trans_task, 7);
    at = says_transaction(at, "free", &b.stat_free, &b);
    KT_TRUE(kmem_last_error.error_us - b.stat_free.trans_us >= 89000);
    at = says_transaction(at, "alloc", &b.stat_alloc, &b);
    KT_TRUE(kmem_last_error.error_us - b.stat_alloc.trans_us >= 1919000);
    KT_EQ(strcmp(at, continues(text, sizeof(text), cp, obj)), 0);
    kmem_cache_free(cp, other);
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

/* The whole report of a buffer that was allocated once. */
KTEST(kmem_debug, S56_the_report_to_the_letter)
{
    struct kmem_cache *cp = test_debug("ZU", 48, 0, false);
    void *first = kmem_cache_alloc(cp, KM_SLEEP);
    uint8_t *obj = kmem_cache_alloc(cp, KM_SLEEP);
    struct kmem_buf_stat b;
    const char *at = host_printed;
    char text[160];

    obj[50] = 1;
    TEST_ERROR(KMEM_ERROR_END, kmem_cache_free(cp, obj));
    kmem_buf_stat(obj, &b);
    at = says_exactly(at, "\nkernel memory allocator: buffer written past its "
                          "end\n"
                          "modification occurred at offset 0x32 (0xbb replaced "
                          "by 0x1)\n");
    snprintf(text, sizeof(text), "buffer=%lx  bufctl=%lx  cache: t_debug\n",
             (unsigned long)obj, (unsigned long)b.stat_bufctl);
    at = says_exactly(says_exactly(at, text), "contents around it:\n");
    for (uint8_t *row = (uint8_t *)((uintptr_t)(obj + 18) & ~(uintptr_t)15);
         row <= obj + 82; row += 16) {
        size_t n =
            (size_t)snprintf(text, sizeof(text), "%lx:", (unsigned long)row);

        for (size_t i = 0; i < 16; i++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%c%02x",
                                  row + i == obj + 50 ? '>' : ' ', row[i]);
        at = says_exactly(says_exactly(at, text), "\n");
    }
    at = says_exactly(at, "found by thread=1 (one):\n");
    snprintf(text, sizeof(text), "previous transactions on buffer %lx:\n",
             (unsigned long)obj);
    at = says_transaction(TEST_SAYS(at, text), "alloc", &b.stat_alloc, &b);
    KT_EQ(*at, '\0');
    test_accept_damage(cp, obj);
    kmem_cache_free(cp, first);
    test_destroy(cp);
}

/* The line for each kind of wrong free, with nothing between it and the place:
 * `what` and then "buffer=". */
static void says_line(const char *what)
{
    const char *at = TEST_SAYS(host_printed, what);

    says_exactly(at, "\nbuffer=");
}

KTEST(kmem_debug, S56_wrong_frees_in_one_line)
{
    struct kmem_cache *cp = test_debug("F", 48, 0, false);
    struct kmem_cache *other = kmem_cache_create("t_other", 48, 0, NULL, NULL);
    KT_REQUIRE(other != NULL);
    struct kmem_cache *size = kmem_size_class(100);
    char *obj = kmem_cache_alloc(cp, KM_SLEEP);
    char *freed = kmem_cache_alloc(cp, KM_SLEEP);
    void *sized;

    test_switch(other, "F");
    test_switch(size, "F");
    sized = kmem_alloc(97, KM_SLEEP);
    TEST_ERROR(KMEM_ERROR_SIZE, kmem_free(sized, 98));
    says_line("allocated with 97 bytes, freed with 98");
    test_accept_damage(size, sized);
    TEST_ERROR(KMEM_ERROR_INTERIOR, kmem_cache_free(cp, obj + 8));
    says_line("it is 8 bytes into a buffer of cache t_debug");
    TEST_ERROR(KMEM_ERROR_FOREIGN, kmem_cache_free(other, obj));
    says_line("it belongs to cache t_debug, not t_other");
    TEST_SAYS(host_printed, "  cache: t_debug\n");
    TEST_ERROR(KMEM_ERROR_STACK, kmem_cache_free(cp, &obj));
    says_line("it is on the stack");
    kmem_cache_free(cp, freed);
    kmem_cache_free(cp, obj);
    test_switch(size, "");
    test_destroy(other);
    test_destroy(cp);
}

KTEST(kmem_debug, S56_offsets_before_the_start)
{
    struct kmem_cache *cp = test_debug("Z", 48, 0, false);
    uint8_t *obj = kmem_cache_alloc(cp, KM_SLEEP);

    obj[-3] = 0x61;
    TEST_ERROR(KMEM_ERROR_START, kmem_cache_free(cp, obj));
    TEST_SAYS(TEST_SAYS(host_printed, "buffer written before its start\n"),
              "offset -0x3 (0xbb replaced by 0x61)");
    TEST_SAYS(host_printed, "no transactions are kept; mode U keeps them: "
                            "`debug +U t_debug`");
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

/* Allocated and freed in the same microsecond: the error says which came
 * last. */
KTEST(kmem_debug, S56_newest_first_in_one_microsecond)
{
    struct kmem_cache *cp = test_debug("PU", 48, 0, false);
    uint32_t *obj = kmem_cache_alloc(cp, KM_SLEEP);
    void *other = NULL;
    struct kmem_buf_stat b;
    const char *at;

    host_clock_extra_us--;
    kmem_cache_free(cp, obj);
    kmem_buf_stat(obj, &b);
    KT_EQ(b.stat_free.trans_us, b.stat_alloc.trans_us);
    TEST_ERROR(KMEM_ERROR_DOUBLE, kmem_cache_free(cp, obj));
    at = says_transaction(host_printed, "free", &b.stat_free, &b);
    says_transaction(at, "alloc", &b.stat_alloc, &b);
    obj[1] = 0;
    TEST_ERROR(KMEM_ERROR_MODIFIED, other = kmem_cache_alloc(cp, KM_SLEEP));
    at = says_transaction(host_printed, "free", &b.stat_free, &b);
    says_transaction(at, "alloc", &b.stat_alloc, &b);
    kmem_cache_free(cp, other);
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

/* The record and the event say the same. */
KTEST(kmem_debug, S57_the_record_for_tools)
{
    struct kmem_cache *cp = test_debug("ZU", 48, 0, false);
    uint8_t *obj = kmem_cache_alloc(cp, KM_SLEEP);
    char text[200];

    obj[50] = 1;
    host_clock_ms += 5;
    host_task = 3;
    TEST_ERROR(KMEM_ERROR_END, kmem_cache_free(cp, obj));
    host_task = 1;
    KT_EQ(kmem_last_error.error_task, 3);
    KT_TRUE(kmem_last_error.error_us >= host_clock_ms * 1000);
    snprintf(text, sizeof(text),
             "{\"event\":\"kmem_error\",\"kind\":\"end\",\"cache\":\"t_debug\","
             "\"owner\":\"t_debug\",\"buf\":%lu,\"base\":%lu,\"at\":%lu,"
             "\"offset\":50,\"expected\":187,\"found\":1}",
             (unsigned long)obj, (unsigned long)obj, (unsigned long)(obj + 50));
    KT_EQ(strcmp(host_events, text), 0);
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

KTEST(kmem_debug, errors_have_names_and_titles)
{
    for (int k = 0; k < KMEM_ERRORS; k++) {
        KT_TRUE(kmem_error_name(k) != NULL && *kmem_error_name(k) != '\0');
        KT_TRUE(kmem_error_title(k) != NULL && *kmem_error_title(k) != '\0');
        for (int other = 0; other < k; other++)
            KT_TRUE(strcmp(kmem_error_name(k), kmem_error_name(other)) != 0);
    }
}

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
    uint32_t events = kmem_event_last(KMEM_RING_SLAB);
    uint32_t last;

    KT_PANICS(kmem_cache_free(cp, (char *)obj + 8), "not a buffer's start");
    KT_TRUE(kmem_log_stopped);
    last = kmem_log_last();
    pairs(cp, 3);
    KT_TRUE(kmem_cache_grow(cp));
    KT_EQ(kmem_log_last(), last);
    KT_EQ(kmem_event_last(KMEM_RING_SLAB), events);
    kmem_log_stopped = false;
    TEST_ERROR(KMEM_ERROR_INTERIOR, kmem_cache_free(cp, (char *)obj + 8));
    KT_TRUE(!kmem_log_stopped);
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

static struct kmem_event last_event(enum kmem_ring ring)
{
    struct kmem_event e = {0};

    KT_TRUE(kmem_event_get(ring, kmem_event_last(ring), &e));
    return e;
}

KTEST(kmem_debug, rings_of_rare_events)
{
    struct kmem_cache *cp = kmem_cache_create("t_ring", 500, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    struct kmem_event e;
    void *obj, *base;

    kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    e = last_event(KMEM_RING_SLAB);
    KT_EQ(e.event_why, KMEM_WHY_GROW);
    KT_EQ(strcmp(e.event_name, "t_ring"), 0);
    KT_TRUE(e.event_slab == test_slab(cp, 0)->slab_base);
    KT_EQ(e.event_count, cp->cache_slab_chunks);
    KT_EQ(e.event_task, 1);
    kmem_cache_reap(cp, KMEM_REAP_ALL, NULL);
    KT_EQ(last_event(KMEM_RING_SLAB).event_why, KMEM_WHY_GROW);
    kmem_cache_reap(cp, KMEM_REAP_ALL, NULL); /* frees nothing: no event */
    e = last_event(KMEM_RING_REAP);
    KT_EQ(e.event_count, 1);
    KT_EQ(strcmp(e.event_name, "t_ring"), 0);
    test_switch(cp, "F");
    kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    kmem_cache_reap(cp, KMEM_REAP_ALL, NULL);
    KT_EQ(last_event(KMEM_RING_SLAB).event_why, KMEM_WHY_REAP);
    test_switch(cp, "S");
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    base = test_slab(cp, 0)->slab_base;
    kmem_cache_free(cp, obj);
    e = last_event(KMEM_RING_SLAB);
    KT_EQ(e.event_why, KMEM_WHY_UNMAP);
    KT_TRUE(e.event_slab == base);
    KT_EQ(e.event_count, cp->cache_slab_chunks);
    test_switch(cp, "");
    kmem_fail_set(KMEM_FAIL_SLAB, 1);
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    KT_EQ(last_event(KMEM_RING_FAIL).event_why, KMEM_WHY_INJECTED);
    kmem_fail_set(KMEM_FAIL_PAGE, 1);
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    kmem_fail_set(KMEM_FAIL_NONE, 0);
    e = last_event(KMEM_RING_FAIL);
    KT_EQ(e.event_why, KMEM_WHY_NOMEM);
    KT_EQ(strcmp(e.event_name, "t_ring"), 0);
    KT_TRUE(e.event_slab == NULL);
    KT_EQ(e.event_count, 500);
    for (size_t i = 0; i < KMEM_RING_SIZE; i++) {
        kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
        kmem_cache_reap(cp, KMEM_REAP_ALL, NULL);
    }
    KT_TRUE(!kmem_event_get(
        KMEM_RING_REAP, kmem_event_last(KMEM_RING_REAP) - KMEM_RING_SIZE, &e));
    KT_TRUE(kmem_event_get(KMEM_RING_REAP,
                           kmem_event_last(KMEM_RING_REAP) - KMEM_RING_SIZE + 1,
                           &e));
    KT_TRUE(!kmem_event_get(KMEM_RING_REAP, 0, &e));
    kmem_cache_free(cp, kmem_cache_alloc(cp, KM_SLEEP));
    test_destroy(cp);
    KT_EQ(last_event(KMEM_RING_SLAB).event_why, KMEM_WHY_END);
    for (int why = KMEM_WHY_NOMEM; why <= KMEM_WHY_END; why++)
        KT_TRUE(kmem_why_text(why) != NULL);
}

KTEST(kmem_debug, S12_size_zero_with_sleep_is_an_event)
{
    uint32_t before = kmem_event_last(KMEM_RING_FAIL);
    struct kmem_event e;

    KT_TRUE(kmem_alloc(0, KM_NOSLEEP) == NULL);
    KT_TRUE(kmem_zalloc(0, KM_NOSLEEP) == NULL);
    KT_EQ(kmem_event_last(KMEM_RING_FAIL), before);
    KT_TRUE(kmem_alloc(0, KM_SLEEP) == NULL);
    KT_EQ(kmem_event_last(KMEM_RING_FAIL), before + 1);
    e = last_event(KMEM_RING_FAIL);
    KT_EQ(e.event_why, KMEM_WHY_ZERO);
    KT_EQ(e.event_count, 0);
    KT_EQ(e.event_task, 1);
    KT_EQ(strcmp(e.event_name, "kmem_alloc"), 0);
    KT_NE(e.event_caller, 0);
    KT_TRUE(kmem_zalloc(0, KM_SLEEP) == NULL);
    KT_EQ(kmem_event_last(KMEM_RING_FAIL), before + 2);
}

/* ---- trace -------------------------------------------------------------- */

KTEST(kmem_debug, T_prints_each_event)
{
    struct kmem_cache *cp = kmem_cache_create("t_trace", 40, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    void *obj;
    char text[80];

    for (int round = 0; round < 2; round++) {
        test_switch(cp, round ? "TFZ" : "T");
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

/* ---- kmem.verify=N ------------------------------------------------------ */

KTEST(kmem_debug, verify_at_every_nth_operation)
{
    struct kmem_cache *cp = kmem_cache_create("t_verify", 40, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    kmem_verify_every(3);
    KT_EQ(kmem_verify_interval(), 3);
    cp->cache_full_slabs++;
    TEST_NO_ERROR(kmem_cache_free(cp, obj));
    TEST_NO_ERROR(obj = kmem_cache_alloc(cp, KM_SLEEP));
    TEST_ERROR(KMEM_ERROR_VERIFY, kmem_cache_free(cp, obj));
    TEST_SAYS(TEST_SAYS(host_printed, "cache t_verify"),
              "count of full slabs is wrong");
    TEST_NO_ERROR(obj = kmem_cache_alloc(cp, KM_SLEEP));
    TEST_NO_ERROR(kmem_cache_free(cp, obj));
    cp->cache_full_slabs--;
    TEST_NO_ERROR(pairs(cp, 30));
    kmem_verify_every(0);
    cp->cache_full_slabs++;
    TEST_NO_ERROR(pairs(cp, 30));
    cp->cache_full_slabs--;
    KT_EQ(cp->cache_flags, 0);
    test_destroy(cp);
}

/* Also in the middle of growing, rescaling and reaping, where the pages of the
 * caches and those of segkmem differ for a moment. */
KTEST(kmem_debug, verify_at_every_operation_raises_no_alarm)
{
    static const char *const modes[] = {"", "FPZU", "S", "G", "T"};
    struct kmem_cache *cp = kmem_cache_create("t_verify", 600, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    uint32_t errors = kmem_error_count;

    kmem_verify_every(1);
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        test_alloc(cp, 0, 300);
        kmem_free(kmem_alloc(50000, KM_SLEEP), 50000);
        test_free(cp, 0, 300);
        test_switch(cp, modes[i]);
        test_alloc(cp, 0, 400);
        test_free(cp, 0, 400);
        kmem_reap(KMEM_REAP_ALL);
    }
    kmem_verify_every(0);
    KT_EQ(kmem_error_count, errors);
    test_destroy(cp);
}

#endif
