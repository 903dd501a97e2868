/*
 * The format of traces: the example of its description, R1, and damage.
 * Tests: mm/others/tests/trace.c, mm/others/tests/r1.c
 */
#include "mm/others/tests/other_test.h"
#include "kernel/lib/string.h"

#include <stdlib.h>
#include <string.h>

static const struct trace_cache caches[] = {
    {.cache_name = "proc", .cache_size = 476},
    {.cache_name = "odd",
     .cache_size = 24,
     .cache_align = 64,
     .cache_flags = 3},
    {.cache_name = "a_cache_of_a_longer_name", .cache_size = 300},
};

static struct trace_writer writer;
static uint8_t *file;
static size_t size;

static uint32_t put(enum trace_op op, uint64_t time, uint32_t operand)
{
    struct trace_event e = {
        .event_op = op, .event_time = time, .event_operand = operand};

    return trace_put(&writer, &e);
}

/* That of the description, in which cache 3 is cache 8. */
static void write_example(void)
{
    trace_begin(&writer, TRACE_TIMED, 1, caches, ARRAY_SIZE(caches));
    KT_EQ(put(TRACE_CACHE_ALLOC, 0, 1), 0);
    KT_EQ(put(TRACE_ALLOC, 0, 100), 1);
    KT_EQ(put(TRACE_FREE, 0, 0), 0);
    KT_EQ(put(TRACE_CACHE_ALLOC, 0, 3), 0);
    put(TRACE_IDLE, 2000000, 0);
    KT_EQ(put(TRACE_FREE, 2000000, 1), 1);
    put(TRACE_MARK, 2000000, 1);
    file = trace_end(&writer, &size);
}

static struct trace_header *header(void)
{
    return (struct trace_header *)file;
}

static uint8_t *events(void)
{
    return file + sizeof(struct trace_header) + header()->header_cache_bytes;
}

KTEST(trace, the_example_of_the_description)
{
    static const uint8_t want[] = {0x01, 0x01, 0x02, 0x64, 0x03, 0x00,
                                   0x01, 0x03, 0x28, 0x80, 0x89, 0x7a,
                                   0x03, 0x01, 0x06, 0x01, 0x00};
    const struct trace_header *h;

    write_example();
    h = header();
    KT_EQ(h->header_event_bytes, sizeof(want));
    KT_TRUE(memcmp(events(), want, sizeof(want)) == 0);
    KT_EQ(size, sizeof(*h) + h->header_cache_bytes + sizeof(want));
    KT_EQ(h->header_events, 7);
    KT_EQ(h->header_allocs, 3);
    KT_EQ(h->header_frees, 2);
    KT_EQ(h->header_slots, 2);
    KT_EQ(h->header_live_bytes, 576);
    free(file);
}

/* CRC-32 of R1's events, which its description has: a file of a trace without
 * caches has no other bytes after the header. */
KTEST(trace, R1_has_the_size_and_the_sum_of_its_description)
{
    struct trace_header *h;
    const struct r1 *r;
    struct trace t;

    r = r1_write(&writer);
    KT_EQ(r->r1_hash, 0x936fa0aa);
    KT_EQ(r->r1_random, 1580281375);
    file = trace_end(&writer, &size);
    h = header();
    KT_EQ(h->header_events, 414453);
    KT_EQ(h->header_allocs, 210725);
    KT_EQ(h->header_frees, 203473);
    KT_EQ(h->header_slots, 10445);
    KT_EQ(h->header_live_bytes, 1662187);
    KT_EQ(h->header_event_bytes, 1055225);
    KT_TRUE(trace_open(&t, file, size) == NULL);
    trace_close(&t);

    memmove(file + sizeof(*h), events(), h->header_event_bytes);
    size = sizeof(*h) + h->header_event_bytes;
    h->header_cache_bytes = h->header_caches = 0;
    h->header_crc = 0xc15c30e5;
    KT_TRUE(strstr(trace_open(&t, file, size), "cache 1 of 0") != NULL);
    free(file);
}

/* Every field of every event comes back, and again the second time. */
KTEST(trace, what_is_read_is_what_was_written)
{
    static const struct trace_event list[] = {
        {TRACE_CACHE_ALLOC, false, 0, 0, 2, 0},
        {TRACE_ALLOC, true, 3, 127, 0, 1},
        {TRACE_ALLOC, false, 3, 128, 5000, 2},
        {TRACE_CACHE_FAIL, true, 0, 1000000000000, 1, 0},
        {TRACE_FAIL, false, 0, 1000000000000, UINT32_MAX, 0},
        {TRACE_FREE, false, 255, 1000000000001, 1, 1},
        {TRACE_FREE, true, 1, 1000000000001, 0, 0},
        {TRACE_ALLOC, false, 1, 1000000000001, 7, 0},
        {TRACE_CACHE_ALLOC, false, 1, 1000000000001, 3, 1},
        {TRACE_PRESSURE, false, 1, 1000000000001, 0, 0},
        {TRACE_MARK, false, 1, 1000000000001, 400, 0},
        {TRACE_DESTROY, false, 1, 1000000000001, 2, 0},
        {TRACE_IDLE, false, 1, 1000000016384, 0, 0},
    };
    struct trace_event e;
    struct trace t;

    trace_begin(&writer, TRACE_TIMED | TRACE_CPUS, 256, caches,
                ARRAY_SIZE(caches));
    for (size_t i = 0; i < ARRAY_SIZE(list); i++)
        trace_put(&writer, &list[i]);
    file = trace_end(&writer, &size);
    KT_REQUIRE(trace_open(&t, file, size) == NULL);
    for (size_t i = 1; i <= ARRAY_SIZE(caches); i++) {
        const struct trace_cache *c = &t.trace_state.state_cache[i];

        KT_TRUE(strcmp(c->cache_name, caches[i - 1].cache_name) == 0);
        KT_EQ(c->cache_size, caches[i - 1].cache_size);
        KT_EQ(c->cache_align, caches[i - 1].cache_align);
        KT_EQ(c->cache_flags, caches[i - 1].cache_flags);
    }
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
            KT_REQUIRE(trace_next(&t, &e));
            KT_EQ(e.event_op, list[i].event_op);
            KT_EQ(e.event_interrupt, list[i].event_interrupt);
            KT_EQ(e.event_cpu, list[i].event_cpu);
            KT_EQ(e.event_time, list[i].event_time);
            KT_EQ(e.event_operand, list[i].event_operand);
            KT_EQ(e.event_slot, list[i].event_slot);
        }
        KT_TRUE(!trace_next(&t, &e));
    }
    trace_close(&t);
    free(file);
}

