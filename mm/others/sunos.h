/*
 * The allocator of SunOS 4.1.3: its parameters, its own counts, and its
 * structures for tests and for what checks them.
 */
#pragma once

#include "mm/others/others.h"

/* Which free block a request gets. Better fit: down from the root, always to
 * the smaller child that is large enough. Leftmost: the lowest address, which
 * is first fit. */
enum sunos_policy {
    SUNOS_BETTER,
    SUNOS_LEFTMOST
};

extern enum sunos_policy sunos_policy;

/* Whether whole free pages go back at once, not only under pressure. */
extern bool sunos_at_once;

/* Whether the node of a free block is its first bytes, not a node from a page
 * of nodes. Then a block is at least as large as a node. */
extern bool sunos_inline;

/* A free block in the tree. */
struct sunos_node {
    struct sunos_node *node_left;  /* all below it in memory; or the next spare
                                      node */
    struct sunos_node *node_right; /* all above it */
    uintptr_t node_addr;
    size_t node_size;
};

extern struct sunos_node *sunos_root;

/* The first bytes of a free block that waits until an allocation or pressure
 * puts it into the tree. The smallest block has room for them. */
struct sunos_later {
    uint32_t later_next; /* supply_number */
    uint32_t later_size; /* in units of 8 bytes */
};

extern uint32_t sunos_laters; /* the first */

/* Bytes in the tree, and of blocks that wait. */
extern size_t sunos_free_bytes;

/* The link to the first node at or above an address. NULL: there is none, or
 * the tree is damaged. Under the lock. */
struct sunos_node **sunos_next(uintptr_t addr);

/* NULL, or the first broken invariant (mm/others/inspect/sunos.c). */
const char *sunos_verify(struct other_heap *h);

extern struct sunos_stat {
    uint64_t stat_visits;  /* nodes looked at, to find a block or neighbours */
    uint64_t stat_relinks; /* nodes hung elsewhere when others left */
    uint64_t stat_coalesced_left;
    uint64_t stat_coalesced_right;
    uint64_t stat_exact_fits;
    size_t stat_nodes; /* in the tree */
    size_t stat_node_pages;
} sunos_stat;

/* Of the tree, which does not change meanwhile. */
size_t sunos_depth(void);

/* Frees at interrupt level: the block waits. */
void sunos_free_later(void *p, size_t size);
