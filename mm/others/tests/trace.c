/*
 * Reads and writes traces (mm/others/tests/trace.h has the format).
 *
 * A file is checked as a whole when it is opened: sizes, the CRC, each event,
 * and the header's counts. So nothing is replayed or printed of a damaged one,
 * and readers need no checks of their own.
 */
#include "mm/others/tests/trace.h"
#include "kernel/lib/string.h"
#include "mm/platform.h"

#include <stdio.h>
#include <stdlib.h>

#define MAGIC   "KTR1"
#define VERSION 1u

#define TAG_OP        0x0f
#define TAG_CPU       0x10
#define TAG_TIME      0x20
#define TAG_INTERRUPT 0x40
#define TAG_RESERVED  0x80

_Static_assert(sizeof(struct trace_header) == 64, "the header is 64 bytes");

static char problem[160];

#define WRONG(...) (snprintf(problem, sizeof(problem), __VA_ARGS__), problem)

/* As of IEEE 802.3, four bits at a time. */
static uint32_t crc32(const uint8_t *bytes, size_t size)
{
    static uint32_t table[16];
    uint32_t crc = UINT32_MAX;

    for (uint32_t i = 0; i < 16; i++) {
        table[i] = i;
        for (int bit = 0; bit < 4; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
    }
    for (size_t i = 0; i < size; i++) {
        crc = crc >> 4 ^ table[(crc ^ bytes[i]) & 15];
        crc = crc >> 4 ^ table[(crc ^ bytes[i] >> 4) & 15];
    }
    return ~crc;
}

/* ---- what both follow --------------------------------------------------- */

static uint32_t take_slot(struct trace_state *s)
{
    if (s->state_freed_count != 0)
        return s->state_freed[--s->state_freed_count];
    if (s->state_header.header_slots == s->state_room) {
        s->state_room = MAX(2 * s->state_room, 64u);
        s->state_slot =
            realloc(s->state_slot, s->state_room * sizeof(*s->state_slot));
        s->state_freed =
            realloc(s->state_freed, s->state_room * sizeof(*s->state_freed));
        if (s->state_slot == NULL || s->state_freed == NULL)
            mm_panic("no memory for the slots of a trace");
    }
    return s->state_header.header_slots++;
}

static void follow_alloc(struct trace_state *s, struct trace_event *e)
{
    bool untyped = e->event_op == TRACE_ALLOC;
    uint32_t cache = untyped ? 0 : e->event_operand;
    uint32_t size =
        untyped ? e->event_operand : s->state_cache[cache].cache_size;

    e->event_slot = take_slot(s);
    s->state_slot[e->event_slot] = (struct trace_slot){true, cache, size};
    s->state_live_bytes += size;
    s->state_header.header_live_bytes =
        MAX(s->state_header.header_live_bytes, s->state_live_bytes);
    s->state_header.header_allocs++;
}

static const char *follow_free(struct trace_state *s, struct trace_event *e)
{
    uint32_t slot = e->event_slot = e->event_operand;

    if (slot >= s->state_header.header_slots || !s->state_slot[slot].slot_live)
        return WRONG("slot %u is freed and has no block", slot);
    s->state_slot[slot].slot_live = false;
    s->state_live_bytes -= s->state_slot[slot].slot_size;
    s->state_freed[s->state_freed_count++] = slot;
    s->state_header.header_frees++;
    return NULL;
}

static bool has_cache(enum trace_op op)
{
    return op == TRACE_CACHE_ALLOC || op == TRACE_CACHE_FAIL ||
           op == TRACE_DESTROY;
}

/* Counts an event, and finds its slot. NULL, or what is wrong with it. */
static const char *follow(struct trace_state *s, struct trace_event *e)
{
    const char *wrong = NULL;

    if (has_cache(e->event_op) &&
        (e->event_operand == 0 ||
         e->event_operand > s->state_header.header_caches))
        return WRONG("cache %u of %u", e->event_operand,
                     s->state_header.header_caches);
    if (e->event_cpu >= s->state_header.header_cpus)
        return WRONG("processor %u of %u", e->event_cpu,
                     s->state_header.header_cpus);
    if (e->event_op == TRACE_CACHE_ALLOC || e->event_op == TRACE_ALLOC)
        follow_alloc(s, e);
    else if (e->event_op == TRACE_FREE)
        wrong = follow_free(s, e);
    s->state_cpu = e->event_cpu;
    s->state_time = e->event_time;
    s->state_header.header_events += e->event_op != TRACE_END;
    return wrong;
}

static void free_state(struct trace_state *s)
{
    free(s->state_cache);
    free(s->state_slot);
    free(s->state_freed);
}

static bool has_operand(enum trace_op op)
{
    return op != TRACE_END && op != TRACE_IDLE;
}

/* ---- writing ------------------------------------------------------------ */

static void put_byte(struct trace_writer *w, uint8_t byte)
{
    if (w->writer_size == w->writer_room) {
        w->writer_room = MAX(2 * w->writer_room, (size_t)4096);
        w->writer_bytes = realloc(w->writer_bytes, w->writer_room);
        if (w->writer_bytes == NULL)
            mm_panic("no memory for a trace of %zu bytes", w->writer_room);
    }
    w->writer_bytes[w->writer_size++] = byte;
}

static void put_number(struct trace_writer *w, uint64_t number)
{
    for (; number > 0x7f; number >>= 7)
        put_byte(w, (uint8_t)(number | 0x80));
    put_byte(w, (uint8_t)number);
}

static void put_cache(struct trace_writer *w, const struct trace_cache *c)
{
    size_t length = strlen(c->cache_name);

    put_byte(w, (uint8_t)length);
    for (size_t i = 0; i < length; i++)
        put_byte(w, (uint8_t)c->cache_name[i]);
    put_number(w, c->cache_size);
    put_number(w, c->cache_align);
    put_number(w, c->cache_flags);
}

void trace_begin(struct trace_writer *w, uint32_t flags, uint32_t cpus,
                 const struct trace_cache *cache, uint32_t count)
{
    struct trace_state *s = &w->writer_state;

    *w = (struct trace_writer){0};
    s->state_header = (struct trace_header){
        .header_magic = MAGIC,
        .header_version = VERSION,
        .header_size = sizeof(struct trace_header),
        .header_flags = flags,
        .header_cpus = cpus,
        .header_caches = count,
        .header_units = TRACE_UNITS,
    };
    s->state_cache = calloc(count + 1, sizeof(*cache));
    if (s->state_cache == NULL)
        mm_panic("no memory for the caches of a trace");
    memcpy(s->state_cache + 1, cache, count * sizeof(*cache));
    for (size_t i = 0; i < sizeof(struct trace_header); i++)
        put_byte(w, 0);
    for (uint32_t i = 0; i < count; i++)
        put_cache(w, &cache[i]);
    s->state_header.header_cache_bytes =
        (uint32_t)(w->writer_size - sizeof(struct trace_header));
}

uint32_t trace_put(struct trace_writer *w, const struct trace_event *event)
{
    struct trace_state *s = &w->writer_state;
    struct trace_event e = *event;
    uint64_t passed = e.event_time - s->state_time;
    bool moved = e.event_cpu != s->state_cpu;
    const char *wrong;

    put_byte(w, (uint8_t)((unsigned)e.event_op | (moved ? TAG_CPU : 0) |
                          (passed != 0 ? TAG_TIME : 0) |
                          (e.event_interrupt ? TAG_INTERRUPT : 0)));
    if (moved)
        put_byte(w, e.event_cpu);
    if (passed != 0)
        put_number(w, passed);
    if (has_operand(e.event_op))
        put_number(w, e.event_operand);
    wrong = follow(s, &e);
    if (wrong != NULL)
        mm_panic("trace_put: %s", wrong);
    return e.event_slot;
}

void trace_lose(struct trace_writer *w, uint32_t events)
{
    struct trace_header *h = &w->writer_state.state_header;

    h->header_lost += events;
    if (h->header_lost != 0)
        h->header_flags |= TRACE_LOSSES;
}

uint8_t *trace_end(struct trace_writer *w, size_t *size)
{
    struct trace_state *s = &w->writer_state;
    struct trace_header *h = &s->state_header;

    trace_put(w, &(struct trace_event){.event_op = TRACE_END,
                                       .event_cpu = s->state_cpu,
                                       .event_time = s->state_time});
    h->header_event_bytes =
        (uint32_t)(w->writer_size - sizeof(*h) - h->header_cache_bytes);
    h->header_crc =
        crc32(w->writer_bytes + sizeof(*h), w->writer_size - sizeof(*h));
    memcpy(w->writer_bytes, h, sizeof(*h));
    free_state(s);
    *size = w->writer_size;
    return w->writer_bytes;
}

bool trace_store(const char *name, const uint8_t *bytes, size_t size)
{
    char whole[4096];
    FILE *f;

    snprintf(whole, sizeof(whole), "%s.new", name);
    f = fopen(whole, "wb");
    return f != NULL && fwrite(bytes, 1, size, f) == size && fclose(f) == 0 &&
           rename(whole, name) == 0;
}

/* ---- reading ------------------------------------------------------------ */

static bool get_byte(struct trace *t, uint8_t *byte)
{
    if (t->trace_at == t->trace_limit)
        return false;
    *byte = *t->trace_at++;
    return true;
}

static bool get_number(struct trace *t, uint64_t most, uint64_t *number)
{
    uint8_t byte = 0x80;

    *number = 0;
    for (unsigned shift = 0; byte & 0x80; shift += 7) {
        if (shift > 56 || !get_byte(t, &byte))
            return false;
        *number |= (uint64_t)(byte & 0x7f) << shift;
    }
    return *number <= most;
}

static bool get_word(struct trace *t, uint32_t *word)
{
    uint64_t number;
    bool fits = get_number(t, UINT32_MAX, &number);

    *word = (uint32_t)number;
    return fits;
}

static bool get_cache(struct trace *t, struct trace_cache *c)
{
    uint8_t length;

    if (!get_byte(t, &length) || t->trace_limit - t->trace_at < length)
        return false;
    memcpy(c->cache_name, t->trace_at, length);
    t->trace_at += length;
    return get_word(t, &c->cache_size) && get_word(t, &c->cache_align) &&
           get_word(t, &c->cache_flags) &&
           (c->cache_align & (c->cache_align - 1)) == 0;
}

static const char *get_event(struct trace *t, struct trace_event *e)
{
    const struct trace_state *s = &t->trace_state;
    uint64_t passed = 0;
    uint8_t tag;

    *e = (struct trace_event){.event_cpu = s->state_cpu};
    if (!get_byte(t, &tag))
        return WRONG("there is no event END");
    e->event_op = tag & TAG_OP;
    e->event_interrupt = (tag & TAG_INTERRUPT) != 0;
    if (e->event_op >= TRACE_OPS || (tag & TAG_RESERVED) != 0)
        return WRONG("unknown tag 0x%02x", tag);
    if (((tag & TAG_CPU) && !get_byte(t, &e->event_cpu)) ||
        ((tag & TAG_TIME) &&
         !get_number(t, UINT64_MAX - s->state_time, &passed)) ||
        (has_operand(e->event_op) && !get_word(t, &e->event_operand)))
        return WRONG("a number that does not end, or is too large");
    e->event_time = s->state_time + passed;
    return follow(&t->trace_state, e);
}

static void rewind_trace(struct trace *t)
{
    struct trace_state *s = &t->trace_state;

    s->state_header.header_events = s->state_header.header_allocs =
        s->state_header.header_frees = s->state_header.header_slots =
            s->state_header.header_live_bytes = 0;
    s->state_freed_count = s->state_live_bytes = s->state_cpu = 0;
    s->state_time = 0;
    t->trace_at = t->trace_events;
}

/* The sizes and the CRC. */
static const char *check_header(const struct trace_header *h,
                                const uint8_t *bytes, size_t size)
{
    size_t whole = sizeof(*h) + (size_t)h->header_cache_bytes +
                   (size_t)h->header_event_bytes;
    uint32_t crc;

    if (memcmp(h->header_magic, MAGIC, sizeof(h->header_magic)) != 0)
        return WRONG("not a trace: it does not begin with " MAGIC);
    if (h->header_version != VERSION || h->header_size != sizeof(*h))
        return WRONG("version %u, not %u", h->header_version, VERSION);
    if (size < whole)
        return WRONG("truncated: %zu bytes of %zu", size, whole);
    if (size > whole)
        return WRONG("damaged: %zu bytes after its end", size - whole);
    crc = crc32(bytes + sizeof(*h), size - sizeof(*h));
    if (crc != h->header_crc)
        return WRONG("damaged: its CRC-32 is %08x, not %08x", crc,
                     h->header_crc);
    if (h->header_units == 0 || h->header_zero != 0)
        return WRONG("damaged: the header");
    if (h->header_caches > h->header_cache_bytes)
        return WRONG("damaged: %u caches in %u bytes", h->header_caches,
                     h->header_cache_bytes);
    return NULL;
}

static const char *read_caches(struct trace *t)
{
    const struct trace_header *h = &t->trace_header;

    t->trace_limit = t->trace_at + h->header_cache_bytes;
    for (uint32_t i = 1; i <= h->header_caches; i++)
        if (!get_cache(t, &t->trace_state.state_cache[i]))
            return WRONG("damaged: cache %u", i);
    if (t->trace_at != t->trace_limit)
        return WRONG("damaged: more bytes than caches");
    t->trace_events = t->trace_at;
    t->trace_limit = t->trace_at + h->header_event_bytes;
    return NULL;
}

/* All events, once; then the counts must be the header's. */
static const char *read_events(struct trace *t)
{
    const struct trace_header *want = &t->trace_header;
    const struct trace_header *have = &t->trace_state.state_header;
    struct trace_event e;

    do {
        size_t at = (size_t)(t->trace_at - t->trace_events);
        uint32_t number = have->header_events + 1;
        const char *wrong = get_event(t, &e);
        char why[sizeof(problem) / 2];

        if (wrong != NULL) {
            snprintf(why, sizeof(why), "%s", wrong);
            return WRONG("damaged: event %u, at byte %zu: %s", number, at, why);
        }
    } while (e.event_op != TRACE_END);
    if (t->trace_at != t->trace_limit)
        return WRONG("damaged: events after END");
    if (memcmp(have, want, sizeof(*have)) != 0)
        return WRONG("damaged: %u events, %u allocations, %u frees, %u slots, "
                     "%u live bytes: the header has others",
                     have->header_events, have->header_allocs,
                     have->header_frees, have->header_slots,
                     have->header_live_bytes);
    return NULL;
}

const char *trace_open(struct trace *t, const uint8_t *bytes, size_t size)
{
    struct trace_header *h = &t->trace_header;
    const char *wrong;

    *t = (struct trace){.trace_at = bytes + sizeof(*h)};
    if (size < sizeof(*h))
        return WRONG("truncated: %zu bytes, and a header has %zu", size,
                     sizeof(*h));
    memcpy(h, bytes, sizeof(*h));
    wrong = check_header(h, bytes, size);
    if (wrong != NULL)
        return wrong;
    t->trace_state.state_header = *h;
    t->trace_state.state_cache =
        calloc(h->header_caches + 1, sizeof(struct trace_cache));
    if (t->trace_state.state_cache == NULL)
        mm_panic("no memory for the caches of a trace");
    wrong = read_caches(t);
    if (wrong == NULL) {
        rewind_trace(t);
        wrong = read_events(t);
    }
    if (wrong == NULL)
        rewind_trace(t);
    else
        trace_close(t);
    return wrong;
}

bool trace_next(struct trace *t, struct trace_event *e)
{
    const char *wrong = get_event(t, e);

    MM_ASSERT(wrong == NULL); /* trace_open has seen it */
    (void)wrong;
    if (e->event_op != TRACE_END)
        return true;
    rewind_trace(t);
    return false;
}

void trace_close(struct trace *t)
{
    free_state(&t->trace_state);
}
