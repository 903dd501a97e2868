/*
 * What the tests of the other allocators share: a heap of its own for each
 * case, random operations, and the reference trace R1.
 */
#pragma once

#include "tools/workshop/ktest/ktest.h"
#include "mm/others/others.h"
#include "mm/others/tests/r1.h"
#include "mm/page.h"
#include "mm/tests/host/host.h"

#define TEST_PAGES 2048 /* of the arena: 8 MiB */

extern struct supply test_pages;

/* An empty heap of this allocator, in an arena without an allocated page. */
void other_test_start(const struct other_allocator *a);

/* Fails the case unless every invariant holds. */
void other_test_check(void);

/* Where a block is, from the arena's begin. */
size_t test_offset(const void *p);

/* Its counts now; pages that it holds; and waste in per cent, rounded. */
struct other_stat test_counts(void);
size_t test_held(void);
unsigned test_waste(void);

/* The alignment of alloc(), 8 unless a case changes it. */
extern size_t test_align;

/* Calls `fn` once, while the next page is got, like an interrupt or another
 * task. */
void other_test_meanwhile(void (*fn)(void));

/* A supply_get without a page. */
void *other_test_no_pages(struct supply *s, size_t pages, size_t align);

/* `ops` random operations, 52 % of them allocations, of 1 … `most` bytes or of
 * caches, each on any processor, with a check after each 50, and then frees
 * everything and destroys the caches. What blocks contain must last, and a
 * block of no bytes is nothing. */
void other_test_random(unsigned seed, unsigned ops, size_t most);

/* Cases of allocators with slabs, of which each has 13 objects of 300 bytes:
 * an object stays constructed as long as its slab lives; and the
 * invariants hold while objects are destroyed, when other slabs wait for it. */
void other_test_constructed(void);
void other_test_going_back(void);

/* Wrong frees are reported. `last` is the last object in its slab. */
void other_test_mistakes(struct other_cache *c, char *last);
