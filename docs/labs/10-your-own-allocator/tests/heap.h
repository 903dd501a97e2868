/*
 * What the tests of lab 10 share: a heap of any allocator in an arena of its
 * own, and blocks whose contents must last.
 */
#pragma once

#include "tools/workshop/labs/lab.h"
#include "mm/others/others.h"

#define HEAP_PAGES 1024 /* of the arena: 4 MiB */

struct own_block {
    unsigned char *block_at; /* NULL: none */
    size_t block_size;
    struct other_cache *block_cache; /* NULL: of op_alloc */
};

/* The heap's supply. An allocator could write to the counts in it, so the tests
 * count the pages held, and their maximum, with the pages of records. */
extern struct supply heap_pages;
extern size_t heap_held, heap_peak;
extern const struct other_allocator *heap_of;

/* An empty heap of this allocator; heap_end frees the arena. */
void heap_begin(const struct other_allocator *a);
void heap_end(void);

/* Allocates `size` bytes, or an object of a cache, and fills it. False: there
 * is no memory. A block that is not in a page of the supply, or not aligned,
 * ends the test. */
bool block_new(struct own_block *b, size_t size, struct other_cache *c);

/* Frees a block if its contents are still there. */
void block_drop(struct own_block *b);

/* The counts, which must add up; none is more than all. */
struct other_stat heap_counts(void);
