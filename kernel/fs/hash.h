/*
 * Hash tables: chains of entries that embed a struct hash_link.
 *
 * The number of buckets is fixed, so a table needs no memory to grow, and an
 * insertion cannot fail. The table's owner guards it with a spin lock.
 *
 * Programs choose what is hashed: names, and numbers of files. So that they
 * cannot choose many of one hash, hashes depend on a key that is chosen at
 * boot.
 */
#pragma once

#include "kernel/x86/spinlock.h"

#define HASH_BUCKETS 1024u /* a power of two */

struct hash_link {
    struct hash_link *link_next;
    uint32_t link_hash;
};

/* An empty table is all zeroes. */
struct hash {
    uint32_t hash_count; /* entries */
    struct hash_link *hash_chain[HASH_BUCKETS];
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

/* Chooses the key. Boot only. */
void hash_init(void);

/* The chain of a hash. Caller holds the lock. */
static inline struct hash_link **hash_bucket(struct hash *h, uint32_t hash)
{
    return &h->hash_chain[hash % HASH_BUCKETS];
}

/* Inserts an entry whose link_hash is set. Caller holds the lock. */
void hash_insert(struct hash *h, struct hash_link *l);

/* Removes an entry. Caller holds the lock. */
void hash_remove(struct hash *h, struct hash_link *l);

/* The broken invariant, or NULL. Caller holds the lock. */
const char *hash_verify(const struct hash *h);
