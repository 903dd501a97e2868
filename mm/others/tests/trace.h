/*
 * Traces: what clients requested of an allocator, as a file.
 *
 *     header   64 bytes: counts, and a CRC-32 of all that follows
 *     caches   name, size, alignment and flags of each: cache 1, 2, …
 *     events   a byte that says what happened, then only what the reader cannot
 *              know: in the reference trace R1 2.55 bytes on average
 *
 * A block has a number, its *slot*: that of the block freed last whose slot no
 * other block has got since, or else the next new one. Writer and reader follow
 * the same rule, so only a free names a slot.
 */
#pragma once

#include "kernel/lib/types.h"

#define TRACE_NAME_MAX 255

/* What all numbers in a file are: little endian, as the machine's are; and in
 * caches and events seven bits a byte, the lowest first, bit 7: more follow. */
struct trace_header {
    char header_magic[4];
    uint16_t header_version;
    uint16_t header_size;
    uint32_t header_flags;
    uint32_t header_cpus;
    uint32_t header_caches;
    uint32_t header_units; /* of time, a second */
    uint32_t header_events;
    uint32_t header_allocs;
    uint32_t header_frees;
    uint32_t header_slots;
    uint32_t header_live_bytes; /* the most that were allocated at a time */
    uint32_t header_lost;       /* events that the recorder had no room for */
    uint32_t header_cache_bytes;
    uint32_t header_event_bytes;
    uint32_t header_crc;
    uint32_t header_zero;
};

#define TRACE_TIMED     1 /* header_flags: times are valid */
#define TRACE_CPUS      2 /* several processors */
#define TRACE_LOSSES    4
#define TRACE_SYNTHETIC 8

#define TRACE_UNITS 1000000

struct trace_cache {
    char cache_name[TRACE_NAME_MAX + 1];
    uint32_t cache_size;
    uint32_t cache_align;
    uint32_t cache_flags;
};

#define TRACE_CTOR 1 /* cache_flags */
#define TRACE_DTOR 2

enum trace_op {
    TRACE_END,
    TRACE_CACHE_ALLOC, /* operand: the cache */
    TRACE_ALLOC,       /* the size */
    TRACE_FREE,        /* the slot */
    TRACE_CACHE_FAIL,  /* the cache; nothing was allocated */
    TRACE_FAIL,        /* the size */
    TRACE_MARK,        /* its number: a phase ends */
    TRACE_PRESSURE,    /* 0: all that is free returns */
    TRACE_IDLE,        /* none: only time passes */
    TRACE_DESTROY,     /* the cache */
    TRACE_OPS
};

struct trace_event {
    enum trace_op event_op;
    bool event_interrupt; /* at interrupt level */
    uint8_t event_cpu;
    uint64_t event_time; /* in units, since the trace began */
    uint32_t event_operand;
    uint32_t event_slot; /* of an allocation or a free; the writer ignores it */
};

struct trace_slot {
    bool slot_live;
    uint32_t slot_cache; /* 0: none, the block is of slot_size bytes */
    uint32_t slot_size;
};

/* What a trace has come to: the writer's and the reader's. */
struct trace_state {
    struct trace_header state_header; /* its counts, up to here */
    struct trace_cache *state_cache;  /* [0] is none */
    struct trace_slot *state_slot;
    uint32_t *state_freed; /* slots without a block, as a stack */
    uint32_t state_freed_count;
    uint32_t state_room; /* for slots */
    uint8_t state_cpu;
    uint64_t state_time;
    uint32_t state_live_bytes;
};

/* ---- writing ------------------------------------------------------------ */

struct trace_writer {
    struct trace_state writer_state;
    uint8_t *writer_bytes; /* the file */
    size_t writer_size;
    size_t writer_room;
};

/* Begins a trace with `count` caches: cache[0] has number 1. */
void trace_begin(struct trace_writer *w, uint32_t flags, uint32_t cpus,
                 const struct trace_cache *cache, uint32_t count);

/* Adds an event. Returns the slot, if it is an allocation or a free. */
uint32_t trace_put(struct trace_writer *w, const struct trace_event *e);

/* Notes that so many events are missing: a trace without figures. */
void trace_lose(struct trace_writer *w, uint32_t events);

/* The file, which the caller frees. */
uint8_t *trace_end(struct trace_writer *w, size_t *size);

/* Writes it: it appears whole, or not at all. False: errno says why. */
bool trace_store(const char *name, const uint8_t *bytes, size_t size);

/* ---- reading ------------------------------------------------------------ */

struct trace {
    struct trace_header trace_header;
    struct trace_state trace_state; /* up to the event that was read last */
    const uint8_t *trace_at;
    const uint8_t *trace_limit;
    const uint8_t *trace_events; /* the first */
};

/* Reads a whole file, which stays the caller's. NULL, or what is wrong with it,
 * until the next call; then there is nothing to close. */
const char *trace_open(struct trace *t, const uint8_t *bytes, size_t size);

/* The next event. False at the end; then it begins again. */
bool trace_next(struct trace *t, struct trace_event *e);

void trace_close(struct trace *t);
