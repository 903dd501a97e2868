/*
 * The allocator of SVr4: its parameter, its counts, and its structures for
 * tests and for what checks them.
 */
#pragma once

#include "mm/others/others.h"

#define SVR4_MIN_CLASS   3  /* blocks of 8 bytes, which hold two links */
#define SVR4_SMALL_CLASS 8  /* 256 bytes, the largest of a small pool */
#define SVR4_LARGE_CLASS 14 /* 16 KiB, all of a large pool */
#define SVR4_CLASSES     15 /* one more than the last */
#define SVR4_MAX_REQUEST 4096

/* Whether each free joins buddies at once: the ordinary buddy system. */
extern bool svr4_eager;

/* The blocks of one size, 1 << its number. */
struct svr4_class {
    uint32_t class_first; /* the list of free blocks: link numbers; 0: none */
    uint32_t class_last;
    size_t class_used;   /* blocks allocated, or split */
    size_t class_local;  /* free, and not joined */
    size_t class_global; /* free in the bitmap, too */
    uint64_t class_splits;
    uint64_t class_joins;
    uint64_t class_lazy;        /* frees by what was done: nothing else, */
    uint64_t class_reclaiming;  /* this block made global, */
    uint64_t class_accelerated; /* and a local one, too */
};

extern struct svr4_class svr4_class[SVR4_CLASSES];

/* What the first page of a pool, or of a large request, is of. */
enum svr4_kind {
    SVR4_NONE,
    SVR4_SMALL,
    SVR4_LARGE,
    SVR4_OVERSIZED /* of a request above SVR4_MAX_REQUEST */
};

/* Pages of each kind. */
extern size_t svr4_pages[SVR4_OVERSIZED + 1];

/* The descriptor of such a page. */
struct svr4_page {
    uint32_t page_kind;
    uint32_t page_count;   /* pages, of a pool or of a request */
    uint32_t page_bits[2]; /* a large pool: blocks that are globally free */
};

/* A small pool begins with such bits, of its blocks of each size. */
#define SVR4_SMALL_WORDS 32

/* A free block begins with the numbers of others (supply_number). */
struct svr4_link {
    uint32_t link_next;
    uint32_t link_prev;
};

/* Of a block of class i: its pool, the other half of the block that was split,
 * and whether it is globally free. */
char *svr4_pool(unsigned i, const void *b);
char *svr4_buddy(unsigned i, const char *b);
bool svr4_is_global(unsigned i, const void *b);

/* NULL, or the first broken invariant (mm/others/inspect/svr4.c). */
const char *svr4_verify(struct other_heap *h);
