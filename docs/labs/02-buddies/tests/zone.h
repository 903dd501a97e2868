/*
 * A zone for the tests of lab 2: entries of frames without memory (buddy uses
 * only the entries), and free or allocated blocks where a test puts them.
 * Expectations and messages name frames and orders.
 */
#pragma once

#include "tools/workshop/labs/lab.h"
#include "mm/buddy_impl.h"

#define ZONE_FRAMES (2 * BUDDY_MAX_PAGES)

/* Creates entries of ZONE_FRAMES frames, none of them in a block, and empty
 * lists. A test may call it repeatedly. False, and the test fails, if there is
 * no memory. */
bool zone_make(void);

/* Adds a free block at the tail of its list; an allocated block. */
void zone_free(size_t frame, unsigned order);
void zone_allocated(size_t frame, unsigned order);

/* Frames that are in no block become reserved, because buddy_verify requires a
 * state of each frame. */
void zone_reserve_rest(void);

/* `got` must be the entry of `frame`, tagged as allocated at `order`. */
void zone_expect_got(const struct page *got, size_t frame, unsigned order);

/* The block at `frame` must be allocated at that order. */
void zone_expect_allocated(size_t frame, unsigned order);

/* The list of `order` must have the blocks at these frames, in any order, and
 * no others. */
void zone_expect_list(unsigned order, const size_t *frames, size_t n);
#define ZONE_EXPECT(order, ...)                                                \
    zone_expect_list(order, (const size_t[]){__VA_ARGS__},                     \
                     sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))
#define ZONE_EXPECT_NONE(order) zone_expect_list(order, NULL, 0)

/* Exactly `n` frames must be tagged as the start of a block. */
void zone_expect_blocks(size_t n);

/* Every invariant of buddy_verify. False if one is broken. */
bool zone_verify(void);
