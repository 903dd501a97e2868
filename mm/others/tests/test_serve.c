/*
 * mm/kmem.h on another allocator, here that of SunOS, which also returns parts
 * of a run, with what it has not, a record for each cache and a clock, added: a
 * program of its own, because mm/ in mmtest has the slab allocator.
 * Each case runs in a process and on a machine of its own.
 */
#include "tools/workshop/ktest/ktest.h"
#include "mm/buddy.h"
#include "mm/debug/debug.h"
#include "mm/inspect/kmem_stat.h"
#include "mm/others/sunos.h"
#include "mm/tests/host/host.h"
#include "tools/test/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAMES 1024
#define STEPS  1000000000

#ifdef CONFIG_COVERAGE
void __gcov_dump(void);
#endif

static unsigned failures;
static jmp_buf stopped;

void ktest_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    failures++;
    printf("# %s:%d: ", file, line);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

void ktest_stop(const char *file, int line, const char *what)
{
    ktest_fail(file, line, "required: %s", what);
    longjmp(stopped, 1);
}

/* ---- the allocator ------------------------------------------------------ */

struct other_allocator serve_test_allocator; /* other_served, for the linker */

static struct other_cache *prepared;
static uint64_t ticks[4];
static unsigned tick_count;

static const char *meanwhile; /* the name of a cache that another task makes */

static bool prepare(struct other_cache *c)
{
    const char *name = meanwhile;

    meanwhile = NULL;
    if (name != NULL)
        KT_TRUE(kmem_cache_create(name, 8, 0, NULL, NULL) != NULL);
    c->other_own = ticks;
    prepared = c;
    return c->other_size != 13;
}

static void end(struct other_cache *c)
{
    KT_TRUE(c == prepared && c->other_own == ticks);
    KT_EQ(c->other_allocs, c->other_frees);
    prepared = NULL;
}

static void tick(uint64_t now_ms)
{
    ticks[tick_count++] = now_ms;
}

static void start_allocator(void)
{
    serve_test_allocator = sunos_allocator;
    serve_test_allocator.op_cache_create = prepare;
    serve_test_allocator.op_cache_destroy = end;
    serve_test_allocator.op_tick = tick;
}

/* ---- memory of any size ------------------------------------------------- */

static size_t free_at_start;

/* All is freed: the allocator holds pages of nodes, and nothing else. */
static void expect_all_free(void)
{
    const struct page *frame;
    const char *where;

    KT_EQ(buddy_free_pages(), free_at_start - sunos_stat.stat_node_pages);
    KT_TRUE(buddy_verify(&frame) == NULL);
    KT_TRUE(kmem_verify(&where) == NULL);
}

KTEST(serve, memory_of_any_size)
{
    char *p = kmem_alloc(100, KM_NOSLEEP);
    char *run = kmem_alloc(5 * PAGE_SIZE + 1, KM_SLEEP);
    char *zeroes;

    KT_REQUIRE(p != NULL && run != NULL);
    memset(p, 1, 100);
    memset(run, 1, 5 * PAGE_SIZE + 1);
    kmem_free(p, 100);
    zeroes = kmem_zalloc(100, KM_SLEEP);
    for (int i = 0; i < 100; i++)
        KT_EQ(zeroes[i], 0);
    KT_TRUE(kmem_alloc(0, KM_SLEEP) == NULL);
    KT_TRUE(kmem_zalloc(0, KM_SLEEP) == NULL);
    KT_TRUE(kmem_alloc(BUDDY_MAX_PAGES * PAGE_SIZE + 1, KM_NOSLEEP) == NULL);
    KT_TRUE(kmem_zalloc(SIZE_MAX, KM_NOSLEEP) == NULL);
    kmem_free(NULL, 0);
    KT_PANICS(kmem_free(zeroes, 0), "is not a kmem_alloc buffer of 0 bytes");
    kmem_free(zeroes, 100);
    kmem_free(run, 5 * PAGE_SIZE + 1);
    expect_all_free();
}

/* ---- caches ------------------------------------------------------------- */

static int constructed;

