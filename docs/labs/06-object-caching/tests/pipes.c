/*
 * Tests of lab 6, "Object caching pays": a cache of pipes instead of a pool
 * (kernel/fs/pipe.c), pipes that stay constructed between uses, and what
 * objects cost without a cache (tools/workshop/bench/cmd_bench_kinds.c). Costs
 * are counted in instructions: the lab runs with one per nanosecond.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "tools/workshop/labs/lab.h"
#include "tools/workshop/labs/seed.h"
#include "kernel/lib/string.h"
#include "tools/workshop/bench/cmd_bench.h"
#include "kernel/x86/cpu.h"
#include "kernel/x86/paging.h"
#include "mm/tests/kmem_test.h"

/* How many pipes there are in a test follows from the seed. */
enum {
    HOW_MANY = 60
};

#define PIPES_MAX 300
#define PIPES     (200 + lab_pick(HOW_MANY, PIPES_MAX - 200))

static struct {
    struct file *read_end;
    struct file *write_end;
} out[PIPES_MAX];

/* Creates pipes until there are n. Returns 0, or the first error. */
static int make(unsigned from, unsigned n)
{
    int error = 0;

    for (unsigned i = from; i < n && error == 0; i++)
        error = pipe_create(&out[i].read_end, &out[i].write_end);
    return error;
}

static void put_end(struct file **f)
{
    if (*f != NULL)
        object_put(&(*f)->file_object);
    *f = NULL;
}

static void close_all(void)
{
    for (unsigned i = 0; i < PIPES; i++) {
        put_end(&out[i].read_end);
        put_end(&out[i].write_end);
    }
}

static unsigned made(void)
{
    unsigned n = 0;

    while (n < PIPES && out[n].read_end != NULL)
        n++;
    return n;
}

/* ---- 6.1: a cache instead of a pool ------------------------------------- */

LAB_TEST(6, many, LAB_UP)
{
    uint16_t number;

    if (make(0, PIPES) != 0)
        KT_FAIL("%u pipes are open, and there is no other, with %zu MiB free",
                made(), buddy_free_pages() / 256);
    for (uint16_t i = 0; i < made(); i++)
        KT_EQ(file_write(out[i].write_end, &i, sizeof(i)), sizeof(i));
    for (uint16_t i = 0; i < made(); i++) {
        KT_EQ(file_read(out[i].read_end, &number, sizeof(number)),
              sizeof(number));
        KT_EQ(number, i);
    }
    close_all();
}

static struct kmem_cache *pipe_cache(void)
{
    struct kmem_cache *cp = kmem_cache_find("pipe");

    if (cp == NULL)
        KT_FAIL("there is no cache called pipe");
    return cp;
}

LAB_TEST(6, cache, LAB_UP)
{
    struct kmem_cache *cp = pipe_cache();
    uint32_t before;

    KT_REQUIRE(cp != NULL);
    before = kmem_inuse(cp);
    KT_EQ(make(0, 40), 0);
    KT_EQ(kmem_inuse(cp), before + 40);
    for (unsigned i = 0; i < 40; i++)
        put_end(&out[i].read_end);
    KT_EQ(kmem_inuse(cp), before + 40); /* each still has one end open */
    close_all();
    KT_EQ(kmem_inuse(cp), before);
    TEST_VERIFY(cp);
}

LAB_TEST(6, giveback, LAB_UP)
{
    struct kmem_cache *cp = pipe_cache();
    struct pipe_stat none = {.stat_pipe = NULL}, stat = none;
    uint64_t destroyed;
    size_t slabs;

    KT_REQUIRE(cp != NULL);
    KT_EQ(make(0, PIPES), 0);
    close_all();
    slabs = cp->cache_slabs;
    KT_GE(slabs, PIPES / 32);
    destroyed = cp->cache_dtors;
    KT_EQ(kmem_cache_reap(cp, KMEM_REAP_ALL), slabs);
    destroyed = cp->cache_dtors - destroyed;
    KT_EQ(cp->cache_slabs, 0);
    if (destroyed != slabs * cp->cache_slab_chunks)
        KT_FAIL("%zu slabs of pipes were freed and %llu pipes destroyed: the "
                "others are still on the list of pipes",
                slabs, (unsigned long long)destroyed);
    KT_TRUE(!pipe_next(&stat));
    KT_EQ(make(0, 3), 0);
    stat = none;
    KT_TRUE(pipe_next(&stat));
    close_all();
}

