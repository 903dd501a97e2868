/*
 * A queue for one processor that puts and one that gets: see shared.h.
 *
 * No lock: each count has one writer. The slots between the counts hold items.
 * A slot is the putter's until the tail has passed it, and the getter's until
 * the head has.
 */
#include "docs/labs/09-processors/services/shared.h"

bool ring_put(struct ring *r, void *item)
{
    uint32_t tail = r->ring_tail;

    if (tail - __atomic_load_n(&r->ring_head, __ATOMIC_ACQUIRE) == RING_SLOTS)
        return false;
    r->ring_slot[tail % RING_SLOTS] = item;
    __atomic_store_n(&r->ring_tail, tail + 1, __ATOMIC_RELEASE);
    return true;
}

void *ring_get(struct ring *r)
{
    uint32_t head = r->ring_head;
    void *item;

    if (head == __atomic_load_n(&r->ring_tail, __ATOMIC_ACQUIRE))
        return NULL;
    item = __atomic_load_n(&r->ring_slot[head % RING_SLOTS], __ATOMIC_ACQUIRE);
    __atomic_store_n(&r->ring_head, head + 1, __ATOMIC_RELEASE);
    return item;
}