static void construct(void *obj, size_t size)
{
    memset(obj, 7, size);
    constructed++;
}

static void destroy(void *obj UNUSED, size_t size UNUSED)
{
    constructed--;
}

static void expect_no_cache(const char *name, size_t size, size_t align,
                            const char *why)
{
    host_print_clear();
    KT_TRUE(kmem_cache_create(name, size, align, NULL, NULL) == NULL);
    if (strstr(host_printed, why) == NULL)
        KT_FAIL("printed \"%s\", not \"%s\"", host_printed, why);
}

KTEST(serve, caches_that_cannot_be)
{
    KT_TRUE(kmem_cache_create("twice", 8, 0, NULL, NULL) != NULL);
    expect_no_cache("twice", 8, 0, "twice: there is a cache of that name");
    meanwhile = "at_once";
    expect_no_cache("at_once", 8, 0, "there is a cache of that name");
    KT_TRUE(prepared == NULL); /* prepared, then destroyed */
    expect_no_cache("a_name_of_more_than_31_characters", 8, 0, "longer than");
    expect_no_cache("none", 0, 0, "none: the size is 0");
    expect_no_cache("huge", KMEM_SIZE_MAX + 1, 0, "more than 1 MiB");
    expect_no_cache("odd", 8, 24, "not a power of two");
    expect_no_cache("far", 8, 2 * PAGE_SIZE, "more than a page");
    expect_no_cache("plain", 13, 0, "plain: no memory");
    KT_TRUE(kmem_cache_find("plain") == NULL);
    host_set_keep(FRAMES);
    while (kmem_alloc(sizeof(uint64_t), KM_NOSLEEP) != NULL)
        ;
    expect_no_cache("late", 8, 0, "late: no memory");
}

KTEST(serve, objects_are_constructed_at_each_allocation)
{
    struct kmem_cache *cp =
        kmem_cache_create("things", 33, 0, construct, destroy);
    struct kmem_cache_stat st;
    const char *where;
    char *obj;

    KT_REQUIRE(cp != NULL);
    for (int i = 0; i < 2; i++) {
        obj = kmem_cache_alloc(cp, KM_SLEEP);
        KT_EQ(constructed, 1);
        KT_EQ(obj[32], 7);
        kmem_cache_stat(cp, &st);
        KT_EQ(st.stat_inuse, 1);
        KT_EQ(st.stat_mem, 33);
        KT_EQ(st.stat_align, KMEM_ALIGN_MIN);
        kmem_cache_free(cp, obj);
        KT_EQ(constructed, 0);
    }
    kmem_cache_stat(cp, &st);
    KT_EQ(st.stat_inuse, 0);
    KT_EQ(st.stat_allocs, 2);
    KT_EQ(st.stat_frees, 2);
    KT_TRUE(strcmp(st.stat_name, "things") == 0);
    KT_TRUE(kmem_cache_verify(cp, &where) == NULL);
    KT_EQ(kmem_cache_destroy(cp), 0);
    expect_all_free();
}

KTEST(serve, the_list_of_caches)
{
    struct kmem_cache *a = kmem_cache_create("a", 8, 64, NULL, NULL);
    struct kmem_cache *b = kmem_cache_create("b", 16, 0, NULL, NULL);
    struct kmem_cache_stat st;

    KT_TRUE(kmem_cache_first() == a && kmem_cache_next(a) == b);
    KT_TRUE(kmem_cache_next(b) == NULL);
    KT_TRUE(kmem_cache_find("b") == b && kmem_cache_find("c") == NULL);
    KT_TRUE(kmem_cache_stat_number(1, &st));
    KT_EQ(st.stat_size, 16);
    KT_TRUE(!kmem_cache_stat_number(2, &st));
    KT_TRUE(kmem_cache_stat_number(0, &st));
    KT_EQ(st.stat_align, 64);
}

