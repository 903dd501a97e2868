/*
 * Checking one of the other allocators: what is the same for all of them. Each
 * gives how its free blocks are found and what must hold of its own structures
 * (the other files of mm/others/inspect/). Beside op_check, nothing of an
 * allocator needs any of this.
 *
 *     other_verify ─┬─> verify_list      each list: its free blocks
 *                   ├─> verify_page      each page, against those
 *                   └─> verify_counts    everything, against what is counted
 *
 * Free blocks that were found are noted in a bitmap of the checker. That has
 * room for the blocks of some pages, so memory is checked part by part.
 */
#pragma once

#include "mm/others/others.h"

#define VERIFY_PAGES 128                             /* of a part */
#define VERIFY_GRAIN 8                               /* bytes for each bit */
#define VERIFY_WORDS (PAGE_SIZE / VERIFY_GRAIN / 32) /* for each page */

struct other_verify {
    struct other_heap *verify_heap;
    void *verify_sums;   /* the allocator's own */
    size_t verify_free;  /* bytes of the free blocks in all parts so far */
    size_t verify_first; /* page of this part */
    uint32_t verify_found[VERIFY_PAGES * VERIFY_WORDS];
};

/* Each function returns NULL, or the first broken invariant. */
struct other_verify_ops {
    size_t verify_lists;
    /* A list, once for each part: calls other_found for each block that can be
     * free in it. The walk ends, whatever is damaged. */
    const char *(*verify_list)(struct other_verify *v, unsigned i);
    /* The descriptor of a page of this part. NULL: pages are not checked. */
    const char *(*verify_page)(struct other_verify *v, void *info);
    /* Once, after all parts. */
    const char *(*verify_counts)(struct other_verify *v);
};

/* Notes a free block in pages of the supply; its bytes are multiples of
 * VERIFY_GRAIN. False: part of it was found before. */
bool other_found(struct other_verify *v, const void *block, size_t bytes);

/* Bytes that were found in a page of this part. */
size_t other_found_in(const struct other_verify *v, const void *info);

/* How many bits are set. */
size_t other_bits(const uint32_t *words, size_t n);

/* For op_check. `sums` is for the functions. */
const char *other_verify(struct other_heap *h,
                         const struct other_verify_ops *ops, void *sums);
