/*
 * SLMB's parameter, its own counts, and its structures for tests.
 */
#pragma once

#include "mm/others/others.h"

#define SLMB_CLASSES 12
#define SLMB_HEADER  8 /* bytes before a block of alloc(), and its alignment */

/* The largest blocks of each list, with their header. */
extern size_t slmb_bound[SLMB_CLASSES];

/* The descriptor of a page. */
struct slmb_page {
    struct list slmb_link; /* on a list, if it has free units */
    uint16_t slmb_first;   /* the first free block, in units from the start */
    uint16_t slmb_units;   /* that are free */
    uint8_t slmb_used;     /* 1: it has blocks; 0: of whole pages, or of none */
    uint8_t slmb_class;    /* which list, */
    uint8_t slmb_cpu;      /* and of which processor */
};

extern struct list slmb_list[OTHER_CPUS][SLMB_CLASSES];

extern struct slmb_stat {
    uint64_t stat_pages_scanned;  /* by allocations */
    uint64_t stat_blocks_scanned; /* in them */
    uint64_t stat_gaps;           /* free blocks that alignment has left */
    uint64_t stat_missed;   /* new pages, though another processor had room */
    uint64_t stat_foreign;  /* frees to a page of another processor */
    uint64_t stat_migrated; /* full pages that went to another one */
} slmb_stat;
