/*
 * A zone for the tests of lab 2, made by hand: entries of frames that have no
 * memory behind them (buddy looks at entries alone), and blocks, free or out,
 * where a test wants them. What is expected of it then is said in frames and
 * orders, and so are the complaints.
 */
#pragma once

#include "tools/workshop/labs/lab.h"
#include "mm/buddy_impl.h"

#define ZONE_FRAMES (2 * BUDDY_MAX_PAGES)

/* Entries of ZONE_FRAMES frames that no block has, and empty lists. Any number
 * of times in a test. False, and the test fails, without memory for them. */
bool zone_make(void);

/* A block on its list, at the tail; a block that was handed out. */
void zone_free(size_t frame, unsigned order);
void zone_out(size_t frame, unsigned order);

/* The frames that are in no block become reserved: buddy_verify wants each
 * frame to be something. */
void zone_reserve_rest(void);

/* `got` must be the entry of `frame`, tagged as handed out at `order`. */
void zone_expect_got(const struct page *got, size_t frame, unsigned order);

/* The block at `frame` must be out at that order. */
void zone_expect_out(size_t frame, unsigned order);

/* The list of `order` must have the blocks at these frames, in any order, and
 * no others. */
void zone_expect_list(unsigned order, const size_t *frames, size_t n);
#define ZONE_EXPECT(order, ...)                                                \
    zone_expect_list(order, (const size_t[]){__VA_ARGS__},                     \
                     sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))
#define ZONE_EXPECT_NONE(order) zone_expect_list(order, NULL, 0)

/* So many frames must say that they start a block, all others that they do
 * not. */
void zone_expect_blocks(size_t n);

/* Every invariant of buddy_verify. False if one is broken. */
bool zone_verify(void);
