/*
 * The frames that programs' pages lie in.
 *
 * A frame may be mapped by several address spaces (after fork, until one of
 * them writes); it counts them and goes back to buddy with the last.
 */
#pragma once

#include "mm/page.h"

/* A frame with one reference and undefined contents; NULL: no memory. */
struct page *frame_alloc(void);

/* One reference more, or less. */
void frame_get(struct page *p);
void frame_put(struct page *p);

/* The same, `pages` of them, one behind the other; given back as they came.
 * Whoever has them keeps no count of references. */
struct page *frame_alloc_run(size_t pages);
void frame_free_run(struct page *p, size_t pages);

/* Frames out at this moment. */
size_t frame_count(void);
