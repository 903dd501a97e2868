/*
 * Hash tables that grow and shrink by one bucket at a time (linear hashing:
 * W. Litwin, 1980; P.-Å. Larson, "Dynamic hash tables", 1988).
 *
 * There are as many buckets as entries. With 2^k <= buckets < 2^(k+1), an entry
 * is in the bucket given by the lowest k + 1 bits of its hash, or by the lowest
 * k bits if that bucket does not exist yet. The next insertion creates bucket
 * number `buckets` by splitting the bucket that holds its entries so far; a
 * removal joins them again. An operation moves at most one chain, and the size
 * depends only on the number of entries.
 *
 *     hash_segment[0] ──> 64 buckets    objects of the cache hash_segment,
 *     hash_segment[1] ──> 64 buckets    whose constructed state is: all empty
 *     …
 *
 * The table's owner guards it with a spin lock. Segments are allocated and
 * freed without that lock, in hash_extend and hash_trim. If there is no memory
 * for a segment, chains become longer; there is no error.
 *
 * Programs choose what is hashed: names, and numbers of files. So that they
 * cannot choose many of one hash, hashes depend on a key that is chosen at
 * boot.
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

/* Odd, and the same until the next boot. */
extern uint32_t hash_key;

/* The hash of all words so far (at first hash_key) and of one more. The low
 * half of the product alone would not do: bit 31 of a word flips its bit 31
 * with every key, and the next word can flip it back. */
static inline uint32_t hash_mix(uint32_t hash, uint32_t word)
{
    uint64_t product = (uint64_t)(hash ^ word) * hash_key;

    return (uint32_t)product ^ (uint32_t)(product >> 32);
}

/* Chooses the key and creates the cache of segments; initializes an empty
 * table. Boot only. */
void hash_cache_init(void);
void hash_init(struct hash *h);

/* Bucket number i (0 to hash_buckets - 1), and that of a hash. Caller holds the
 * lock. */
static inline struct hash_link **hash_bucket_at(const struct hash *h,
                                                uint32_t i)
{
    return &h->hash_segment[i / HASH_SEGMENT_BUCKETS][i % HASH_SEGMENT_BUCKETS];
}

static inline struct hash_link **hash_bucket(const struct hash *h,
                                             uint32_t hash)
{
    uint32_t i = hash & h->hash_mask;

    if (i >= h->hash_buckets)
        i &= h->hash_mask >> 1;
    return hash_bucket_at(h, i);
}

/* Inserts an entry whose link_hash is set. Caller holds the lock. */
void hash_insert(struct hash *h, struct hash_link *l);

/* Removes an entry. Caller holds the lock. */
void hash_remove(struct hash *h, struct hash_link *l);

/* After hash_insert, without the table's `lock`: allocates memory for the next
 * bucket if none is left. Never sleeps. */
void hash_extend(struct hash *h, struct spinlock *lock);

/* After hash_remove, likewise: frees the memory of removed buckets. Allocates
 * nothing. */
void hash_trim(struct hash *h, struct spinlock *lock);

/* The broken invariant, or NULL. Caller holds the lock. */
const char *hash_verify(const struct hash *h);
