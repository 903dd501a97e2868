/*
 * Hash tables that grow and shrink by one bucket at a time (linear hashing:
 * W. Litwin, 1980; P.-Å. Larson, "Dynamic hash tables", 1988).
 *
 * There are as many buckets as entries. With 2^k <= buckets < 2^(k+1), an
 * entry is in the bucket of the lowest k + 1 bits of its hash, or of the
 * lowest k if there is no such bucket yet. The next entry makes bucket number
 * `buckets` by splitting the one that has its hashes so far; removing one
 * joins them again. No operation ever moves more than one chain, and the size
 * is a function of the number of entries alone.
 *
 *     hash_segment[0] ──> 64 buckets    objects of the cache hash_segment,
 *     hash_segment[1] ──> 64 buckets    whose constructed state is: all empty
 *     …
 *
 * A table is guarded by a spin lock of its owner's. Segments come and go
 * without it, in hash_extend and hash_trim; a table that finds no memory for
 * one has longer chains, and no error.
 */
#pragma once

#include "kernel/x86/spinlock.h"

#define HASH_SEGMENT_BUCKETS 64u
#define HASH_SEGMENTS        512u

struct hash_link {
    struct hash_link *link_next;
    uint32_t link_hash;
};

struct hash {
    uint32_t hash_count;   /* entries */
    uint32_t hash_buckets; /* at least 1 */
    uint32_t hash_mask;    /* 2^(k+1) - 1 */
    struct hash_link **hash_segment[HASH_SEGMENTS];
};

/* The cache of segments, once; and an empty table. Boot only. */
void hash_cache_init(void);
void hash_init(struct hash *h);

static inline struct hash_link **hash_bucket(const struct hash *h,
                                             uint32_t hash)
{
    uint32_t i = hash & h->hash_mask;

    if (i >= h->hash_buckets)
        i &= h->hash_mask >> 1;
    return &h->hash_segment[i / HASH_SEGMENT_BUCKETS][i % HASH_SEGMENT_BUCKETS];
}

/* Puts in an entry whose link_hash is set. Lock held. */
void hash_insert(struct hash *h, struct hash_link *l);

/* Takes one out that is in. Lock held. */
void hash_remove(struct hash *h, struct hash_link *l);

/* After hash_insert, without `lock`, which is the table's: memory for the next
 * bucket if there is none left. Never sleeps. */
void hash_extend(struct hash *h, struct spinlock *lock);

/* After hash_remove, likewise: gives back memory of buckets that are gone.
 * Allocates nothing. */
void hash_trim(struct hash *h, struct spinlock *lock);

/* The entries of bucket i (0 … hash_buckets - 1). Lock held. */
static inline struct hash_link *hash_chain(const struct hash *h, uint32_t i)
{
    return h->hash_segment[i / HASH_SEGMENT_BUCKETS][i % HASH_SEGMENT_BUCKETS];
}

/* NULL, or what is wrong. Lock held. */
const char *hash_verify(const struct hash *h);
