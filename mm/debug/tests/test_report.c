/*
 * The report of an error (S-56), and the record and the event that say the
 * same.
 */
#include "mm/debug/tests/debug_test.h"

#include <stdarg.h>

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
    TEST_ERROR(KMERR_MODIFIED, kmem_cache_alloc(cp, KM_SLEEP));
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
    TEST_ERROR(KMERR_REDZONE, kmem_cache_free(cp, obj));
    kmem_buf_stat(obj, &b);
    at = says_exactly(at, "\nkernel memory allocator: buffer written "
                          "outside its bounds\n"
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
    snprintf(text, sizeof(text), "previous transactions on buffer %lx:\n",
             (unsigned long)obj);
    at = says_transaction(says_exactly(at, text), "alloc", &b.stat_alloc, &b);
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
    TEST_ERROR(KMERR_BADSIZE, kmem_free(sized, 98));
    says_line("allocated with 97 bytes, freed with 98");
    test_accept_damage(size, sized);
    TEST_ERROR(KMERR_BADBASE, kmem_cache_free(cp, obj + 8));
    says_line("it is 8 bytes into a buffer of cache t_debug");
    TEST_ERROR(KMERR_BADCACHE, kmem_cache_free(other, obj));
    says_line("it belongs to cache t_debug, not t_other");
    TEST_SAYS(host_printed, "  cache: t_debug\n");
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, &obj));
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

    obj[-1] = 0x61;
    TEST_ERROR(KMERR_REDZONE, kmem_cache_free(cp, obj));
    TEST_SAYS(host_printed, "offset -0x1 (0xbb replaced by 0x61)");
    test_accept_damage(cp, obj);
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    obj[-3] = 0x61;
    TEST_ERROR(KMERR_REDZONE, kmem_cache_free(cp, obj));
    TEST_SAYS(TEST_SAYS(host_printed, "buffer written outside its bounds\n"),
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
    struct kmem_buf_stat b;
    const char *at;

    host_clock_extra_us--;
    kmem_cache_free(cp, obj);
    kmem_buf_stat(obj, &b);
    KT_EQ(b.stat_free.trans_us, b.stat_alloc.trans_us);
    TEST_ERROR(KMERR_DUPFREE, kmem_cache_free(cp, obj));
    at = says_transaction(host_printed, "free", &b.stat_free, &b);
    says_transaction(at, "alloc", &b.stat_alloc, &b);
    obj[1] = 0;
    TEST_ERROR(KMERR_MODIFIED, kmem_cache_alloc(cp, KM_SLEEP));
    at = says_transaction(host_printed, "free", &b.stat_free, &b);
    says_transaction(at, "alloc", &b.stat_alloc, &b);
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
    TEST_ERROR(KMERR_REDZONE, kmem_cache_free(cp, obj));
    host_task = 1;
    KT_EQ(kmem_last_error.error_task, 3);
    KT_TRUE(kmem_last_error.error_us >= host_clock_ms * 1000);
    snprintf(
        text, sizeof(text),
        "{\"event\":\"kmem_error\",\"kind\":\"redzone\",\"cache\":\"t_debug\","
        "\"owner\":\"t_debug\",\"buf\":%lu,\"base\":%lu,\"at\":%lu,"
        "\"offset\":50,\"expected\":187,\"found\":1}",
        (unsigned long)obj, (unsigned long)obj, (unsigned long)(obj + 50));
    KT_EQ(strcmp(host_events, text), 0);
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

/* The cache that a buffer is freed to is not its owner, the address not its
 * start. */
KTEST(kmem_debug, S57_the_event_for_tools)
{
    struct kmem_cache *cp = test_debug("F", 48, 0, false);
    struct kmem_cache *other = kmem_cache_create("t_other", 48, 0, NULL, NULL);
    KT_REQUIRE(other != NULL);
    char *obj = kmem_cache_alloc(other, KM_SLEEP);
    char text[200];

    TEST_ERROR(KMERR_BADBASE, kmem_cache_free(cp, obj + 4));
    snprintf(text, sizeof(text),
             "{\"event\":\"kmem_error\",\"kind\":\"badbase\","
             "\"cache\":\"t_debug\",\"owner\":\"t_other\",\"buf\":%lu,"
             "\"base\":%lu,\"at\":0,\"offset\":4,",
             (unsigned long)(obj + 4), (unsigned long)obj);
    KT_EQ(strncmp(host_events, text, strlen(text)), 0);
    kmem_cache_free(other, obj);
    test_destroy(other);
    test_destroy(cp);
}

KTEST(kmem_debug, errors_have_names_and_titles)
{
    for (int k = 0; k < KMERRS; k++) {
        KT_TRUE(kmem_error_name(k) != NULL && *kmem_error_name(k) != '\0');
        KT_TRUE(kmem_error_title(k) != NULL && *kmem_error_title(k) != '\0');
        for (int other = 0; other < k; other++)
            KT_TRUE(strcmp(kmem_error_name(k), kmem_error_name(other)) != 0);
    }
}

/* ---- whole reports ------------------------------------------------------ */

static const uintptr_t stack[] = {0x1111, 0x2222};

/* All that was printed is this. */
static void PRINTF_LIKE(1, 2) is_report(const char *fmt, ...)
{
    char text[1024] = "\nkernel memory allocator: ";
    size_t n = strlen(text);
    const char *at;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + n, sizeof(text) - n, fmt, ap);
    va_end(ap);
    at = says_exactly(host_printed, text);
    KT_EQ(*at, '\0');
}

