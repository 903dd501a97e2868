/*
 * Planted bugs: memory used before it is initialised, or after it was freed.
 */
#include "kernel/lib/string.h"
#include "tools/workshop/bugs/bugs_impl.h"

static struct snode root;

/* It works by chance as long as the buffer's last owner stored a valid pointer
 * there. */
void bug_uninitialised(void)
{
    struct snode *stays = node_alloc();
    struct snode *n = node_alloc();

    n->next = &root;
    node_free(n);
    n = node_alloc();
    n->next->seen = 5; /* culprit: uninitialised */
    bugs_step(BUGS_NEVER);
    node_free(n);
    node_free(stays);
}

/* Reads the pointer to the next node from a node that is already freed. */
void bug_free_loop(void)
{
    struct snode *head = NULL;
    uint32_t sum = 0;

    for (uint32_t i = 0; i < 3; i++) {
        struct snode *n = node_alloc();

        n->next = head;
        n->key = i;
        head = n;
    }
    for (struct snode *n = head; n != NULL;
         n = n->next) { /* culprit: free-loop */
        sum += n->key;
        node_free(n);
    }
    bugs_hide(sum);
}

void bug_read_after_free(void)
{
    struct snode *n = node_alloc();
    uint32_t key;

    n->key = 7;
    node_free(n);
    key = n->key; /* culprit: read-after-free */
    bugs_hide(key);
}

/* A client must free an object as constructed: here with no users. */
void bug_constructed(void)
{
    struct kmem_cache *cache = bugs_sandbox(BUGS_CONN);
    struct conn *c = kmem_cache_alloc(cache, KM_SLEEP);

    c->conn_users++;
    strlcpy(c->conn_peer, "somebody", sizeof(c->conn_peer));
    kmem_cache_free(cache, c); /* culprit: constructed */
    bugs_step(BUGS_AT_REAP);
    kmem_cache_reap(cache, KMEM_REAP_ALL);
}

/* A request of zero bytes returns NULL. */
void bug_zero_bytes(void)
{
    size_t names = 0;
    uint32_t *index;

    bugs_hide(names);
    index = kmem_alloc(names * sizeof(*index), KM_SLEEP);
    bugs_hide(index);
    index[0] = 0; /* culprit: zero-bytes */
}