/* ---- damage ------------------------------------------------------------- */

static void expect_wrong(const char *text)
{
    struct trace t;
    const char *wrong = trace_open(&t, file, size);

    if (wrong == NULL || strstr(wrong, text) == NULL)
        KT_FAIL("\"%s\" is expected, not \"%s\"", text,
                wrong == NULL ? "no error" : wrong);
}

KTEST(trace, a_truncated_file_is_refused)
{
    write_example();
    for (; size > 0; size--)
        if (size < sizeof(struct trace_header) + header()->header_cache_bytes +
                       header()->header_event_bytes)
            expect_wrong("truncated");
    expect_wrong("truncated: 0 bytes, and a header has 64");
    free(file);
}

/* The sum does not cover the header: what a file without an error says there
 * is what its events say. */
KTEST(trace, each_changed_byte_is_noticed)
{
    struct trace t;

    write_example();
    for (size_t i = 0; i < size; i++) {
        bool unchecked = i >= 8 && i < 16; /* flags, processors */

        unchecked |= i >= 20 && i < 24; /* units of time */
        unchecked |= i >= 44 && i < 48; /* lost events */
        for (unsigned bit = 0; bit < 8 && !unchecked; bit++) {
            file[i] ^= (uint8_t)(1u << bit);
            KT_TRUE(trace_open(&t, file, size) != NULL);
            file[i] ^= (uint8_t)(1u << bit);
        }
    }
    free(file);
}

/* Writes the sum that trace_open wants, which its message has. */
static void repair_sum(void)
{
    struct trace t;
    const char *wrong = trace_open(&t, file, size);
    const char *sum = wrong == NULL ? NULL : strstr(wrong, "CRC-32 is ");

    KT_REQUIRE(sum != NULL);
    header()->header_crc =
        (uint32_t)strtoul(sum + strlen("CRC-32 is "), NULL, 16);
}

KTEST(trace, wrong_events_are_refused)
{
    static const struct {
        unsigned at;
        uint8_t byte;
        const char *text;
    } damage[] = {
        {0, 0x0a, "event 1, at byte 0: unknown tag 0x0a"},
        {0, 0x81, "event 1, at byte 0: unknown tag 0x81"},
        {1, 0, "event 1, at byte 0: cache 0 of 3"},
        {7, 4, "event 4, at byte 6: cache 4 of 3"},
        {13, 2, "event 6, at byte 12: slot 2 is freed and has no block"},
        {13, 0x80, "event 6, at byte 12: slot 768 is freed"},
        {14, 0x16, "event 7, at byte 14: processor 1 of 1"},
        {3, 101, "7 events, 3 allocations, 2 frees, 2 slots, 577 live bytes"},
        {14, 0, "events after END"},
        {16, 8, "there is no event END"},
        {16, 1, "a number that does not end"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
        write_example();
        events()[damage[i].at] = damage[i].byte;
        repair_sum();
        expect_wrong(damage[i].text);
        free(file);
    }
}

KTEST(trace, wrong_caches_are_refused)
{
    static const struct {
        unsigned at;
        uint8_t byte;
        const char *text;
    } damage[] = {
        {0, 255, "damaged: cache 1"},  /* the length of its name */
        {8, 0xff, "damaged: cache 2"}, /* flags of cache 1 that do not end */
        {14, 65, "damaged: cache 2"},  /* its alignment */
    };

    for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
        write_example();
        file[sizeof(struct trace_header) + damage[i].at] = damage[i].byte;
        repair_sum();
        expect_wrong(damage[i].text);
        free(file);
    }
}

KTEST(trace, more_bytes_than_caches)
{
    write_example();
    header()->header_caches--;
    expect_wrong("damaged: more bytes than caches");
    free(file);
}

/* More bits than any field has: the reader may not shift by them. */
KTEST(trace, a_number_without_end)
{
    trace_begin(&writer, TRACE_TIMED, 1, caches, ARRAY_SIZE(caches));
    put(TRACE_IDLE, UINT64_MAX >> 1, 0);
    for (int i = 0; i < 4; i++)
        put(TRACE_IDLE, UINT64_MAX >> 1, 0);
    file = trace_end(&writer, &size);
    KT_EQ(events()[0], 0x28);
    memset(events() + 1, 0xff, 12);
    repair_sum();
    expect_wrong("event 1, at byte 0: a number that does not end");
    free(file);
}
