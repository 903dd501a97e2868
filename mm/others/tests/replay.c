/*
 * Replays a trace on an allocator, one event after the other.
 *
 * Each block is stamped with its slot in its first word and its size in its
 * last; both are compared when it is freed. So blocks that overlap are noticed,
 * whatever the allocator. Objects that have a constructor are not stamped: the
 * constructor's pattern must be there at the allocation and at the free.
 *
 * Time is the trace's: the allocator's clock ticks every 2 seconds of it.
 */
#include "mm/others/tests/replay.h"
#include "kernel/lib/string.h"

#include <stdio.h>
#include <stdlib.h>

#define TICK        2 /* seconds */
#define CONSTRUCTED 32
#define PATTERN     0x5c

static char problem[200];

static const char *wrong(const struct replay *r, const char *why)
{
    const struct trace_header *h = &r->replay_trace->trace_state.state_header;

    snprintf(problem, sizeof(problem), "%s: event %u: %s",
             r->replay_allocator->op_name, h->header_events, why);
    return problem;
}

/* ---- what blocks contain ------------------------------------------------ */

static void construct(void *obj, size_t size)
{
    memset(obj, PATTERN, MIN(size, (size_t)CONSTRUCTED));
}

static void destroy(void *obj, size_t size)
{
    memset(obj, ~PATTERN, MIN(size, (size_t)CONSTRUCTED));
}

static bool is_constructed(const struct replay *r, const struct replay_block *b)
{
    return r->replay_cache[b->block_cache].other_ctor != NULL;
}

static bool has_pattern(const struct replay_block *b)
{
    for (uint32_t i = 0; i < MIN(b->block_size, (uint32_t)CONSTRUCTED); i++)
        if (b->block_at[i] != PATTERN)
            return false;
    return true;
}

/* A block of less than two words has only the first stamp, or part of it. */
static void stamp(const struct replay_block *b, uint32_t slot)
{
    uint32_t size = b->block_size;

    memcpy(b->block_at, &slot, MIN(size, (uint32_t)sizeof(slot)));
    if (size >= 2 * sizeof(size))
        memcpy(b->block_at + size - sizeof(size), &size, sizeof(size));
}

static bool has_stamps(const struct replay_block *b, uint32_t slot)
{
    uint32_t size = b->block_size;

    return memcmp(b->block_at, &slot, MIN(size, (uint32_t)sizeof(slot))) == 0 &&
           (size < 2 * sizeof(size) || memcmp(b->block_at + size - sizeof(size),
                                              &size, sizeof(size)) == 0);
}

/* ---- events ------------------------------------------------------------- */

static const char *allocate(struct replay *r, uint32_t slot)
{
    const struct trace_slot *s = &r->replay_trace->trace_state.state_slot[slot];
    struct replay_block *b = &r->replay_block[slot];

    b->block_size = s->slot_size;
    b->block_cache = s->slot_cache;
    b->block_at = s->slot_cache != 0
                      ? r->replay_allocator->op_cache_alloc(
                            &r->replay_cache[s->slot_cache])
                      : r->replay_allocator->op_alloc(s->slot_size);
    if (b->block_at == NULL)
        return wrong(r, "there is no memory, and the trace had some");
    if (!is_constructed(r, b))
        stamp(b, slot);
    else if (!has_pattern(b))
        return wrong(r, "an object is not constructed");
    return NULL;
}

static const char *release(struct replay *r, uint32_t slot)
{
    struct replay_block *b = &r->replay_block[slot];

    if (is_constructed(r, b) ? !has_pattern(b) : !has_stamps(b, slot))
        return wrong(r, "a block was overwritten: another one overlaps it");
    if (b->block_cache != 0)
        r->replay_allocator->op_cache_free(&r->replay_cache[b->block_cache],
                                           b->block_at);
    else
        r->replay_allocator->op_free(b->block_at, b->block_size);
    b->block_at = NULL;
    return NULL;
}

static const char *check(const struct replay *r)
{
    const char *broken = r->replay_allocator->op_check();

    return broken == NULL ? NULL : wrong(r, broken);
}

static void pass_time(struct replay *r, uint64_t now)
{
    uint64_t tick = TICK * (uint64_t)r->replay_trace->trace_header.header_units;

    while (now - r->replay_ticked >= tick) {
        r->replay_ticked += tick;
        if (r->replay_allocator->op_tick != NULL)
            r->replay_allocator->op_tick(r->replay_ticked / tick * TICK * 1000);
    }
}

static const char *carry_out(struct replay *r, const struct trace_event *e)
{
    pass_time(r, e->event_time);
    other_cpu = e->event_cpu % other_cpus;
    switch (e->event_op) {
    case TRACE_CACHE_ALLOC:
    case TRACE_ALLOC:
        return allocate(r, e->event_slot);
    case TRACE_FREE:
        return release(r, e->event_slot);
    case TRACE_MARK:
        if (r->replay_mark != NULL)
            r->replay_mark(r, e->event_operand);
        return check(r);
    case TRACE_PRESSURE:
        if (r->replay_allocator->op_pressure != NULL)
            r->replay_allocator->op_pressure();
        return NULL;
    default: /* time; and what concerned the recorded allocator alone */
        return NULL;
    }
}

void replay_begin(struct replay *r, const struct other_allocator *a,
                  struct trace *t)
{
    const struct trace_header *h = &t->trace_header;

    *r = (struct replay){
        .replay_allocator = a,
        .replay_trace = t,
        .replay_cache = calloc(h->header_caches + 1, sizeof(*r->replay_cache)),
        .replay_block = calloc(h->header_slots + 1, sizeof(*r->replay_block)),
    };
    if (r->replay_cache == NULL || r->replay_block == NULL)
        mm_panic("no memory for the blocks of a replay");
    for (uint32_t i = 1; i <= h->header_caches; i++) {
        const struct trace_cache *c = &t->trace_state.state_cache[i];
        bool constructed = (c->cache_flags & TRACE_CTOR) != 0;

        r->replay_cache[i] =
            (struct other_cache){.other_size = c->cache_size,
                                 .other_align = c->cache_align,
                                 .other_ctor = constructed ? construct : NULL,
                                 .other_dtor = constructed ? destroy : NULL};
        if (!other_cache_create(a, &r->replay_cache[i]))
            mm_panic("no memory for the caches of a replay");
    }
}

const char *replay_run(struct replay *r)
{
    struct trace_event e;
    const char *failed = NULL;
    uint32_t events = 0;

    while (failed == NULL && trace_next(r->replay_trace, &e)) {
        failed = carry_out(r, &e);
        if (failed == NULL && r->replay_check_each != 0 &&
            ++events % r->replay_check_each == 0)
            failed = check(r);
    }
    return failed == NULL ? check(r) : failed;
}

const char *replay_end(struct replay *r)
{
    const char *failed = NULL;

    for (uint32_t i = 0; i < r->replay_trace->trace_header.header_slots; i++)
        if (failed == NULL && r->replay_block[i].block_at != NULL)
            failed = release(r, i);
    if (failed == NULL)
        failed = check(r);
    free(r->replay_cache);
    free(r->replay_block);
    return failed;
}
