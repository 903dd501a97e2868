/*
 * The allocator of 4.4BSD: its parameters, its counts, and its structures for
 * tests and for what checks them.
 */
#pragma once

#include "mm/others/others.h"

#define BSD_MIN_BUCKET 4               /* 16 bytes */
#define BSD_BUCKETS    20              /* one more than the last, 512 KiB */
#define BSD_MAX_SAVE   (2 * PAGE_SIZE) /* larger requests use no list */

/* Whether a freed block is the next to be allocated, as in 1988. Without it, as
 * in 4.4BSD, it waits behind all others of its bucket. */
extern bool bsd_lifo;

/* A free block, which begins with its link. */
struct bsd_block {
    struct bsd_block *block_next;
};

/* The blocks of one size, a power of two. */
struct bsd_bucket {
    struct bsd_block *bucket_next; /* the first free one */
    struct bsd_block *bucket_last;
    uint64_t bucket_calls; /* allocations */
    size_t bucket_total;   /* blocks that there are */
    size_t bucket_free;
    size_t bucket_blocks;     /* in the page, or the two pages, that it gets */
    size_t bucket_could_free; /* pages that became free while many blocks were,
                                 and could have gone back */
};

extern struct bsd_bucket bsd_bucket[BSD_BUCKETS];

/* The descriptor of a page: 4 bytes are all that is known of its blocks. */
struct bsd_page {
    uint16_t page_bucket; /* 0: no block begins here */
    uint16_t page_count;  /* free blocks; or pages, of a large request */
};

/* NULL, or the first broken invariant (mm/others/inspect/bsd.c). */
const char *bsd_verify(struct other_heap *h);
