/*
 * The transaction log of audited caches (paper, section 6.1).
 */
#pragma once

#include "mm/debug/debug.h"

struct kmem_bufctl_debug;
struct kmem_slab;

enum kmem_op {
    KMEM_OP_ALLOC,
    KMEM_OP_FREE
};

struct kmem_log_entry {
    uint32_t log_seq;  /* 1, 2, 3, …; 0: not used yet */
    uint32_t log_prev; /* the previous one of this buffer, 0: none */
    enum kmem_op log_op;
    uint32_t log_cpu;             /* the processor that did it */
    struct kmem_cache *log_cache; /* destroyed if its cache_number is not */
    uint32_t log_number;          /* this one, which it was then */
    const void *log_slab;
    const void *log_buf;
    size_t log_size; /* requested bytes */
    struct kmem_transaction log_trans;
};

/* Creates the log if there is none: 1/50 of memory, less if so much is not
 * available. False if there is no memory. */
bool kmem_log_create(void);

/* Records a buffer's latest transaction, and its number in the bufctl. Does
 * nothing while there is no log or it is stopped. The cache's lock may be
 * held. */
void kmem_log_enter(enum kmem_op op, struct kmem_cache *cp,
                    struct kmem_bufctl_debug *bdp);

/* The newest number (0: empty) and how many are kept. */
uint32_t kmem_log_last(void);
uint32_t kmem_log_kept(void);

/* Copies transaction number `seq`. False if it is not kept (any more). */
bool kmem_log_get(uint32_t seq, struct kmem_log_entry *out);

/* The entry in the log itself, for tools; NULL if it is not kept. */
const struct kmem_log_entry *kmem_log_at(uint32_t seq);

/* The name of the entry's cache; "?" if it was destroyed. */
const char *kmem_log_name(const struct kmem_log_entry *entry);

/* Nothing more is recorded: an error has happened. */
extern bool kmem_log_stopped;

/* Fills in time, task and callers of a transaction that happens now. */
void kmem_transaction(struct kmem_transaction *trans);
