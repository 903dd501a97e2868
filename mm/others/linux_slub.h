/*
 * SLUB's parameter, its counts, and its structures for tests.
 */
#pragma once

#include "mm/others/slabs.h"

#define SLUB_MAX_ORDER 3

/* SLUB as of 2014: where the link is, and what processors keep. Set before
 * op_init. */
extern bool slub_2014;

/* What a processor has of a cache. */
struct slub_cpu {
    uint32_t cpu_free; /* the list from which it allocates, of cpu_slab */
    unsigned cpu_partials;
    struct slab *cpu_slab;   /* NULL: none */
    struct list cpu_partial; /* frozen slabs that have free objects */
} __attribute__((aligned(OTHER_LINE)));

struct slub_cache {
    struct slabs_cache cache; /* .partial is the node's list */
    size_t cache_offset;      /* where a free object has its link */
    unsigned cache_min;       /* slabs that the node's list keeps if free */
    unsigned cache_cpu_most;  /* slabs on a processor's list; their free
                                 objects, with slub_2014 */
    size_t cache_partials;    /* slabs on the node's list; under cache.lock */
    struct slub_cpu cache_cpu[OTHER_CPUS];
};

/* Those of alloc() are its first caches. */
extern struct slabs slub;

extern struct slub_stat {
    uint64_t stat_alloc_slow;      /* all others are fast; and of these: */
    uint64_t stat_refill;          /* from its own slab, or its partial ones */
    uint64_t stat_from_partial;    /* from the node's list */
    uint64_t stat_bypass;          /* slabs that were found full meanwhile */
    uint64_t stat_free_slow;       /* all others are fast; and of these: */
    uint64_t stat_free_frozen;     /* to a slab of a processor */
    uint64_t stat_cpu_free;        /* which froze a slab that was full */
    uint64_t stat_cpu_node;        /* slabs of the node's list that a processor
                                      took, beside the one it uses; */
    uint64_t stat_cpu_drain;       /* how often its own list was moved there */
    uint64_t stat_deactivate_full; /* current slabs that were given up: */
    uint64_t stat_deactivate_empty;
    uint64_t stat_deactivate_head;
    uint64_t stat_deactivate_tail;
    uint64_t stat_deactivate_remote; /* in which others had freed objects */
    uint64_t stat_fallback;          /* slabs of the least order */
    uint64_t stat_aliases;
} slub_stat;
