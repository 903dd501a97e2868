/*
 * For the tests of lab 3: a cache initialized by the test instead of
 * kmem_cache_setup, and slabs of which only the list needs to be valid. The
 * allocator need not be initialized; all pages come from the arena.
 */
#pragma once

#include "tools/workshop/labs/lab.h"
#include "mm/kmem_impl.h"

/* The cache of these tests. heap_cache_make initializes it without slabs, with
 * `chunks` buffers of `chunk` bytes in a slab. Its pages come from the arena,
 * filled with HEAP_FILL, and are never released. */
#define HEAP_FILL 0xa5
extern struct kmem_cache heap_cache;
void heap_cache_make(size_t chunk, size_t chunks);

/* The cache after kmem_geometry, for such objects. */
const struct kmem_cache *heap_geometry(size_t size, size_t align,
                                       bool constructed);

/* ---- slabs for their list ----------------------------------------------- */

#define HEAP_SLABS   8
#define HEAP_FULL    4 /* before them, at most */
#define HEAP_BUFFERS 3 /* in each */

extern struct kmem_slab *heap_slab; /* HEAP_SLABS, called A, B, C, … */

/* A new cache with slabs A, B, C, … on its list, and before them `full` full
 * ones, which are called 1, 2, 3, … `allocated` has a digit for each of the
 * others: the number of its allocated buffers, in a valid order. The freelist
 * pointer and the counts are set to match. */
void heap_list_make(size_t full, const char *allocated);

/* After the full ones the list must have the slabs in this order: "BCA". The
 * freelist pointer and the counts of full and free slabs must match the
 * list. */
void heap_expect_list(const char *names);

/* The name of a slab; "the end" is the list's head. */
const char *heap_name(const struct kmem_slab *sp);

/* Takes the first buffer of the slab at the freelist pointer. */
struct kmem_bufctl *heap_take(void);

/* Frees a buffer with the lock held. False if the lock was released. */
bool heap_give(struct kmem_slab *sp, struct kmem_bufctl *bcp);
