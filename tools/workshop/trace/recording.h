/*
 * A recording: what the recorder (recorder.c) leaves in the memory of the
 * machine, and mm/others/tests/pack/main.c finds there when it has ended.
 *
 *     recording ──> blocks of memory, one after the other full of records
 *               ──> the caches that clients created
 *               ──> the traces that were saved, each from a record to another
 *
 * A record's place is its sequence number: one counter for all processors. When
 * the blocks are full the counter goes on, so it says how many are lost.
 */
#pragma once

#include "mm/others/tests/trace.h"

#define RECORDING_MAGIC  0x4352544bu /* "KTRC" */
#define RECORDING_NAME   32
#define RECORDING_BLOCKS 256
#define RECORDING_CACHES 256
#define RECORDING_TRACES 64

#define RECORD_BLOCK     MIB(4)
#define RECORDS_IN_BLOCK (RECORD_BLOCK / sizeof(struct record))

/* An enum trace_op: of a free, record_addr says of which block; TRACE_END is a
 * record that is not written yet. Or a cache is created. */
#define RECORD_CREATE TRACE_OPS

struct record {
    uint64_t record_us;   /* since boot */
    uint32_t record_addr; /* of the block; of the cache */
    uint32_t record_what; /* bytes; the cache; its index; a mark's number */
    uint16_t record_cpu;
    uint16_t record_op;
} __attribute__((packed));

struct recorded_cache {
    char recorded_name[RECORDING_NAME];
    uint32_t recorded_size;
    uint32_t recorded_align;
    uint32_t recorded_flags; /* TRACE_CTOR … */
};

/* What was allocated before its first record belongs to a trace, too. */
struct recorded_trace {
    char recorded_name[RECORDING_NAME];
    uint32_t recorded_first;
    uint32_t recorded_end;
};

struct recording {
    uint32_t recording_magic;
    uint32_t recording_count;  /* records, the lost ones included */
    uint32_t recording_room;   /* for records */
    uint32_t recording_caches; /* created, those without room included */
    uint32_t recording_traces;
    uint32_t recording_block[RECORDING_BLOCKS]; /* physical addresses */
    struct recorded_cache recording_cache[RECORDING_CACHES];
    struct recorded_trace recording_trace[RECORDING_TRACES];
};

_Static_assert(sizeof(struct record) == 20, "a record has 20 bytes");