#define FAILURES 2000u

/* If there is no memory for a pipe: an error, without waiting; and as many
 * pipes as before once there is memory again, however often one has failed. */
LAB_TEST(6, no_memory, LAB_UP)
{
    struct file *end;
    unsigned before;

    KT_EQ(make(0, 60), 0);
    before = made();
    if (before < 60)
        KT_FAIL("only %u pipes, with all of memory free", before);
    test_flood();
    KT_EQ(make(before, PIPES), -ENOMEM);
    for (unsigned i = 0; i < FAILURES; i++)
        KT_EQ(pipe_create(&end, &end), -ENOMEM);
    test_flood_end();
    if (make(made(), PIPES) != 0)
        KT_FAIL("without memory %u pipes were refused; now there is memory "
                "again, and no pipe after the first %u",
                FAILURES + 1, made());
    close_all();
}

/* ---- 6.2: constructed once ---------------------------------------------- */

static void verify(const char *when)
{
    const char *where;
    const char *wrong = pipe_verify(&where);

    if (wrong != NULL)
        KT_FAIL("%s: %s: %s", when, where, wrong);
}

static char bytes[3000];

/* Leaves bytes in the middle of the pipe's buffer. */
static void use(unsigned i)
{
    KT_EQ(file_write(out[i].write_end, bytes, sizeof(bytes)), sizeof(bytes));
    KT_EQ(file_read(out[i].read_end, bytes, 1000), 1000);
}

LAB_TEST(6, constructed, LAB_UP)
{
    struct pipe_stat stat = {.stat_pipe = NULL};
    char c = 0;

    KT_REQUIRE(make(0, 3) == 0);
    verify("three pipes in use, others not yet");
    for (unsigned i = 0; i < 3; i++)
        use(i);
    verify("three pipes with bytes in them");
    close_all();
    verify("used, closed with bytes in them");
    KT_REQUIRE(make(0, 3) == 0);
    for (unsigned i = 0; i < 3; i++) {
        KT_REQUIRE(pipe_next(&stat));
        if (stat.stat_total != 0)
            KT_FAIL("%llu bytes went through a pipe that is new: they are of "
                    "its last use",
                    (unsigned long long)stat.stat_total);
    }
    for (unsigned i = 0; i < 3; i++) { /* nothing of the last use is visible */
        KT_EQ(file_write(out[i].write_end, "x", 1), 1);
        KT_EQ(file_read(out[i].read_end, &c, 1), 1);
        KT_EQ(c, 'x');
        put_end(&out[i].write_end);
        KT_EQ(file_read(out[i].read_end, &c, 1), 0);
    }
    close_all();
    verify("used again, and the writer's end closed first");
}

#define QUEUES 4  /* of the mutex and the three condition variables */
#define WORDS  64 /* of the pipe that contains them */

static const char mark[] = "kept";

static struct {
    const char **word;
    const char *was;
} reason[QUEUES];
static unsigned reasons;

/* Marks the texts that say why a task waits in a pipe ("pipe-full" and others),
 * which mutex_init and cond_init have stored. */
static void mark_reasons(const struct file *end)
{
    const char **word = end->file_data;

    for (unsigned i = 0; i < WORDS && reasons < QUEUES; i++)
        if (word[i] >= rodata_start && word[i] < rodata_end &&
            strncmp(word[i], "pipe", 4) == 0) {
            reason[reasons].word = &word[i];
            reason[reasons++].was = word[i];
            word[i] = mark;
        }
}

/* Removes the marks. Returns how many were already gone. */
static unsigned unmark_reasons(void)
{
    unsigned gone = 0;

    for (unsigned i = 0; i < reasons; i++) {
        gone += *reason[i].word != mark;
        *reason[i].word = reason[i].was;
    }
    return gone;
}

