/*
 * Three small structures that all processors use, for lab 9. Each says what it
 * promises; in a hand-out none of them keeps the promise.
 */
#pragma once

#include "kernel/lib/types.h"

/* ---- ring: a queue of pointers ------------------------------------------ */

#define RING_SLOTS 4

/* For one processor that puts and one that gets, at the same time, without a
 * lock. Zeroed, it is empty. */
struct ring {
    uint32_t ring_head; /* how many were got; the getter alone writes it */
    uint32_t ring_tail; /* how many were put; the putter alone writes it */
    void *ring_slot[RING_SLOTS];
};

/* False if there is no room. */
bool ring_put(struct ring *r, void *item);

/* The item that was put first of those that are there, or NULL. */
void *ring_get(struct ring *r);

/* ---- stack: a list of free nodes ---------------------------------------- */

struct node {
    struct node *node_next;
};

/* For any number of processors that push and pop. */
struct stack {
    struct node *stack_top;
};

void stack_push(struct stack *s, struct node *n);

/* The node that was pushed last of those that are there, or NULL. It is the
 * caller's, who may write to it, and may push it again. */
struct node *stack_pop(struct stack *s);

/* ---- squares: a table that the first user makes ------------------------- */

#define SQUARES 64

struct squares {
    uint32_t square[SQUARES]; /* square[n] is n * n */
};

/* The cache of such tables. */
extern struct kmem_cache *squares_cache;

/* The table. There is one for all processors; its first user makes it. NULL:
 * there is no memory. Does not sleep. */
const struct squares *squares_get(void);

/* Frees the table, if there is one. No other processor uses it. */
void squares_drop(void);
