/*
 * Blocks of whole pages, for requests that are too large for an allocator's
 * own: a power of two of pages, as in all of Linux's allocators.
 */
#pragma once

#include "mm/others/others.h"

/* Counted. NULL: there is no memory. The first word of the first page's
 * descriptor is the size, which is compared when it is freed; in a page that
 * has blocks of an allocator's own that word is a link, or 0. No lock is
 * held. */
void *other_whole_alloc(struct other_heap *h, struct other_cache *c,
                        size_t size);
void other_whole_free(struct other_heap *h, struct other_cache *c, void *p,
                      size_t size);