KTEST(serve, caches_are_destroyed)
{
    struct kmem_cache *cp = kmem_cache_create("x", 40, 0, NULL, NULL);
    const char *where;
    void *obj = kmem_cache_alloc(cp, KM_SLEEP);

    host_print_clear();
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EBUSY);
    KT_TRUE(strstr(host_printed, "x: 1 objects are allocated") != NULL);
    KT_TRUE(prepared != NULL);
    kmem_cache_free(cp, obj);
    KT_EQ(kmem_cache_destroy(cp), 0);
    KT_TRUE(prepared == NULL);
    KT_EQ(kmem_cache_destroy(cp), -KMEM_EINVAL);
    KT_TRUE(strstr(host_printed, "is not a cache") != NULL);
    KT_TRUE(kmem_cache_first() == NULL);
    cp = kmem_cache_create("x", 40, 0, NULL, NULL);
    obj = kmem_cache_alloc(cp, KM_SLEEP);
    kmem_cache_free(cp, obj);
    obj = kmem_alloc(40, KM_SLEEP); /* the same memory */
    kmem_cache_free(cp, obj);
    KT_TRUE(strcmp(kmem_cache_verify(cp, &where),
                   "more frees than allocations") == 0);
    KT_TRUE(strcmp(where, "x") == 0);
}

/* ---- without memory ----------------------------------------------------- */

#define BLOCK (16 * PAGE_SIZE)

static void *block[FRAMES];
static size_t blocks, reclaims;

static void take_all(void)
{
    while ((block[blocks] = kmem_alloc(BLOCK, KM_NOSLEEP)) != NULL)
        blocks++;
    KT_GE(blocks, 20);
}

/* Frees a block at every second call, and may not allocate. */
static size_t reclaim(size_t most)
{
    KT_EQ(most, KMEM_RECLAIM_STEP);
    KT_TRUE(kmem_alloc(BLOCK, KM_NOSLEEP) == NULL);
    if (blocks == 0)
        return 0;
    if (++reclaims % 2 == 0)
        kmem_free(block[--blocks], BLOCK);
    return 1;
}

KTEST(serve, owners_free_objects_when_memory_is_short)
{
    take_all();
    KT_TRUE(kmem_set_reclaim(reclaim) == NULL);
    KT_TRUE(kmem_alloc(BLOCK, KM_NOSLEEP) != NULL);
    KT_EQ(reclaims, 2);
    KT_TRUE(kmem_set_reclaim(NULL) == reclaim);
    KT_TRUE(kmem_alloc(BLOCK, KM_NOSLEEP) == NULL);
}

static bool wait_once(void)
{
    if (blocks == 0)
        return false;
    kmem_free(block[--blocks], BLOCK);
    return true;
}

KTEST(serve, a_request_may_wait)
{
    struct kmem_cache *cp = kmem_cache_create("big", BLOCK, 0, NULL, NULL);

    take_all();
    KT_TRUE(kmem_cache_alloc(cp, KM_NOSLEEP) == NULL);
    host_wait = wait_once;
    KT_TRUE(kmem_alloc(BLOCK, KM_SLEEP) != NULL);
    KT_TRUE(kmem_cache_alloc(cp, KM_SLEEP) != NULL);
    host_wait = NULL;
    KT_PANICS(kmem_alloc(BLOCK, KM_SLEEP), "KM_SLEEP for 65536 bytes");
    host_wait = wait_once;
    KT_PANICS(kmem_alloc((BUDDY_MAX_PAGES + 1) * PAGE_SIZE, KM_SLEEP),
              "cannot wait");
}

KTEST(serve, free_pages_return_under_pressure)
{
    sunos_at_once = false;
    take_all();
    while (blocks > 0)
        kmem_free(block[--blocks], BLOCK);
    KT_LE(buddy_free_pages(), free_at_start - 20 * BLOCK / PAGE_SIZE);
    KT_GE(kmem_reap(KMEM_REAP_WS), 20 * BLOCK / PAGE_SIZE);
    KT_EQ(kmem_reap(KMEM_REAP_ALL), 0);
    expect_all_free();
}

/* ---- time --------------------------------------------------------------- */

