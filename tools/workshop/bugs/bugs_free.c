/*
 * The zoo: frees of what may not be freed.
 */
#include "kernel/lib/string.h"
#include "tools/workshop/bugs/zoo_impl.h"
#include "mm/kmem_stat.h"

ZOO_INLINE struct snode *node_new(void)
{
    return kmem_cache_alloc(zoo_cage(ZOO_SNODE), KM_SLEEP);
}

ZOO_INLINE void node_free(struct snode *n)
{
    kmem_cache_free(zoo_cage(ZOO_SNODE), n);
}

void bug_double_free(void)
{
    struct snode *n = node_new();

    node_free(n);
    zoo_cages_remember(n, NULL);
    kmem_cache_free(zoo_cage(ZOO_SNODE), n); /* culprit: double-free */
    zoo_look();
}

/* Between the two frees it has become somebody else's, who frees it as well:
 * only that can be seen to be wrong. */
void bug_double_free_late(void)
{
    struct kmem_cache *cache = zoo_cage(ZOO_SNODE);
    struct snode *stays = node_new();
    struct snode *mine = node_new();
    struct snode *theirs;

    node_free(mine);
    theirs = node_new();
    zoo_cages_remember(mine, NULL);
    kmem_cache_free(cache, mine); /* culprit: double-free-late */
    zoo_step(ZOO_AT_FREE);
    node_free(theirs);
    zoo_look();
    node_free(stays);
}

/* A buffer of the cache, but nobody was ever given it: the third of a slab of
 * which two are out. */
void bug_free_never(void)
{
    struct snode *one = node_new();
    struct snode *two = node_new();
    char *three = (char *)two + ((char *)two - (char *)one);

    zoo_cages_remember(one, NULL);
    kmem_cache_free(zoo_cage(ZOO_SNODE), three); /* culprit: free-never */
    zoo_look();
    node_free(two);
    node_free(one);
}

/* Not the node: its name. */
void bug_free_interior(void)
{
    struct snode *n = node_new();

    zoo_cages_remember(n, NULL);
    kmem_cache_free(zoo_cage(ZOO_SNODE), n->name); /* culprit: free-interior */
    zoo_look();
    node_free(n);
}

/* Objects of one size, and two caches. */
void bug_free_foreign(void)
{
    struct snode *n = node_new();
    struct conn *c = kmem_cache_alloc(zoo_cage(ZOO_CONN), KM_SLEEP);

    zoo_cages_remember(n, c);
    kmem_cache_free(zoo_cage(ZOO_CONN), n); /* culprit: free-foreign */
    zoo_look();
    kmem_cache_free(zoo_cage(ZOO_CONN), c);
    node_free(n);
}

/* Large objects are looked up in every mode: no address that is wrong gets
 * through. */
void bug_free_stack(void)
{
    struct frame f;
    struct frame *mine = &f;

    zoo_hide(mine);
    kmem_cache_free(zoo_cage(ZOO_FRAME), mine); /* culprit: free-stack */
}

void bug_free_static(void)
{
    static struct frame spare;
    struct frame *mine = &spare;

    zoo_hide(mine);
    kmem_cache_free(zoo_cage(ZOO_FRAME), mine); /* culprit: free-static */
}

/* Both sizes are of one class; between other classes it would do damage. */
void bug_free_size(void)
{
    void *buf = kmem_alloc(330, KM_SLEEP);

    kmem_free(buf, 320); /* culprit: free-size */
}