/* The state set up by the constructor must survive until the same pipe is used
 * again: here the operations of one end, which this test has replaced, and the
 * reasons for waiting in the queues, which it has marked. */
LAB_TEST(6, kept, LAB_UP)
{
    static struct file_ops ops;
    const struct file_ops *before;
    struct file *end;
    unsigned anew;

    KT_REQUIRE(make(0, 1) == 0);
    end = out[0].read_end;
    before = end->file_ops;
    ops = *before;
    end->file_ops = &ops;
    mark_reasons(end);
    close_all();
    KT_REQUIRE(make(0, 1) == 0);
    anew = unmark_reasons();
    if (out[0].read_end != end)
        KT_FAIL("the pipe that was used last is not the next to be used");
    else if (end->file_ops != &ops)
        KT_FAIL("a pipe was closed and used again, and its end was "
                "constructed again");
    else if (anew != 0)
        KT_FAIL("a pipe was closed and used again, and of its mutex and "
                "condition variables %u were constructed again",
                anew);
    end->file_ops = before;
    close_all();
}

/* ---- 6.3: without a cache ----------------------------------------------- */

static uint32_t ctors, dtors, wrong;
static void *constructed; /* the constructed object */

static void counting_ctor(void *obj, size_t size)
{
    wrong += constructed != NULL || size != 200;
    constructed = obj;
    ctors++;
}

static void counting_dtor(void *obj, size_t size)
{
    wrong += constructed != obj || size != 200;
    constructed = NULL;
    dtors++;
}

LAB_TEST(6, rounds, LAB_UP)
{
    struct kmem_cache *cp, *of_size = kmem_size_class(200);
    uint32_t allocs;

    cp = kmem_cache_create("t_kind", 200, 0, counting_ctor, counting_dtor);
    KT_REQUIRE(cp != NULL);
    allocs = of_size->cache_allocs;
    KT_NE(benchcmd_without(cp), 0);
    KT_EQ(ctors, ROUNDS);
    KT_EQ(dtors, ROUNDS);
    KT_EQ(cp->cache_allocs, 0); /* its cache is not used */
    KT_EQ(of_size->cache_allocs - allocs, ROUNDS);
    if (wrong != 0)
        KT_FAIL("%u times an object was constructed before the last one was "
                "destroyed, or another was, or not with the kind's size",
                wrong);
    test_destroy(cp);
}

static void fill(void *obj, size_t size)
{
    volatile uint32_t *word = obj;

    for (size_t i = 0; i < size / sizeof(*word); i++)
        word[i] = i;
}

/* The least cost of a kind, in whole instructions per object. */
static uint32_t cost(kmem_ctor_t *ctor)
{
    struct kmem_cache *cp = kmem_cache_create("t_kind", 200, 0, ctor, NULL);
    uint64_t least = UINT64_MAX;

    if (cp == NULL)
        return 0;
    for (unsigned i = 0; i < 3; i++)
        least = MIN(least, benchcmd_without(cp));
    test_destroy(cp);
    return (uint32_t)(least / ROUNDS);
}

/* The cost of kmem_alloc and kmem_free alone, and the addition by a
 * constructor. */
LAB_TEST(6, count, LAB_UP)
{
    void *live = kmem_alloc(200, KM_SLEEP);
    uint32_t memory = cost(NULL);
    uint32_t all = cost(fill);
    uint64_t start = rdtsc();
    uint32_t filling;

    fill(live, 200);
    filling = (uint32_t)(rdtsc() - start);
    if (memory < 40 || memory > 110)
        KT_FAIL(
            "an object without constructor and destructor costs %u "
            "instructions; kmem_alloc and kmem_free of 200 bytes take about 70",
            memory);
    if (all < memory + filling * 9 / 10 || all > memory + filling + 10)
        KT_FAIL("a constructor of about %u instructions makes the object "
                "cost %u more",
                filling, all - memory);
    kmem_free(live, 200);
}
