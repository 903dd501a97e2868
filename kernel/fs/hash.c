/*
 * Hash tables (kernel/fs/hash.h).
 */
#include "kernel/fs/hash.h"
#include "kernel/x86/cpu.h"

uint32_t hash_key;

/* The key is the time since power-on, whose bits the factor spreads. */
void hash_init(void)
{
    hash_key = (uint32_t)rdtsc() * 0x9e3779b1u | 1;
}

void hash_insert(struct hash *h, struct hash_link *l)
{
    struct hash_link **bucket = hash_bucket(h, l->link_hash);

    l->link_next = *bucket;
    *bucket = l;
    h->hash_count++;
}

void hash_remove(struct hash *h, struct hash_link *l)
{
    struct hash_link **link = hash_bucket(h, l->link_hash);

    while (*link != l)
        link = &(*link)->link_next;
    *link = l->link_next;
    h->hash_count--;
}

const char *hash_verify(const struct hash *h)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < HASH_BUCKETS; i++)
        for (struct hash_link *l = h->hash_chain[i]; l; l = l->link_next) {
            if (l->link_hash % HASH_BUCKETS != i)
                return "hash: entry in the wrong bucket";
            if (++n > h->hash_count)
                return "hash: more entries than counted, or a cyclic chain";
        }
    return n == h->hash_count ? NULL : "hash: fewer entries than counted";
}
