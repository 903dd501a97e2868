/*
 * Slabs emptied on purpose: an experiment of the Linux talk (C. Lameter, "Slab
 * allocators in the Linux kernel", 2014), for Slate's own allocator.
 *
 * A slab is freed when its last object is. Where objects are freed in an order
 * that does not follow slabs, as unused inodes are, many slabs keep a few each,
 * and no page comes back. Two remedies:
 *
 *   - Partial slabs are sorted, the fullest first, once or at each update of
 *     the working set. Allocations fill those, and the others get a chance to
 *     become free.
 *   - The owner of a cache evicts the objects that nobody uses from the slabs
 *     with the fewest. He has to find out himself whether an address is that
 *     of an unused object, since any of them may be freed meanwhile.
 *
 * Nothing of it is in mm/: the allocator pays nothing for it.
 */
#pragma once

#include "mm/inspect/kmem_stat.h"

/* An owner's: frees the object at this address, if it is one of the cache's
 * that nobody uses. Called without locks; never sleeps. */
typedef bool evict_t(const void *obj);

/* That of a cache; NULL: it has none. */
evict_t *defrag_evict_of(const struct kmem_cache *cp);

/* Sorts the partial slabs, the fullest first. */
void defrag_sort(struct kmem_cache *cp);

/* The same for the cache called `name`, which another task may destroy. False:
 * there is none. */
bool defrag_sort_named(const char *name);

/* What is left of a cache of small objects whose number sinks while others come
 * and go at random; sorted after each round, or as the allocator has them. The
 * same each time. `object` is space for DEFRAG_OBJECTS addresses. False: too
 * little memory. */
#define DEFRAG_OBJECTS 4000
bool defrag_churn(bool sorted, void **object, struct kmem_cache_stat *left);

/*
 * Evicts objects of partial slabs, those with the fewest first, up to `most`
 * evictions, from slabs of which at most half is in use (`any`: from all,
 * full ones last). `room` is space for so many addresses. Returns how many were
 * evicted; *used is how many of those that were tried are in use.
 */
size_t defrag(struct kmem_cache *cp, evict_t *evict, bool any, size_t most,
              const void **object, size_t room, size_t *used);
