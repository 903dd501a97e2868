/*
 * Planted bugs: wrong frees.
 */
#include "kernel/lib/string.h"
#include "tools/workshop/bugs/bugs_impl.h"
#include "mm/inspect/kmem_stat.h"

void bug_double_free(void)
{
    struct snode *n = node_alloc();

    node_free(n);
    bugs_sandboxes_remember(n, NULL);
    kmem_cache_free(bugs_sandbox(BUGS_SNODE), n); /* culprit: double-free */
    bugs_look();
}

/* Between the two frees the buffer is allocated again, and its new owner frees
 * it too: only that free can be seen to be wrong. */
void bug_double_free_late(void)
{
    struct kmem_cache *cache = bugs_sandbox(BUGS_SNODE);
    struct snode *stays = node_alloc();
    struct snode *mine = node_alloc();
    struct snode *theirs;

    node_free(mine);
    theirs = node_alloc();
    bugs_sandboxes_remember(mine, NULL);
    kmem_cache_free(cache, mine); /* culprit: double-free-late */
    bugs_step(BUGS_AT_FREE);
    node_free(theirs);
    bugs_look();
    node_free(stays);
}

/* A buffer of the cache that was never allocated: the third of a slab of which
 * two are allocated. */
void bug_free_never(void)
{
    struct snode *one = node_alloc();
    struct snode *two = node_alloc();
    char *three = (char *)two + ((char *)two - (char *)one);

    bugs_sandboxes_remember(one, NULL);
    kmem_cache_free(bugs_sandbox(BUGS_SNODE), three); /* culprit: free-never */
    bugs_look();
    node_free(two);
    node_free(one);
}

/* Frees the node's name instead of the node. */
void bug_free_interior(void)
{
    struct snode *n = node_alloc();
    char *in = n->name;

    bugs_sandboxes_remember(n, NULL);
    kmem_cache_free(bugs_sandbox(BUGS_SNODE), in); /* culprit: free-interior */
    bugs_look();
    node_free(n);
}

/* Two caches with objects of one size. */
void bug_free_foreign(void)
{
    struct snode *n = node_alloc();
    struct conn *c = kmem_cache_alloc(bugs_sandbox(BUGS_CONN), KM_SLEEP);

    bugs_sandboxes_remember(n, c);
    kmem_cache_free(bugs_sandbox(BUGS_CONN), n); /* culprit: free-foreign */
    bugs_look();
    kmem_cache_free(bugs_sandbox(BUGS_CONN), c);
    node_free(n);
}

/* Large objects are looked up in every mode: a wrong address is always
 * reported. */
void bug_free_stack(void)
{
    struct frame f;
    struct frame *mine = &f;

    bugs_hide(mine);
    kmem_cache_free(bugs_sandbox(BUGS_FRAME), mine); /* culprit: free-stack */
}

void bug_free_static(void)
{
    static struct frame spare;
    struct frame *mine = &spare;

    bugs_hide(mine);
    kmem_cache_free(bugs_sandbox(BUGS_FRAME), mine); /* culprit: free-static */
}

/* Both sizes are of one class; between other classes it would do damage. */
void bug_free_size(void)
{
    void *buf = kmem_alloc(330, KM_SLEEP);

    kmem_free(buf, 320); /* culprit: free-size */
}
