/*
 * Replays on allocators that make mistakes, each of which is noticed; and the
 * order of what a replay does.
 * Tests: mm/others/tests/replay.c
 */
#include "mm/others/tests/other_test.h"
#include "mm/others/tests/replay.h"
#include "kernel/lib/string.h"

#include <stdlib.h>
#include <string.h>

static struct trace_writer writer;
static struct trace trace;
static struct replay replay;
static struct other_allocator faulty; /* slob, but for a case's mistake */

static void put(enum trace_op op, uint64_t seconds, uint32_t operand)
{
    trace_put(&writer,
              &(struct trace_event){.event_op = op,
                                    .event_time = seconds * TRACE_UNITS,
                                    .event_operand = operand});
}

static void begin(void)
{
    static const struct trace_cache cache[] = {
        {.cache_name = "plain", .cache_size = 100},
        {.cache_name = "made", .cache_size = 200, .cache_flags = TRACE_CTOR},
    };

    faulty = slob_allocator;
    other_test_start(&slob_allocator);
    trace_begin(&writer, TRACE_TIMED, 8, cache, ARRAY_SIZE(cache));
}

static const char *run(void)
{
    size_t size;
    uint8_t *bytes = trace_end(&writer, &size);

    KT_REQUIRE(trace_open(&trace, bytes, size) == NULL);
    replay_begin(&replay, &faulty, &trace);
    return replay_run(&replay);
}

static void expect(const char *text)
{
    const char *wrong = run();

    if (wrong == NULL || strcmp(wrong, text) != 0)
        KT_FAIL("\"%s\" is expected, not \"%s\"", text,
                wrong == NULL ? "no error" : wrong);
}

static void *same_block(size_t size UNUSED)
{
    static uint64_t block[20];

    return block;
}

static void keep(void *p UNUSED, size_t size UNUSED)
{
}

KTEST(replay, blocks_that_overlap_at_their_begin)
{
    begin();
    faulty.op_alloc = same_block;
    faulty.op_free = keep;
    put(TRACE_ALLOC, 0, 160);
    put(TRACE_ALLOC, 0, 80);
    put(TRACE_FREE, 0, 0);
    expect("slob: event 3: a block was overwritten: another one overlaps it");
}

static void *last_word(size_t size)
{
    return (char *)same_block(size) + (size == 4 ? 156 : 0);
}

KTEST(replay, blocks_that_overlap_at_their_end)
{
    begin();
    faulty.op_alloc = last_word;
    faulty.op_free = keep;
    put(TRACE_ALLOC, 0, 160);
    put(TRACE_ALLOC, 0, 4);
    put(TRACE_FREE, 0, 0);
    expect("slob: event 3: a block was overwritten: another one overlaps it");
}

static void *none(struct other_cache *c UNUSED)
{
    return NULL;
}

KTEST(replay, a_failure_that_the_trace_does_not_have)
{
    begin();
    faulty.op_cache_alloc = none;
    put(TRACE_FAIL, 0, 1000);
    put(TRACE_CACHE_FAIL, 0, 1);
    put(TRACE_CACHE_ALLOC, 0, 1);
    expect("slob: event 3: there is no memory, and the trace had some");
}

static void *not_made(struct other_cache *c)
{
    static struct other_cache plain;
    void *obj;

    plain.other_size = c->other_size;
    obj = slob_allocator.op_cache_alloc(&plain);
    memset(obj, 0, c->other_size);
    return obj;
}

KTEST(replay, an_object_that_is_not_constructed)
{
    begin();
    faulty.op_cache_alloc = not_made;
    put(TRACE_CACHE_ALLOC, 0, 1);
    put(TRACE_CACHE_ALLOC, 0, 2);
    expect("slob: event 2: an object is not constructed");
}

static void *made;

static void *remember(struct other_cache *c)
{
    return made = slob_allocator.op_cache_alloc(c);
}

static void damage(struct other_cache *c UNUSED, void *obj UNUSED)
{
    ((char *)made)[31]++;
}

