/*
 * SLAB's parameter, its counts, and its structures for tests.
 */
#pragma once

#include "mm/others/slabs.h"

#define LSLAB_LINE 64 /* bytes of a line of memory */

/* The order up to which a slab grows so that less of it is lost: 0; in Linux 1
 * on a machine of more than 32 MiB. */
extern unsigned lslab_max_order;

/* Where the index of a slab is, a byte for each object. */
enum lslab_index {
    LSLAB_IN_OBJECT, /* in a free object */
    LSLAB_OFF_SLAB,  /* an object of alloc() */
    LSLAB_ON_SLAB    /* at its end */
};

/* Free objects as pointers: of a processor, or shared. */
struct lslab_queue {
    unsigned queue_avail;
    unsigned queue_limit; /* 0: there is no such queue */
    bool queue_touched;   /* since the last reap */
    void **queue_entry;
} __attribute__((aligned(OTHER_LINE)));

struct lslab_cache {
    struct slabs_cache cache;
    enum lslab_index cache_index;
    unsigned cache_colours;
    size_t cache_colour_off;    /* bytes from one colour to the next */
    unsigned cache_batch;       /* objects that move at a time */
    unsigned cache_colour_next; /* slabs so far */
    /* under its lock, as is cache.partial */
    struct list cache_full;
    struct list cache_free;
    size_t cache_free_objects; /* in slabs */
    size_t cache_free_limit;   /* above it free slabs are returned */
    bool cache_free_touched;
    struct lslab_queue cache_shared;
    struct lslab_queue cache_cpu[OTHER_CPUS];
};

/* Those of alloc() are its first caches. */
extern struct slabs lslab;

/* All other allocations and frees are served by the processor's queue. */
extern struct lslab_stat {
    uint64_t stat_alloc_miss;
    uint64_t stat_free_miss; /* the queue was full: flushes */
    uint64_t stat_scanned;   /* caches, by the reaper */
} lslab_stat;
