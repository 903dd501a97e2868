/*
 * For the tests of lab 3: a cache that is set up by hand, as kmem_cache_setup
 * would, and slabs with which nothing needs to be right but their list. The
 * allocator need not be up; there are no pages but the arena's.
 */
#pragma once

#include "tools/workshop/labs/lab.h"
#include "mm/kmem_impl.h"

/* The cache of these tests; heap_cache_make begins a new one without slabs,
 * with `chunks` buffers of `chunk` bytes in a slab. Its pages come from the
 * arena, filled with HEAP_FILL; they stay where they are. */
#define HEAP_FILL 0xa5
extern struct kmem_cache heap_cache;
void heap_cache_make(size_t chunk, size_t chunks);

/* What kmem_geometry makes of a cache of such objects. */
const struct kmem_cache *heap_geometry(size_t size, size_t align,
                                       bool constructed);

/* ---- slabs for their list ----------------------------------------------- */

#define HEAP_SLABS   8
#define HEAP_BUFFERS 3 /* in each */

extern struct kmem_slab heap_slab[HEAP_SLABS]; /* called A, B, C, … */

/* A new cache with slabs A, B, C, … on its list, a digit of `out` for each:
 * how many of its buffers are out. The list must be sorted, and the freelist
 * pointer and the counts are what follows from it. */
void heap_list_make(const char *out);

/* The list must have the slabs in this order: "BCA". The freelist pointer and
 * the counts of full and free slabs must follow from the slabs. */
void heap_expect_list(const char *names);

/* The name of a slab; "the end" is the list's head. */
const char *heap_name(const struct kmem_slab *sp);

/* Takes the first buffer of the slab at the freelist pointer. */
struct kmem_bufctl *heap_take(void);

/* Gives a buffer back with the lock held. False if it was released. */
bool heap_give(struct kmem_slab *sp, struct kmem_bufctl *bcp);
