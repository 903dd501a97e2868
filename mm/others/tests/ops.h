/*
 * The operations of the allocator that other_test_start was called with, for
 * tests that are not of several.
 */
#pragma once

#include "mm/others/tests/other_test.h"

/* As op_alloc, op_free, op_cache_alloc and op_cache_free. Without memory the
 * case stops as failed. */
void *get(size_t size);
void put(void *p, size_t size);
void *get_object(struct other_cache *c);
void put_object(struct other_cache *c, void *obj);

/* Fails the case unless op_check finds what is wrong: a text with this one. */
void expect_wrong(const char *text);
