/*
 * SLMB's parameter, its own counts, and its lists for tests.
 */
#pragma once

#include "mm/others/slob.h"

#define SLMB_CLASSES 12
#define SLMB_HEADER  8 /* bytes before a block of alloc(), and its alignment */

/* The largest blocks of each list, with their header. */
extern size_t slmb_bound[SLMB_CLASSES];

extern struct list slmb_list[OTHER_CPUS][SLMB_CLASSES];

/* Beside slob_stat. */
extern struct slmb_stat {
    uint64_t stat_missed;   /* new pages, though another processor had room */
    uint64_t stat_foreign;  /* frees to a page of another processor */
    uint64_t stat_migrated; /* full pages that went to another one */
} slmb_stat;