/* Nothing is known of the buffer but its cache. */
KTEST(kmem_debug, S56_report_without_modes)
{
    struct kmem_cache *cp = kmem_cache_create("t_debug", 1000, 0, NULL, NULL);
    KT_REQUIRE(cp != NULL);
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    host_stack = stack;
    host_stack_depth = 2;
    kmem_cache_free(cp, obj);
    TEST_ERROR(KMERR_DUPFREE, kmem_cache_free(cp, obj));
    is_report("buffer freed twice\nbuffer=%lx  cache: t_debug\n",
              (unsigned long)obj);
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, (void *)8));
    is_report("freed address is not an allocated buffer\n"
              "it is elsewhere\nbuffer=8  cache: t_debug\n");
    host_stack = NULL;
    test_destroy(cp);
}

/* A buffer that was never allocated has no transactions; it is modified at its
 * start, which is a multiple of a row's length. */
KTEST(kmem_debug, S56_report_of_a_buffer_never_allocated)
{
    struct kmem_cache *cp = test_debug("FPU", 64, 16, false);
    struct kmem_buf_stat b;
    char rows[512] = "";
    uint8_t *obj;

    test_alloc(cp, 0, 1);
    obj = (uint8_t *)test_obj[0] + cp->cache_chunk;
    KT_TRUE(kmem_buf_stat(obj, &b));
    host_stack = stack;
    host_stack_depth = 2;
    TEST_ERROR(KMERR_BADADDR, kmem_cache_free(cp, obj));
    TEST_SAYS(host_printed, "allocated buffer\nit is a free buffer of cache "
                            "t_debug\nbuffer=");
    obj[0] = 0;
    TEST_ERROR(KMERR_MODIFIED, kmem_cache_alloc(cp, KM_SLEEP));
    for (uint8_t *row = obj - 32; row <= obj + 32; row += 16) {
        size_t n = strlen(rows);

        n += (size_t)snprintf(rows + n, sizeof(rows) - n,
                              "%lx:", (unsigned long)row);
        for (size_t i = 0; i < 16; i++)
            n += (size_t)snprintf(rows + n, sizeof(rows) - n, "%c%02x",
                                  row + i == obj ? '>' : ' ', row[i]);
        snprintf(rows + n, sizeof(rows) - n, "\n");
    }
    is_report("buffer modified after being freed\n"
              "modification occurred at offset 0x0 (0xdeadbeef replaced by "
              "0xdeadbe00)\nbuffer=%lx  bufctl=%lx  cache: t_debug\n"
              "contents around it:\n%s"
              "no previous transactions: it was never allocated\n",
              (unsigned long)obj, (unsigned long)b.stat_bufctl, rows);
    host_stack = NULL;
    test_free(cp, 0, 1);
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

/* An error of the heap itself: without a buffer, with a place that cannot be
 * read; and the message of the panic, which itself names the finder. */
KTEST(kmem_debug, S56_report_without_a_buffer)
{
    struct kmem_cache *cp = kmem_cache_create("t_debug", 48, 0, NULL, NULL);
    char *page = kmem_alloc(20000, KM_SLEEP);
    struct kmem_error_record e = {.error_kind = KMERR_BADBUFCTL,
                                  .error_cache = cp,
                                  .error_at = page + PAGE_SIZE,
                                  .error_text = "wrong"};
    char text[80];

    KT_REQUIRE(cp != NULL);
    host_stack = stack;
    host_stack_depth = 2;
    mm_page_map(page + PAGE_SIZE, false);
    TEST_ERROR(KMERR_BADBUFCTL, kmem_error(&e));
    mm_page_map(page + PAGE_SIZE, true);
    is_report("bufctl is damaged\nwrong\ncache: t_debug\n");
    host_print_clear();
    e.error_at = NULL;
    snprintf(text, sizeof(text), "bufctl is damaged: %p, cache t_debug",
             (void *)cp);
    KT_PANICS(kmem_error(&e), text);
    is_report("bufctl is damaged\nwrong\ncache: t_debug\n");
    e.error_buf = page;
    snprintf(text, sizeof(text), "bufctl is damaged: %p, cache t_debug",
             (void *)page);
    KT_PANICS(kmem_error(&e), text);
    host_stack = NULL;
    kmem_free(page, 20000);
    test_destroy(cp);
}

static void fault(const void *addr, bool known)
{
    host_print_clear();
    KT_EQ(kmem_fault(addr), known);
}

/* The panic that follows a fault names the finder. */
KTEST(kmem_debug, S56_reports_of_faults)
{
    struct kmem_cache *cp = test_debug("S", 600, 0, false);
    char *obj = kmem_cache_alloc(cp, KM_SLEEP);
    char *tail = (char *)test_slab(cp, 0)->slab_base +
                 cp->cache_slab_pages * PAGE_SIZE - 1;

    kmem_cache_free(cp, obj);
    fault(tail, true);
    is_report("access through a bad pointer\nits page is unmapped\n"
              "buffer=%lx  cache: t_debug\n",
              (unsigned long)tail);
    fault((void *)(uintptr_t)(KMEM_UNINIT - 4096), true);
    is_report("access through a bad pointer\nthe address is 0xbaddcafe "
              "or near it: a pointer that was never set\n"
              "buffer=baddbafe  cache: none\n");
    fault((void *)(uintptr_t)(KMEM_UNINIT + 4096), false);
    fault((void *)(uintptr_t)(KMEM_FREED - 4096), true);
    is_report("access through a bad pointer\nthe address is "
              "0xdeadbeef or near it: a pointer read from a freed "
              "buffer\nbuffer=deadaeef  cache: none\n");
    fault((void *)(uintptr_t)(KMEM_FREED + 4096), false);
    test_destroy(cp);
}

/* The transactions at the report's end, each with this time and one caller.
 * Returns their end. */
static const char *is_history(struct kmem_cache *cp, const void *buf,
                              const char *first, const char *first_time,
                              const char *second, const char *second_time)
{
    struct kmem_buf_stat b;
    char text[512];
    size_t n;

    KT_TRUE(kmem_buf_stat(buf, &b) && b.stat_cache == cp);
    n = (size_t)snprintf(text, sizeof(text),
                         "previous transactions on buffer %lx:\n"
                         "thread=1 (one)  time=T-%s  slab=%lx  cache: t_debug  "
                         "%s\n1111\n",
                         (unsigned long)buf, first_time,
                         (unsigned long)b.stat_slab, first);
    if (second != NULL)
        snprintf(text + n, sizeof(text) - n,
                 "thread=1 (one)  time=T-%s  slab=%lx  cache: t_debug  "
                 "%s\n1111\n",
                 second_time, (unsigned long)b.stat_slab, second);
    return TEST_SAYS(host_printed, text);
}

/* To the microsecond; a transaction whose callers are not known is left out. */
KTEST(kmem_debug, S56_transactions_newest_first)
{
    struct kmem_cache *cp = test_debug("FZU", 64, 0, false);
    char *obj;

    host_stack = stack;
    host_stack_depth = 1;
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    obj[64] = 0; /* never freed */
    TEST_ERROR(KMERR_REDZONE, kmem_cache_free(cp, obj));
    KT_EQ(*is_history(cp, obj, "alloc", "0.000001", NULL, NULL), '\0');
    test_accept_damage(cp, obj);
    kmem_cache_reap(cp, KMEM_REAP_ALL);

    obj = kmem_cache_alloc(cp, KM_SLEEP);
    kmem_cache_free(cp, obj);
    host_clock_extra_us += 999998;
    TEST_ERROR(KMERR_DUPFREE, kmem_cache_free(cp, obj));
    KT_EQ(*is_history(cp, obj, "free", "0.999999", "alloc", "1.000000"), '\0');
    kmem_cache_reap(cp, KMEM_REAP_ALL);

    host_stack_depth = 0;
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    host_stack_depth = 1;
    kmem_cache_free(cp, obj);
    TEST_ERROR(KMERR_DUPFREE, kmem_cache_free(cp, obj));
    KT_EQ(*is_history(cp, obj, "free", "0.000001", NULL, NULL), '\0');

    host_clock_extra_us -= 2; /* freed and allocated in one microsecond */
    KT_TRUE(kmem_cache_alloc(cp, KM_SLEEP) == obj);
    obj[64] = 0;
    TEST_ERROR(KMERR_REDZONE, kmem_cache_free(cp, obj));
    says_exactly(is_history(cp, obj, "alloc", "0.000001", "free", "0.000001"),
                 "(transaction log continues at ");
    host_stack = NULL;
    test_accept_damage(cp, obj);
    test_destroy(cp);
}

#endif
