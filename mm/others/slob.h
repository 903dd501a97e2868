/*
 * SLOB's parameters, its own counts, and its structures for tests.
 */
#pragma once

#include "mm/others/others.h"

/* Bytes before a block of alloc(), 4 or 8, to which its address is aligned,
 * too. What a 64-bit integer is aligned to, on a 32-bit x86 8. */
extern unsigned slob_header;

/* Whether a size of alloc() that is a power of two is a multiple of that
 * address, as of Linux 5.4. */
extern bool slob_pow2;

enum slob_class {
    SLOB_SMALL,
    SLOB_MEDIUM,
    SLOB_LARGE,
    SLOB_CLASSES
};

/* The descriptor of a page. */
struct slob_page {
    struct list slob_link; /* on a list, if it has free units */
    uint16_t slob_first;   /* the first free block, in units from the start */
    uint16_t slob_units;   /* that are free */
    uint8_t slob_used;     /* 1: it has blocks; 0: of whole pages, or of none */
    uint8_t slob_class;    /* which list */
};

extern struct list slob_list[SLOB_CLASSES];

struct slob_stat {
    uint64_t stat_pages_scanned;      /* by allocations */
    uint64_t stat_blocks_scanned;     /* in them */
    uint64_t stat_gaps;               /* free blocks that alignment has left */
    size_t stat_listed[SLOB_CLASSES]; /* pages now */
    size_t stat_full;
};

void slob_stat(struct slob_stat *out);

/* The free block of a page at unit *at, and the next. False: there is none. */
bool slob_free_block(const void *page, unsigned *at, unsigned *units);
