/*
 * Linear hashing (kernel/fs/hash.h): splitting and joining buckets, and the
 * segments of the bucket array.
 */
#include "kernel/fs/hash.h"
#include "kernel/task/cache.h"
#include "kernel/x86/cpu.h"
#include "mm/kmem.h"

uint32_t hash_key;

static struct kmem_cache *segment_cache;

static void segment_ctor(void *obj, size_t size)
{
    struct hash_link **bucket = obj;

    for (size_t i = 0; i < size / sizeof(*bucket); i++)
        bucket[i] = NULL;
}

/* The key is the time since power-on, whose bits the factor spreads. */
void hash_cache_init(void)
{
    hash_key = (uint32_t)rdtsc() * 0x9e3779b1u | 1;
    segment_cache = cache_create(
        "hash_segment", HASH_SEGMENT_BUCKETS * sizeof(struct hash_link *), 0,
        segment_ctor, NULL);
}

void hash_init(struct hash *h)
{
    *h = (struct hash){.hash_buckets = 1, .hash_mask = 1};
    h->hash_segment[0] = kmem_cache_alloc(segment_cache, KM_SLEEP);
}

/* Whether the segments have room for one more bucket. */
static bool has_room(const struct hash *h)
{
    uint32_t s = h->hash_buckets / HASH_SEGMENT_BUCKETS;

    return s < HASH_SEGMENTS && h->hash_segment[s] != NULL;
}

/* The first segment after the one with the last bucket. */
static uint32_t first_spare(const struct hash *h)
{
    return (h->hash_buckets - 1) / HASH_SEGMENT_BUCKETS + 1;
}

/* Moves to bucket n the entries of bucket n - 2^k that belong there. */
static void split(struct hash *h)
{
    uint32_t n = h->hash_buckets;
    struct hash_link **from = hash_bucket_at(h, n & h->hash_mask >> 1);
    struct hash_link **to = hash_bucket_at(h, n);

    while (*from != NULL) {
        struct hash_link *l = *from;

        if ((l->link_hash & h->hash_mask) != n) {
            from = &l->link_next;
            continue;
        }
        *from = l->link_next;
        l->link_next = *to;
        *to = l;
    }
    h->hash_buckets = n + 1;
    if (h->hash_buckets > h->hash_mask)
        h->hash_mask = 2 * h->hash_mask + 1;
}

/* The reverse: appends the last bucket's chain to the other's. */
static void hash_join(struct hash *h)
{
    uint32_t n = h->hash_buckets - 1;
    struct hash_link **from = hash_bucket_at(h, n);
    struct hash_link **to;

    if (n <= h->hash_mask >> 1)
        h->hash_mask >>= 1;
    to = hash_bucket_at(h, n & h->hash_mask >> 1);
    while (*to != NULL)
        to = &(*to)->link_next;
    *to = *from;
    *from = NULL;
    h->hash_buckets = n;
}

/* At most two at a time: enough to catch up after a lack of memory. */
static void hash_grow(struct hash *h)
{
    for (int i = 0; i < 2 && h->hash_buckets < h->hash_count; i++)
        if (has_room(h))
            split(h);
}

void hash_insert(struct hash *h, struct hash_link *l)
{
    struct hash_link **bucket = hash_bucket(h, l->link_hash);

    l->link_next = *bucket;
    *bucket = l;
    h->hash_count++;
    hash_grow(h);
}

void hash_remove(struct hash *h, struct hash_link *l)
{
    struct hash_link **link = hash_bucket(h, l->link_hash);

    while (*link != l)
        link = &(*link)->link_next;
    *link = l->link_next;
    h->hash_count--;
    if (h->hash_buckets > h->hash_count && h->hash_buckets > 1)
        hash_join(h);
}

void hash_extend(struct hash *h, struct spinlock *lock)
{
    struct hash_link **segment;

    if (h->hash_buckets >= h->hash_count || has_room(h))
        return;
    segment = kmem_cache_alloc(segment_cache, KM_NOSLEEP);
    if (segment == NULL)
        return;
    spin_lock(lock);
    if (first_spare(h) < HASH_SEGMENTS && !has_room(h)) {
        h->hash_segment[first_spare(h)] = segment;
        segment = NULL;
        hash_grow(h);
    }
    spin_unlock(lock);
    if (segment != NULL)
        kmem_cache_free(segment_cache, segment);
}

void hash_trim(struct hash *h, struct spinlock *lock)
{
    for (uint32_t s = first_spare(h);
         s < HASH_SEGMENTS && h->hash_segment[s] != NULL; s++) {
        struct hash_link **segment = NULL;

        spin_lock(lock);
        if (s >= first_spare(h) && h->hash_buckets >= h->hash_count) {
            segment = h->hash_segment[s];
            h->hash_segment[s] = NULL;
        }
        spin_unlock(lock);
        if (segment == NULL)
            return;
        kmem_cache_free(segment_cache, segment);
    }
}

const char *hash_verify(const struct hash *h)
{
    uint32_t n = 0;

    if (h->hash_buckets < 1 || h->hash_buckets > h->hash_mask ||
        h->hash_buckets <= h->hash_mask >> 1)
        return "hash: mask does not match the number of buckets";
    for (uint32_t i = 0; i < h->hash_buckets; i++) {
        if (h->hash_segment[i / HASH_SEGMENT_BUCKETS] == NULL)
            return "hash: bucket without memory";
        for (struct hash_link *l = *hash_bucket_at(h, i); l; l = l->link_next) {
            if (hash_bucket(h, l->link_hash) != hash_bucket_at(h, i))
                return "hash: entry in the wrong bucket";
            if (++n > h->hash_count)
                return "hash: more entries than counted, or a cyclic chain";
        }
    }
    return n == h->hash_count ? NULL : "hash: fewer entries than counted";
}