KTEST(serve, a_tick_every_two_seconds)
{
    host_clock_ms = 1999;
    KT_EQ(kmem_update_due(), 1);
    kmem_update_poll();
    KT_EQ(tick_count, 0);
    host_clock_ms = 2100;
    KT_EQ(kmem_update_due(), 0);
    kmem_update_poll();
    kmem_update_poll();
    KT_EQ(kmem_update_due(), 2000);
    host_clock_ms = 10000; /* late: one tick */
    kmem_update_poll();
    KT_EQ(kmem_update_due(), 2000);
    KT_EQ(tick_count, 2);
    KT_EQ(ticks[0], 2100);
    KT_EQ(ticks[1], 10000);
    serve_test_allocator.op_tick = NULL;
    host_clock_ms = 20000;
    KT_EQ(kmem_update_due(), UINT32_MAX);
    kmem_update_poll();
}

/* ---- looking ------------------------------------------------------------ */

KTEST(serve, what_is_of_no_cache)
{
    struct kmem_oversize_stat st;
    struct kmem_cache *cp = kmem_cache_create("x", 4000, 0, NULL, NULL);
    struct kmem_oversize_stat before;

    kmem_oversize_stat(&before);
    KT_EQ(before.stat_pages, 1); /* the structure of the cache */
    KT_TRUE(kmem_alloc(3 * PAGE_SIZE, KM_SLEEP) != NULL);
    KT_TRUE(kmem_cache_alloc(cp, KM_SLEEP) != NULL);
    kmem_oversize_stat(&st);
    KT_EQ(st.stat_pages, 4);
    KT_EQ(st.stat_inuse, before.stat_inuse + 1);
    prepared->other_allocs += 1000; /* after the total was read */
    kmem_oversize_stat(&st);
    KT_EQ(st.stat_pages, 0);
    KT_EQ(st.stat_inuse, 0);
}

KTEST(serve, verify_asks_the_allocator)
{
    const char *where;

    KT_TRUE(kmem_alloc(100, KM_SLEEP) != NULL);
    KT_TRUE(kmem_verify(&where) == NULL);
    sunos_root->node_size -= 8;
    KT_TRUE(kmem_verify(&where) != NULL);
    KT_TRUE(strcmp(where, "sunos") == 0);
}

KTEST(serve, what_there_is_not)
{
    unsigned modes = 0;
    char bad;

    host_print_clear();
    KT_TRUE(kmem_debug_letters("FP", NULL, &modes, &bad));
    KT_TRUE(modes != 0);
    kmem_debug_boot(modes, NULL);
    KT_TRUE(strstr(host_printed, "sunos, which has no debugging modes"));
    KT_TRUE(strcmp(kmem_debug_text(modes, &bad), "-") == 0);
    KT_EQ(kmem_debug_modes(NULL), 0);
    KT_TRUE(!kmem_fault(&bad));
    KT_TRUE(!kmem_buf_stat(&bad, NULL));
    KT_TRUE(!kmem_slab_stat(NULL, 0, NULL));
}

KTEST(serve, too_little_memory_to_start)
{
    host_set_keep(FRAMES);
    KT_PANICS(kmem_init(), "sunos: no memory for its page descriptors");
}

/* ---- the program -------------------------------------------------------- */

static void run_child(const struct ktest *t)
{
    budget_begin("the case", STEPS);
    host_start_pages(FRAMES);
    start_allocator();
    kmem_init();
    free_at_start = buddy_free_pages();
    if (setjmp(stopped) == 0)
        t->ktest_run();
    host_check_unlocked("is still held after the case");
    fflush(stdout);
#ifdef CONFIG_COVERAGE
    __gcov_dump();
#endif
    budget_exit(failures == 0 ? 0 : 1);
}

/* Prints TAP. */
int main(void)
{
    bool failed = false;
    int n = 0;

    budget_share();
    for (const struct ktest *t = __start_ktests; t < __stop_ktests; t++) {
        pid_t pid;
        int status;

        fflush(stdout);
        pid = fork();
        if (pid == 0)
            run_child(t);
        status = budget_wait(pid);
        printf("%s %d - %s.%s\n", status == 0 ? "ok" : "not ok", ++n,
               t->ktest_suite, t->ktest_name);
        failed |= status != 0;
    }
    printf("1..%d\n", n);
    return failed;
}