KTEST(replay, an_object_whose_constructed_state_was_overwritten)
{
    begin();
    faulty.op_cache_free = damage;
    faulty.op_cache_alloc = remember;
    put(TRACE_CACHE_ALLOC, 0, 1);
    put(TRACE_CACHE_ALLOC, 0, 2);
    put(TRACE_FREE, 0, 0);
    put(TRACE_FREE, 0, 1);
    expect("slob: event 4: a block was overwritten: another one overlaps it");
}

static const char *broken(void)
{
    return "broken";
}

KTEST(replay, invariants_are_checked_at_marks)
{
    begin();
    faulty.op_check = broken;
    put(TRACE_IDLE, 0, 0);
    put(TRACE_MARK, 0, 7);
    put(TRACE_IDLE, 0, 0);
    expect("slob: event 2: broken");
}

/* ---- what is called ----------------------------------------------------- */

static char calls[100];

static void note(char what, uint64_t number)
{
    size_t n = strlen(calls);

    calls[n] = what;
    calls[n + 1] = (char)('0' + number);
}

static void tick(uint64_t now_ms)
{
    note('t', now_ms / 1000);
}

static void pressure(void)
{
    note('p', 0);
}

static void mark(struct replay *r UNUSED, uint32_t number)
{
    note('m', number);
}

/* Each boundary of 2 seconds once, before the event that passed it. */
KTEST(replay, ticks_marks_and_pressure)
{
    size_t size;
    uint8_t *bytes;

    begin();
    faulty.op_tick = tick;
    faulty.op_pressure = pressure;
    put(TRACE_MARK, 1, 1);
    put(TRACE_PRESSURE, 5, 0);
    put(TRACE_MARK, 6, 3);
    put(TRACE_MARK, 7, 2);
    bytes = trace_end(&writer, &size);
    KT_REQUIRE(trace_open(&trace, bytes, size) == NULL);
    replay_begin(&replay, &faulty, &trace);
    replay.replay_mark = mark;
    KT_TRUE(replay_run(&replay) == NULL);
    KT_TRUE(strcmp(calls, "m1t2t4p0t6m3m2") == 0);
}

/* Also blocks too small for a stamp, and of no bytes. */
KTEST(replay, what_is_left_is_freed_in_the_end)
{
    begin();
    for (uint32_t bytes = 0; bytes < 20; bytes++)
        put(TRACE_ALLOC, 0, bytes);
    put(TRACE_CACHE_ALLOC, 0, 2);
    put(TRACE_FREE, 0, 3);
    KT_TRUE(run() == NULL);
    KT_EQ(test_counts().stat_requested, 19 * 20 / 2 - 3 + 200);
    KT_TRUE(replay_end(&replay) == NULL);
    KT_EQ(test_counts().stat_requested, 0);
    KT_EQ(test_held(), 0);
}

static unsigned ran_on;

static void *note_processor(size_t size)
{
    ran_on = other_cpu;
    return slob_allocator.op_alloc(size);
}

KTEST(replay, an_event_runs_on_its_processor)
{
    begin();
    faulty.op_alloc = note_processor;
    other_cpus = 4;
    trace_put(&writer, &(struct trace_event){.event_op = TRACE_ALLOC,
                                             .event_cpu = 6,
                                             .event_operand = 8});
    KT_TRUE(run() == NULL);
    KT_EQ(ran_on, 2);
}

static size_t created[2];
static unsigned caches;

static bool note_cache(struct other_cache *c)
{
    created[caches++] = c->other_size;
    return true;
}

static bool no_cache(struct other_cache *c UNUSED)
{
    return false;
}

KTEST(replay, caches_are_created_first)
{
    begin();
    faulty.op_cache_create = note_cache;
    KT_TRUE(run() == NULL);
    KT_EQ(caches, 2);
    KT_EQ(created[0], 100);
    KT_EQ(created[1], 200);
    begin();
    faulty.op_cache_create = no_cache;
    KT_PANICS(run(), "no memory for the caches of a replay");
}
