/*
 * Magazines: what each processor keeps of each cache (paper, section 7.2; J.
 * Bonwick and J. Adams, "Magazines and Vmem", USENIX 2001, section 3).
 *
 *         CPU 0                 CPU 1            interrupts disabled, no lock
 *    loaded   previous     loaded   previous
 *    |rounds| | full  |    |rounds| | empty |
 *        \________ a whole magazine _______/
 *               full:   m -> m -> m              depot: the lock of the cache
 *               empty:  m -> m
 *         refill: of one slab     drain: to the slabs
 *                       slabs
 *
 * For mm/kmem_mag.c and for the tests and tools that look inside.
 */
#pragma once

#include "mm/platform.h"

#define KMEM_ROUNDS 15 /* of a magazine, at most */

/* A line of the processor's memory. Caches of larger objects use fewer of the
 * rounds. */
struct kmem_magazine {
    struct kmem_magazine *mag_next; /* in a depot */
    void *mag_round[KMEM_ROUNDS];
};

/* What one processor has of a cache, in an object as large as a magazine. Only
 * that processor changes it, with interrupts disabled; others read the
 * counts. */
struct kmem_cpu_cache {
    struct kmem_magazine *cc_loaded; /* NULL: there is none */
    uint32_t cc_rounds;              /* objects in it */
    uint32_t cc_room;                /* rounds that a magazine has; 0: none */
    struct kmem_magazine *cc_previous;
    uint32_t cc_previous_rounds; /* 0 or cc_room */
    uint32_t cc_allocs;          /* served here, modulo 2^32 */
    uint32_t cc_frees;
};

/* The magazines of a cache that no processor has, and their working set
 * (3.4). */
struct kmem_depot {
    struct kmem_magazine *depot_list;
    uint32_t depot_total; /* T */
    uint32_t depot_min;   /* m */
    uint32_t depot_limit; /* L */
};

enum {
    KMEM_EMPTY, /* depots by what their magazines are */
    KMEM_FULL,
    KMEM_DEPOTS
};
