/*
 * Frames that hold the pages of programs.
 *
 * Several address spaces may map a frame (after fork, until one of them
 * writes). The frame counts them and returns to buddy with the last.
 */
#pragma once

#include "mm/page.h"

/* A frame with one reference and undefined contents, for a page that has been
 * promised (kernel/vm/commit.h). Never fails; may sleep until others return
 * frames that they took for a moment. */
struct page *frame_alloc(void);

/* Adds or drops a reference. */
void frame_get(struct page *p);
void frame_put(struct page *p);

/* A physically contiguous run of `pages` promised frames, freed as a whole. Its
 * references are not counted. NULL: the free pages are not contiguous. */
struct page *frame_alloc_run(size_t pages);
void frame_free_run(struct page *p, size_t pages);

/* Frames allocated now. */
size_t frame_count(void);
